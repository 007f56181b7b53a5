//! The program that a build's processes start in the place of a linker that loads no library.
//!
//! It asks the service for the linker's command line, and becomes the linker. Without a service the line stays as it is.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use distlto_exec::environment::SERVICE;
use distlto_planner::words::{Word, path_of, word_of};

use super::process::{strings, strings_of};
use super::protocol::{Role, announcement};
use super::socket::{Connection, Received, read};

/// Becomes a linker. The arguments are its path, and the words that it was started with. Returns only if it cannot be
/// started.
pub fn become_linker(arguments: impl Iterator<Item = OsString>) -> io::Error {
    let mut words: Vec<Word> = arguments.map(word_of).collect();
    if words.len() < 2 {
        return io::ErrorKind::InvalidInput.into();
    }
    let folder = std::env::var_os(SERVICE);
    // A service that is gone is no reason for the linker not to run.
    let line = folder.and_then(|folder| ask(Path::new(&folder), &words).ok().flatten());
    let program = words.remove(0);
    let words = line.unwrap_or(words);
    let mut linker = Command::new(path_of(&program));
    linker.arg0(path_of(&words[0])).args(words[1..].iter().map(|word| path_of(word)));
    // Its own children do not use the service.
    linker.env_remove(SERVICE).exec()
}

/// Asks for the command line of a linker; `None` if it stays as it is.
fn ask(folder: &Path, words: &[Word]) -> io::Result<Option<Vec<Word>>> {
    let service = Connection::connect(folder)?;
    let words = strings(words.iter())?;
    service.send(&announcement(), &[words.as_fd()])?;
    let mut bytes = [0];
    let Received::Packet(role, [line @ Some(_), _]) = service.receive(&mut bytes, None)? else {
        return Ok(None);
    };
    if Role::from_byte(role[0]) != Some(Role::Program) {
        return Ok(None);
    }
    Ok(Some(strings_of(&read(line)?)).filter(|words| !words.is_empty()))
}
