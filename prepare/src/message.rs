//! Messages on standard error, each written at once.
//!
//! A message that cannot be written (a closed pipe, a full disk) fails nothing: it is not the result of a command. The
//! result on standard output goes through [`crate::write::to_standard_output`]. Does not depend on the content of
//! messages.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes a line.
pub fn say(line: impl Display) {
    show(format!("{line}\n").as_bytes());
}

/// Writes a line about something that is as it should be, and that people may want to change.
pub fn note(what: impl Display) {
    say(format_args!("distlto: note: {what}"));
}

/// Passes on text, such as that of a tool.
pub fn show(text: &[u8]) {
    let _ = io::stderr().lock().write_all(text);
}
