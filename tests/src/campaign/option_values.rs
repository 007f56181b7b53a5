//! Options as a linker's `--help` lists them, and random words for them: values that the help names, values of the right kind,
//! and wrong ones. What the linker makes of them is for it to say.

use super::random::Random;

/// One option of a help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its first word with the form of a value in it: `--icf=all`, `--lto=[full,thin]`, `-l`, `--defsym=<symbol>=<value>`.
    pub form: String,
    /// Whether the value is a word of its own.
    pub has_word: bool,
    /// Words of its description, of which some may be values: `sysv, gnu or both`.
    pub hints: Vec<String>,
}

/// The files beside the modules that options may read, each for another kind of option.
pub const FILES: &[(&str, &str)] = &[
    ("names.txt", "main\npart\nabsent\n"),
    ("list.txt", "{ main; part; absent; };\n"),
    ("versions.txt", "V1 { global: main; part; local: *; };\n"),
    ("script.txt", "SECTIONS { .text : { *(.text .text.*) } .data : { *(.data .data.*) } }\n"),
    ("calls.txt", "main part 10\npart one 5\n"),
    ("remap.txt", "nat*.o=native.o\n"),
    ("broken.txt", "@( {\n"),
    ("empty.txt", ""),
    ("handler.sh", "#!/bin/sh\necho \"handler: $*\"\n"),
];

const NUMBERS: &[&str] = &["0", "1", "-1", "2", "3", "2x", "0x1000", "0x3", "99999999999999999999", "4096"];
const PATHS: &[&str] = &[
    "main.o",
    "native.o",
    "extra.o",
    "libmore.a",
    "libshared.so",
    "written.txt",
    "missing.txt",
    "missing/written.txt",
    ".",
    "folder",
    "-",
    "",
];
const SYMBOLS: &[&str] = &["main", "part", "one", "two", "hidden", "absent", "part*", "*", "counter", ""];
const PAIRS: &[&str] =
    &["later=part", "main=0x10", "absent=nothing", ".text=0x300000", "*=1", ".debug*=zlib:3", "=", "x"];

