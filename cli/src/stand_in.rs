//! `distlto` under another program's name: for build systems that take one program as the linker, such as rustc's
//! `-C linker=` and a Makefile's `LD=`, or one program as a tool, such as Buck2's `export_exe`.
//!
//! A link to `distlto` that is named `distlto-copy` is `distlto copy`, and likewise for the other tools.
//! A link to `distlto` that is named `distlto-clang++-22` performs `distlto link -- clang++-22 ARGUMENTS`. Options come
//! from the environment variable `DISTLTO_LINK_OPTIONS`, in the quoting of response files.

use std::ffi::OsString;
use std::path::Path;

use distlto_commands::link::LinkOptions;
use distlto_planner::response;
use distlto_planner::words::{Word, word_of};
use distlto_prepare::exit;

use crate::arguments::{Cli, CliCommand};

/// The variable that holds options of `distlto link`.
const OPTIONS: &str = "DISTLTO_LINK_OPTIONS";

/// Names of our own tools, which stand for themselves.
const TOOLS: &[&str] = &[
    "prepare",
    "index",
    "plan",
    "jobs",
    "kbuild-index",
    "kbuild-archive",
    "opt",
    "distribute",
    "copy",
    "archive-mapper",
    "archive_mapper",
    "compiler-stats-merger",
    "compiler_stats_merger",
    "header-list",
];

/// Returns the part after `distlto-` of the name under which this process was started.
fn own_name() -> Option<String> {
    let own = std::env::args_os().next()?;
    let name = Path::new(&own).file_name()?.to_str()?.strip_prefix("distlto-")?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// The link command that this process stands for, if it was started under another program's name.
pub fn command() -> Option<Vec<Word>> {
    let name = own_name().filter(|name| !TOOLS.contains(&name.as_str()))?;
    let mut words = vec![name.into_bytes()];
    words.extend(std::env::args_os().skip(1).map(word_of));
    Some(words)
}

/// The words of the command line, with the subcommand that a tool's name stands for.
pub fn arguments() -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if let Some(tool) = own_name().filter(|name| TOOLS.contains(&name.as_str())) {
        // All tools are one program of one version.
        let asks_version = words.len() == 2 && (words[1] == "--version" || words[1] == "-V");
        words[0] = "distlto".into();
        if !asks_version {
            words.insert(1, tool.into());
        }
    }
    words
}

/// The options from the environment; wrong ones end the process as on a command line.
pub fn options() -> LinkOptions {
    let text = std::env::var(OPTIONS).unwrap_or_default();
    let words = response::tokenize(text.as_bytes());
    let words = words.iter().map(|word| String::from_utf8_lossy(word).into_owned());
    let line = ["distlto".to_owned(), "link".to_owned()].into_iter().chain(words);
    let line = line.chain(["--".to_owned(), "linker".to_owned()]);
    match exit::parse::<Cli>(line.map(OsString::from)).command {
        CliCommand::Link(args) => args.options(),
        // `link` was the subcommand's name.
        _ => LinkOptions::default(),
    }
}
