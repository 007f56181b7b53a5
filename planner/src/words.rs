//! Words of a command line. A word is bytes: paths on Unix need not be UTF-8.
//!
//! Does not depend on the meaning of the words.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// One argument of a command.
pub type Word = Vec<u8>;

/// The path that a word or a part of it names.
pub fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// The word that an argument of this process holds.
pub fn word_of(argument: OsString) -> Word {
    argument.into_vec()
}

/// A word for a message or a format that holds UTF-8 only; other bytes become U+FFFD.
pub fn lossy(word: &[u8]) -> String {
    String::from_utf8_lossy(word).into_owned()
}

/// Quotes a word for a POSIX shell, where it needs it.
pub fn shell_quote(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A command as a line that a POSIX shell runs.
pub fn shell_line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(shell_quote).collect::<Vec<_>>().join(" ")
}
