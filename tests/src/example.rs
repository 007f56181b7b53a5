//! A copy of a project of `examples/`, built as a user would build it, with distlto in PATH under its names.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::distlto;
use crate::folder::Folder;
use crate::run::succeed;
use crate::toolchain::{NEWEST, Toolchain, repository};

/// Names under which distlto is in PATH.
const NAMES: &[&str] = &["distlto", "distlto-clang-22", "distlto-ld.lld-22", "distlto-opt", "distlto-index"];

/// A copy of an example and a PATH in which distlto goes by its names.
#[derive(Debug)]
pub struct Example {
    /// The copy.
    pub dir: PathBuf,
    path: OsString,
}

impl Example {
    /// Copies an example for the only test that builds it.
    pub fn copy(name: &str) -> Result<Self> {
        Self::copy_for(name, name)
    }

    /// Copies an example for a test or a part of one, which has a name that no other has.
    pub fn copy_for(name: &str, test: &str) -> Result<Self> {
        let toolchain = Toolchain { version: NEWEST };
        let folder = Folder::create(toolchain, &format!("example/{test}"))?;
        let dir = folder.path.join(name);
        succeed(Command::new("cp").arg("-r").arg(repository().join("examples").join(name)).arg(&dir))?;
        let bin = folder.path.join("bin");
        fs::create_dir(&bin)?;
        let distlto = fs::canonicalize(distlto::binary()?)?;
        NAMES.iter().try_for_each(|name| symlink(&distlto, bin.join(name)))?;
        let search = env::var_os("PATH").context("PATH is set")?;
        let path = env::join_paths([bin].into_iter().chain(env::split_paths(&search)))?;
        Ok(Self { dir, path })
    }

    /// Runs a program in it, which must succeed, and gives what it printed.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(program);
        as_a_user(&mut command, &self.path);
        command.args(arguments).current_dir(&self.dir);
        String::from_utf8(succeed(&mut command)?.stdout).context("programs print UTF-8")
    }

    /// Runs the built program and counts the native objects it was linked from.
    pub fn built(&self, program: &str) -> Result<(String, usize)> {
        let output = self.dir.join(program);
        let said = self.run(output.to_str().context("paths are UTF-8")?, &[])?;
        Ok((said, distlto::objects(&output)?.len()))
    }
}

/// Gives a command this PATH, and nothing of what cargo, make and the tests' own settings say: cargo's variables would make
/// another cargo build into the tests' directory with their flags.
pub fn as_a_user(command: &mut Command, path: &OsStr) {
    let foreign =
        |name: &str| name != "CARGO_HOME" && (name.starts_with("CARGO") || name.starts_with("DISTLTO_"));
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(foreign)) {
        command.env_remove(name);
    }
    command.env("PATH", path).env("MAKEFLAGS", "").env("DISTLTO_LEDGER", "off");
}
