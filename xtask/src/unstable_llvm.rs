//! The LLVM of Debian's unstable release, in a folder of its own with the libraries that it needs.
//!
//! Nothing of the system is touched. The programs name that release's loader and libraries themselves, since compilers look
//! for their files from where they lie, which a script that starts the loader would hide from them. What they compile and link
//! is for this system: headers, C library and GCC's files are its own.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::apt;
use crate::debian::{self, Closure, LIBRARIES, LOADER};
use crate::shell::{quietly, remove, target};

/// Its version.
pub const VERSION: u32 = 23;

const CLOSURE: Closure = Closure {
    packages: &["clang-23", "lld-23", "llvm-23", "libclang-rt-23-dev"],
    without: &[
        "binutils",
        "lib32gcc-s1",
        "lib32stdc++6",
        "libc6-dev",
        "libc6-i386",
        "libgcc-16-dev",
        "libobjc-16-dev",
        "libstdc++-16-dev",
        "perl",
        "python3",
    ],
    release: "sid",
};

/// What has a program name another loader.
const PATCHELF: (&str, &str) = ("patchelf", "patchelf");

/// Where its programs are, each with the version behind its name as Debian has them: a folder for PATH.
pub fn programs() -> PathBuf {
    folder().join("bin")
}

/// Has a command use an LLVM, which is installed.
pub fn choose(command: &mut Command, llvm: u32) -> Result<()> {
    command.env("DISTLTO_TEST_LLVM", llvm.to_string());
    if llvm == VERSION {
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = [programs()].into_iter().chain(env::split_paths(&path));
        command.env("PATH", env::join_paths(folders)?);
    }
    Ok(())
}

fn folder() -> PathBuf {
    target().join("unstable-llvm")
}

/// Makes it usable: 100 MiB to download, and 600 on the disk with what was downloaded.
pub fn install() -> Result<()> {
    let to = folder().join(VERSION.to_string());
    // Programs name the folder, so a copy of it is of no use.
    let is_here = |link: PathBuf| fs::canonicalize(link).is_ok_and(|program| program.starts_with(&to));
    if is_here(programs().join(format!("clang-{VERSION}"))) {
        return Ok(());
    }
    apt::provide(&[PATCHELF])?;
    for old in [&to, &programs()] {
        remove(old)?;
    }
    // Renamed when it is whole.
    let partial = folder().join("partial");
    remove(&partial)?;
    debian::unpack_closure(&CLOSURE, &folder().join("downloads"), &partial)?;
    let own = format!("usr/lib/llvm-{VERSION}/bin");
    adapt(&partial.join(&own), &partial, &to)?;
    fs::rename(&partial, &to)?;
    name_with_version(&to.join(own), &programs())
}

/// Has the programs of a folder, below `unpacked`, be run by the loader and with the libraries that will lie below `runs_at`.
fn adapt(programs: &Path, unpacked: &Path, runs_at: &Path) -> Result<()> {
    let (loader, libraries) = (runs_at.join(LOADER), runs_at.join(LIBRARIES));
    // A program's own list of folders counts for the libraries too that it loads, if these have none.
    let of_program: [&OsStr; 5] = [
        "--set-interpreter".as_ref(),
        loader.as_ref(),
        "--force-rpath".as_ref(),
        "--set-rpath".as_ref(),
        libraries.as_ref(),
    ];
    patch(programs, &of_program)?;
    patch(&unpacked.join(LIBRARIES), &["--remove-rpath".as_ref()])
}

/// Runs patchelf for each program or library of a folder.
fn patch(folder: &Path, options: &[&OsStr]) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_file() && fs::read(entry.path())?.starts_with(b"\x7fELF") {
            quietly(Command::new(PATCHELF.1).args(options).arg(entry.path()))?;
        }
    }
    Ok(())
}

/// Fills a folder with links to programs, each with the version behind its name.
fn name_with_version(programs: &Path, links: &Path) -> Result<()> {
    let partial = links.with_extension("partial");
    remove(&partial)?;
    fs::create_dir_all(&partial)?;
    for entry in fs::read_dir(programs)? {
        let entry = entry?;
        let name = entry.file_name().into_string().ok().context("Debian's names are text")?;
        symlink(entry.path(), partial.join(format!("{name}-{VERSION}")))?;
    }
    Ok(fs::rename(partial, links)?)
}
