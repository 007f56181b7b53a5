//! `distlto` under another program's name: for build systems that take one program as the linker, such as rustc's
//! `-C linker=` and a Makefile's `LD=`.
//!
//! A link to `distlto` that is named `distlto-clang++-22` performs `distlto link -- clang++-22 ARGUMENTS`. Options come
//! from the environment variable `DISTLTO_LINK_OPTIONS`, in the quoting of response files.

use std::path::Path;

use clap::Parser;
use distlto_executor::link::Options;
use distlto_planner::response;
use distlto_planner::words::{Word, word_of};

use crate::arguments::{Cli, Command};

/// The variable that holds options of `distlto link`.
const OPTIONS: &str = "DISTLTO_LINK_OPTIONS";

/// Names of our own tools, which stand for themselves.
const TOOLS: &[&str] = &["prepare", "index", "plan", "opt", "distribute"];

/// The link command that this process stands for, if it was started under another program's name.
pub fn command() -> Option<Vec<Word>> {
    let mut arguments = std::env::args_os();
    let own = arguments.next()?;
    let name = Path::new(&own).file_name()?.to_str()?.strip_prefix("distlto-")?.to_owned();
    if name.is_empty() || TOOLS.contains(&name.as_str()) {
        return None;
    }
    let mut words = vec![name.into_bytes()];
    words.extend(arguments.map(word_of));
    Some(words)
}

/// The options from the environment; wrong ones end the process as on a command line.
pub fn options() -> Options {
    let text = std::env::var(OPTIONS).unwrap_or_default();
    let words = response::tokenize(text.as_bytes());
    let words = words.iter().map(|word| String::from_utf8_lossy(word).into_owned());
    let line = ["distlto".to_owned(), "link".to_owned()].into_iter().chain(words);
    match Cli::parse_from(line.chain(["--".to_owned(), "linker".to_owned()])).command {
        Command::Link(args) => args.options(),
        // `link` was the subcommand's name.
        _ => Options::default(),
    }
}
