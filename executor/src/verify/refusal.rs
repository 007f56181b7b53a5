//! Why a backend compilation was not run, or its result not accepted.

use std::fmt;
use std::path::PathBuf;

use distlto_planner::bitcode::BitcodeError;
use distlto_planner::shard::HashMismatch;
use distlto_prepare::io_error::IoError;
use distlto_prepare::kind::{Kind, Native};
use miette::Diagnostic;
use thiserror::Error;

/// A refusal, with the module it is about.
#[derive(Debug, Error)]
#[error("{module}: {refusal}")]
pub struct Refused {
    /// The module id of the backend compilation, or the label of another action.
    pub module: String,
    /// The reason.
    #[source]
    pub refusal: Box<Refusal>,
}

impl Refused {
    /// For `map_err`: `check().map_err(Refused::about(module))`.
    pub fn about<R: Into<Refusal>>(module: &str) -> impl FnOnce(R) -> Self + '_ {
        move |refusal| Self { module: module.to_owned(), refusal: Box::new(refusal.into()) }
    }
}

impl Diagnostic for Refused {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.refusal.code()
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.refusal.help()
    }
}

const THIN_LINK: &str = "run the thin link again; it writes a shard for every module that it loads";
const REPEAT: &str = "repeat the command to see the failure; no output was replaced";
const COMPILER: &str =
    "check which compiler runs (a wrapper, a broken installation, a full disk); no output was replaced";

