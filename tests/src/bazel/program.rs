//! The program of `tests/data/bazel`, with what is prebuilt in it: an archive, an object and an rlib of bitcode.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Version;
use super::workspace::Workspace;
use crate::run::succeed;
use crate::toolchain::{NEWEST, Toolchain, repository, system_tool};
use anyhow::{Context, Result};

/// What it prints as it is checked in.
pub const SAID: &str = "11 22 0\n101 201 301\n601 701 501\n";

/// Where the parts of its link lie.
const LINK: &str = "app/app.thinlto";

/// Makes a workspace of it.
pub fn create(version: Version, name: &str) -> Result<Workspace> {
    let workspace = Workspace::create(version, name)?;
    workspace.copy(&repository().join("tests/data/bazel"))?;
    archive(&workspace, &["first", "second"])?;
    object(&workspace)?;
    rlib(&workspace)?;
    Ok(workspace)
}

/// Makes the prebuilt object.
pub fn object(workspace: &Workspace) -> Result<()> {
    compile(workspace, "object")
}

/// Makes the prebuilt rlib.
pub fn rlib(workspace: &Workspace) -> Result<()> {
    let mut rustc = Command::new(system_tool("rustc")?);
    rustc.args([
        "--edition=2024",
        "--crate-type=rlib",
        "-Clinker-plugin-lto",
        "-Copt-level=2",
        "-Cpanic=abort",
    ]);
    rustc.args(["rusty.rs", "-o", "librusty.rlib"]).current_dir(workspace.path("prebuilt"));
    succeed(&mut rustc).map(drop)
}

/// Compiles a source of `prebuilt` to bitcode.
fn compile(workspace: &Workspace, name: &str) -> Result<()> {
    let mut clang = Command::new(Toolchain { version: NEWEST }.tool("clang")?);
    clang.args(["-O2", "-flto=thin", "-c", &format!("{name}.c")]).current_dir(workspace.path("prebuilt"));
    succeed(&mut clang).map(drop)
}

/// Makes the prebuilt archive of these members.
pub fn archive(workspace: &Workspace, members: &[&str]) -> Result<()> {
    let path = workspace.path("prebuilt/libarchive.a");
    if path.exists() {
        fs::remove_file(&path)?;
    }
    let mut ar = Command::new(Toolchain { version: NEWEST }.tool("llvm-ar")?);
    ar.args(["rcsD", "libarchive.a"]).current_dir(workspace.path("prebuilt"));
    for member in members {
        compile(workspace, member)?;
        ar.arg(format!("{member}.o"));
    }
    succeed(&mut ar).map(drop)
}

/// What each backend reads: the bytes of its slice.
pub type Slices = BTreeMap<String, Vec<(PathBuf, Vec<u8>)>>;

/// The slices of the last build, by the output of the backend that each is for.
pub fn slices(workspace: &Workspace) -> Result<Slices> {
    let mut found = Slices::new();
    for (slices, objects, suffix) in [("slices", "objects", ".o"), ("shards", "shard-objects", "")] {
        let root = workspace.output(LINK).join(slices);
        let mut waiting = vec![root.clone()];
        while let Some(dir) = waiting.pop() {
            // A slice has a list of what is in it; above are directories of slices.
            if is_slice(&dir)? {
                let name =
                    dir.strip_prefix(&root)?.to_str().context("names of the program are text")?.to_owned();
                found.insert(format!("{LINK}/{objects}/{name}{suffix}"), files(&dir)?);
            } else {
                waiting.extend(entries(&dir)?);
            }
        }
    }
    Ok(found)
}

fn is_slice(dir: &Path) -> Result<bool> {
    Ok(entries(dir)?.iter().any(|path| path.is_file()))
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>> {
    let found = fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
    found.map(|entry| Ok(entry?.path())).collect()
}

fn files(dir: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut found = Vec::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(dir) = waiting.pop() {
        for path in entries(&dir)? {
            if path.is_dir() {
                waiting.push(path);
            } else {
                found.push((path.clone(), fs::read(&path)?));
            }
        }
    }
    found.sort();
    Ok(found)
}
