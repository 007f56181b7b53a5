//! How words of an ld.lld line are read, by the table of its options.
//!
//! An option that is not in the table is a flag; its whole word is kept as it is.

use super::table::OPTIONS;
use crate::options::Value;

/// How one word of a link line is to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordShape {
    /// Not an option: an input file.
    Input,
    /// An option without a value; a value that cannot stand in a word of its own stays in the name: `name=value`.
    Flag(String),
    /// An option with its value in the same word, from this byte on.
    Joined(String, usize),
    /// An option with its value in the next word.
    Separate(String),
}

/// Reads one word.
pub fn shape(word: &[u8]) -> WordShape {
    let Some(rest) = word.strip_prefix(b"-").filter(|rest| !rest.is_empty()) else {
        return WordShape::Input;
    };
    let (name, dashes) = match rest.strip_prefix(b"-") {
        Some(name) => (name, 2),
        None => (rest, 1),
    };
    // With `=` the value names an option of its own, so it stays in the name.
    if name == b"plugin-opt" {
        return WordShape::Separate("plugin-opt".to_owned());
    }
    let (key, value_at) = match name.iter().position(|&byte| byte == b'=') {
        Some(at) => (&name[..at], Some(dashes + at + 1)),
        None => (name, None),
    };
    let whole = || WordShape::Flag(String::from_utf8_lossy(name).into_owned());
    let known = |wanted: &[u8]| {
        OPTIONS.iter().find(move |option| option.name.as_bytes() == wanted && option.takes_dashes(dashes))
    };
    if let Some(option) = known(key) {
        let canonical = option.canonical.to_owned();
        match (option.value, value_at) {
            (Value::Equals, Some(at)) => return WordShape::Joined(canonical, at),
            (Value::Equals | Value::Next | Value::Short, None) => return WordShape::Separate(canonical),
            (Value::None | Value::Optional, None) => return WordShape::Flag(canonical),
            (Value::EqualsOnly | Value::Optional, Some(_)) => return whole(),
            // A word that only begins like it.
            _ => {}
        }
    }
    match name.get(..1).and_then(known).filter(|option| option.value == Value::Short) {
        Some(option) => WordShape::Joined(option.canonical.to_owned(), dashes + 1),
        None => whole(),
    }
}
