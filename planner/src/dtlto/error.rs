//! Errors of a job file: the file, the place in it, and the remedy for the user.
//!
//! Does not depend on how job files are read.

use std::fmt;

use camino::Utf8PathBuf;
use distlto_prepare::json::{Fault, JsonError};
use miette::Diagnostic;
use thiserror::Error;

use crate::graph::error::GraphError;

/// Why a job file cannot be used.
#[derive(Debug, Error, Diagnostic)]
#[error("{file}: {problem}")]
#[diagnostic(forward(problem))]
pub struct JobFileError {
    /// The job file, as the caller called it.
    pub file: String,
    /// The fault and its place.
    #[source]
    pub problem: Located,
}

impl JobFileError {
    /// The error for a path of [`super::JobFile::garbled`] that does not exist.
    pub fn garbled(file: &str, path: &camino::Utf8Path) -> Self {
        JobFileFailure::at("", Problem::Garbled { path: path.to_owned() }).in_file(file)
    }
}

/// A problem with its place in the text.
#[derive(Debug)]
pub struct Located {
    /// A path such as `jobs[12].inputs[3]`; empty for the whole text.
    pub place: String,
    /// Line and column of a parse error, counted from 1; `None` for a fault found after parsing.
    pub position: Option<(usize, usize)>,
    /// The fault.
    pub problem: Box<Problem>,
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, position, problem } = self;
        match (place.is_empty(), position) {
            (false, Some((line, column))) => write!(f, "{place} (line {line}, column {column}): {problem}"),
            (false, None) => write!(f, "{place}: {problem}"),
            (true, Some((line, column))) => write!(f, "line {line}, column {column}: {problem}"),
            (true, None) => write!(f, "{problem}"),
        }
    }
}

impl std::error::Error for Located {}

impl Diagnostic for Located {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.code()
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.help()
    }
}

/// A problem, before its file is known.
#[derive(Debug)]
pub(super) struct JobFileFailure(Located);

impl JobFileFailure {
    /// Returns the failure for a fault found after parsing.
    pub fn at(place: impl Into<String>, problem: Problem) -> Self {
        Self(Located { place: place.into(), position: None, problem: Box::new(problem) })
    }

    /// Whether the text is JSON that the format does not allow.
    pub fn is_of_content(&self) -> bool {
        matches!(*self.0.problem, Problem::WrongContent { .. })
    }

    pub fn in_file(self, file: &str) -> JobFileError {
        JobFileError { file: file.to_owned(), problem: self.0 }
    }
}

impl From<JsonError> for JobFileFailure {
    fn from(JsonError { place, line, column, problem: message, fault }: JsonError) -> Self {
        let problem = Box::new(match fault {
            Fault::Truncated => Problem::Truncated { message },
            Fault::Syntax => Problem::NotJson { message },
            Fault::Content => Problem::WrongContent { message },
        });
        Self(Located { place, position: Some((line, column)), problem })
    }
}

