//! `cargo xtask package`: a Debian package, a Python wheel and a tar archive of what `cargo xtask install` installs, and a
//! recipe of an image with the archive.
//!
//! Their content is `install`'s list alone, so Debian's own tools make the package of a finished tree; tools that read
//! a list from a manifest would need a second one. The same tree gives the same bytes: sorted, owned by root, with fixed
//! modes, and with the time of `SOURCE_DATE_EPOCH` or else of the commit. A release needs no newer glibc than 2.28.

mod debian;
mod glibc;
mod wheel;

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, path};

use anyhow::{Context, Result, ensure};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

use crate::apt;
use crate::install::{self, files};
use crate::shell::{output, quietly, remove, root, target};

/// Packages and their programs without which nothing can be packed and looked at.
pub const NEEDS: [(&str, &str); 9] = [
    ("dpkg", "dpkg-deb"),
    ("dpkg-dev", "dpkg-shlibdeps"),
    ("binutils", "strip"),
    ("gzip", "gzip"),
    ("zip", "zip"),
    ("python3", "python3"),
    ("python3-pip", "pip3"),
    ("lintian", "lintian"),
    ("man-db", "man"),
];

/// The version of all crates.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What is packed, and how.
struct Tree {
    /// The prefix, and nothing beside it.
    prefix: PathBuf,
    /// Seconds since 1970 that every file gets.
    time: u64,
    /// Whether quick is better than small.
    quick: bool,
}

/// Makes all, and prints where they are.
pub fn package(out: Option<PathBuf>, debug: bool) -> Result<()> {
    apt::provide(&NEEDS)?;
    let out = path::absolute(out.unwrap_or_else(|| target().join("dist")))?;
    let work = out.join("work");
    remove(&work)?;
    let name = format!("distlto-{VERSION}-{}-{}", env::consts::ARCH, env::consts::OS);
    let tree = Tree { prefix: work.join(&name), time: time()?, quick: debug };
    let built = if debug {
        glibc::try_library()?;
        install::build(debug)?
    } else {
        glibc::build()?
    };
    install::stage(&tree.prefix, &built)?;
    tree.finish()?;
    if !debug {
        glibc::check(&tree.programs()?)?;
    }
    let archive = out.join(format!("{name}.tar.gz"));
    tree.archive(&archive)?;
    println!("{}", archive.display());
    println!("{}", recipe(&out, &name)?.display());
    println!("{}", wheel::make(&tree, &out)?.display());
    println!("{}", debian::make(&tree, &out)?.display());
    remove(&work)
}

/// The recipe of an image, beside the archive that it names.
fn recipe(out: &Path, name: &str) -> Result<PathBuf> {
    let text = include_str!("package/Containerfile");
    let text = text.replace("@ARCHIVE@", &format!("{name}.tar.gz")).replace("@FOLDER@", name);
    let to = out.join("Containerfile");
    fs::write(&to, text)?;
    Ok(to)
}

impl Tree {
    /// Programs and libraries.
    fn programs(&self) -> Result<Vec<PathBuf>> {
        Ok(files(&self.prefix)?.into_iter().filter(|path| is_program(path)).collect())
    }

    /// Programs without symbols, manual pages compressed, and each file as it is to be.
    fn finish(&self) -> Result<()> {
        let sections = ["--strip-unneeded", "--remove-section=.comment", "--remove-section=.note"];
        quietly(Command::new("strip").args(sections).args(self.programs()?))?;
        let all = files(&self.prefix)?;
        let pages: Vec<_> = all.iter().filter(|path| path.extension().is_some_and(|is| is == "1")).collect();
        ensure!(!pages.is_empty(), "distlto has written no manual pages");
        quietly(Command::new("gzip").arg("-9n").args(pages))?;
        settle(&self.prefix, self.time)
    }

    /// The prefix as a folder in an archive.
    fn archive(&self, to: &Path) -> Result<()> {
        let name = self.prefix.file_name().context("the prefix has a name")?;
        let mut tar = Command::new("tar");
        tar.args(["--create", "--format=gnu", "--sort=name", "--owner=root:0", "--group=root:0"]);
        tar.arg("--directory").arg(self.prefix.parent().context("the prefix has a directory")?).arg(name);
        let mut tar = tar.stdout(Stdio::piped()).spawn().context("cannot start tar")?;
        let mut gzip = Command::new("gzip");
        gzip.args(["-n", if self.quick { "-1" } else { "-9" }]);
        gzip.stdin(tar.stdout.take().context("standard output was asked for")?);
        quietly(gzip.stdout(File::create(to)?))?;
        ensure!(tar.wait()?.success(), "tar has failed to read {}", self.prefix.display());
        Ok(())
    }
}

/// Gives a tree fixed modes, whatever the user's mask is, and one time.
fn settle(path: &Path, time: u64) -> Result<()> {
    let directory = path.is_dir();
    if directory {
        for entry in fs::read_dir(path)? {
            settle(&entry?.path(), time)?;
        }
    }
    if !path.is_symlink() {
        let mode = if directory || is_program(path) { 0o755 } else { 0o644 };
        fs::set_permissions(path, Permissions::from_mode(mode))?;
    }
    let time = Timespec { tv_sec: time.try_into()?, tv_nsec: 0 };
    let times = Timestamps { last_access: time, last_modification: time };
    Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Whether a file is one that `install` made executable: a program or a library.
fn is_program(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o100 != 0)
}

/// The time that what is made bears.
fn time() -> Result<u64> {
    let (text, from) = match env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => (text, "SOURCE_DATE_EPOCH"),
        Err(_) => (commit("%ct").context("SOURCE_DATE_EPOCH can say when this was released")?, "git"),
    };
    text.trim().parse().with_context(|| format!("{from} has to be seconds since 1970, and is {text:?}"))
}

/// Something of the commit that is checked out.
fn commit(form: &str) -> Result<String> {
    let mut git = Command::new("git");
    let said = output(git.args(["log", "-1", &format!("--format={form}")]).current_dir(root()));
    Ok(said.context("this is no checkout with a history")?.trim().to_owned())
}
