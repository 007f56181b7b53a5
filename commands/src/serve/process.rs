//! A process as the system knows it.
//!
//! Reads everything from `/proc` (proc(5)) while the process waits for its answer. Does not interpret the program.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use distlto_exec::environment::{HOOK, LIBRARY_NAME};
use distlto_executor::process_stat;
use distlto_executor::trace::memory;
use distlto_planner::link_command::LinkCommand;
use distlto_planner::words::{Word, path_of, word_of};

use super::socket::read;
use crate::link::line::without_further_outputs;

/// Selects a linker's flavour, before all else.
pub const FLAVOUR: &[u8] = b"-flavor";

/// A process of the command.
#[derive(Debug, Clone)]
pub struct Process {
    /// Its number.
    pub id: u32,
    /// Its command line, the program as it was named.
    pub words: Vec<Word>,
    /// Where it runs.
    pub directory: PathBuf,
    /// Its program.
    pub program: PathBuf,
    /// Where this process finds that.
    pub file: PathBuf,
    /// The files that it has mapped.
    pub mapped: Vec<PathBuf>,
    /// The targets of its standard output and its standard error.
    pub streams: [PathBuf; 2],
}

impl Process {
    /// Asks the system.
    pub fn of(id: u32) -> io::Result<Self> {
        let place = PathBuf::from(format!("/proc/{id}"));
        let words = strings_of(&fs::read(place.join("cmdline"))?);
        if words.is_empty() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let directory = fs::read_link(place.join("cwd"))?;
        let file = place.join("exe");
        let program = fs::read_link(&file)?;
        let mapped = mapped(&fs::read(place.join("maps"))?);
        Ok(Self { id, words, directory, program, file, mapped, streams: streams(&place) })
    }

    /// Describes a process that is about to execute a program. `strings` has the program's path, then its command
    /// line.
    pub fn announced(id: u32, strings: File) -> io::Result<Self> {
        let mut words = strings_of(&read(Some(strings))?);
        if words.len() < 2 {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let directory = fs::read_link(format!("/proc/{id}/cwd"))?;
        let program = directory.join(path_of(&words.remove(0)));
        Ok(Self {
            id,
            words,
            directory,
            file: program.clone(),
            program,
            mapped: Vec::new(),
            streams: Default::default(),
        })
    }

    /// Where it runs, if that is another directory than this process's.
    pub fn elsewhere(&self) -> Option<PathBuf> {
        let here = std::env::current_dir().unwrap_or_default();
        Some(self.directory.clone()).filter(|directory| *directory != here)
    }

    /// Whether a variable of its environment has a value.
    pub fn has_variable(&self, name: &str) -> io::Result<bool> {
        Ok(self.variable(name)?.is_some_and(|value| !value.is_empty()))
    }

    /// The value of a variable of the environment that it was started with.
    pub fn variable(&self, name: &str) -> io::Result<Option<OsString>> {
        process_stat::variable(self.id, name)
    }

    /// The strings for a linker: a folder, and its command line with these options.
    pub fn strings(&self, folder: &Path, options: &[Word]) -> io::Result<File> {
        let folder = word_of(folder.to_owned().into_os_string());
        strings([&folder].into_iter().chain(&self.words).chain(options))
    }

    /// The same with this output and no further one, for a linker that goes on to its end if it has nothing to ask.
    pub fn writing_to(&self, output: &Path, link: &LinkCommand) -> Self {
        let mut words = self.words[..linker_words(&self.words)].to_vec();
        words.extend(without_further_outputs(link.line.arguments(), link.line.words()));
        words.extend([b"-o".to_vec(), word_of(output.to_owned().into_os_string())]);
        Self { words, ..self.clone() }
    }

    /// The libraries that it has loaded, without those of distlto.
    pub fn libraries(&self) -> Vec<PathBuf> {
        let is_own = |path: &Path| {
            path.file_name().is_some_and(|name| [HOOK, LIBRARY_NAME].iter().any(|own| name == *own))
        };
        let others = self.mapped.iter().filter(|path| **path != self.program && !is_own(path));
        let mut libraries: Vec<PathBuf> = others.filter(|path| path.is_file()).cloned().collect();
        libraries.sort_unstable();
        libraries.dedup();
        libraries
    }

    /// Its command line with these options.
    pub fn line(&self, options: &[Word]) -> io::Result<File> {
        strings(self.words.iter().chain(options))
    }
}

/// How many words of a command line name the linker.
pub fn linker_words(words: &[Word]) -> usize {
    if flavour(words).is_some() { 3 } else { 1 }.min(words.len())
}

/// The flavour that a linker's command line selects.
pub fn flavour(words: &[Word]) -> Option<&Word> {
    words.get(2).filter(|_| words.get(1).is_some_and(|word| word == FLAVOUR))
}

/// Returns the targets of the standard output and the standard error of a process in `/proc`; empty for a closed one.
pub fn streams(process: &Path) -> [PathBuf; 2] {
    ["fd/1", "fd/2"].map(|stream| fs::read_link(process.join(stream)).unwrap_or_default())
}

/// A file of strings, each ended by NUL.
pub fn strings<'w>(words: impl Iterator<Item = &'w Word>) -> io::Result<File> {
    let mut text = Vec::new();
    for word in words {
        text.extend(word);
        text.push(0);
    }
    let mut strings = memory(0)?;
    strings.write_all(&text)?;
    strings.rewind()?;
    Ok(strings)
}

/// Strings, each ended by NUL.
pub fn strings_of(text: &[u8]) -> Vec<Word> {
    let words = text.split_inclusive(|&byte| byte == 0).map(|word| word.strip_suffix(&[0]).unwrap_or(word));
    words.map(<[u8]>::to_vec).collect()
}

/// The files of a process's mappings: the sixth field of each line, which is the rest of it.
fn mapped(maps: &[u8]) -> Vec<PathBuf> {
    let name = |line: &[u8]| {
        let at = line.iter().position(|&byte| byte == b'/')?;
        Some(PathBuf::from(std::ffi::OsStr::from_bytes(&line[at..])))
    };
    let mut files: Vec<PathBuf> = maps.split(|&byte| byte == b'\n').filter_map(name).collect();
    files.dedup();
    files
}
