//! The words of a linker's line that ask for outputs, and this program as a linker starts it.

use std::path::PathBuf;

use distlto_planner::link_line::{Argument, LinkOption, options};
use distlto_planner::linker::options::of;
use distlto_planner::options::Files;
use distlto_planner::words::Word;
use distlto_prepare::io_error::IoError;

use crate::link::error::LinkError;

fn asks_for_temporaries(option: &LinkOption) -> bool {
    of(option).is_some_and(|known| known.files == Files::Temporaries) || option.name == "reproduce"
}

fn writes(option: &LinkOption) -> bool {
    of(option).is_some_and(|known| matches!(known.files, Files::Written | Files::Beside))
}

/// The words of a line that asks for a program alone.
pub fn without_further_outputs(arguments: &[Argument], words: &[Word]) -> Vec<Word> {
    let asking: Vec<Vec<&[u8]>> = options(arguments)
        .filter(|option| asks_for_temporaries(option) || writes(option))
        .map(|option| option.words.iter().map(|word| word.as_bytes()).collect())
        .collect();
    let mut left = words;
    let mut kept = Vec::new();
    while let [first, rest @ ..] = left {
        let begins = |option: &&Vec<&[u8]>| {
            option.len() <= left.len() && left.iter().zip(option.iter()).all(|(word, own)| word == own)
        };
        match asking.iter().find(begins) {
            Some(option) => left = &left[option.len()..],
            None => {
                kept.push(first.clone());
                left = rest;
            }
        }
    }
    kept
}

/// This program, which the linker is to start.
pub fn own_program() -> Result<PathBuf, LinkError> {
    let path = std::env::current_exe().map_err(IoError::on("find", "this program"))?;
    if path.is_file() { Ok(path) } else { Err(LinkError::NoDistributor { path }) }
}
