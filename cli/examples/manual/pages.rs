//! The manual pages, made from the definitions of the command line.
//!
//! Names no option itself: a page has the text of `--help` in sections, with examples and the tables of exit codes, variables
//! and files.
//! Pages use the man macros of roff, see man(7).

#[path = "examples.rs"]
mod examples;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold};
use distlto_commands::configuration::{options, trust};
use distlto_commands::distribute;
use distlto_executor::variables::REMOTE_HEADERS;
use distlto_planner::state;
use distlto_prepare::exit;

pub use examples::{EXAMPLES, FILES};

/// Environment variables that the programs read, each with its effect.
pub const VARIABLES: &[(&str, &str)] = &[
    (
        options::VARIABLE,
        "Options of distlto link, also for a run of any command or under another program's name, such as \
         distlto-clang++; quoted as in a response file",
    ),
    (
        trust::VARIABLE,
        "The configuration file of the user, in place of ~/.config/distlto/config.toml; if it is empty, no \
         configuration file is read",
    ),
    (
        distribute::OPTIONS,
        "Options of distlto distribute, for linkers that cannot be given any; quoted as in a response file",
    ),
    (
        "DISTLTO_HOOK",
        "off has linkers link by themselves; a path is the library to preload, in place \
         of the libdistlto_hook.so beside the program",
    ),
    (
        REMOTE_HEADERS,
        "Headers of every call to a server of --remote or --remote-cache, in lines of NAME: VALUE; secret, so that no \
         option has them",
    ),
    (
        state::VARIABLE,
        "The directory of --state of distlto link, index, plan, inspect, explain, diff and report",
    ),
    ("MAKEFLAGS", "The job slots of the build"),
];

/// A page to be written.
pub struct Page {
    /// The file's name: `distlto-link.1`.
    pub name: String,
    /// Its text.
    pub text: Vec<u8>,
}

/// One page for each command that is not hidden.
pub fn pages(command: Command) -> std::io::Result<Vec<Page>> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    add(&command, &mut pages)?;
    Ok(pages)
}

fn add(command: &Command, pages: &mut Vec<Page>) -> std::io::Result<()> {
    // The name with the commands above it: of `distlto cache prune`, `distlto-cache-prune`.
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    // The exit codes get a section instead of the free text at the end. Of an option that the short help hides, clap_mangen
    // has the long text alone.
    let alone = command.clone().after_help(None::<&str>).after_long_help(None::<&str>);
    let alone = alone.mut_args(|argument| match argument.get_long_help().or(argument.get_help()).cloned() {
        Some(text) => argument.long_help(text),
        None => argument,
    });
    let release = concat!("distlto ", env!("CARGO_PKG_VERSION"));
    let page = Man::new(alone).title(name.clone()).section("1").source(release).manual("distlto");
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    synopsis(command).to_writer(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if visible(command).next().is_some() {
        page.render_subcommands_section(&mut text)?;
    }
    exit_codes().to_writer(&mut text)?;
    // The page of distlto itself has those of its links.
    let of_links = command.find_subcommand("link").unwrap_or(command);
    let of_options = of_links.get_arguments().filter_map(|option| {
        let (variable, name) = (option.get_env()?.to_str()?, option.get_long()?);
        Some((variable.to_owned(), format!("The option --{name}")))
    });
    let variables: Vec<(String, String)> = of_options.collect();
    let mut variables: Vec<(&str, &str)> =
        variables.iter().map(|(variable, text)| (variable.as_str(), text.as_str())).collect();
    variables.retain(|(variable, _)| VARIABLES.iter().all(|(known, _)| known != variable));
    variables.splice(0..0, VARIABLES.iter().copied());
    for (heading, entries) in
        [("ENVIRONMENT", &variables[..]), ("FILES", FILES), ("EXAMPLES", examples_of(&name))]
    {
        table(heading, entries).to_writer(&mut text)?;
    }
    pages.push(Page { name: format!("{name}.1"), text });
    visible(command).try_for_each(|below| add(below, pages))
}

pub fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|below| !below.is_hide_set())
}

/// The usage line of `--help`: unlike clap_mangen's synopsis it says where `--` goes.
fn synopsis(command: &Command) -> Roff {
    let usage = command.clone().render_usage().to_string();
    let mut section = Roff::new();
    section.control("SH", ["SYNOPSIS"]);
    section.text([usage.trim_start_matches("Usage:").trim().into()]);
    section
}

fn exit_codes() -> Roff {
    let mut section = Roff::new();
    section.control("SH", ["EXIT STATUS"]);
    let classes = exit::CLASSES.iter().map(|&(_, code, meaning)| (code, meaning));
    for (code, meaning) in [(0, "success")].into_iter().chain(classes) {
        entry(&mut section, &code.to_string(), meaning);
    }
    section.control("PP", []);
    section.text([exit::PASSED_ON.into()]);
    section
}

/// The examples of the command with this name.
pub fn examples_of(name: &str) -> &'static [(&'static str, &'static str)] {
    EXAMPLES.iter().find(|(command, _)| *command == name).map_or(&[], |(_, examples)| examples)
}

/// A section of terms, each with its meaning.
fn table(heading: &str, entries: &[(&str, &str)]) -> Roff {
    let mut section = Roff::new();
    section.control("SH", [heading]);
    for (term, meaning) in entries {
        entry(&mut section, term, meaning);
    }
    section
}

fn entry(section: &mut Roff, term: &str, meaning: &str) {
    section.control("TP", []);
    section.text([bold(term)]);
    section.text([meaning.into()]);
}
