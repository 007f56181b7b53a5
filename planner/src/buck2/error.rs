//! Errors of a Buck2 link: in its meta file, or in the linker's output in the index directory.
//!
//! Each names the file, the place in it and the remedy.

use std::path::PathBuf;

use distlto_prepare::io_error::IoError;
use distlto_prepare::json::{Fault, JsonError};
use miette::Diagnostic;
use thiserror::Error;

use crate::link_command::LinkCommandError;

/// Why a meta file could not be used.
#[derive(Debug, Error, Diagnostic)]
pub enum MetaError {
    /// Bytes that are no text.
    #[error("{} is not UTF-8 at byte {offset}", file.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help("paths of a Buck2 build are UTF-8; give the file with that name another one")
    )]
    NotUtf8 {
        /// The meta file.
        file: PathBuf,
        /// The first byte that is wrong.
        offset: usize,
    },
    /// Text that is not JSON.
    #[error("{} is no JSON: {problem}", file.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help("the rule writes this file; a full disk truncates it: remove it and build again")
    )]
    Syntax {
        /// The meta file.
        file: PathBuf,
        /// The fault and its place.
        problem: JsonError,
    },
    /// JSON that is no meta file.
    #[error("{}: {problem}", file.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help(
            "docs/design/buck2-files.md describes the file; a prelude that writes another one needs another distlto"
        )
    )]
    Content {
        /// The meta file.
        file: PathBuf,
        /// The fault and its place, such as `[1].linkables[0].path`.
        problem: JsonError,
    },
    /// An object without a place for its merged module, where one was asked for.
    #[error(
        "{}: [{index}] has no \"output_premerged_bitcode_file_path\", and --enable-premerger needs it", file.display()
    )]
    #[diagnostic(
        code(distlto::bad_input),
        help(
            "docs/design/buck2-files.md describes the file; a prelude that writes another one needs another distlto"
        )
    )]
    NoMergedOutput {
        /// The meta file.
        file: PathBuf,
        /// Which object, counted from 0.
        index: usize,
    },
    /// Two objects that would be written to one place.
    #[error("{}: {one} and {other} have the same output {output}", file.display())]
    #[diagnostic(code(distlto::bad_input), help("each object needs outputs of its own"))]
    SharedOutput {
        /// The meta file.
        file: PathBuf,
        /// The place.
        output: String,
        /// One object.
        one: String,
        /// The other.
        other: String,
    },
}

impl MetaError {
    /// Returns the error for a file that is no JSON or no meta file.
    pub(super) fn unread(file: PathBuf, problem: JsonError) -> Self {
        match problem.fault {
            Fault::Content => Self::Content { file, problem },
            Fault::Truncated | Fault::Syntax => Self::Syntax { file, problem },
        }
    }
}

/// How the name of a link's argument file ends.
pub const ARGUMENT_FILE: &str = "thinlto_index_argsfile";

/// Why plans could not be made from the linker's output.
#[derive(Debug, Error, Diagnostic)]
pub enum Buck2PlanError {
    /// A file could not be read or written.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] IoError),
    /// The rule's command, or what it runs.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Command(#[from] LinkCommandError),
    /// The link's argument file.
    #[error("cannot read the link's argument file {}: {source}", file.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help("the argument that ends in {ARGUMENT_FILE} names it; the rule writes it before the link")
    )]
    ArgumentFile {
        /// The file.
        file: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// Several arguments that could name the link's argument file.
    #[error("both {one} and {other} end in {ARGUMENT_FILE}")]
    #[diagnostic(
        code(distlto::usage),
        help("the link takes its search paths from one argument file; name one")
    )]
    ArgumentFiles {
        /// One argument.
        one: String,
        /// Another.
        other: String,
    },
    /// A listing of the index directory that is not there.
    #[error("the linker wrote no {}", file.display())]
    #[diagnostic(
        code(distlto::tool),
        help(
            "the link needs -Wl,--thinlto-index-only=DIR/index, and a linker that takes --thinlto-full-index or a driver that answers -###"
        )
    )]
    NoListing {
        /// The listing.
        file: PathBuf,
    },
    /// A module that the linker has indexed, or that another one imports, and that has no shard.
    #[error("{} is missing, though {because}", file.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help(
            "the index directory is incomplete: does the link have -Wl,--thinlto-emit-imports-files and -Wl,--thinlto-prefix-replace=;DIR/ with the directory of --index?"
        )
    )]
    Missing {
        /// The file.
        file: PathBuf,
        /// Who says that it has to be there.
        because: String,
    },
    /// A shard with module paths that LLVM has garbled and that cannot be mended.
    #[error("{} has paths that are not ASCII, and {because}", file.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help(
            "LLVM writes such paths wrongly into shards, and only lld's shards of LLVM 14 to 22 can be mended: give the modules names of ASCII"
        )
    )]
    Garbled {
        /// The shard.
        file: PathBuf,
        /// Why it cannot be mended.
        because: String,
    },
    /// A split LTO unit: the backends would compile only one part of the module.
    #[error("{module} is a split LTO unit: no backend compiles its vtables, and the program would lack them")]
    #[diagnostic(
        code(distlto::bad_input),
        help(
            "compile with `-fno-split-lto-unit` besides `-fwhole-program-vtables`, which then works without units being split"
        )
    )]
    SplitUnit {
        /// The module.
        module: String,
    },
    /// A linkable that the driver does not give to the linker.
    #[error("{file} never reaches the linker, though {} lists it: the program would lack it", meta.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help(
            "compiler drivers compile or assemble inputs whose names end as those of sources do, `.bc` among them: give the object a name that ends in `.o`"
        )
    )]
    NeverLinked {
        /// The meta file.
        meta: PathBuf,
        /// The linkable.
        file: String,
    },
    /// A stock linker, and modules to merge.
    #[error("--enable-premerger: the linker of this link does not merge modules")]
    #[diagnostic(
        code(distlto::usage),
        help(
            "premerging needs a private linker, which knows --thinlto-full-index and -premerger-output-map; remove the premerger from the target or its toolchain"
        )
    )]
    NoPremerger,
    /// An import out of an archive that the linker has opened itself.
    #[error("{importer} imports {import}, a member that no backend can load")]
    #[diagnostic(
        code(distlto::bad_input),
        help(
            "{archive} holds bitcode and is linked as it is: set `supports_lto = True` on the prebuilt_cxx_library of that archive, so that its members become objects of their own"
        )
    )]
    ImportFromArchive {
        /// The module that imports.
        importer: String,
        /// The imported path, as the linker spells it.
        import: String,
        /// The archive.
        archive: String,
    },
    /// An unknown merge state in the file that a merging linker has written for a module.
    #[error("{} is neither empty nor bitcode, nor does it say `standalone` or `absorbed`", file.display())]
    #[diagnostic(
        code(distlto::tool),
        help("this linker's -premerger-output-map is another one than distlto knows")
    )]
    MergeState {
        /// The file.
        file: PathBuf,
    },
    /// An import list with a line that no meta file can name.
    #[error("{}: line {line} is not UTF-8", file.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help("paths of a Buck2 build are UTF-8; give the file with that name another one")
    )]
    ImportNotUtf8 {
        /// The import list.
        file: PathBuf,
        /// The line, from 1 on.
        line: usize,
    },
}
