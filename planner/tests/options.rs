//! The table of ld.lld's options against the linkers themselves: every version that is installed is asked how it reads each
//! option of its `--help` and of the table, with one dash and with two.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use distlto_planner::linker::elf::shape::{WordShape, shape};
use distlto_planner::linker::elf::table::OPTIONS;
use distlto_planner::options::{Dashes, Value};
use rayon::prelude::*;

/// lld stops at twenty errors; each option may cause two.
const AT_ONCE: usize = 9;

fn linkers() -> Vec<PathBuf> {
    let versions =
        [23, 22, 19, 16, 15, 14].map(|version| PathBuf::from(format!("/usr/bin/ld.lld-{version}")));
    let found: Vec<_> = versions.into_iter().filter(|linker| linker.exists()).collect();
    assert!(!found.is_empty(), "no ld.lld-N: `cargo xtask setup` installs one");
    found
}

/// How a linker takes a word that is followed by another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Unknown,
    Alone,
    WithNext,
}

/// Asks how each word is taken: what is not known is complained of, and so is an unknown option after it, unless that was
/// taken for its value.
fn ask(linker: &PathBuf, words: &[String]) -> Vec<Taken> {
    // Some of the options write files.
    let place = tempfile::tempdir().expect("a temporary directory");
    let chunk = |words: &[String]| -> Vec<Taken> {
        let after = |at: usize| format!("--no-option-has-this-name-{at}");
        let mut command = Command::new(linker);
        words.iter().enumerate().for_each(|(at, word)| {
            command.arg(word).arg(after(at));
        });
        let output = command.current_dir(&place).output().expect("the linker runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let unknown = |word: &str| said.contains(&format!("unknown argument '{word}'"));
        let taken = |(at, word): (usize, &String)| match (unknown(word), unknown(&after(at))) {
            (true, _) => Taken::Unknown,
            (false, true) => Taken::Alone,
            (false, false) => Taken::WithNext,
        };
        words.iter().enumerate().map(taken).collect()
    };
    words.par_chunks(AT_ONCE).flat_map_iter(chunk).collect()
}

/// The names in a help text, without dashes and values.
fn helped(linker: &PathBuf) -> BTreeSet<String> {
    let output = Command::new(linker).arg("--help").output().expect("the linker runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let name = |line: &str| {
        let word = line.strip_prefix("  -")?.trim_start_matches('-').split_whitespace().next()?;
        let end = if word.starts_with("plugin-opt=") || word.starts_with("icf=") {
            word.find(['<', '[']).unwrap_or(word.len())
        } else {
            word.find(['=', '<', '[']).unwrap_or(word.len())
        };
        Some(word[..end].to_owned())
    };
    text.lines().filter_map(name).filter(|name| !name.is_empty()).collect()
}

/// How a word is read by the table, which has no option that is a flag and nothing else.
fn table(word: &str) -> Taken {
    match shape(word.as_bytes()) {
        WordShape::Separate(_) => Taken::WithNext,
        WordShape::Joined(..) | WordShape::Flag(_) => Taken::Alone,
        WordShape::Input => Taken::Unknown,
    }
}

#[test]
fn every_linker_reads_words_as_the_table_says() {
    let mut wrong = Vec::new();
    for linker in linkers() {
        let names: BTreeSet<String> =
            helped(&linker).into_iter().chain(OPTIONS.iter().map(|option| option.name.to_owned())).collect();
        assert!(names.len() > 300, "{}: {} names", linker.display(), names.len());
        let spelled = |name: &String| {
            let forms =
                [format!("-{name}"), format!("--{name}"), format!("-{name}=x"), format!("--{name}=x")];
            // Of `--plugin-opt=` lld takes any text, and judges it later.
            forms.into_iter().take(if name.starts_with("plugin-opt=") { 2 } else { 4 })
        };
        let words: Vec<String> = names.iter().flat_map(spelled).collect();
        for (word, taken) in words.iter().zip(ask(&linker, &words)) {
            let expected = table(word);
            // Another version may know it. With one dash, lld 14 alone does.
            let changed = word == "-error-limit";
            if !changed && taken != Taken::Unknown && taken != expected {
                wrong.push(format!("{}: {word} is {taken:?}, the table says {expected:?}", linker.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn some_linker_knows_every_option_of_the_table() {
    let words: Vec<String> = OPTIONS
        .iter()
        .map(|option| {
            let dashes = if option.dashes == Dashes::One { "-" } else { "--" };
            let value = if option.value == Value::EqualsOnly { "=x" } else { "" };
            format!("{dashes}{}{value}", option.name)
        })
        .collect();
    let answers: Vec<Vec<Taken>> = linkers().iter().map(|linker| ask(linker, &words)).collect();
    let known = |at: usize| answers.iter().any(|answer| answer[at] != Taken::Unknown);
    let strange: Vec<&String> = (0..words.len()).filter(|&at| !known(at)).map(|at| &words[at]).collect();
    assert!(strange.iter().all(|word| GONE.iter().any(|name| word.ends_with(name))), "{strange:?}");
    assert!(linkers().len() < 5 || strange.is_empty(), "no version knows {strange:?}");
}

/// Options that lld 22 does not have.
const GONE: &[&str] = &[
    "-d",
    "call-graph-profile-sort",
    "dc",
    "detect-odr-violations",
    "dp",
    "define-common",
    "legacy-pass-manager",
    "new-pass-manager",
    "opaque-pointers",
    "time-trace-file",
];