/// Values of options of which the help does not say what they take, by the beginning of their forms.
const KNOWN: &[(&str, &[&str])] = &[
    (
        "-z ",
        &[
            "now",
            "relro",
            "norelro",
            "defs",
            "undefs",
            "execstack",
            "separate-code",
            "noseparate-code",
            "separate-loadable-segments",
            "max-page-size=0x10000",
            "max-page-size=3",
            "common-page-size=4096",
            "stack-size=4096",
            "keep-text-section-prefix",
            "nokeep-text-section-prefix",
            "origin",
            "nodelete",
            "text",
            "notext",
            "rodynamic",
            "nostart-stop-gc",
            "muldefs",
            "pack-relative-relocs",
            "shstk",
            "force-ibt",
            "cet-report=warning",
            "dead-reloc-in-nonalloc=.debug*=1",
            "lrodata-after-bss",
            "nosectionheader",
            "retpolineplt",
            "hazardplt",
            "gcs=always",
            "unheard-of",
        ],
    ),
    ("-m ", &["elf_x86_64", "elf_i386", "aarch64linux", "i386pep", "unheard-of"]),
    (
        "--mllvm=",
        &[
            "-inline-threshold=1",
            "-inline-threshold=2x",
            "-unheard-of",
            "-print-changed",
            "-stats",
            "-time-passes",
            "-debug-pass-manager",
            "-version",
            "-help",
            "-align-all-functions=5",
            "-use-source-filename-for-promoted-locals",
            "-emulated-tls",
            "-import-instr-limit=0",
            "-print-import-failures",
        ],
    ),
    (
        "--plugin-opt=-",
        &["inline-threshold=1", "unheard-of", "pass-remarks=inline", "verify-each", "print-imports"],
    ),
    ("--hash-style=", &["sysv", "gnu", "both", "none"]),
    ("--orphan-handling=", &["place", "warn", "error", "none"]),
    ("--sort-section=", &["name", "alignment", "none", "size"]),
    (
        "--unresolved-symbols=",
        &["ignore-all", "report-all", "ignore-in-object-files", "ignore-in-shared-libs", "none"],
    ),
    ("--lto-basic-block-sections=", &["all", "none", "labels", "names.txt"]),
    ("--lto-newpm-passes=", &["default<O1>", "inline", "unheard-of"]),
    ("--lto-aa-pipeline=", &["basic-aa", "default", "unheard-of"]),
    ("--thinlto-cache-policy=", &["prune_interval=1h", "cache_size_bytes=1k", "prune_after=x", "unheard=1"]),
    ("--opt-remarks-format ", &["yaml", "bitstream", "unheard-of"]),
    ("--opt-remarks-passes ", &["inline", "[", ".*"]),
    ("--opt-remarks-filename ", &["remarks.yaml", "missing/remarks.yaml"]),
    ("--plugin-opt=opt-remarks-filename=", &["remarks.yaml"]),
    ("--thinlto-jobs=", &["all", "1", "2", "0"]),
    ("--plugin-opt=jobs=", &["all", "1", "2", "0"]),
    ("--threads=", &["all", "1", "2", "0"]),
    ("--lto-O", &["0", "1", "3", "4", "s"]),
    ("--plugin-opt=O", &["0", "1", "3", "4", "s"]),
    ("--lto-CGO", &["0", "3", "4"]),
    ("-O ", &["0", "1", "2", "3", "s"]),
    ("-l ", &["more", "shared", ":libmore.a", "missing"]),
    ("--library", &["more", "shared", ":libmore.a", "missing"]),
    ("-b ", &["elf", "default", "binary", "none"]),
    ("-T ", &["script.txt", "broken.txt"]),
    ("--script=", &["script.txt", "broken.txt"]),
    ("--default-script=", &["script.txt", "broken.txt"]),
    ("-dT ", &["script.txt", "broken.txt"]),
    ("--version-script=", &["versions.txt", "list.txt", "broken.txt"]),
    ("--dynamic-list=", &["list.txt", "broken.txt"]),
    ("--export-dynamic-symbol-list=", &["list.txt", "broken.txt"]),
    ("--symbol-ordering-file=", &["names.txt"]),
    ("--retain-symbols-file=", &["names.txt"]),
    ("--call-graph-ordering-file=", &["calls.txt", "names.txt"]),
    ("--remap-inputs-file=", &["remap.txt"]),
    ("--error-handling-script=", &["./handler.sh", "handler.sh"]),
    ("--thinlto-distributor=", &["./handler.sh", ""]),
    ("--plugin-opt=thinlto-prefix-replace=", &["here;there", "x"]),
    ("--plugin-opt=thinlto-object-suffix-replace=", &[".o;.x", "x"]),
    ("--thinlto-single-module=", &["main.o", "part.o"]),
    ("--image-base=", &["0x100000", "0x1001"]),
    ("--Ttext=", &["0x300000"]),
    ("--soname=", &["named", "../named"]),
    ("--exclude-libs=", &["ALL", "libmore.a"]),
];

/// Reads a help.
pub fn listed(help: &str) -> Vec<Listed> {
    let mut all: Vec<Listed> = Vec::new();
    for line in help.lines() {
        let Some(text) = line.strip_prefix("  ") else { continue };
        match text.split_once(' ') {
            _ if !text.starts_with(['-', ' ']) => {}
            Some((form, rest)) if text.starts_with('-') => all.push(option(form, rest)),
            None => all.push(option(text, "")),
            Some(_) => {
                if let Some(last) = all.last_mut() {
                    last.hints.extend(hints(text));
                }
            }
        }
    }
    all
}

fn option(form: &str, rest: &str) -> Listed {
    let has_word = rest.starts_with('<');
    let described = rest.split_once('>').filter(|_| has_word).map_or(rest, |(_, described)| described);
    Listed { form: form.to_owned(), has_word, hints: hints(described) }
}

