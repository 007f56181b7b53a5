//! Errors of commands that examine a link.
//!
//! One list for all of these commands.

use camino::Utf8PathBuf;
use miette::Diagnostic;
use thiserror::Error;

/// Why a link cannot be examined.
#[derive(Debug, Error, Diagnostic)]
pub enum LinkDescriptionError {
    /// No link has that name.
    #[error("there is no record of a link of {path}: {record} is not there")]
    #[diagnostic(
        code(distlto::bad_input),
        help(
            "name an output that distlto linked (with --state or DISTLTO_CACHE, if its record is elsewhere), its state directory, a \
             record of a run, or an action graph in JSON"
        )
    )]
    Unknown {
        /// The thing that the user named.
        path: Utf8PathBuf,
        /// Where its record would be.
        record: String,
    },
    /// There are not two runs.
    #[error("{path} holds the record of {found} run(s), and two are compared")]
    #[diagnostic(code(distlto::usage), help("name two things, or link again"))]
    NoTwoRuns {
        /// The state directory.
        path: Utf8PathBuf,
        /// How many there are.
        found: usize,
    },
    /// No module has that name.
    #[error("no module of {path} is called {name}{}", like(similar))]
    #[diagnostic(
        code(distlto::usage),
        help("`distlto inspect --modules` lists them; the end of a name will do")
    )]
    NoModule {
        /// The link.
        path: Utf8PathBuf,
        /// The requested name.
        name: String,
        /// Names that hold it, or several that end in it.
        similar: Vec<String>,
    },
    /// Information for an answer cannot be read.
    #[error("{what}")]
    #[diagnostic(code(distlto::bad_input), help("{help}"))]
    Unreadable {
        /// The failed attempt.
        what: String,
        /// The remedy.
        help: String,
    },
}

fn like(similar: &[String]) -> String {
    if similar.is_empty() { String::new() } else { format!("; there is {}", similar.join(", ")) }
}