/// A fault of a job file.
#[derive(Debug, Error, Diagnostic)]
#[diagnostic(code(distlto::bad_input))]
pub enum Problem {
    /// The text ends early.
    #[error("the file ends too early: {message}")]
    #[diagnostic(help("it was truncated, perhaps by a full disk: free space and link again"))]
    Truncated {
        /// The JSON reader's message.
        message: String,
    },
    /// Not JSON.
    #[error("not JSON: {message}")]
    #[diagnostic(help("the job file is what lld gives its distributor as last argument; name that file"))]
    NotJson {
        /// The JSON reader's message.
        message: String,
    },
    /// JSON that the format does not allow.
    #[error("{message}")]
    #[diagnostic(help(
        "the file is damaged or no DTLTO job file, or a newer lld wrote it, whose format this distlto does not know; what \
         is not understood could change what the jobs mean: install a distlto that knows it"
    ))]
    WrongContent {
        /// The reader's message, with the content found and expected.
        message: String,
    },
    /// A version that is not known.
    #[error("a job file of version {major}.{minor}; known are version 0.0 and the format without a version")]
    #[diagnostic(help("install a distlto that knows this version"))]
    UnknownVersion {
        /// The first number.
        major: u64,
        /// The second number.
        minor: u64,
    },
    /// No words to begin a command with.
    #[error("no compiler: the commands have no first word")]
    #[diagnostic(help("{COMPILER_HELP}"))]
    NoCompiler,
    /// lld got no compiler to run, and does not report that.
    #[error("the compiler's name is empty: the linker was not told which compiler to run")]
    #[diagnostic(help("{COMPILER_HELP}"))]
    EmptyCompiler,
    /// A job without module and shard.
    #[error("{count} inputs, where a module and its index shard come first")]
    #[diagnostic(help("each job compiles one module with its shard; no lld writes this"))]
    NoModule {
        /// How many there are.
        count: usize,
    },
    /// One file for both.
    #[error("{path:?} is both the module and its index shard")]
    #[diagnostic(help("each job compiles one module with its shard; no lld writes this"))]
    ModuleIsShard {
        /// The file.
        path: String,
    },
    /// A module that no command can name.
    #[error("the compiler takes the module identifier {module:?} for an option")]
    #[diagnostic(help(
        "name the object on the link line by a path that begins otherwise, such as its absolute one"
    ))]
    ModuleIsOption {
        /// The identifier.
        module: String,
    },
    /// A job that writes nothing.
    #[error("the job writes no file")]
    #[diagnostic(help("the first output of a job is its native object; no lld writes this"))]
    NoOutput,
    /// The lists name a file that the command does not.
    #[error("the command of the job does not name {path:?}")]
    #[diagnostic(help(
        "lists and command disagree, so another file than this one would be read or written; correct the job"
    ))]
    NotInCommand {
        /// The file.
        path: String,
    },
    /// Two jobs write one file.
    #[error("jobs[{other}] writes {path:?} too")]
    #[diagnostic(help("each object is written by one job; give each job an output of its own"))]
    TwoWriters {
        /// The file.
        path: Utf8PathBuf,
        /// The other job.
        other: usize,
    },
    /// A job reads the output of a job.
    #[error("{path:?} is an output of jobs[{writer}]")]
    #[diagnostic(help(
        "jobs run at the same time and in any order, so none may read what one writes; no lld writes this"
    ))]
    InputIsWritten {
        /// The file.
        path: Utf8PathBuf,
        /// The job that writes it.
        writer: usize,
    },
    /// An output where lld would not write.
    #[error("{path:?} lies outside of the working directory and of {}", directory(linker_output.as_ref()))]
    #[diagnostic(help("lld has objects written beside its own output; refuse job files from elsewhere"))]
    Outside {
        /// The output.
        path: Utf8PathBuf,
        /// The linker's output.
        linker_output: Option<Utf8PathBuf>,
    },
    /// An index past the end of its list.
    #[error("index {index} of {list}, which has {length} entries")]
    #[diagnostic(help("indices count from 0 and end before the list's length"))]
    OutOfRange {
        /// The index.
        index: u64,
        /// The list.
        list: String,
        /// Its length.
        length: usize,
    },
    /// Two modules of one identifier.
    #[error("{identifier:?} is also the identifier of common.modules[{other}]")]
    #[diagnostic(help("a module is known by its identifier; each has one of its own"))]
    TwoModules {
        /// The identifier.
        identifier: String,
        /// The earlier entry.
        other: usize,
    },
    /// A path with bytes that lld replaced because they are not UTF-8.
    #[error("{path:?} does not exist; its name holds U+FFFD, which lld writes for bytes that are not UTF-8")]
    #[diagnostic(help(
        "job files hold UTF-8 only: rename the file or directory to ASCII or UTF-8, or link with `distlto link`, \
         which takes any name"
    ))]
    Garbled {
        /// The path as the job file has it.
        path: Utf8PathBuf,
    },
    /// The action graph refuses the jobs.
    #[error("the jobs make no action graph: {0}")]
    #[diagnostic(help("no lld writes this; correct the job"))]
    Graph(GraphError),
}

const COMPILER_HELP: &str = "name a clang of the linker's version: with a linker command add \
     --thinlto-remote-compiler=CLANG; clang as the driver does that by itself, given -flto=thin \
     -fthinlto-distributor=PROGRAM instead of -Wl,--thinlto-distributor=PROGRAM; with rustc add \
     -C link-arg=-flto=thin -C link-arg=-fthinlto-distributor=PROGRAM, or \
     -C link-arg=-Wl,--thinlto-remote-compiler=CLANG";

fn directory(linker_output: Option<&Utf8PathBuf>) -> String {
    match linker_output {
        Some(path) => format!("the directory of {path}, which is linked"),
        None => "what it may name".to_owned(),
    }
}
