//! Response files: `@file` arguments, in the quoting rules that LLVM tools and GNU tools share.
//!
//! The rules are LLVM's `TokenizeGNUCommandLine`: blanks separate words, a backslash takes the next byte as it is
//! (inside quotes too), single and double quotes group. Words are bytes, since paths need not be UTF-8. Does not
//! depend on the meaning of the words.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use distlto_prepare::io_error::IoError;
use miette::Diagnostic;
use thiserror::Error;

use crate::words::{Word, path_of};

/// How deep response files may name one another; deeper is taken for a loop.
pub(crate) const MAX_DEPTH: usize = 20;

/// Why response files could not be expanded.
#[derive(Debug, Error, Diagnostic)]
pub enum ResponseError {
    /// A response file that exists could not be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] IoError),
    /// Response files that name one another.
    #[error("response files nest more than {MAX_DEPTH} deep at {}", path.display())]
    #[diagnostic(code(distlto::bad_input), help("one of them names itself; remove that `@` argument"))]
    TooDeep {
        /// The file that was not opened.
        path: PathBuf,
    },
}

/// Splits a response file's content into words. As in LLVM, an empty word is no word.
pub fn tokenize(text: &[u8]) -> Vec<Word> {
    let mut words = split_quoted(text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text));
    words.retain(|word| !word.is_empty());
    words
}

/// Splits text at blanks outside of quotes, undoing quotes and backslashes.
pub fn split_quoted(text: &[u8]) -> Vec<Word> {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => word.get_or_insert_default().extend(bytes.next()),
            b'"' | b'\'' => {
                let word = word.get_or_insert_default();
                while let Some(inner) = bytes.next() {
                    match inner {
                        b'\\' => word.extend(bytes.next()),
                        end if end == byte => break,
                        other => word.push(other),
                    }
                }
            }
            b' ' | b'\t' | b'\r' | b'\n' => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}

/// One word in the form that [`tokenize`] reads back, on a line of its own.
pub fn quote(word: &[u8]) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(word.len() + 2);
    quoted.push(b'"');
    for &byte in word {
        if matches!(byte, b'"' | b'\\') {
            quoted.push(b'\\');
        }
        quoted.push(byte);
    }
    quoted.push(b'"');
    quoted
}

/// The content of a response file that holds these words, one a line.
pub fn content<'a>(words: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut text = Vec::new();
    for word in words {
        text.extend(quote(word));
        text.push(b'\n');
    }
    text
}

/// Replaces every `@file` by the words of that file, nested ones too. As LLVM does, a name that is no file
/// stays as it is, and nested names are relative to the working directory.
pub fn expand(words: impl IntoIterator<Item = Word>) -> Result<Vec<Word>, ResponseError> {
    expand_in(Path::new(""), words)
}

/// [`expand`], for words of a process that runs in this directory.
pub fn expand_in(
    directory: &Path,
    words: impl IntoIterator<Item = Word>,
) -> Result<Vec<Word>, ResponseError> {
    let mut expanded = Vec::new();
    expand_into(words, directory, 0, &mut expanded)?;
    Ok(expanded)
}

fn expand_into(
    words: impl IntoIterator<Item = Word>,
    directory: &Path,
    depth: usize,
    expanded: &mut Vec<Word>,
) -> Result<(), ResponseError> {
    for word in words {
        let Some(name) = word.strip_prefix(b"@").filter(|name| !name.is_empty()) else {
            expanded.push(word);
            continue;
        };
        let path = directory.join(path_of(name));
        match read(&path)? {
            Some(_) if depth == MAX_DEPTH => return Err(ResponseError::TooDeep { path }),
            Some(text) => expand_into(tokenize(&text), directory, depth + 1, expanded)?,
            None => expanded.push(word),
        }
    }
    Ok(())
}

/// Reads a response file. Returns `None` if it is missing, and for a pipe, since only the tool may read a pipe's
/// content.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, IoError> {
    if is_pipe(path) {
        return Ok(None);
    }
    match fs::read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(IoError::on("read", path)(error)),
    }
}

/// Returns whether a file can be read once only, such as a shell's `<(COMMAND)`.
pub fn is_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(text: &str) -> Vec<String> {
        tokenize(text.as_bytes()).into_iter().map(|word| String::from_utf8(word).expect("UTF-8 in")).collect()
    }

    #[test]
    fn quoting_rules_are_those_of_llvm() {
        assert_eq!(split("a b\tc\r\nd"), ["a", "b", "c", "d"]);
        assert_eq!(split(r#"'a b' "c d" e\ f"#), ["a b", "c d", "e f"]);
        assert_eq!(split(r#"-D'x y'=1 "a\"b" 'a\'b' C:\\x"#), ["-Dx y=1", "a\"b", "a'b", "C:\\x"]);
        assert_eq!(split("\u{FEFF}a 'unfinished b"), ["a", "unfinished b"]);
        assert_eq!(split("'' a"), ["a"]);
    }

    #[test]
    fn nested_files_expand_and_loops_end() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (a, b) = (dir.path().join("a.rsp"), dir.path().join("b.rsp"));
        fs::write(&a, format!("one @{} three @nowhere", b.display())).expect("written");
        fs::write(&b, "'two words'").expect("written");
        let at_a = format!("@{}", a.display()).into_bytes();
        let words = expand([at_a.clone()]).expect("expands");
        assert_eq!(words, [&b"one"[..], b"two words", b"three", b"@nowhere"]);
        fs::write(&b, &at_a).expect("written");
        assert!(matches!(expand([at_a]), Err(ResponseError::TooDeep { .. })));
    }

    proptest! {
        #[test]
        fn what_is_quoted_reads_back(words in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..20), 0..20)) {
            prop_assert_eq!(tokenize(&content(words.iter().map(Vec::as_slice))), words);
        }
    }
}
