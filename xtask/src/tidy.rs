//! `cargo xtask tidy`: the repository's own rules, each a check of one tracked file or of all of them.
//!
//! Every finding names file, line and remedy. Patterns are put together from parts, so that this source does not match.

mod crates;
mod documents;
mod files;
mod guides;
mod modules;
mod sentences;
mod sources;
mod starlark;
mod words;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use crate::shell::{output, root};

/// A tracked file.
struct File {
    /// Path from the root, with `/`.
    path: String,
    bytes: Vec<u8>,
}

impl File {
    /// The text, or nothing for a binary file.
    fn text(&self) -> Option<&str> {
        if self.bytes.contains(&0) { None } else { std::str::from_utf8(&self.bytes).ok() }
    }
}

/// Checks all tracked files, and those that are about to be.
pub fn tidy() -> Result<()> {
    let listed = output(
        Command::new("git")
            .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
            .current_dir(root()),
    )?;
    let mut files = Vec::new();
    for path in listed.split_terminator('\0') {
        let full: PathBuf = root().join(path);
        // A deleted file stays listed until it is committed.
        if full.is_file() {
            files.push(File { path: path.to_owned(), bytes: fs::read(full)? });
        }
    }
    let mut findings = files::check(&files);
    for file in &files {
        findings.extend(sources::check(file));
    }
    findings.extend(crates::check(&files));
    findings.extend(documents::check(&files));
    findings.extend(guides::check(&files));
    findings.extend(modules::check(&files));
    findings.extend(sentences::check(&files));
    findings.extend(starlark::check(&files)?);
    findings.extend(words::check(&files));
    for finding in &findings {
        eprintln!("{finding}");
    }
    if !findings.is_empty() {
        bail!("tidy: {} findings", findings.len());
    }
    eprintln!("tidy: {} files are in order", files.len());
    Ok(())
}
