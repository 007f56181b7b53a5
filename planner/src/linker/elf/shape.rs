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