/// The words between brackets: there a description names values.
fn hints(described: &str) -> Vec<String> {
    let inside = described.split(['(', '{']).skip(1).filter_map(|part| part.split([')', '}']).next());
    let words = inside.flat_map(|part| part.split([' ', ',', ':', '=', ';']));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

impl Listed {
    /// Words for a link line.
    pub fn draw(&self, random: &mut Random) -> Vec<String> {
        let mut word = self.filled(&self.form, random);
        if let Some((name, _)) = word.split_once('=')
            && random.chance(15)
        {
            word = format!("{name}={}", anything(random));
        }
        if random.chance(15) && word.starts_with("--") {
            word.remove(0);
        }
        if self.has_word {
            return vec![word, self.value("", random)];
        }
        match word.split_once('=') {
            Some((name, value)) if random.chance(15) => vec![name.to_owned(), value.to_owned()],
            _ => vec![word],
        }
    }

    /// A form with values in place of `<kind>`, and one member of each `[a,b]` or `{a,b}`.
    fn filled(&self, form: &str, random: &mut Random) -> String {
        let Some(start) = form.find(['<', '[', '{']) else { return form.to_owned() };
        let (before, rest) = form.split_at(start);
        let close = match &rest[..1] {
            "<" => '>',
            "[" => ']',
            _ => '}',
        };
        let Some((inside, after)) = rest[1..].split_once(close) else { return form.to_owned() };
        let filled = match close {
            '>' => self.value(inside, random),
            _ => {
                let members: Vec<&str> = inside.split(',').collect();
                let member = random.pick(&members).copied().filter(|_| random.chance(85));
                match member {
                    Some(member) => self.filled(member, random),
                    None => anything(random),
                }
            }
        };
        format!("{before}{filled}{}", self.filled(after, random))
    }

    fn value(&self, kind: &str, random: &mut Random) -> String {
        let form = if self.has_word { format!("{} ", self.form) } else { self.form.clone() };
        let known = KNOWN.iter().find(|(begin, _)| form.starts_with(begin)).map(|(_, values)| *values);
        if let Some(value) = known.and_then(|values| random.pick(values)).filter(|_| random.chance(75)) {
            return (*value).to_owned();
        }
        if let Some(hint) = random.pick(&self.hints).filter(|_| random.chance(60)) {
            return hint.clone();
        }
        let of_kind = match kind {
            "file" | "dir" | "path" | "to-file" | "libname" => PATHS,
            "symbol" | "entry" | "glob" | "pattern" | "section-glob" | "from-glob" => SYMBOLS,
            "opt-level" | "cgopt-level" | "address" | "seed" => NUMBERS,
            _ => return anything(random),
        };
        random
            .pick(of_kind)
            .filter(|_| random.chance(80))
            .map_or_else(|| anything(random), |value| (*value).to_owned())
    }
}

/// A value of no kind.
fn anything(random: &mut Random) -> String {
    let names: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
    let list = *random.pick(&[NUMBERS, PATHS, SYMBOLS, PAIRS, names.as_slice()]).unwrap_or(&NUMBERS);
    random.pick(list).copied().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "USAGE: ld.lld file...\n\nOPTIONS:\n  -(                      Alias for --start-group\n  \
        --hash-style=<value>    Specify hash style (sysv, gnu or both)\n  --mode=<value>\n                          \
        Start under {async, sync}\n  -l <libname>            Search (default)\n  --lto=[full,thin]       Set\n";

    #[test]
    fn a_help_is_read_with_its_values() {
        let all = listed(HELP);
        let forms: Vec<(&str, bool)> =
            all.iter().map(|option| (option.form.as_str(), option.has_word)).collect();
        let expected = [
            ("-(", false),
            ("--hash-style=<value>", false),
            ("--mode=<value>", false),
            ("-l", true),
            ("--lto=[full,thin]", false),
        ];
        assert_eq!(forms, expected);
        assert_eq!(all[1].hints, ["sysv", "gnu", "or", "both"]);
        assert_eq!(all[2].hints, ["async", "sync"]);
        assert_eq!(all[3].hints, ["default"]);
    }

    #[test]
    fn no_form_is_left_in_a_word() {
        let mut random = Random::new(1);
        for option in listed(HELP) {
            for _ in 0..100 {
                let words = option.draw(&mut random);
                assert_eq!(words.len() == 2, option.has_word || words.len() == 2);
                assert!(words.iter().all(|word| !word.contains(['<', '['])), "{words:?}");
            }
        }
    }
}
