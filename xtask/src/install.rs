//! `cargo xtask install --prefix DIR`: everything that a user needs, from one release build.
//!
//! Programs, their names for builds that take one word for a compiler, the library that linkers load, the DTLTO
//! plugin, manual pages, completions, what build files load, and documents with all licences. `DESTDIR` is put before every
//! path, as packagers expect. Each file is replaced at once, and only where it differs. Where programs look for each other is
//! their business: beside them, and in `../lib/distlto`.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, ensure};
use distlto_prepare::write::write_if_changed_with_mode;

use crate::shell::{MANUAL, PARTS, cargo, distlto, output, quietly, remove, root, run, target};

/// The one program.
pub const PROGRAM: &str = "distlto";

/// Subcommands that build files start as programs (`distlto-opt`): names of the one program too.
const TOOLS: [&str; 5] = ["index", "distribute", "prepare", "opt", "plan"];

/// Compilers and linkers that distlto stands for by its name (`distlto-clang-22`), of PATH's version and of these.
const STOOD_FOR: [&str; 3] = ["clang", "clang++", "ld.lld"];
/// The versions of LLVM whose lld can ask.
const VERSIONS: RangeInclusive<u32> = 15..=23;

/// Libraries, and where each belongs below the prefix: the plugin where a linker in `bin` looks for it.
const LIBRARIES: [(&str, &str); 2] = [("libdistlto_hook.so", "lib/distlto"), ("libDTLTOdistlto.so", "lib")];

/// Shells, and where each looks for the completions of a program below the prefix.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/distlto"),
    ("zsh", "share/zsh/site-functions/_distlto"),
    ("fish", "share/fish/vendor_completions.d/distlto.fish"),
];

/// Texts and folders that belong to what is installed.
const DOCUMENTS: [&str; 7] = [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "docs",
];

/// Where they go below the prefix.
pub const DOCUMENTATION: &str = "share/doc/distlto";

/// The packages whose programs and libraries are installed.
const BUILT: [&str; 3] = ["distlto", "distlto-hook", "distlto-plugin"];

/// Builds and installs.
pub fn install(prefix: &Path, debug: bool) -> Result<()> {
    let place = Place::new(prefix)?;
    let written = place.fill(&build(debug)?)?;
    println!("installed to {}: {written} files differed, beside manual pages", place.0.display());
    Ok(())
}

/// Installs a build into this directory as the prefix, whatever the environment says.
pub fn stage(directory: &Path, built: &Path) -> Result<()> {
    Place(directory.to_owned()).fill(built).map(|_| ())
}

/// Builds, and says where programs and libraries are. Tests name those that `cargo xtask test` has built.
pub fn build(debug: bool) -> Result<PathBuf> {
    if let Some(distlto) = env::var_os("DISTLTO_TEST_BIN").filter(|_| debug) {
        return Ok(Path::new(&distlto).parent().context("a program lies in a directory")?.to_owned());
    }
    if !debug {
        return Ok(distlto()?.parent().context("a program lies in a directory")?.to_owned());
    }
    run(cargo().args(["build", "--quiet", "--locked"]).args(PARTS))?;
    Ok(target().join("debug"))
}

/// The crates that programs and libraries are made of besides our own, each with its licence.
fn crates() -> Result<String> {
    let mut tree = cargo();
    tree.args(["tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}\t{l}"]);
    tree.args(BUILT.iter().flat_map(|package| ["--package", package]));
    let said = output(&mut tree)?;
    // Crates of the workspace have a path beside their name; a crate that was shown before has a mark.
    let lines = said.lines().map(|line| line.trim_end_matches(" (*)")).filter(|line| line.contains('\t'));
    let lines: BTreeSet<String> = lines
        .filter(|line| !line.contains("(/"))
        .map(|line| line.replace(" (proc-macro)", "").replace('\t', ": "))
        .collect();
    ensure!(!lines.is_empty(), "cargo tree names no crates: {said}");
    let head = "Crates that the programs and libraries of distlto are made of, and their licences:\n\n";
    Ok(lines.iter().fold(head.to_owned(), |text, line| text + line + "\n"))
}

/// A prefix, below `DESTDIR` where that counts.
struct Place(PathBuf);

impl Place {
    /// Installs everything from a build, and counts the files that differed.
    fn fill(&self, built: &Path) -> Result<usize> {
        let mut written = 0;
        written += self.copy(&built.join(PROGRAM), &Path::new("bin").join(PROGRAM), 0o755)?;
        for name in TOOLS {
            written += self.stand_in(name)?;
        }
        for name in STOOD_FOR {
            written += self.stand_in(name)?;
            for version in VERSIONS {
                written += self.stand_in(&format!("{name}-{version}"))?;
            }
        }
        for (name, directory) in LIBRARIES {
            written += self.copy(&built.join(name), &Path::new(directory).join(name), 0o755)?;
        }
        let distlto = built.join(PROGRAM);
        quietly(Command::new(built.join("examples").join(MANUAL)).arg(self.at("share/man/man1")))?;
        for (shell, path) in COMPLETIONS {
            let text = output(Command::new(&distlto).args(["completions", shell]))?;
            written += self.write(Path::new(path), text.as_bytes(), 0o644)?;
        }
        written += self.copy_below("rules", Path::new("share/distlto"))?;
        for name in DOCUMENTS {
            written += self.copy_below(name, Path::new(DOCUMENTATION))?;
        }
        let crates = crates()?;
        written += self.write(&Path::new(DOCUMENTATION).join("crates.txt"), crates.as_bytes(), 0o644)?;
        Ok(written)
    }

    fn new(prefix: &Path) -> Result<Self> {
        let prefix = std::path::absolute(prefix).context("the prefix has no absolute form")?;
        Ok(Self(match env::var_os("DESTDIR").filter(|destination| !destination.is_empty()) {
            Some(destination) => Path::new(&destination).join(prefix.strip_prefix("/")?),
            None => prefix,
        }))
    }

    /// Copies a file of the repository, or all files of a folder of it.
    fn copy_below(&self, name: &str, directory: &Path) -> Result<usize> {
        let mut written = 0;
        for path in files(&root().join(name))? {
            let below = path.strip_prefix(root()).context("it lies in the repository")?;
            written += self.copy(&path, &directory.join(below), 0o644)?;
        }
        Ok(written)
    }

    fn at(&self, below: &str) -> PathBuf {
        self.0.join(below)
    }

    fn copy(&self, from: &Path, below: &Path, mode: u32) -> Result<usize> {
        let bytes = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
        self.write(below, &bytes, mode)
    }

    /// A link to distlto by the name under which it is this tool, or links in place of this program.
    fn stand_in(&self, program: &str) -> Result<usize> {
        let path = self.at("bin").join(format!("distlto-{program}"));
        if fs::read_link(&path).is_ok_and(|to| to == Path::new(PROGRAM)) {
            return Ok(0);
        }
        let partial = self.at("bin").join(format!(".distlto-{program}"));
        remove(&partial)?;
        symlink(PROGRAM, &partial)
            .and_then(|()| fs::rename(&partial, &path))
            .with_context(|| format!("cannot link {}", path.display()))?;
        Ok(1)
    }

    fn write(&self, below: &Path, bytes: &[u8], mode: u32) -> Result<usize> {
        Ok(write_if_changed_with_mode(&self.0.join(below), bytes, mode)?.into())
    }
}

/// A file alone, or all files below a directory, sorted.
pub fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    let entries = fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    for entry in entries {
        found.extend(files(&entry?.path())?);
    }
    found.sort();
    Ok(found)
}
