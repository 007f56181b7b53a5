//! Effects of a link line's options, from the flavour's table. Lookups use the name that all spellings share.

use super::elf::table::OPTIONS;
use crate::link_line::{Argument, LinkOption, options};
use crate::options::{Opt, Value};

/// Returns the table's entry for an option of a line.
pub fn of(option: &LinkOption) -> Option<&'static Opt> {
    let name = option.name.as_str();
    let key = name.split('=').next().unwrap_or(name);
    let named = OPTIONS.iter().find(|known| known.name == name);
    let exact = named.or_else(|| OPTIONS.iter().find(|known| known.canonical == name));
    let valued = || {
        let holds = |value: &Value| matches!(value, Value::EqualsOnly | Value::Optional);
        OPTIONS.iter().find(|known| known.name == key && holds(&known.value))
    };
    let begun = || {
        let begins = |known: &&Opt| known.value == Value::Joined && name.starts_with(known.name);
        OPTIONS.iter().filter(begins).max_by_key(|known| known.name.len())
    };
    exact.or_else(valued).or_else(begun)
}

/// Whether an option is the one of this name, in any spelling.
pub fn is(option: &LinkOption, name: &str) -> bool {
    match of(option) {
        Some(known) => known.canonical == name,
        None => option.name.split('=').next() == Some(name),
    }
}

/// The last of a line's options of this name, in any spelling, which is the one that counts.
pub fn last<'a>(arguments: &'a [Argument], name: &str) -> Option<&'a LinkOption> {
    options(arguments).rev().find(|option| is(option, name))
}

/// The value of an option, wherever the line's words have it.
pub fn value(option: &LinkOption) -> Option<&str> {
    option.value.as_deref().or_else(|| {
        let Some(known) = of(option) else {
            return option.name.split_once('=').map(|(_, value)| value);
        };
        let after = option.name.strip_prefix(known.name)?;
        let value = match known.value {
            Value::Joined => after,
            _ => after.strip_prefix('=').unwrap_or(after),
        };
        (!value.is_empty()).then_some(value)
    })
}
