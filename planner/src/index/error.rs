//! Why a link could not be planned.

use distlto_prepare::io_error::IoError;
use miette::Diagnostic;
use thiserror::Error;

use crate::backend_flags::FlagError;
use crate::compile_jobs::CompileError;
use crate::inputs::InputError;
use crate::link_command::LinkCommandError;
use crate::recorded_flags::RecordError;
use crate::runner::ToolError;
use crate::thin_link::ThinLinkError;

/// Why a link could not be planned.
#[derive(Debug, Error, Diagnostic)]
pub enum IndexError {
    /// The command could not be resolved to a link line.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Front(#[from] LinkCommandError),
    /// Sources on a driver's line could not be compiled.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Compile(#[from] CompileError),
    /// An input could not be taken.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Input(#[from] InputError),
    /// An option has no meaning for backends that run apart from the linker.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Flags(#[from] FlagError),
    /// What a build has recorded of an object.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Record(#[from] RecordError),
    /// The thin link failed or left less than it should.
    #[error(transparent)]
    #[diagnostic(transparent)]
    ThinLink(#[from] ThinLinkError),
    /// A tool is missing or could not be run.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Tool(#[from] ToolError),
    /// The state directory could not be written.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] IoError),
    /// Symbols of an archive would be exported that the user wants hidden.
    #[error("--exclude-libs={libraries} names {archive}, whose members are linked one by one")]
    #[diagnostic(
        code(distlto::untranslatable),
        help(
            "members of an unpacked archive are no longer a library; hide the symbols with a version script or -fvisibility=hidden"
        )
    )]
    ExcludeLibs {
        /// The option's value.
        libraries: String,
        /// The first archive with bitcode that it names.
        archive: String,
    },
    /// The final link would take a member of an archive twice.
    #[error("a shared library wants a symbol of {archive}, which only an object names (.deplibs)")]
    #[diagnostic(code(distlto::untranslatable), help("name the archive on the link line"))]
    Noted {
        /// The archive.
        archive: String,
    },
    /// The linker resolves a wrapped symbol in another way when it is given objects.
    #[error(
        "__real_{symbol} is called, which --wrap={symbol} makes {symbol}, and nothing that is loaded defines {symbol}"
    )]
    #[diagnostic(
        code(distlto::untranslatable),
        help("link what defines {symbol} outside of --start-lib and archives, or leave out --wrap={symbol}")
    )]
    Wrapped {
        /// The wrapped symbol.
        symbol: String,
    },
    /// Modules hide or align a symbol that another file defines, and no object is linked that could say so for them.
    #[error(
        "{symbol} is hidden or aligned by a module whose object does not define it, and no native object is loaded"
    )]
    #[diagnostic(
        code(distlto::untranslatable),
        help("declare {symbol} alike in all modules, or link an object that is no bitcode")
    )]
    Unsaid {
        /// The symbol.
        symbol: String,
    },
    /// Code of a loaded module would be lost.
    #[error("{id} was loaded, but the thin link wrote neither an index shard nor regular LTO code for it")]
    #[diagnostic(
        code(distlto::tool),
        help("compile it with -flto=thin, or report the link line as a defect of distlto")
    )]
    Lost {
        /// The module id.
        id: String,
    },
}

impl IndexError {
    /// Whether one linker that compiles the modules itself may do the link.
    pub fn is_of_two_steps(&self) -> bool {
        matches!(
            self,
            Self::ExcludeLibs { .. } | Self::Noted { .. } | Self::Wrapped { .. } | Self::Unsaid { .. }
        )
    }
}
