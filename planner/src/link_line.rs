//! A link line of ld.lld as typed arguments: inputs, libraries, and options with their words.
//!
//! Pure: reads words, not files. `linker` lists the options that take a value; `inputs` classifies the inputs.

use miette::Diagnostic;
use thiserror::Error;

use crate::linker::WordShape;
use crate::linker::elf::shape::shape;
use crate::words::{Word, lossy};

/// Why a link line could not be read.
#[derive(Debug, Error, Diagnostic)]
pub enum LinkLineError {
    /// An option at the end of the line lacks its value.
    #[error("the link line ends after {option}, which takes a value")]
    #[diagnostic(code(distlto::usage), help("add the value, or remove the option"))]
    ValueMissing {
        /// The option as it was written.
        option: String,
    },
    /// A word other than an input that is not UTF-8.
    #[error("the link line's {option:?} is not UTF-8")]
    #[diagnostic(
        code(distlto::usage),
        help("only names of input files may be other bytes; give this file or directory another name")
    )]
    NotUtf8 {
        /// The word, with other bytes as U+FFFD.
        option: String,
    },
}

/// One argument of a link line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    /// An input file, by path.
    Input(Word),
    /// `-lNAME` or `-l:FILE`.
    Library(String),
    /// Anything else.
    Option(LinkOption),
}

/// An option of the linker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkOption {
    /// The name without dashes, one spelling for each option: `output`, `whole-archive`, `plugin-opt=O3`.
    pub name: String,
    /// The value of an option that takes one.
    pub value: Option<String>,
    /// The words as they were written.
    pub words: Vec<String>,
}

/// A parsed link line: the words after the linker's own name, with response files expanded, and their arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkLine {
    words: Vec<Word>,
    arguments: Vec<Argument>,
}

impl LinkLine {
    /// Reads the words; response files are expanded already.
    pub fn read(words: Vec<Word>) -> Result<Self, LinkLineError> {
        let arguments = parse(words.iter().cloned())?;
        Ok(Self { words, arguments })
    }

    /// A line that another flavour's words make.
    pub fn of(words: Vec<Word>, arguments: Vec<Argument>) -> Self {
        Self { words, arguments }
    }

    /// The words as the linker gets them.
    pub fn words(&self) -> &[Word] {
        &self.words
    }

    /// Returns the parsed arguments.
    pub fn arguments(&self) -> &[Argument] {
        &self.arguments
    }

    /// The output that it names; the linker's own default where it names none.
    pub fn output(&self) -> &str {
        last_value(&self.arguments, "output").unwrap_or("a.out")
    }

    /// The line with other input files.
    pub fn with_inputs(mut self, rename: impl Fn(&mut Word)) -> Self {
        self.words.iter_mut().for_each(&rename);
        for argument in &mut self.arguments {
            if let Argument::Input(file) = argument {
                rename(file);
            }
        }
        self
    }
}

/// Reads the words of a link line after the linker's own name; response files are expanded already.
pub fn parse(words: impl IntoIterator<Item = Word>) -> Result<Vec<Argument>, LinkLineError> {
    let mut arguments = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let (name, value, words) = match shape(&word) {
            WordShape::Input => {
                arguments.push(Argument::Input(word));
                continue;
            }
            WordShape::Flag(name) => (name, None, vec![utf8(word)?]),
            WordShape::Joined(name, at) => {
                let word = utf8(word)?;
                (name, Some(word[at..].to_owned()), vec![word])
            }
            WordShape::Separate(name) => {
                let word = utf8(word)?;
                let Some(value) = words.next() else {
                    return Err(LinkLineError::ValueMissing { option: word });
                };
                let value = utf8(value)?;
                match name.as_str() {
                    // As `--plugin-opt=VALUE`, the spelling that everything after this knows.
                    "plugin-opt" => (format!("plugin-opt={value}"), None, vec![word, value]),
                    _ => (name, Some(value.clone()), vec![word, value]),
                }
            }
        };
        arguments.push(match value {
            Some(library) if name == "library" => Argument::Library(library),
            value => Argument::Option(LinkOption { name, value, words }),
        });
    }
    Ok(arguments)
}

/// A word that is to be an option.
pub(crate) fn utf8(word: Word) -> Result<String, LinkLineError> {
    String::from_utf8(word).map_err(|error| LinkLineError::NotUtf8 { option: lossy(error.as_bytes()) })
}

/// The last value of an option, which is the one that counts.
pub fn last_value<'a>(arguments: &'a [Argument], name: &str) -> Option<&'a str> {
    options(arguments).rev().find_map(|option| match option.name.strip_prefix(name)? {
        "" => option.value.as_deref(),
        // A value that cannot stand in a word of its own is in the name.
        rest => rest.strip_prefix('='),
    })
}

/// Whether the last of two opposite flags is the first of them.
pub fn is_on(arguments: &[Argument], on: &str, off: &str) -> bool {
    options(arguments)
        .rev()
        .find(|option| option.name == on || option.name == off)
        .is_some_and(|option| option.name == on)
}

/// The options of a link line, in order.
pub fn options(arguments: &[Argument]) -> impl DoubleEndedIterator<Item = &LinkOption> {
    arguments.iter().filter_map(|argument| match argument {
        Argument::Option(option) => Some(option),
        Argument::Input(_) | Argument::Library(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_value_and_other_bytes_are_errors() {
        assert!(matches!(parse([b"a.o".to_vec(), b"-o".to_vec()]), Err(LinkLineError::ValueMissing { .. })));
        assert!(matches!(parse([b"-L\xff".to_vec()]), Err(LinkLineError::NotUtf8 { .. })));
        assert!(parse([b"\xff.o".to_vec()]).is_ok());
    }
}
