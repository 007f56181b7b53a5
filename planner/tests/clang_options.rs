//! The table of the driver's options against the drivers themselves: each clang that is installed is asked which options take
//! the next word. The newest is asked of all that it completes, and the newest that knows an option is right.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use distlto_planner::clang::driver::{OPTIONS, find};
use distlto_planner::options::{Dashes, Value};
use rayon::prelude::*;

const AT_ONCE: usize = 40;

/// These read their value at once, and stop at one that they do not like.
const ALONE: &[&str] = &["--config"];

fn drivers() -> Vec<PathBuf> {
    let versions = [22, 19, 16, 15, 14].map(|version| PathBuf::from(format!("/usr/bin/clang-{version}")));
    let found: Vec<_> = versions.into_iter().filter(|driver| driver.exists()).collect();
    assert!(!found.is_empty(), "no clang-N: `cargo xtask setup` installs one");
    found
}

/// What a driver complains of, when it is asked what it would do.
fn complaints(driver: &PathBuf, words: impl Iterator<Item = String>) -> String {
    // Some of the options write files.
    let place = tempfile::tempdir().expect("a temporary directory");
    let output = Command::new(driver).arg("-###").args(words).current_dir(&place).output();
    String::from_utf8_lossy(&output.expect("the driver runs").stderr).into_owned()
}

/// Whether each word takes the next one; `None` of a word that is unknown. An unknown option after a word is complained of,
/// unless it was taken for a value.
fn ask(driver: &PathBuf, words: &[String]) -> Vec<Option<bool>> {
    let chunk = |words: &[String]| -> Vec<Option<bool>> {
        // Short, as clang looks for an option of a similar name.
        let after = |at: usize| format!("--@{at}");
        let pairs = words.iter().enumerate().flat_map(|(at, word)| [word.clone(), after(at)]);
        let said = complaints(driver, pairs.chain([after(words.len())]));
        let unknown = |word: &str| {
            ["unknown argument", "unknown argument:", "unsupported option"]
                .iter()
                .any(|what| said.contains(&format!("{what} '{word}'")))
        };
        assert!(unknown(&after(words.len())), "{words:?} has {} stop early: {said}", driver.display());
        let taken = |(at, word): (usize, &String)| (!unknown(word)).then(|| !unknown(&after(at)));
        words.iter().enumerate().map(taken).collect()
    };
    words.par_chunks(AT_ONCE).flat_map_iter(chunk).collect()
}

/// Every option that a driver completes.
fn completed(driver: &PathBuf) -> BTreeSet<String> {
    let output = Command::new(driver).arg("--autocomplete=-").output().expect("the driver runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter_map(|line| line.split('\t').next()).map(str::to_owned).collect()
}

fn spelled() -> impl Iterator<Item = String> {
    OPTIONS.iter().map(|option| {
        let dashes = if matches!(option.dashes, Dashes::Two) { "--" } else { "-" };
        let value = if option.value == Value::EqualsOnly { "=x" } else { "" };
        format!("{dashes}{}{value}", option.name)
    })
}

#[test]
fn every_driver_takes_the_next_word_where_the_table_says() {
    let drivers = drivers();
    let mut names = completed(&drivers[0]);
    assert!(names.len() > 3000, "{}: {} names", drivers[0].display(), names.len());
    names.extend(spelled());
    names.retain(|name| name != "-###" && !ALONE.contains(&name.as_str()));
    let valued = spelled().filter(|name| !name.contains('=')).map(|name| format!("{name}=x"));
    let mut words: Vec<String> = names.iter().cloned().chain(valued).collect();
    let mut wrong = Vec::new();
    for driver in &drivers {
        let mut unknown = Vec::new();
        for (word, taken) in words.iter().zip(ask(driver, &words)) {
            let expected = find(word.as_bytes()).is_some_and(|known| known.takes_next);
            match taken {
                None => unknown.push(word.clone()),
                Some(taken) if taken != expected => {
                    wrong.push(format!("{}: {word}: the table says {expected}", driver.display()));
                }
                Some(_) => {}
            }
        }
        words = unknown;
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn some_driver_knows_every_option_of_the_table() {
    let words: Vec<String> = spelled().filter(|word| !ALONE.contains(&word.as_str())).collect();
    let answers: Vec<_> = drivers().iter().map(|driver| ask(driver, &words)).collect();
    let known = |at: usize| answers.iter().any(|answer| answer[at].is_some());
    let strange: Vec<&String> = (0..words.len()).filter(|&at| !known(at)).map(|at| &words[at]).collect();
    assert!(strange.iter().all(|word| NAMES.contains(&word.as_str())), "{strange:?}");
}

/// What many options begin with, and one of Meta's clang.
const NAMES: &[&str] = &[
    "-f",
    "-fno-sanitize",
    "-foptimization-record",
    "-fplugin",
    "-fsanitize",
    "-fthinlto-",
    "-print-",
    "-save-precodegen-ir=",
];

#[test]
fn options_that_stand_alone_take_a_value() {
    for driver in drivers() {
        for word in ALONE {
            let said = complaints(&driver, [(*word).to_owned()].into_iter());
            assert!(said.contains("argument to") && said.contains("is missing"), "{word}: {said}");
            assert!(find(word.as_bytes()).is_some_and(|known| known.takes_next));
        }
    }
}
