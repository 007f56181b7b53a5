//! What the options of a link line do, by the flavour's table of them. Asked for by the name that all spellings share.

use std::path::PathBuf;

use super::ELF;
use crate::link_line::{Argument, LinkOption, last_value, options};
use crate::options::{Files, LinkStep, Opt, Value};

/// What the table says of an option of a line.
pub fn of(option: &LinkOption) -> Option<&'static Opt> {
    let name = option.name.as_str();
    let key = name.split('=').next().unwrap_or(name);
    let named = ELF.options.iter().find(|known| known.name == name);
    let exact = named.or_else(|| ELF.options.iter().find(|known| known.canonical == name));
    let valued = || {
        let holds = |value: &Value| matches!(value, Value::EqualsOnly | Value::Optional);
        ELF.options.iter().find(|known| known.name == key && holds(&known.value))
    };
    let begun = || {
        let begins = |known: &&Opt| known.value == Value::Joined && name.starts_with(known.name);
        ELF.options.iter().filter(begins).max_by_key(|known| known.name.len())
    };
    exact.or_else(valued).or_else(begun)
}

/// Whether an option is the one of this name, in any spelling.
pub fn is(option: &LinkOption, name: &str) -> bool {
    of(option).is_some_and(|known| known.canonical == name)
}

/// The last of a line's options of this name, in any spelling, which is the one that counts.
pub fn last<'a>(arguments: &'a [Argument], name: &str) -> Option<&'a LinkOption> {
    options(arguments).rev().find(|option| is(option, name))
}

/// The step that an option is for.
pub fn step(option: &LinkOption) -> LinkStep {
    of(option).map_or(LinkStep::Every, |known| known.step)
}

/// The value of an option, wherever the line's words have it.
pub fn value(option: &LinkOption) -> Option<&str> {
    option.value.as_deref().or_else(|| {
        let known = of(option)?;
        let after = option.name.strip_prefix(known.name)?;
        let value = match known.value {
            Value::Joined => after,
            _ => after.strip_prefix('=').unwrap_or(after),
        };
        (!value.is_empty()).then_some(value)
    })
}

/// The files that are there and that an option may have the linker read. Of what is not known to name none, each word and
/// each part of one after `=` or `,` is taken for a name.
pub fn may_read(option: &LinkOption) -> Vec<PathBuf> {
    let files = of(option).map_or(Files::Unknown, |known| known.files);
    let candidates: Vec<&str> = match files {
        Files::Written | Files::Beside(_) | Files::Temporaries => Vec::new(),
        Files::Read | Files::Searched | Files::Directory | Files::Loaded => {
            value(option).into_iter().collect()
        }
        Files::Unknown | Files::Unnamed => option.words.iter().flat_map(|word| parts(word)).collect(),
    };
    candidates.into_iter().map(PathBuf::from).filter(|path| path.is_file()).collect()
}

/// A word and what stands in it after `=` or `,`.
pub fn parts(word: &str) -> impl Iterator<Item = &str> {
    let after = word.match_indices('=').map(|(at, _)| &word[at + 1..]);
    let listed = word.split([',', '=']);
    std::iter::once(word).chain(after).chain(listed).filter(|part| !part.is_empty())
}

/// The files besides the program that a link with these arguments is asked to write.
pub fn written(arguments: &[Argument]) -> Vec<PathBuf> {
    let output = last_value(arguments, "output").unwrap_or("a.out");
    let file = |option: &LinkOption| {
        let known = of(option).filter(|known| known.step != LinkStep::Chosen)?;
        match (known.files, value(option)) {
            (Files::Written | Files::Beside(_), Some("-")) => None,
            (Files::Written | Files::Beside(_), Some(value)) => Some(PathBuf::from(value)),
            (Files::Beside(ending), None) => Some(PathBuf::from(format!("{output}{ending}"))),
            _ => None,
        }
    };
    options(arguments).filter_map(file).collect()
}

/// The endings of the files that a link names after its output.
pub fn endings(arguments: &[Argument]) -> Vec<&'static str> {
    let ending = |option: &LinkOption| match of(option)?.files {
        Files::Beside(ending) if value(option).is_none() => Some(ending),
        _ => None,
    };
    options(arguments).filter_map(ending).collect()
}
