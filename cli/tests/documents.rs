//! Commands of distlto in documents, against its command line.
//!
//! A command stands in a block of code or between backquotes, and begins with `distlto` or one of its other names. Its words
//! count up to `--`, after which another program's begin, or to the end of the shell's command.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};
use distlto::arguments::Cli;

/// Words of the shell that end a command, and marks that end one in a synopsis.
const ENDS: [&str; 8] = ["--", "|", "&&", "||", ";", "#", ">", "->"];

/// Changelogs name options that are gone.
const HISTORY: &str = "CHANGELOG.md";

/// All documents below a folder, without generated ones.
fn documents(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of the repository") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') && name != "target" && name != "third-party" {
            found.extend(documents(&path));
        } else if name.ends_with(".md") && name != HISTORY {
            found.push(path);
        }
    }
    found
}

/// Lines of code, and pieces of it between backquotes, each with the number of its line.
fn code(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let (mut is_block, mut goes_on) = (false, false);
    for (line, number) in text.lines().zip(1..) {
        if line.trim_start().starts_with("```") {
            (is_block, goes_on) = (!is_block, false);
        } else if is_block {
            let part = line.trim_end_matches('\\');
            match found.last_mut().filter(|_| goes_on) {
                Some((_, last)) => *last += part,
                None => found.push((number, part.to_owned())),
            }
            goes_on = line.ends_with('\\');
        } else {
            found.extend(line.split('`').skip(1).step_by(2).map(|piece| (number, piece.to_owned())));
        }
    }
    found
}

/// The words after a name of distlto, with the tool that the name stands for as the first.
fn command_words(line: &str) -> Option<Vec<&str>> {
    let mut words = line.split_whitespace().skip_while(|word| *word == "$" || word.contains('='));
    let name = words.next()?;
    let tool = name.strip_prefix("distlto")?.strip_prefix('-');
    let is_command = name == "distlto" || tool.is_some();
    let rest = words.take_while(|word| !ENDS.contains(word) && !word.starts_with("$("));
    is_command.then(|| tool.into_iter().chain(rest).collect())
}

/// The first option that a command does not have.
fn unknown_option<'a>(mut command: &Command, words: &[&'a str]) -> Option<&'a str> {
    let mut words = words.iter().copied();
    let first = words.next()?;
    // Any other word is a build command.
    command = command.find_subcommand(first)?;
    for word in words {
        if let Some(below) = command.find_subcommand(word) {
            command = below;
        }
        let option = word.trim_matches(['[', ']', ',', '.', '"', '\'', ')', '…']);
        let name = option.split('=').next().unwrap_or_default();
        let is_known = match name.strip_prefix("--") {
            Some(long) => command.get_arguments().any(|argument| {
                argument.get_long() == Some(long)
                    || argument.get_all_aliases().unwrap_or_default().contains(&long)
            }),
            None => match name.strip_prefix('-').and_then(|rest| rest.chars().next()) {
                Some(short) => command.get_arguments().any(|argument| argument.get_short() == Some(short)),
                None => true,
            },
        };
        if !is_known {
            return Some(word);
        }
    }
    None
}

fn built() -> Command {
    let mut command = Cli::command();
    command.build();
    command
}

#[test]
fn commands_in_documents_have_options_that_there_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository");
    let command = built();
    let (mut count, mut wrong) = (0, Vec::new());
    for document in documents(root) {
        let text = fs::read_to_string(&document).expect("a document");
        for (number, line) in code(&text) {
            // A line may have several commands.
            for part in line.split("&& ").flat_map(|part| part.split("| ")) {
                let Some(words) = command_words(part) else { continue };
                count += 1;
                let unknown = unknown_option(&command, &words);
                wrong.extend(
                    unknown.map(|option| format!("{}:{number}: {option} in `{part}`", document.display())),
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 150, "only {count} commands were found");
}

#[test]
fn an_option_that_is_gone_is_found() {
    let command = built();
    for (line, unknown) in [
        ("$ distlto link --exact-names -- ld.lld --no-such", None),
        ("distlto link --no-such -- ld.lld", Some("--no-such")),
        ("A=1 distlto cache prune --max-size 1G", None),
        ("distlto cache stats --max-size 1G", Some("--max-size")),
        ("distlto-opt --out O -x", Some("-x")),
        ("distlto explain P M --miss", None),
        ("distlto ninja --no-such", None),
    ] {
        let words = command_words(line).expect("a command of distlto");
        assert_eq!(unknown_option(&command, &words), unknown, "{line}");
    }
    assert_eq!(command_words("clang distlto"), None);
    assert_eq!(code("a `b c` d\n```\ne \\\n  f\n```\n"), [(1, "b c".to_owned()), (3, "e   f".to_owned())]);
}
