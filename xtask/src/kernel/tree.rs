//! The sources of Debian's next kernel, edits of them, and trees that are built from them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::bench::measure::{Cost, cost};
use crate::debian::{self, Closure};
use crate::install::files;
use crate::setup::NEWEST;
use crate::shell::{output, quietly, remove, root, run, shown};

const CLOSURE: Closure =
    Closure { packages: &["linux-source"], without: &["binutils", "xz-utils"], release: "sid" };

/// The first that has what is compared.
const LEAST: (u32, u32) = (7, 2);

/// How an inserted line begins; nothing else in the sources does.
const INSERTED: &str = "\tasm volatile(\"\" : : \"r\"(4711u";

/// The end of a backend's object.
const NATIVE: &str = ".thinlto-native.o";

/// The sources, which all trees share.
pub struct Sources(PathBuf);

/// A line of a function's body, which stands in its file once, and what an edit after it is called.
pub struct Edit {
    pub file: &'static str,
    pub line: &'static str,
    pub what: &'static str,
}

impl Sources {
    /// Unpacks them, unless they are there.
    pub fn unpack(folder: &Path) -> Result<Self> {
        let to = folder.join("linux");
        if to.is_dir() {
            return Ok(Self(fs::canonicalize(to)?));
        }
        // Renamed when it is whole.
        let (partial, packages) = (folder.join("linux.partial"), folder.join("packages"));
        remove(&partial)?;
        fs::create_dir_all(&partial)?;
        debian::unpack_closure(&CLOSURE, &folder.join("downloads"), &packages)?;
        let found = files(&packages.join("usr/src"))?;
        let archive = found.iter().find(|path| path.to_string_lossy().ends_with(".tar.xz"));
        let archive = archive.context("the package holds no sources")?;
        let mut tar = Command::new("tar");
        run(tar.arg("-xf").arg(archive).args(["--strip-components=1", "-C"]).arg(&partial))?;
        remove(&packages)?;
        fs::rename(partial, &to)?;
        Ok(Self(fs::canonicalize(to)?))
    }

    /// Changes a function.
    pub fn edit(&self, edit: &Edit) -> Result<()> {
        let path = self.0.join(edit.file);
        let text = self.original(edit)?;
        ensure!(text.matches(edit.line).count() == 1, "{} has no line to edit", path.display());
        Ok(fs::write(path, text.replacen(edit.line, &format!("{}{INSERTED}));\n", edit.line), 1))?)
    }

    /// Undoes it: the file gets the time of another one too, or what was compiled would be out of date.
    pub fn undo(&self, edit: &Edit) -> Result<()> {
        let (path, text) = (self.0.join(edit.file), self.original(edit)?);
        if fs::read_to_string(&path)? != text {
            fs::write(&path, text)?;
            let time = fs::metadata(self.0.join("Makefile"))?.modified()?;
            File::open(&path)?.set_modified(time)?;
        }
        Ok(())
    }

    fn original(&self, edit: &Edit) -> Result<String> {
        let path = self.0.join(edit.file);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(text.split_inclusive('\n').filter(|line| !line.starts_with(INSERTED)).collect())
    }
}

/// A directory that make builds into.
pub struct Tree {
    directory: PathBuf,
    sources: PathBuf,
    jobs: usize,
    /// What make is told of the way to build.
    words: Vec<String>,
}

/// What a make cost.
pub struct Made {
    /// C files that were compiled to bitcode or, of modules with one object, to native code.
    pub compiled: usize,
    /// Backends that ran.
    pub backends: usize,
    /// Seconds of processor time.
    pub cpu: f64,
    /// Seconds that passed.
    pub wall: f64,
}

/// What a tree holds, by digest.
#[derive(Clone)]
pub struct Built {
    /// Objects of backends.
    pub objects: BTreeMap<PathBuf, String>,
    /// Kernel modules.
    pub modules: BTreeMap<PathBuf, String>,
    /// `vmlinux.o`.
    pub kernel: BTreeMap<PathBuf, String>,
}

