//! Errors in an action graph or in its JSON.
//!
//! Each error names the action by its label and the file by its path, so that the graph's author can find the place.
//! Does not name the file of the JSON; a caller that read one does.

use camino::Utf8PathBuf;
use distlto_prepare::json::JsonError;
use miette::Diagnostic;
use thiserror::Error;

use super::VERSION;

/// Why a list of actions is not an action graph.
#[derive(Debug, Error, Diagnostic)]
#[diagnostic(code(distlto::bad_input))]
pub enum GraphError {
    /// Not JSON, or JSON of another shape; the message says where.
    #[error("not an action graph: {0}")]
    #[diagnostic(help("make the graph again with distlto index; docs/action-graph.md describes the format"))]
    Json(#[source] JsonError),
    /// A version that this program does not know.
    #[error("an action graph of version {found}; this program reads version {VERSION}")]
    #[diagnostic(help("make the graph again with the distlto index of this release"))]
    Version {
        /// The graph's version.
        found: u64,
    },
    /// A path occurs twice in the table of files, if perhaps in two spellings such as `a/b` and `a//b`.
    #[error("file {index} of the table, {path:?}, is also file {first}")]
    #[diagnostic(help("a path has one entry in the table of files; actions refer to it by its index"))]
    DuplicateFile {
        /// The path.
        path: Utf8PathBuf,
        /// The later entry.
        index: usize,
        /// The earlier entry.
        first: usize,
    },
    /// A prefix occurs twice in the table of prefixes.
    #[error("prefix {index} of the table is also prefix {first}")]
    #[diagnostic(help("a list of words has one entry in the table of prefixes"))]
    DuplicatePrefix {
        /// The later entry.
        index: usize,
        /// The earlier entry.
        first: usize,
    },
    /// An action refers to a file that the table does not hold.
    #[error("action {label:?} names file {index}, but the table holds {length} files")]
    #[diagnostic(help("indices count from 0 and end before the table's length"))]
    NoSuchFile {
        /// The action.
        label: String,
        /// The index.
        index: u32,
        /// The table's length.
        length: usize,
    },
    /// An action refers to a prefix that the table does not hold.
    #[error("action {label:?} names prefix {index}, but the table holds {length} prefixes")]
    #[diagnostic(help("indices count from 0 and end before the table's length"))]
    NoSuchPrefix {
        /// The action.
        label: String,
        /// The index.
        index: u32,
        /// The table's length.
        length: usize,
    },
    /// An empty path.
    #[error("file {index} of the table is an empty path")]
    #[diagnostic(help("every file needs a path"))]
    EmptyPath {
        /// The entry.
        index: usize,
    },
    /// A NUL byte, which no path and no argument can hold.
    #[error("{what} holds a NUL byte: {text:?}")]
    #[diagnostic(help("neither a path nor a command's argument can hold a NUL byte; remove it"))]
    Nul {
        /// The kind of text that holds it.
        what: &'static str,
        /// Its text.
        text: String,
    },
    /// A command without a program.
    #[error("action {label:?} has no program to run")]
    #[diagnostic(help("the first word of a command is its program; it cannot be missing or empty"))]
    NoProgram {
        /// The action.
        label: String,
    },
    /// An action without an output: nothing could show whether it has run.
    #[error("action {label:?} writes no file")]
    #[diagnostic(help("name at least one file that the action writes"))]
    NoOutput {
        /// The action.
        label: String,
    },
    /// An opt action without a module and an index shard.
    #[error(
        "the inputs of opt action {label:?} are {count} files, not a module, its index shard and imports"
    )]
    #[diagnostic(help("the first input of a backend compilation is its module, the second its index shard"))]
    NoModule {
        /// The action.
        label: String,
        /// How many inputs it has.
        count: usize,
    },
    /// One action lists a file twice.
    #[error("action {label:?} lists {path:?} twice among its {list}")]
    #[diagnostic(help("a module does not import itself, and each file of an action is listed once"))]
    RepeatedFile {
        /// The action.
        label: String,
        /// The file.
        path: Utf8PathBuf,
        /// `inputs` or `outputs`.
        list: &'static str,
    },
    /// An action reads one of its outputs.
    #[error("action {label:?} both reads and writes {path:?}")]
    #[diagnostic(help(
        "give the output a path of its own; a file that an action overwrites is lost to later runs"
    ))]
    ReadsOwnOutput {
        /// The action.
        label: String,
        /// The file.
        path: Utf8PathBuf,
    },
    /// Two actions write one file.
    #[error("both {first:?} and {second:?} write {path:?}")]
    #[diagnostic(help(
        "one file has one producer; an object that is given twice on the link line, under one spelling or two, \
         must be given once"
    ))]
    TwoProducers {
        /// The file.
        path: Utf8PathBuf,
        /// Kind and label of the action listed earlier.
        first: String,
        /// Kind and label of the action listed later.
        second: String,
    },
    /// Actions that wait for each other.
    #[error("actions wait for each other: {}", cycle.join(" needs "))]
    #[diagnostic(help("an action cannot need, through others, what it makes itself; correct their inputs"))]
    Cycle {
        /// Kinds and labels along the cycle; the first one is repeated at the end.
        cycle: Vec<String>,
    },
}
