//! The commands that a compiler driver would run: the output of `clang -###` and `gcc -###`.
//!
//! Pure: reads the text. Clang quotes every word and escapes `"`, `\` and `$`; GCC quotes words only if needed. A line
//! that begins with a blank is a command; a quoted word may hold a newline.

use std::path::PathBuf;

use crate::response::split_quoted;
use crate::words::{Word, path_of};

/// The commands that a driver would run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DriverJobs {
    /// Where clang says it is installed.
    pub installed_dir: Option<PathBuf>,
    /// The commands in order, program first.
    pub jobs: Vec<Vec<Word>>,
}

impl DriverJobs {
    /// The link, if the driver would link: its last command, when that is a linker's.
    pub fn link(&self) -> Option<&[Word]> {
        let last = self.jobs.last()?;
        let program = last.first()?;
        let name = program.rsplit(|&byte| byte == b'/').next().unwrap_or(program);
        let linker = name == b"collect2"
            || name == b"ld"
            || [&b"ld."[..], b"ld64", b"ld-", b"lld", b"wasm-ld", b"wasm-component-ld", b"mold", b"rust-lld"]
                .iter()
                .any(|prefix| name.starts_with(prefix))
            || name.ends_with(b"-ld");
        linker.then_some(last.as_slice())
    }

    /// The commands before the link.
    pub fn before_link(&self) -> &[Vec<Word>] {
        match self.link() {
            Some(_) => &self.jobs[..self.jobs.len() - 1],
            None => &self.jobs,
        }
    }
}

/// Parses the standard error of `-###`.
pub fn parse(text: &[u8]) -> DriverJobs {
    let mut found = DriverJobs::default();
    for line in logical_lines(text) {
        if let Some(directory) = line.strip_prefix(b"InstalledDir: ") {
            found.installed_dir = Some(path_of(directory));
        } else if matches!(line, [b' ', b'"' | b'/', ..]) {
            found.jobs.push(split_quoted(line));
        }
    }
    found
}

/// Lines that end at a newline outside of quotes. Only a command's line is read with quotes: elsewhere an
/// apostrophe is just that.
fn logical_lines(text: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = if rest.starts_with(b" ") { end_of_command(rest) } else { end_of_line(rest) };
        lines.push(&rest[..end]);
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    lines
}

fn end_of_line(text: &[u8]) -> usize {
    text.iter().position(|&byte| byte == b'\n').unwrap_or(text.len())
}

fn end_of_command(text: &[u8]) -> usize {
    let mut quoted = false;
    let mut escaped = false;
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            b'\n' if !quoted => return at,
            _ => {}
        }
    }
    text.len()
}
