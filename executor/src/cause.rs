//! Why an action failed, for people.
//!
//! Independent of the way of execution.

use std::io;

use distlto_prepare::io_error::IoError;
use distlto_record::cause::{FailureCause, FailureKind};
use miette::Diagnostic;
use thiserror::Error;

use crate::execute::redirect::UnnamedOutput;
use crate::hook::INSTALL;
use crate::schedule::memory::Killer;
use crate::verify::{Refusal, Refused};

/// Why an action failed.
#[derive(Debug, Error, Diagnostic)]
pub enum Cause {
    /// Its inputs or its result were refused.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Refused(#[from] Refused),
    /// A file could not be written or renamed.
    #[error("{label}: {source}")]
    #[diagnostic(code(distlto::io), help("free space or mend the permissions; earlier outputs are intact"))]
    Io {
        /// The action.
        label: String,
        /// The error.
        source: IoError,
    },
    /// Its command does not name its output.
    #[error(transparent)]
    #[diagnostic(transparent)]
    UnnamedOutput(#[from] UnnamedOutput),
    /// Its command could not be started.
    #[error("{label}: cannot run {program}: {source}")]
    #[diagnostic(code(distlto::tool), help("{}", remedy(program, source)))]
    Start {
        /// The action.
        label: String,
        /// The program.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// Its command ended for want of something that it needs from the system.
    #[error("{label}: the compiler failed: {source}")]
    #[diagnostic(code(distlto::failed))]
    SystemLimit {
        /// The action.
        label: String,
        /// The compiler's message.
        source: io::Error,
    },
    /// The run was cancelled while it ran.
    #[error("{label}: interrupted")]
    #[diagnostic(code(distlto::interrupted), help("run again; finished objects are kept"))]
    Interrupted {
        /// The action.
        label: String,
    },
    /// It was killed for want of memory, and again when nothing else ran.
    #[error("{refused}{}", twice(*killer))]
    #[diagnostic(
        code(distlto::failed),
        help(
            "this compilation alone needs more memory than there is: raise the limit of the container or control group, free memory, or lower the optimization for this module"
        )
    )]
    KilledTwice {
        /// The second time.
        refused: Refused,
        /// The process that killed it, as far as the system reports it.
        killer: Killer,
    },
    /// An engine did not execute it.
    #[error("{label}: {source}")]
    #[diagnostic(code(distlto::tool), help("{}", engine_remedy(source)))]
    Engine {
        /// The action.
        label: String,
        /// Why.
        source: Box<distlto_reapi::Error>,
    },
    /// It cannot be executed on the engine, and is to run here.
    #[error("{label}: not executed on the engine: {reason}")]
    #[diagnostic(code(distlto::tool))]
    NotOnEngine {
        /// The action.
        label: String,
        /// Why.
        reason: String,
    },
    /// A mistake in distlto.
    #[error("{label}: distlto failed inside")]
    #[diagnostic(code(distlto::failed), help("this is a mistake in distlto: please report the text above"))]
    Internal {
        /// The action.
        label: String,
    },
}

/// Returns the remedy for a program that cannot be run.
fn remedy(program: &str, source: &io::Error) -> String {
    if source.raw_os_error() == Some(libc::ECHILD) {
        return "something else in this process, such as a handler of SIGCHLD, has waited for the compiler"
            .to_owned();
    }
    format!(
        "check that the program is installed, is executable, and is spelled as in PATH{}",
        of_ours(program)
    )
}

/// For a program that is a part of distlto.
fn of_ours(program: &str) -> String {
    let ours = program.rsplit('/').next().is_some_and(|name| name.starts_with("distlto-"));
    if ours { format!("; {INSTALL}") } else { String::new() }
}

/// Returns the remedy for an engine's failure.
fn engine_remedy(source: &distlto_reapi::Error) -> String {
    let help = source.help().map_or_else(String::new, |help| format!("{help}; "));
    format!("{help}without --remote-fallback=never this machine would have done it")
}

fn twice(killer: Killer) -> &'static str {
    match killer {
        Killer::System => {
            "; the system killed it for want of memory, the second time with no other job running"
        }
        Killer::Somebody | Killer::Unknown => {
            "; this happened twice, the second time with no other job running"
        }
    }
}

impl Cause {
    /// Converts the cause for the record.
    pub fn to_record(&self) -> FailureCause {
        let kind = match self {
            Self::Interrupted { .. } | Self::NotOnEngine { .. } => FailureKind::Interrupted,
            Self::Internal { .. } => FailureKind::Internal,
            _ => FailureKind::Failed,
        };
        FailureCause::of(kind, self)
    }

    /// Returns the exit code that a program running just this action passes on, if the command gave one.
    pub fn exit_code(&self) -> Option<u8> {
        match self {
            Self::Refused(refused) | Self::KilledTwice { refused, .. } => refused.refusal.exit_code(),
            _ => None,
        }
    }

    /// Returns the refusal, if that is the cause.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refused) | Self::KilledTwice { refused, .. } => Some(&refused.refusal),
            _ => None,
        }
    }

    /// The cause when the command was killed for want of memory although nothing else ran.
    pub fn twice(self, killer: Killer) -> Self {
        match self {
            Self::Refused(refused) => Self::KilledTwice { refused, killer },
            other => other,
        }
    }
}
