//! Exit codes of every distlto program, and the one place that prints an error and turns it into one.
//!
//! An error type names its class with `#[diagnostic(code(distlto::...))]`; the class decides the exit code.
//! A linker or compiler that fails keeps its own exit code, which the caller passes on unchanged.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::Parser;
use miette::{Diagnostic, Report};

use crate::io_error::IoError;
use crate::limits::SystemLimit;
use crate::message::show;
use crate::text::printable;

/// The classes of errors with the exit code of each. Printed by `--help`, documented in `docs/reference.md`.
pub const CLASSES: &[(&str, u8, &str)] = &[
    ("distlto::failed", 1, "a compilation failed or its object was refused"),
    ("distlto::usage", 2, "the command line is wrong"),
    ("distlto::bad_input", 3, "an input file is missing, truncated or malformed"),
    ("distlto::io", 4, "a file cannot be read or written (permissions, full disk)"),
    ("distlto::busy", 5, "another run is writing the same output"),
    ("distlto::untranslatable", 6, "a link option would change code and has no backend spelling"),
    ("distlto::tool", 7, "a compiler or linker is missing or too old"),
    (SystemLimit::CLASS, LIMIT, "the system has no process, thread or open file left for this"),
    ("distlto::interrupted", 130, "interrupted; by another signal than SIGINT, 128 plus its number"),
];

/// The exit code of `distlto::bad_input`, for a report that names bad files without an error.
pub const BAD_INPUT: u8 = 3;

/// The exit code where a limit of the system was reached with nothing left to do without.
pub const LIMIT: u8 = 8;

/// The rule for the exit code of a run after a tool that it started failed.
pub const PASSED_ON: &str = "A linker or compiler that fails keeps its own exit code.";

/// The exit codes as text for the end of `--help`.
pub fn help() -> String {
    let mut text = "Exit codes (0 is success):\n".to_owned();
    for (_, code, meaning) in CLASSES {
        text.push_str(&format!("  {code:3}  {meaning}\n"));
    }
    text + PASSED_ON
}

/// The exit code of an error's class; 1 for an error without one.
pub fn code_of(error: &dyn Diagnostic) -> u8 {
    let class = class_of(error);
    CLASSES.iter().find(|(name, _, _)| class.as_deref() == Some(*name)).map_or(1, |&(_, exit, _)| exit)
}

/// Returns the class of an error: that of a system limit, if one caused it.
pub fn class_of(error: &dyn Diagnostic) -> Option<String> {
    match SystemLimit::of(error) {
        Some(_) => Some(SystemLimit::CLASS.to_owned()),
        None => error.code().map(|code| code.to_string()),
    }
}

/// Returns the remedy for an error.
pub fn help_of(error: &dyn Diagnostic) -> Option<String> {
    match SystemLimit::of(error) {
        Some(lack) => Some(lack.remedy().to_owned()),
        None => error.help().map(|help| help.to_string()),
    }
}

/// Formats an error as people see it from every program: the problem, and below it the remedy. Ends with its line.
pub fn text(error: &dyn Diagnostic) -> String {
    let mut text = format!("error: {}\n", printable(&error.to_string()));
    if let Some(help) = help_of(error) {
        text.push_str(&format!("  help: {}\n", printable(&help)));
    }
    text
}

/// Prints an error and its remedy on standard error.
pub fn print(error: &dyn Diagnostic) {
    show(text(error).as_bytes());
}

/// The arguments of a program. Wrong ones end it, and so does a question that they answer themselves, such as `--help`.
pub fn parse<P: Parser>(words: impl IntoIterator<Item = OsString>) -> P {
    P::try_parse_from(words).unwrap_or_else(|answer| refuse(answer))
}

/// Ends the process with clap's answer about its command line.
pub fn refuse(answer: clap::Error) -> ! {
    let code = match answer.print() {
        // Nobody asked for a message about arguments, and who closes a pipe has seen enough.
        Err(error) if !answer.use_stderr() && error.kind() != io::ErrorKind::BrokenPipe => {
            let error = IoError::on("write", "standard output")(error);
            print(&error);
            code_of(&error)
        }
        _ => u8::try_from(answer.exit_code()).unwrap_or(2),
    };
    std::process::exit(code.into())
}

/// Runs a program's body: prints a returned error and gives the exit code of its class.
pub fn run<E: Into<Report>>(body: impl FnOnce() -> Result<u8, E>) -> ExitCode {
    match body() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let error = error.into();
            print(&*error);
            ExitCode::from(code_of(&*error))
        }
    }
}