impl Tree {
    /// The tree that the others are copies of: configured, and all C files compiled, but nothing of ThinLTO done.
    pub fn base(sources: &Sources, directory: &Path, jobs: usize) -> Result<Self> {
        let tree = |directory: &Path| -> Result<Self> {
            fs::create_dir_all(directory)?;
            let directory = fs::canonicalize(directory)?;
            Ok(Self { directory, sources: sources.0.clone(), jobs, words: Vec::new() })
        };
        if directory.join("compiled").is_file() {
            return tree(directory);
        }
        remove(directory)?;
        let tree = tree(directory)?;
        let version = tree.version()?;
        ensure!(
            numbers(&version) >= Some(LEAST),
            "Debian has Linux {version}, older than {LEAST:?}; remove {}",
            sources.0.display()
        );
        let wanted = root().join("xtask/kernel/config");
        let configured = format!("KCONFIG_ALLCONFIG={}", wanted.display());
        run(tree.command().arg("--silent").arg(configured).arg("allnoconfig"))?;
        let config = fs::read_to_string(tree.directory.join(".config"))?;
        for line in fs::read_to_string(wanted)?.lines() {
            ensure!(config.lines().any(|there| there == line), "Linux {version} does not take {line}");
        }
        // The folder of all folders: objects, and no link.
        run(tree.command().args(["--silent", "KBUILD_MODULES=y", "."]))?;
        fs::write(tree.directory.join("compiled"), "")?;
        Ok(tree)
    }

    /// A copy to be built in another way.
    pub fn copy(&self, directory: &Path, words: Vec<String>) -> Result<Self> {
        remove(directory)?;
        let mut copy = Command::new("cp");
        quietly(copy.args(["-a", "--reflink=auto"]).arg(&self.directory).arg(directory))?;
        let directory = fs::canonicalize(directory)?;
        Ok(Self { directory, sources: self.sources.clone(), jobs: self.jobs, words })
    }

    /// What the way is called.
    pub fn name(&self) -> std::borrow::Cow<'_, str> {
        self.directory.file_name().unwrap_or_default().to_string_lossy()
    }

    /// A file of the tree.
    pub fn at(&self, below: &str) -> PathBuf {
        self.directory.join(below)
    }

    /// The kernel's version.
    pub fn version(&self) -> Result<String> {
        Ok(output(self.command().args(["--silent", "kernelversion"]))?.trim().to_owned())
    }

    /// Builds everything. What make says is kept in `make.log`.
    pub fn make(&self, step: &str) -> Result<Made> {
        let log = self.directory.join("make.log");
        let said = File::create(&log)?;
        let mut make = self.command();
        make.args(&self.words).stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said);
        let (status, Cost { cpu, wall, .. }) = cost(&mut make)?;
        ensure!(status.success(), "{step}: {status} from {}\nread {}", shown(&make), log.display());
        let said = fs::read_to_string(&log)?;
        let made = said.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            (words.next() == Some("CC")).then(|| words.next_back()).flatten()
        });
        let (backends, compiled): (Vec<_>, Vec<_>) = made.partition(|path| path.ends_with(NATIVE));
        Ok(Made { compiled: compiled.len(), backends: backends.len(), cpu, wall })
    }

    /// What is there.
    pub fn built(&self) -> Result<Built> {
        let files = files(&self.directory)?;
        let of = |end: &str| -> Result<BTreeMap<PathBuf, String>> {
            let of = files.iter().filter(|path| path.to_string_lossy().ends_with(end));
            of.map(|path| Ok((path.strip_prefix(&self.directory)?.to_owned(), digest(path)?))).collect()
        };
        Ok(Built { objects: of(NATIVE)?, modules: of(".ko")?, kernel: of("/vmlinux.o")? })
    }

    /// make, without a goal. Who builds, and when, is no part of a kernel that is compared.
    fn command(&self) -> Command {
        let mut make = Command::new("make");
        make.arg(format!("-j{}", self.jobs)).arg("-C").arg(&self.sources);
        make.arg(format!("O={}", self.directory.display())).arg(format!("LLVM=-{NEWEST}"));
        make.env("KBUILD_BUILD_TIMESTAMP", "@0").env("KBUILD_BUILD_USER", "u").env("KBUILD_BUILD_HOST", "h");
        make
    }
}

/// The first two numbers of a version.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn digest(path: &Path) -> Result<String> {
    let said = output(Command::new("sha256sum").arg(path))?;
    Ok(said.split_whitespace().next().context("sha256sum says nothing")?.to_owned())
}
