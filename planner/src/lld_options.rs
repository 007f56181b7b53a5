//! Which of ld.lld's options take a value, and in which spelling: enough to tell inputs from values.
//!
//! The names come from `ld.lld --help` of LLVM 14 to 22 and from its manual. An option that is not here is a
//! flag, whose whole word is kept as it is. Knows nothing of what the options do.

/// Options of several letters whose value is the next word, or follows `=`. Either dash form.
const VALUED: &[&str] = &[
    "auxiliary",
    "call-graph-ordering-file",
    "compress-debug-sections",
    "defsym",
    "dynamic-linker",
    "dynamic-list",
    "entry",
    "exclude-libs",
    "filter",
    "fini",
    "format",
    "hash-style",
    "init",
    "just-symbols",
    "keep-unique",
    "library",
    "library-path",
    "Map",
    "mips-got-size",
    "mllvm",
    "orphan-handling",
    "plugin",
    "print-symbol-order",
    "retain-symbols-file",
    "rpath",
    "rpath-link",
    "script",
    "section-start",
    "soname",
    "sort-section",
    "split-stack-adjust-size",
    "sysroot",
    "target2",
    "Tbss",
    "Tdata",
    "trace-symbol",
    "Ttext",
    "Ttext-segment",
    "undefined",
    "unresolved-symbols",
    "version-script",
    "wrap",
];

/// The same, with two dashes only.
const VALUED_TWO_DASHES: &[&str] = &[
    "android-memtag-mode",
    "chroot",
    "compress-sections",
    "default-script",
    "dependency-file",
    "error-handling-script",
    "error-limit",
    "export-dynamic-symbol",
    "export-dynamic-symbol-list",
    "image-base",
    "in-implib",
    "irpgo-profile",
    "load-pass-plugin",
    "lto-known-safe-vtables",
    "oformat",
    "opt-remarks-filename",
    "opt-remarks-format",
    "opt-remarks-hotness-threshold",
    "opt-remarks-passes",
    "out-implib",
    "output",
    "pack-dyn-relocs",
    "remap-inputs",
    "reproduce",
    "rsp-quoting",
    "shuffle-sections",
    "symbol-ordering-file",
    "thinlto-cache-policy",
    "thinlto-distributor",
    "thinlto-distributor-arg",
    "thinlto-remote-compiler",
    "thinlto-remote-compiler-arg",
    "thinlto-remote-compiler-prepend-arg",
    "threads",
    "time-trace-granularity",
    "undefined-glob",
    "warn-backrefs-exclude",
    "why-live",
];

/// Options of one letter whose value is the rest of the word or the next word.
const SHORT_VALUED: &[(u8, &str)] = &[
    (b'O', "O"),
    (b'l', "library"),
    (b'L', "library-path"),
    (b'm', "emulation"),
    (b'o', "output"),
    (b'e', "entry"),
    (b'R', "rpath"),
    (b'T', "script"),
    (b'h', "soname"),
    (b'y', "trace-symbol"),
    (b'u', "undefined"),
    (b'z', "z"),
    (b'G', "G"),
];

/// Options of one dash whose value is always the next word.
const SHORT_SEPARATE: &[(&str, &str)] =
    &[("dT", "default-script"), ("f", "auxiliary"), ("F", "filter"), ("b", "format")];

/// Flags of several letters that begin like an option of [`SHORT_VALUED`]: the longer name wins.
const LONG_FLAGS: &[&str] = &[
    "EB",
    "EL",
    "eh-frame-hdr",
    "emit-relocs",
    "enable-new-dtags",
    "end-group",
    "end-lib",
    "error-unresolved-symbols",
    "export-dynamic",
    "help",
    "long-plt",
    "merge-exidx-entries",
    "omagic",
    "unique",
    "undefined-version",
];

/// Other spellings, and the name that the rest of the program uses.
const ALIASES: &[(&str, &str)] = &[
    ("(", "start-group"),
    (")", "end-group"),
    ("Bshareable", "shared"),
    ("E", "export-dynamic"),
    ("M", "print-map"),
    ("N", "omagic"),
    ("V", "v"),
    ("call_shared", "Bdynamic"),
    ("dn", "Bstatic"),
    ("dy", "Bdynamic"),
    ("n", "nmagic"),
    ("non_shared", "Bstatic"),
    ("pic-executable", "pie"),
    ("r", "relocatable"),
    ("static", "Bstatic"),
    ("t", "trace"),
];

/// How one word of a link line is to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// Not an option: an input file.
    Input,
    /// An option without a value; a `name=value` that is not in the tables keeps its value in the name.
    Flag(String),
    /// An option whose value is in the same word, from this byte on.
    Joined(String, usize),
    /// An option whose value is the next word.
    Separate(String),
}

/// Reads one word.
pub fn shape(word: &[u8]) -> Shape {
    let Some(rest) = word.strip_prefix(b"-").filter(|rest| !rest.is_empty()) else {
        return Shape::Input;
    };
    let (name, dashes) = match rest.strip_prefix(b"-") {
        Some(name) => (name, 2),
        None => (rest, 1),
    };
    let (key, value_at) = match name.iter().position(|&byte| byte == b'=') {
        Some(at) => (&name[..at], Some(dashes + at + 1)),
        None => (name, None),
    };
    let key = String::from_utf8_lossy(key).into_owned();
    // With `=` the value names an option of its own, so it stays in the name.
    if name == b"plugin-opt" {
        return Shape::Separate(key);
    }
    let valued = VALUED.contains(&key.as_str()) || (dashes == 2 && VALUED_TWO_DASHES.contains(&key.as_str()));
    match value_at {
        Some(at) if valued => return Shape::Joined(key, at),
        None if valued => return Shape::Separate(key),
        _ => {}
    }
    if dashes == 1 && !LONG_FLAGS.contains(&key.as_str()) {
        if let Some((_, long)) = SHORT_SEPARATE.iter().find(|(short, _)| name == short.as_bytes()) {
            return Shape::Separate((*long).to_owned());
        }
        if let Some((_, long)) = SHORT_VALUED.iter().find(|(letter, _)| name[0] == *letter) {
            return match name.len() {
                1 => Shape::Separate((*long).to_owned()),
                _ => Shape::Joined((*long).to_owned(), 2),
            };
        }
    }
    let whole = String::from_utf8_lossy(name).into_owned();
    let alias = ALIASES.iter().find(|(spelling, _)| *spelling == whole);
    Shape::Flag(alias.map_or(whole, |(_, name)| (*name).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_lld_reads_them() {
        let flag = |name: &str| Shape::Flag(name.to_owned());
        let joined = |name: &str, at| Shape::Joined(name.to_owned(), at);
        let separate = |name: &str| Shape::Separate(name.to_owned());
        for (word, expected) in [
            ("a.o", Shape::Input),
            ("-", Shape::Input),
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
