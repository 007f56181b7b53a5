//! Random edits of C, C++ and Rust sources as a developer makes them. Knows nothing of what the sources are; an edit that does not
//! compile is undone.

use std::fmt;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use fastrand::Rng;

/// What is edited.
pub const KINDS: [&str; 9] = [
    "body",
    "body",
    "static",
    "constant",
    "comment",
    "attribute",
    "function",
    "header comment",
    "header inline",
];

/// What a file is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    /// Or C++.
    C,
    Rust,
}

/// A file that was edited, with what it held before.
#[derive(Debug)]
pub struct Edited {
    kind: &'static str,
    path: PathBuf,
    before: String,
}

impl fmt::Display for Edited {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} in {}", self.kind, self.path.display())
    }
}

impl Edited {
    /// Puts back what was there.
    pub fn undo(&self) -> Result<()> {
        Ok(fs::write(&self.path, &self.before)?)
    }
}

/// Edits one of these files; `None` where it has nothing of that kind.
pub fn edit(kind: &'static str, sources: &[PathBuf], random: &mut Rng) -> Result<Option<Edited>> {
    let in_header = kind.starts_with("header");
    let fit: Vec<_> = sources
        .iter()
        .filter(|path| path.extension().is_some_and(|found| found == "h") == in_header)
        .collect();
    let path = random.choice(fit).context("there are no sources")?;
    // What is no UTF-8 is left alone.
    let Ok(before) = fs::read_to_string(path) else { return Ok(None) };
    let number = random.u32(1000..1_000_000);
    let is_rust = path.extension().is_some_and(|extension| extension == "rs");
    let language = if is_rust { Language::Rust } else { Language::C };
    let Some(text) = language.edited(kind, &before, number, random) else { return Ok(None) };
    fs::write(path, text)?;
    Ok(Some(Edited { kind, path: path.clone(), before }))
}

impl Language {
    fn edited(self, kind: &str, text: &str, number: u32, random: &mut Rng) -> Option<String> {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let bodies = self.bodies(&lines);
        let insert =
            |at: usize, new: &str| [lines[..at].concat().as_str(), new, &lines[at..].concat()].concat();
        Some(match kind {
            "body" => insert(random.choice(bodies)?.1 + 1, &self.statement(number)),
            "static" => insert(random.choice(bodies)?.1 + 1, &self.local(number)),
            "constant" => constant(&lines, &bodies, number, random)?,
            // Lines have other numbers then.
            "comment" | "header comment" => insert(0, &format!("/* edit {number} */\n")),
            "attribute" => insert(random.choice(bodies)?.0, self.attribute()),
            "function" => format!("{text}\n{}", self.function(number)),
            _ => {
                let guard = lines.iter().rposition(|line| line.starts_with("#endif"))?;
                insert(guard, &format!("static inline int edit_{number}(int x) {{ return x + {number}; }}\n"))
            }
        })
    }

    fn statement(self, number: u32) -> String {
        match self {
            Self::C => format!("\t__asm__ volatile(\"\" : : \"r\"({number}u));\n"),
            Self::Rust => format!("core::hint::black_box({number}u32);\n"),
        }
    }

    /// A local that importers may need promoted.
    fn local(self, number: u32) -> String {
        match self {
            Self::C => {
                format!("\t{{ static volatile unsigned edit_{number}; edit_{number} += {number}u; }}\n")
            }
            Self::Rust => format!("{{ {} EDIT.fetch_add({number}, {RELAXED}); }}\n", counter("EDIT")),
        }
    }

    fn attribute(self) -> &'static str {
        match self {
            Self::C => "__attribute__((noinline)) ",
            Self::Rust => "#[inline(never)] ",
        }
    }

    fn function(self, number: u32) -> String {
        match self {
            Self::C => format!(
                "static int edit_{number}(int x) {{ static int calls; return x * {number} + ++calls; }}\n\
                 int edit_call_{number}(int x);\nint edit_call_{number}(int x) {{ return edit_{number}(x); }}\n"
            ),
            Self::Rust => format!(
                "fn edit_{number}(x: u32) -> u32 {{ {} x ^ CALLS.fetch_add({number}, {RELAXED}) }}\n\
                 /// Called by none.\npub fn edit_call_{number}(x: u32) -> u32 {{ edit_{number}(x) }}\n",
                counter("CALLS"),
            ),
        }
    }

    /// The lines of each function's head and of its opening brace, as far as heads are lines by themselves.
    fn bodies(self, lines: &[&str]) -> Vec<(usize, usize)> {
        let is_head = |line: &str| match self {
            Self::C => line.starts_with(|c: char| c.is_ascii_alphabetic()) && line.contains('('),
            Self::Rust => line.contains("fn ") && line.contains('(') && !line.trim_start().starts_with("//"),
        };
        let opens = |line: &str| match self {
            Self::C => line.ends_with(") {"),
            Self::Rust => line.ends_with(" {"),
        };
        let mut found = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            let line = line.trim_end();
            if is_head(line) && opens(line) {
                found.push((at, at));
            } else if line == "{"
                && at > 0
                && is_head(lines[at - 1])
                && lines[at - 1].trim_end().ends_with(')')
            {
                found.push((at - 1, at));
            }
        }
        found
    }
}

/// How a counter is counted up in Rust.
const RELAXED: &str = "core::sync::atomic::Ordering::Relaxed";

/// A counter in Rust.
fn counter(name: &str) -> String {
    let kind = "core::sync::atomic::AtomicU32";
    format!("static {name}: {kind} = {kind}::new(0);")
}

/// Gives a small number inside of a function another value.
fn constant(lines: &[&str], bodies: &[(usize, usize)], number: u32, random: &mut Rng) -> Option<String> {
    let (_, body) = random.choice(bodies)?;
    let end = lines.iter().skip(*body).position(|line| line.starts_with('}'))? + body;
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let mut places = Vec::new();
    for (at, line) in lines.iter().enumerate().take(end).skip(body + 1) {
        for (column, _) in line.match_indices(" = ") {
            let rest = &line[column + 3..];
            if is_digit(rest.chars().next()) && rest.chars().nth(1) == Some(';') {
                places.push((at, column + 3));
            }
        }
    }
    let (at, column) = random.choice(places)?;
    let line = format!("{}{}{}", &lines[at][..column], number % 90 + 10, &lines[at][column + 1..]);
    Some([lines[..at].concat().as_str(), &line, &lines[at + 1..].concat()].concat())
}
