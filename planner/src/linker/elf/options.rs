//! How words of an ld.lld line are read, and what its options do, by the table of them.
//!
//! An option that is not in the table is a flag, whose whole word is kept as it is.

use std::path::PathBuf;

use super::table::OPTIONS;
use crate::link_line::{Argument, LinkOption, last_value, options};
use crate::options::{Files, LinkStep, Opt, Value};

/// How one word of a link line is to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordShape {
    /// Not an option: an input file.
    Input,
    /// An option without a value; a value that cannot stand in a word of its own stays in the name: `name=value`.
    Flag(String),
    /// An option whose value is in the same word, from this byte on.
    Joined(String, usize),
    /// An option whose value is the next word.
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

/// What the table says of an option of a line.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_lld_reads_them() {
        let flag = |name: &str| WordShape::Flag(name.to_owned());
        let joined = |name: &str, at| WordShape::Joined(name.to_owned(), at);
        let separate = |name: &str| WordShape::Separate(name.to_owned());
        for (word, expected) in [
            ("a.o", WordShape::Input),
            ("-", WordShape::Input),
            ("-lfoo", joined("library", 2)),
            ("-l", separate("library")),
            ("--library=foo", joined("library", 10)),
            ("-L/x", joined("library-path", 2)),
            ("-o", separate("output")),
            ("-oout", joined("output", 2)),
            ("--output=x", joined("output", 9)),
            ("-pie", flag("pie")),
            ("--pie", flag("pie")),
            ("-plugin-opt=O3", flag("plugin-opt=O3")),
            ("-plugin-opt", separate("plugin-opt")),
            ("-plugin", separate("plugin")),
            ("-mllvm", separate("mllvm")),
            ("-mllvm=-x", joined("mllvm", 7)),
            ("-m", separate("emulation")),
            ("-melf_x86_64", joined("emulation", 2)),
            ("-export-dynamic", flag("export-dynamic")),
            ("-E", flag("export-dynamic")),
            ("-entry=f", joined("entry", 7)),
            ("-e", separate("entry")),
            ("-ef", joined("entry", 2)),
            ("-hash-style=gnu", joined("hash-style", 12)),
            ("-z", separate("z")),
            ("-znow", joined("z", 2)),
            ("-r", flag("relocatable")),
            ("-t", flag("trace")),
            ("--lto-O3", flag("lto-O3")),
            ("--start-lib", flag("start-lib")),
            ("-static", flag("Bstatic")),
            ("-dT", separate("default-script")),
            ("-Ttext=0x1000", joined("Ttext", 7)),
            ("-Tx.ld", joined("script", 2)),
            ("--undefined-version", flag("undefined-version")),
            ("-unique", flag("unique")),
            ("-undefined", separate("undefined")),
            ("-umain", joined("undefined", 2)),
        ] {
            assert_eq!(shape(word.as_bytes()), expected, "{word}");
        }
    }
}
