//! The Python wheel: `pip install` puts programs into `bin`, and the libraries that they look for into `lib` beside it.
//!
//! A wheel is a zip file whose `.data` folder holds files by their place below the prefix (Python's specification "Binary
//! distribution format"). It has no symbolic links: scripts stand for them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use data_encoding::BASE64URL_NOPAD;
use sha2::{Digest, Sha256};

use super::glibc::{self, Glibc};
use super::{Tree, VERSION, settle};
use crate::install::{PROGRAM, files};
use crate::shell::{quietly, remove};

/// Makes the wheel in `out`.
pub fn make(tree: &Tree, out: &Path) -> Result<PathBuf> {
    let work = tree.prefix.with_file_name("wheel");
    let name = format!("distlto-{VERSION}");
    let (data, info) = (work.join(format!("{name}.data")), work.join(format!("{name}.dist-info")));
    fs::create_dir_all(&data)?;
    fs::create_dir(&info)?;
    quietly(Command::new("cp").arg("-a").arg(&tree.prefix).arg(data.join("data")))?;
    fs::rename(data.join("data/bin"), data.join("scripts"))?;
    stand_ins(&data.join("scripts"))?;
    let tag = tag(glibc::needed(&tree.programs()?)?);
    fs::write(info.join("METADATA"), metadata())?;
    let wheel =
        format!("Wheel-Version: 1.0\nGenerator: distlto {VERSION}\nRoot-Is-Purelib: false\nTag: {tag}\n");
    fs::write(info.join("WHEEL"), wheel)?;
    let record = record(&work, &format!("{name}.dist-info/RECORD"))?;
    fs::write(info.join("RECORD"), record)?;
    settle(&work, tree.time)?;

    let to = out.join(format!("{name}-{tag}.whl"));
    remove(&to)?;
    let below = relative(&work)?;
    let mut zip = Command::new("zip");
    zip.args(["-q", "-X", if tree.quick { "-1" } else { "-9" }]).arg(&to).args(below);
    quietly(zip.current_dir(&work).env("TZ", "UTC"))?;
    Ok(to)
}

/// Any Python 3, and each system with such a glibc or a newer one.
fn tag(glibc: Glibc) -> String {
    format!("py3-none-manylinux_{}_{}_{}", glibc.0, glibc.1, std::env::consts::ARCH)
}

fn metadata() -> String {
    let lines = [
        ("Metadata-Version", "2.1"),
        ("Name", PROGRAM),
        ("Version", VERSION),
        ("Summary", env!("CARGO_PKG_DESCRIPTION")),
        ("License", env!("CARGO_PKG_LICENSE")),
    ];
    lines.iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
}

/// Scripts in place of links to the one program: its first word is the tool, or the program that it stands for.
fn stand_ins(programs: &Path) -> Result<()> {
    for path in files(programs)?.into_iter().filter(|path| path.is_symlink()) {
        let name = path.file_name().and_then(|name| name.to_str()).context("our names are text")?;
        let word = name.strip_prefix("distlto-").with_context(|| format!("{name} stands for nothing"))?;
        let script = format!("#!/bin/sh\nexec \"${{0%/*}}/{PROGRAM}\" {word} \"$@\"\n");
        fs::remove_file(&path)?;
        fs::write(&path, script)?;
        fs::set_permissions(&path, Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// Each file with its digest and size; the list itself has none.
fn record(work: &Path, own: &str) -> Result<String> {
    let mut text = String::new();
    for path in relative(work)? {
        let bytes = fs::read(work.join(&path))?;
        let digest = BASE64URL_NOPAD.encode(&Sha256::digest(&bytes));
        text += &format!("{},sha256={digest},{}\n", path.display(), bytes.len());
    }
    Ok(text + own + ",,\n")
}

fn relative(work: &Path) -> Result<Vec<PathBuf>> {
    files(work)?.into_iter().map(|path| Ok(path.strip_prefix(work)?.to_owned())).collect()
}
