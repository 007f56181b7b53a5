//! Why a link cannot be cut into slices.

use camino::Utf8PathBuf;
use distlto_prepare::io_error::IoError;
use miette::Diagnostic;
use thiserror::Error;

use crate::bitcode::BitcodeError;
use crate::graph::error::GraphError;

/// Why there are no slices.
#[derive(Debug, Error, Diagnostic)]
pub enum SliceError {
    /// A line of the request is no record.
    #[error("line {number} is no record: {found:?}")]
    #[diagnostic(
        code(distlto::bad_input),
        help(
            "expected, with tabs between: `object LABEL FILE SLICE NATIVE`, `rest SLICE NATIVE`, `root DIR`, or `graph`, `report` or `explain` and a file"
        )
    )]
    Line {
        /// Its number, from 1 on.
        number: usize,
        /// The line.
        found: String,
    },
    /// A module that was not announced, and no slice for such.
    #[error("the module {id} has no slice")]
    #[diagnostic(
        code(distlto::usage),
        help("announce it by an `object` record, or give a `rest` record for what is not known beforehand")
    )]
    Unplaced {
        /// The module id.
        id: Utf8PathBuf,
    },
    /// A module's shard cannot be rewritten.
    #[error("the index shard of {id}: {source}")]
    #[diagnostic(code(distlto::bad_input), help("is the linker of an LLVM from 15 to 23?"))]
    Shard {
        /// The module id.
        id: Utf8PathBuf,
        /// The error in it.
        source: BitcodeError,
    },
    /// A module imports from one with an id that is not UTF-8.
    #[error("{id} imports from a module whose path is not UTF-8")]
    #[diagnostic(code(distlto::bad_input), help("rename the file"))]
    NotText {
        /// The importing module's id.
        id: Utf8PathBuf,
    },
    /// The backends of a slice are no graph.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Graph(#[from] GraphError),
    /// A file.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] IoError),
}
