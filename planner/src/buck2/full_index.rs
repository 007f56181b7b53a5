//! The option `--thinlto-full-index` of a private linker: whether a linker has it, and a link command without it.
//!
//! A driver hands it over in `-Wl,` lists or after `-Xlinker`; response files may hold it, at the driver's level and at
//! the linker's. Does not depend on the option's output.

use std::path::{Path, PathBuf};

use distlto_prepare::io_error::IoError;
use distlto_prepare::write::write_atomically;

use crate::invocation::{ProgramKind, program};
use crate::link_command::LinkCommandError;
use crate::response::{self, MAX_DEPTH, ResponseError};
use crate::runner::{Runner, ToolError};
use crate::words::{Word, lossy, path_of, word_of};

/// The option without its dashes.
const OPTION: &[u8] = b"thinlto-full-index";

/// Who reads a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexReader {
    /// A compiler driver.
    Driver,
    /// The linker.
    Linker,
}

impl IndexReader {
    /// Who reads the arguments of a command.
    pub fn of(command: &[Word]) -> Self {
        let Some(name) = command.first() else { return Self::Driver };
        match program(&lossy(name), command.get(1).map(Vec::as_slice)) {
            ProgramKind::Lld | ProgramKind::OtherLinker => Self::Linker,
            ProgramKind::Clang | ProgramKind::OtherDriver => Self::Driver,
        }
    }

    /// The word that has the linker name each file that it loads: `-t`, which lld knows for ELF and for Mach-O.
    pub fn trace(self) -> Word {
        match self {
            Self::Driver => b"-Wl,-t".to_vec(),
            Self::Linker => b"-t".to_vec(),
        }
    }
}

/// Whether a linker has the option: with one that it does not know, it complains.
pub fn is_known_to(linker: &[Word], runner: &dyn Runner) -> Result<bool, LinkCommandError> {
    let mut question = linker.to_vec();
    question.extend([b"--thinlto-full-index".to_vec(), b"--version".to_vec()]);
    let answer =
        runner.run(&question).map_err(|source| ToolError::Start { program: lossy(&linker[0]), source })?;
    // ld64.lld complains and ends well.
    let complains = answer.stderr.windows(OPTION.len()).any(|window| window == OPTION);
    Ok(answer.status.success() && !complains)
}

/// Returns a command without the option; `None` where it has none. Response files with the option are rewritten below
/// `scratch`.
pub fn without(
    command: &[Word],
    reader: IndexReader,
    scratch: &Path,
) -> Result<Option<Vec<Word>>, LinkCommandError> {
    Ok(Removal { scratch, files: 0 }.words(command, reader, 0)?)
}

struct Removal<'a> {
    scratch: &'a Path,
    files: usize,
}

impl Removal<'_> {
    /// The words without the option; `None` where nothing changes.
    fn words(
        &mut self,
        words: &[Word],
        reader: IndexReader,
        depth: usize,
    ) -> Result<Option<Vec<Word>>, ResponseError> {
        let mut kept = Vec::with_capacity(words.len());
        let mut changed = false;
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let takes_next = reader == IndexReader::Driver && word == b"-Xlinker";
            let part = match rest.as_slice().first() {
                Some(next) if takes_next => {
                    rest.next();
                    match self.word(next, IndexReader::Linker, depth)? {
                        WordChange::Same => {
                            kept.extend([word.clone(), next.clone()]);
                            continue;
                        }
                        WordChange::Gone => WordChange::Gone,
                        WordChange::Other(other) => {
                            kept.push(word.clone());
                            WordChange::Other(other)
                        }
                    }
                }
                _ => self.word(word, reader, depth)?,
            };
            match part {
                WordChange::Same => kept.push(word.clone()),
                WordChange::Gone => changed = true,
                WordChange::Other(other) => {
                    changed = true;
                    kept.push(other);
                }
            }
        }
        Ok(changed.then_some(kept))
    }

    fn word(&mut self, word: &[u8], reader: IndexReader, depth: usize) -> Result<WordChange, ResponseError> {
        if let Some(file) = word.strip_prefix(b"@").filter(|file| !file.is_empty()) {
            return self.response_file(path_of(file), reader, depth);
        }
        match (reader, word.strip_prefix(b"-Wl,")) {
            (IndexReader::Driver, Some(list)) => self.list(list, depth),
            (IndexReader::Driver, None) => Ok(WordChange::Same),
            (IndexReader::Linker, _) => Ok(if is_option(word) { WordChange::Gone } else { WordChange::Same }),
        }
    }

    /// The words of a `-Wl,` list.
    fn list(&mut self, list: &[u8], depth: usize) -> Result<WordChange, ResponseError> {
        let words: Vec<Word> = list.split(|&byte| byte == b',').map(<[u8]>::to_vec).collect();
        Ok(match self.words(&words, IndexReader::Linker, depth)? {
            None => WordChange::Same,
            Some(kept) if kept.is_empty() => WordChange::Gone,
            Some(kept) => WordChange::Other(
                [&b"-Wl"[..]]
                    .into_iter()
                    .chain(kept.iter().map(Vec::as_slice))
                    .collect::<Vec<_>>()
                    .join(&b','),
            ),
        })
    }

    fn response_file(
        &mut self,
        file: PathBuf,
        reader: IndexReader,
        depth: usize,
    ) -> Result<WordChange, ResponseError> {
        let Some(text) = response::read(&file)? else { return Ok(WordChange::Same) };
        if depth == MAX_DEPTH {
            return Err(ResponseError::TooDeep { path: file });
        }
        let Some(kept) = self.words(&response::tokenize(&text), reader, depth + 1)? else {
            return Ok(WordChange::Same);
        };
        self.files += 1;
        let other = self.scratch.join(format!("arguments-{}", self.files));
        write_atomically(&other, &response::content(kept.iter().map(Vec::as_slice)))?;
        let mut word = b"@".to_vec();
        word.extend(word_of(other.into_os_string()));
        Ok(WordChange::Other(word))
    }
}

enum WordChange {
    Same,
    Gone,
    Other(Word),
}

fn is_option(word: &[u8]) -> bool {
    word.strip_prefix(b"-").is_some_and(|rest| rest.strip_prefix(b"-").unwrap_or(rest) == OPTION)
}

/// A directory for rewritten response files.
pub fn scratch() -> Result<tempfile::TempDir, IoError> {
    let parent = std::env::temp_dir();
    tempfile::Builder::new()
        .prefix("distlto-arguments-")
        .tempdir_in(&parent)
        .map_err(IoError::on("create directory", &parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_file_that_contains_itself_is_refused() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("list").display().to_string();
        let command = [b"clang++".to_vec(), format!("@{path}").into_bytes()];
        std::fs::write(&path, &command[1]).expect("written");
        let looped = without(&command, IndexReader::Driver, directory.path());
        assert!(matches!(looped, Err(LinkCommandError::Response(ResponseError::TooDeep { .. }))));
    }
}
