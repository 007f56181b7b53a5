//! The folder a case is built in, and what the `%` words of its directives stand for there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::run::succeed;
use crate::store;
use crate::third_party;
use crate::toolchain::{Toolchain, system_tool};

/// The folder of one case and one LLVM, emptied when it is made.
#[derive(Debug)]
pub struct Folder {
    /// Absolute path; every command of the case runs here.
    pub path: PathBuf,
    /// The LLVM it is built with.
    pub toolchain: Toolchain,
    /// Objects of the case's own compilations, relative, in order.
    pub objects: Vec<String>,
}

impl Folder {
    /// Makes an empty folder below cargo's folder for tests.
    pub fn create(toolchain: Toolchain, name: &str) -> Result<Self> {
        let path = crate::toolchain::profile_dir()?
            .join("programs")
            .join(format!("llvm-{}", toolchain.version))
            .join(name);
        if path.exists() {
            fs::remove_dir_all(&path).with_context(|| format!("cannot empty {}", path.display()))?;
        }
        store::prepare(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self { path, toolchain, objects: Vec::new() })
    }

    /// Writes a file, making its directory.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> Result<PathBuf> {
        let path = self.path.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    /// A command from one line of a directive. `dir` is where the output of the way of linking lies.
    pub fn command(&self, line: &str, dir: &str) -> Result<Command> {
        let words = self.words(line, dir)?;
        let (program, args) = words.split_first().with_context(|| format!("`{line}` names no command"))?;
        // Absolute, as it is left to the platform where a relative program is looked for.
        let program = if program.contains('/') { self.path.join(program) } else { program.into() };
        let mut command = Command::new(program);
        command.args(args).current_dir(&self.path);
        Ok(command)
    }

    /// Splits a line as a shell does and replaces its `%` words.
    pub fn words(&self, line: &str, dir: &str) -> Result<Vec<String>> {
        let mut words = Vec::new();
        for word in shlex::split(line).with_context(|| format!("`{line}` has an open quote"))? {
            if word == "%objects" {
                words.extend(self.objects.iter().cloned());
            } else if let Some(pattern) = word.strip_prefix("%glob(").and_then(|rest| rest.strip_suffix(')'))
            {
                words.extend(self.glob(pattern, dir)?);
            } else {
                words.push(self.expand(&word, dir)?);
            }
        }
        Ok(words)
    }

    /// Paths that match a pattern, sorted; those inside the folder relative to it.
    pub fn glob(&self, pattern: &str, dir: &str) -> Result<Vec<String>> {
        let pattern = self.path.join(self.expand(pattern, dir)?);
        let pattern = pattern.to_str().context("patterns are UTF-8")?;
        let mut found = Vec::new();
        for path in glob::glob(pattern)? {
            let path = path?;
            let path = path.strip_prefix(&self.path).unwrap_or(&path);
            found.push(path.to_str().context("names that a pattern finds are UTF-8")?.to_owned());
        }
        ensure!(!found.is_empty(), "nothing matches {pattern}");
        Ok(found)
    }

    /// Replaces the `%` names in a text.
    pub fn expand(&self, text: &str, dir: &str) -> Result<String> {
        let mut expanded = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('%') {
            expanded.push_str(before);
            let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '+')).unwrap_or(after.len());
            let (name, mut tail) = after.split_at(end);
            let mut argument = None;
            if let Some((inside, outside)) = tail.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
                argument = Some(inside);
                tail = outside;
            }
            expanded.push_str(&self.value(name, argument, dir)?);
            rest = tail;
        }
        expanded.push_str(rest);
        Ok(expanded)
    }

    fn value(&self, name: &str, argument: Option<&str>, dir: &str) -> Result<String> {
        let path = match (name, argument) {
            ("clang" | "clang++", None) => self.toolchain.tool(name)?,
            ("lld", None) => self.toolchain.tool("ld.lld")?,
            ("ar", None) => self.toolchain.tool("llvm-ar")?,
            ("lipo", None) => self.toolchain.tool("llvm-lipo")?,
            ("profdata", None) => self.toolchain.tool("llvm-profdata")?,
            ("gcc" | "cmake" | "rustc", None) => system_tool(name)?,
            ("dir", None) => dir.into(),
            ("out", None) => Path::new(dir).join("program"),
            ("work", None) => self.path.clone(),
            ("sources", Some(name)) => third_party::sources(name)?,
            ("file", Some(name)) => {
                let mut clang = Command::new(self.toolchain.tool("clang")?);
                let said = succeed(clang.arg(format!("-print-file-name={name}")))?;
                String::from_utf8(said.stdout)?.trim_end().into()
            }
            _ => bail!("unknown name %{name}; tests/cases/README.md lists the known ones"),
        };
        path.into_os_string().into_string().ok().context("the paths of tools are UTF-8")
    }
}
