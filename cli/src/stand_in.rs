//! `distlto` under another program's name: for build systems that take one program as the linker, such as rustc's
//! `-C linker=` and a Makefile's `LD=`, or one program as a tool, such as Buck2's `export_exe`.
//!
//! A link to `distlto` that is named `distlto-copy` is `distlto copy`, and likewise for the other tools.
//! A link to `distlto` that is named `distlto-clang++-22` performs `distlto link -- clang++-22 ARGUMENTS`. Options come
//! from the environment and from configuration files.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use distlto_commands::configuration::options;
use distlto_commands::link::options::LinkOptions;
use distlto_exec::environment::STATIC_LINKER;
use distlto_planner::words::{Word, word_of};

use distlto::arguments::{Cli, CliCommand};

/// Names of our own tools, which stand for themselves.
const TOOLS: &[&str] = &[
    "prepare",
    "index",
    "plan",
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

/// Whether a build's process starts this program in the place of a linker without libraries.
pub fn is_static_linker() -> bool {
    let own = std::env::args_os().next();
    own.is_some_and(|own| Path::new(&own).file_name() == Some(OsStr::new(STATIC_LINKER)))
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

/// The options of a link without a command line of ours: those of the environment and of configuration files.
pub fn options() -> LinkOptions {
    let line = ["distlto", "link", "--", "linker"].map(OsString::from).to_vec();
    match options::parse::<Cli>(line).command {
        CliCommand::Link(args) => args.options(),
        // `link` was the subcommand's name.
        _ => LinkOptions::default(),
    }
}
