//! Manual pages and help texts against each other, and against the documents.

use clap::{Command, CommandFactory, Parser};
use distlto::arguments::Cli;
use distlto_prepare::exit;

use crate::pages::{EXAMPLES, FILES, Page, VARIABLES, examples_of, pages, visible};

/// A page as it reads, without roff's fonts and escapes.
fn plain(page: &[u8]) -> String {
    let text = String::from_utf8(page.to_vec()).expect("UTF-8");
    ["\\fB", "\\fI", "\\fR"]
        .iter()
        .fold(text, |text, font| text.replace(font, ""))
        .replace("\\-", "-")
        .replace("\\*(Aq", "'")
}

/// The options that a help text lists: the words with dashes before each explanation.
fn options_of(help: &str) -> Vec<String> {
    let listed = help.lines().filter(|line| line.trim_start().starts_with('-'));
    let words = listed.flat_map(|line| line.split_whitespace().take_while(|word| word.starts_with('-')));
    // Dots are behind an option that may be repeated.
    words.map(|word| word.trim_end_matches([',', '.']).to_owned()).collect()
}

fn check(command: &mut Command, pages: &[Page], seen: &mut Vec<String>) {
    let name = format!("{}.1", command.get_display_name().unwrap_or(command.get_name()));
    let page = pages.iter().find(|page| page.name == name);
    let text = plain(&page.unwrap_or_else(|| panic!("no page {name}")).text);
    let options = options_of(&command.render_long_help().to_string());
    assert!(options.contains(&"--help".to_owned()), "{name}: no options were read: {options:?}");
    for option in &options {
        assert!(text.contains(option.as_str()), "{option} is not in {name}:\n{text}");
    }
    for argument in command.get_positionals() {
        let value = &argument.get_value_names().expect("a named value")[0];
        assert!(text.contains(value.as_str()), "{value} is not in {name}:\n{text}");
    }
    for (_, code, meaning) in exit::CLASSES {
        assert!(text.contains(&format!("\n{code}\n{meaning}\n")), "exit code {code} is not in {name}");
    }
    seen.push(name);
    for below in command.get_subcommands_mut().filter(|below| !below.is_hide_set()) {
        check(below, pages, seen);
    }
}

#[test]
fn every_option_of_every_help_is_in_its_page() {
    let pages = pages(Cli::command()).expect("rendered");
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut seen = Vec::new();
    check(&mut command, &pages, &mut seen);
    assert_eq!(seen, pages.iter().map(|page| page.name.clone()).collect::<Vec<_>>());
    assert!(seen.contains(&"distlto-cache-prune.1".to_owned()), "{seen:?}");
    assert!(!seen.contains(&"distlto-completions.1".to_owned()), "{seen:?}");
}

#[test]
fn every_argument_of_every_command_is_described() {
    fn described(command: &Command) {
        for argument in command.get_arguments() {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(!help.trim().is_empty(), "{} of {}", argument.get_id(), command.get_name());
        }
        command.get_subcommands().for_each(described);
    }
    let mut command = Cli::command();
    command.build();
    described(&command);
    for page in pages(Cli::command()).expect("rendered") {
        let text = plain(&page.text);
        let (_, options) = text.split_once("\n.SH OPTIONS\n").expect("every command has --help");
        let options = options.split("\n.SH ").next().unwrap_or_default();
        for entry in options.split(".TP\n").skip(1) {
            let is_text = |line: &&str| !line.is_empty() && !line.starts_with('.');
            assert!(entry.lines().skip(1).any(|line| is_text(&line)), "{}: {entry}", page.name);
        }
    }
}

#[test]
fn every_help_fits_a_screen_and_ends_with_the_exit_codes() {
    fn check(command: &mut Command) {
        let help = command.render_help().to_string();
        assert!(help.trim_end().ends_with(exit::PASSED_ON), "{help}");
        assert!(help.lines().count() <= 40, "{} lines:\n{help}", help.lines().count());
        command.get_subcommands_mut().filter(|below| !below.is_hide_set()).for_each(check);
    }
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    check(&mut command);
}

#[test]
fn the_reference_has_the_same_exit_codes_variables_and_tools() {
    let page = include_str!("../../docs/reference.md");
    for (_, code, meaning) in exit::CLASSES {
        assert!(page.contains(&format!("\n| {code} | {meaning} |\n")), "exit code {code}: {meaning}");
    }
    for (name, _) in VARIABLES {
        assert!(page.contains(&format!("\n| `{name}` | ")), "{name}");
    }
    for command in visible(&Cli::command()) {
        let name = command.get_name();
        let named = [format!("\n| `distlto {name}"), format!("\n| `distlto-{name}` |")];
        assert!(named.iter().any(|row| page.contains(row)), "{name} is not in the table of tools");
    }
}

#[test]
fn every_page_has_examples_that_the_command_line_takes() {
    let pages = pages(Cli::command()).expect("rendered");
    assert_eq!(EXAMPLES.len(), pages.len(), "each group of examples has a page");
    for page in pages {
        let name = page.name.trim_end_matches(".1");
        let examples = examples_of(name);
        assert!(!examples.is_empty(), "{name} has no example");
        let text = plain(&page.text);
        for (line, meaning) in examples {
            assert!(text.contains(&format!("\n{line}\n{meaning}\n")), "`{line}` is not in {name}:\n{text}");
            let at = line.find("distlto ").unwrap_or_else(|| panic!("{line}: no command of distlto"));
            assert!(line[at..].replace(' ', "-").starts_with(name), "{line} is an example of {name}");
            let words = line[at..].split_whitespace();
            Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
    }
}

#[test]
fn the_reference_has_the_same_files() {
    let page = include_str!("../../docs/reference.md");
    for (paths, meaning) in FILES {
        let is_row = |line: &&str| {
            line.starts_with("| `") && line.replace('`', "").starts_with(&format!("| {paths} |"))
        };
        let row = page.lines().find(is_row).unwrap_or_else(|| panic!("{paths} is not in the table of files"));
        // A link of the page is its text here.
        let plain: String = row.split('`').collect::<String>().replace(['[', ']'], "");
        let cells = plain.split('(').next().unwrap_or_default();
        assert!(cells.contains(meaning), "{row}: {meaning}");
    }
}
