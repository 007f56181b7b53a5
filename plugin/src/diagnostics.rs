//! What the linker is told: texts gathered while compilers run, handed to its callbacks when all is over.
//!
//! A linker may end the process from a callback, so nothing is told before every child has ended and every temporary
//! is gone. Knows nothing of what went wrong.

use std::ffi::CString;
use std::io::{self, Write};

use distlto_record::report::Failure;
use miette::Diagnostic;

use crate::interface::{Config, Emit};

/// Texts in the order in which they arose.
#[derive(Debug, Default)]
pub struct Diagnostics {
    texts: Vec<(Severity, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Severity {
    Warning,
    Error,
}

impl Diagnostics {
    /// Adds what does not make the call fail.
    pub fn warn(&mut self, text: impl Into<String>) {
        self.texts.push((Severity::Warning, text.into()));
    }

    /// Adds what makes the call fail.
    pub fn error(&mut self, text: impl Into<String>) {
        self.texts.push((Severity::Error, text.into()));
    }

    /// Adds an error with its remedy.
    pub fn fail(&mut self, error: &dyn Diagnostic) {
        let help = error.help().map(|help| help_line(&help.to_string())).unwrap_or_default();
        self.error(format!("distlto: {error}{help}"));
    }

    /// Whether the call fails.
    pub fn has_errors(&self) -> bool {
        self.texts.iter().any(|&(severity, _)| severity == Severity::Error)
    }

    /// Hands everything to the linker, on the calling thread.
    ///
    /// # Safety
    ///
    /// The callbacks are functions of the interface's type, and may be called.
    pub unsafe fn emit(&self, config: &Config) {
        for (severity, text) in &self.texts {
            let (emit, word) = match severity {
                Severity::Warning => (config.EmitWarn, "warning"),
                Severity::Error => (config.EmitError, "error"),
            };
            match emit {
                // SAFETY: the caller's promise.
                Some(emit) => unsafe { call(emit, config, text) },
                // A linker that takes no diagnostics leaves standard error.
                None => drop(writeln!(io::stderr(), "{word}: {text}")),
            }
        }
    }
}

/// # Safety
///
/// That of [`Diagnostics::emit`].
unsafe fn call(emit: Emit, config: &Config, text: &str) {
    // What compilers print may hold the byte that ends text in C.
    let text = CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default();
    // SAFETY: the caller's promise; the text lives until the call returns.
    unsafe { emit(config.DiagContext, text.as_ptr()) };
}

/// A failed compilation: cause, the compiler's words, remedy, and the command to repeat it.
pub fn failure_text(failure: &Failure) -> String {
    let help = failure.cause.help().map(|help| help_line(&help.to_string())).unwrap_or_default();
    let said = match failure.stderr.trim_end() {
        "" => String::new(),
        said => format!("\n{said}"),
    };
    format!("distlto: {}{said}{help}\n  repeat: {}", failure.cause, failure.command)
}

fn help_line(help: &str) -> String {
    format!("\n  help: {help}")
}
