//! The inputs of a link line by name, each with the states of the line that decide how the linker takes it.
//!
//! Asks only whether files exist, as the library search must. The states are those of `LinkerDriver::createFiles` in
//! `lld/ELF/Driver.cpp`.

use std::path::PathBuf;

use super::{InputError, LinkInputs};
use crate::link_line::{Argument, LinkOption};
use crate::linker::elf::search::Search;
use crate::linker::options::{may_read, of};
use crate::words::{lossy, path_of};

/// An input of the line before its file was looked at.
pub struct Named {
    pub path: PathBuf,
    pub words: Vec<String>,
    pub in_lib: bool,
    pub whole_archive: bool,
    pub binary: bool,
}

/// A part of the line before its file was looked at.
pub enum LinePart {
    Option(LinkOption),
    Input(Named),
}

/// Walks the line, keeping the states that decide how an input is taken.
pub fn name_parts(arguments: &[Argument], inputs: &mut LinkInputs) -> Vec<LinePart> {
    let search = Search::of(arguments);
    let mut state = LineState::default();
    let mut parts = Vec::with_capacity(arguments.len());
    for argument in arguments {
        match argument {
            Argument::Option(option) => {
                state.step(option);
                inputs.files.extend(may_read(option));
                parts.push(LinePart::Option(option.clone()));
            }
            Argument::Input(word) => {
                let path = path_of(word);
                let words = vec![lossy(word)];
                parts.push(LinePart::Input(state.input(path, words)));
            }
            Argument::Library(name) => {
                let found = search.library(name, state.current.only_static);
                inputs.absent.extend(found.absent);
                let words = vec![format!("-l{name}")];
                match found.file {
                    Some(path) => parts.push(LinePart::Input(state.input(path, words))),
                    // The linker says so in its own words.
                    None => parts.push(LinePart::Option(LinkOption {
                        name: "library".to_owned(),
                        value: None,
                        words,
                    })),
                }
            }
        }
    }
    parts
}

#[derive(Clone, Copy, Default)]
struct Toggles {
    whole_archive: bool,
    only_static: bool,
}

#[derive(Default)]
struct LineState {
    current: Toggles,
    pushed: Vec<Toggles>,
    in_lib: bool,
    binary: bool,
}

impl LineState {
    fn step(&mut self, option: &LinkOption) {
        match option.name.as_str() {
            "whole-archive" => self.current.whole_archive = true,
            "no-whole-archive" => self.current.whole_archive = false,
            "Bstatic" => self.current.only_static = true,
            "Bdynamic" => self.current.only_static = false,
            "push-state" => self.pushed.push(self.current),
            "pop-state" => self.current = self.pushed.pop().unwrap_or(self.current),
            "start-lib" => self.in_lib = true,
            "end-lib" => self.in_lib = false,
            "format" => self.binary = option.value.as_deref() == Some("binary"),
            _ => {}
        }
    }

    fn input(&self, path: PathBuf, words: Vec<String>) -> Named {
        Named {
            path,
            words,
            in_lib: self.in_lib,
            whole_archive: self.current.whole_archive,
            binary: self.binary,
        }
    }
}

/// Options that change which inputs there are, so that what was planned would not be what is linked.
pub fn refuse(option: &LinkOption) -> Result<(), InputError> {
    let remedy = match of(option).map(|known| known.canonical) {
        Some("remap-inputs" | "remap-inputs-file") => "name the replaced inputs on the link line",
        Some("thinlto-object-suffix-replace" | "thinlto-prefix-replace") => {
            "distlto chooses where shards go; remove the option"
        }
        _ => return Ok(()),
    };
    Err(InputError::Option { option: option.words.join(" "), remedy })
}