/// The reason for a refusal. Those up to [`Refusal::Hashes`] are found before the compiler runs, the others after.
#[derive(Debug, Error, Diagnostic)]
pub enum Refusal {
    /// A file that the compilation reads cannot be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] IoError),
    /// The shard holds nothing; clang would compile without importing, and without renaming the symbols that others
    /// import.
    #[error("the index shard {} is empty", shard.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help("{THIN_LINK}, save for FullLTO modules, which have no backend")
    )]
    EmptyShard {
        /// The shard.
        shard: PathBuf,
    },
    /// The shard is damaged or is something else.
    #[error("the index shard {} cannot be used: {source}", shard.display())]
    #[diagnostic(code(distlto::bad_input), help("{THIN_LINK}"))]
    BadShard {
        /// The shard.
        shard: PathBuf,
        /// The damage.
        source: BitcodeError,
    },
    /// The shard is that of a module that imports from this one; clang crashes.
    #[error("the index shard {} is that of a module that imports from this one", shard.display())]
    #[diagnostic(code(distlto::bad_input), help("give each module its own shard"))]
    ImportersShard {
        /// The shard.
        shard: PathBuf,
    },
    /// The module or an import is not bitcode.
    #[error("{what} {} is {found}, not bitcode", path.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help("compile it again with -flto=thin, then run the thin link again")
    )]
    NotBitcode {
        /// `the module` or `the import`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Its kind.
        found: Kind,
    },
    /// The module or an import is damaged bitcode.
    #[error("{what} {} cannot be used: {source}", path.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help("compile it again with -flto=thin, then run the thin link again")
    )]
    BadBitcode {
        /// `the module` or `the import`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The damage.
        source: BitcodeError,
    },
    /// The shard belongs to another module, or a module has changed since the thin link.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Hashes(#[from] HashMismatch<IoError>),

    /// A file that the compilation reads has changed.
    #[error("the input {path} changed while the command ran")]
    #[diagnostic(
        code(distlto::bad_input),
        help("no output was replaced; find out what writes to the file during the link, and link again")
    )]
    InputChanged {
        /// The file, as the command names it.
        path: String,
    },
    /// The compiler cannot read bitcode of a later LLVM.
    #[error("its bitcode is {producer}, and the compiler is {reader}, which cannot read it")]
    #[diagnostic(
        code(distlto::tool),
        help(
            "compile backends with a clang of the LLVM that made the bitcode or of a later one (--compiler), or make the bitcode with an older one; no output was replaced"
        )
    )]
    TooOld {
        /// The version of the bitcode.
        producer: String,
        /// The version of the compiler.
        reader: String,
    },
    /// The compiler said that it failed.
    #[error("the command failed with exit code {code}{}", first(errors))]
    #[diagnostic(code(distlto::failed), help("{REPEAT}"))]
    Exit {
        /// Its exit code.
        code: i32,
        /// Error lines from its standard error.
        errors: Vec<String>,
    },
    /// The compiler was killed or crashed.
    #[error("the command was ended by {name} (signal {signal}){}", first(errors))]
    #[diagnostic(code(distlto::failed), help("{}", signal_help(*signal)))]
    Signal {
        /// The signal's number.
        signal: i32,
        /// Its name.
        name: &'static str,
        /// Error lines from its standard error.
        errors: Vec<String>,
    },
    /// The compiler exited 0 but printed an error.
    #[error("the compiler exited with 0, but said: {text}")]
    #[diagnostic(code(distlto::failed), help("{REPEAT}; clang exits with 0 when a ThinLTO backend fails"))]
    BackendError {
        /// The first such line.
        text: String,
    },
    /// The compiler exited 0 and wrote no file.
    #[error("the command exited with 0, but did not write {}", output.display())]
    #[diagnostic(code(distlto::failed), help("{COMPILER}"))]
    NoOutput {
        /// The output.
        output: PathBuf,
    },
    /// The compiler exited 0 and wrote an empty file.
    #[error("the command exited with 0, but wrote an empty {}", output.display())]
    #[diagnostic(code(distlto::failed), help("{COMPILER}"))]
    EmptyOutput {
        /// The output.
        output: PathBuf,
    },
    /// The object ends early or is damaged.
    #[error("the object {} is truncated or malformed: {detail}", output.display())]
    #[diagnostic(code(distlto::failed), help("{COMPILER}"))]
    Malformed {
        /// The output.
        output: PathBuf,
        /// The damage.
        detail: String,
    },
    /// The object is none of its module: it lacks something that the module has, and that no compiler drops.
    #[error("the object {} is not that of its module: {lacks}", output.display())]
    #[diagnostic(code(distlto::failed), help("{COMPILER}"))]
    MissingContents {
        /// The output.
        output: PathBuf,
        /// The missing contents.
        lacks: String,
    },
    /// The output is not an object, or one for another machine.
    #[error("the output {} is {found}, expected {}", output.display(), expected_text(*expected))]
    #[diagnostic(
        code(distlto::failed),
        help("check the compiler's target and that it compiles to native code; no output was replaced")
    )]
    WrongKind {
        /// The output.
        output: PathBuf,
        /// Its kind.
        found: Kind,
        /// The expected kind; any native object when `None`.
        expected: Option<Native>,
    },
}

fn first(errors: &[String]) -> String {
    errors.first().map(|line| format!(": {line}")).unwrap_or_default()
}

fn signal_help(signal: i32) -> &'static str {
    match signal {
        signal_hook::consts::SIGKILL => {
            "the system kills a process when memory runs out: run fewer jobs at once (-j), or repeat the command alone"
        }
        _ => REPEAT,
    }
}

fn expected_text(expected: Option<Native>) -> String {
    expected.map_or_else(|| "a native object".to_owned(), |native| Kind::Native(native).to_string())
}

impl Refusal {
    /// Whether the command said that it succeeded, and left no object, or none that serves.
    pub fn is_of_object(&self) -> bool {
        use Refusal::{EmptyOutput, Malformed, MissingContents, NoOutput, WrongKind};
        matches!(
            self,
            NoOutput { .. }
                | EmptyOutput { .. }
                | Malformed { .. }
                | WrongKind { .. }
                | MissingContents { .. }
        )
    }

    /// The exit code that a program passes on: the command's own when it failed, 128 + signal when one ended
    /// it, `None` when the command did not fail by itself.
    pub fn exit_code(&self) -> Option<u8> {
        match *self {
            Self::Exit { code, .. } => u8::try_from(code).ok().filter(|&code| code != 0),
            Self::Signal { signal, .. } => u8::try_from(128 + signal).ok(),
            _ => None,
        }
    }
}
