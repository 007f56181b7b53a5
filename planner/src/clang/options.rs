//! How words of clang are read by a table of its options: the longest name that a word is or begins with counts.
//!
//! A word that no row of the table fits takes no other word for its value.

use crate::options::{Opt, Value};

/// A word that a table knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownWord<'w> {
    /// The table's entry.
    pub option: &'static Opt,
    /// The value that stands in the word itself.
    pub value: &'w [u8],
    /// Whether the next word is a value too.
    pub takes_next: bool,
}

/// Reads one word.
pub fn find<'w>(table: &'static [Opt], word: &'w [u8]) -> Option<KnownWord<'w>> {
    let rest = word.strip_prefix(b"-").filter(|rest| !rest.is_empty())?;
    let (name, dashes) = match rest.strip_prefix(b"-") {
        Some(name) => (name, 2),
        None => (rest, 1),
    };
    let known = |option: &'static Opt| {
        let value = name.strip_prefix(option.name.as_bytes()).filter(|_| option.takes_dashes(dashes))?;
        let known = |value, takes_next| Some(KnownWord { option, value, takes_next });
        match (option.value, value) {
            (Value::None | Value::Optional, []) => known(value, false),
            (Value::Equals | Value::EqualsOnly | Value::Optional, [b'=', value @ ..]) => known(value, false),
            (Value::Equals | Value::Next | Value::Short, []) | (Value::JoinedAndNext, _) => {
                known(value, true)
            }
            (Value::Short | Value::Joined, _) => known(value, false),
            _ => None,
        }
    };
    table.iter().filter_map(known).max_by_key(|known| known.option.name.len())
}
