//! The glibc of packages: a build for an older one than this system's, and the one that a program needs.
//!
//! cargo-zigbuild links against the symbols that zig has of every glibc. Whatever built a program, its own table of symbols
//! says which glibc it needs at least.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fmt};

use anyhow::{Context, Result, ensure};

use crate::engine::python;
use crate::shell::{MANUAL, cargo, output, run, target};

/// A version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Glibc(pub u32, pub u32);

/// The newest that packages may need: that of Debian 10 and RHEL 8.
const OLDEST: Glibc = Glibc(2, 28);

/// All that is packed, and the program that writes the manual pages. The other programs of the crate are names of the one in a package.
const PARTS: [&str; 11] = [
    "--package",
    "distlto",
    "--bin",
    "distlto",
    "--example",
    MANUAL,
    "--package",
    "distlto-hook",
    "--package",
    "distlto-plugin",
    "--lib",
];

impl fmt::Display for Glibc {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.0, self.1)
    }
}

/// Builds for [`OLDEST`], and says where programs and libraries are.
pub fn build() -> Result<PathBuf> {
    Ok(zigbuild(&[&["--release"], &PARTS[..]].concat())?.join("release"))
}

/// Builds the library of all processes alone, which is linked with options of its own.
pub fn try_library() -> Result<()> {
    zigbuild(&["--package", "distlto-exec"]).map(drop)
}

/// Builds parts for [`OLDEST`], and says where all of that target are.
fn zigbuild(parts: &[&str]) -> Result<PathBuf> {
    let tools = target().join("zigbuild");
    python::environment("zigbuild", "python3", &tools)?;
    let inherited = env::var_os("PATH").unwrap_or_default();
    let places = [tools.join("bin")].into_iter().chain(env::split_paths(&inherited));
    let triple = format!("{}-unknown-linux-gnu", env::consts::ARCH);
    let mut build = cargo();
    build.args(["zigbuild", "--locked", "--target", &format!("{triple}.{OLDEST}")]);
    run(build.args(parts).env("PATH", env::join_paths(places)?))?;
    Ok(target().join(triple))
}

/// Refuses programs that need a newer glibc than packages may need.
pub fn check(programs: &[PathBuf]) -> Result<()> {
    for program in programs {
        let needed = needed_by(program)?;
        ensure!(needed <= OLDEST, "{} needs glibc {needed}, not {OLDEST}", program.display());
    }
    Ok(())
}

/// The glibc that all of these run with.
pub fn needed(programs: &[PathBuf]) -> Result<Glibc> {
    let needed = programs.iter().map(|program| needed_by(program)).collect::<Result<Vec<_>>>()?;
    needed.into_iter().max().context("no programs are installed")
}

fn needed_by(program: &Path) -> Result<Glibc> {
    let table = output(Command::new("objdump").arg("-T").arg(program))?;
    newest(&table).with_context(|| format!("{} names no symbol of glibc", program.display()))
}

/// The newest version in a table of symbols. One of three numbers, such as 2.2.5, counts by two.
fn newest(table: &str) -> Option<Glibc> {
    let versions = table.split("GLIBC_").skip(1).filter_map(|rest| {
        let mut numbers = rest.split(|end: char| !end.is_ascii_digit());
        Some(Glibc(numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    });
    versions.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_symbol_decides() {
        let table = "\
0000000000000000      DF *UND*\t0000000000000000 (GLIBC_2.2.5) free
0000000000000000  w   DF *UND*\t0000000000000000 (GLIBC_2.34) __pthread_key_create
0000000000000000      DF *UND*\t0000000000000000  GLIBC_2.4   __stack_chk_fail
0000000000000000      DF *UND*\t0000000000000000 (GCC_3.0)    _Unwind_Resume
0000000000000000      DF *UND*\t0000000000000000 (GLIBC_PRIVATE) __x
";
        assert_eq!(newest(table), Some(Glibc(2, 34)));
        assert_eq!(newest("(GCC_3.0) _Unwind_Resume"), None);
        assert!(Glibc(2, 4) < OLDEST && OLDEST < Glibc(2, 34));
    }
}
