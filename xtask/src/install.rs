//! `cargo xtask install --prefix DIR`: everything that a user needs, from one release build.
//!
//! Programs, the library that keeps compilers warm, the DTLTO plugin, manual pages, completions and what build files
//! load. `DESTDIR` is put before every path, as packagers expect. Each file is replaced at once, and only where it
//! differs. Where programs look for each other is their business: beside them, and in `../lib/distlto`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result};
use distlto_prepare::write::write_if_changed_with_mode;

use crate::shell::{cargo, output, quietly, root, run, target};

const PROGRAMS: [&str; 6] =
    ["distlto", "distlto-index", "distlto-distribute", "distlto-prepare", "distlto-opt", "distlto-plan"];

/// Libraries, and where each belongs below the prefix: the plugin where a linker in `bin` looks for it.
const LIBRARIES: [(&str, &str); 2] =
    [("libdistlto_forkserver.so", "lib/distlto"), ("libDTLTOdistlto.so", "lib")];

/// Shells, and where each looks for the completions of a program below the prefix.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/distlto"),
    ("zsh", "share/zsh/site-functions/_distlto"),
    ("fish", "share/fish/vendor_completions.d/distlto.fish"),
];

/// Builds and installs.
pub fn install(prefix: &Path, debug: bool) -> Result<()> {
    let mut build = cargo();
    build.args(["build", "--quiet", "--locked"]);
    if !debug {
        build.arg("--release");
    }
    run(&mut build)?;
    let built = target().join(if debug { "debug" } else { "release" });
    let place = Place::new(prefix)?;
    let mut written = 0;
    for name in PROGRAMS {
        written += place.copy(&built.join(name), &Path::new("bin").join(name), 0o755)?;
    }
    for (name, directory) in LIBRARIES {
        written += place.copy(&built.join(name), &Path::new(directory).join(name), 0o755)?;
    }
    let distlto = built.join("distlto");
    quietly(Command::new(&distlto).arg("man").arg(place.at("share/man/man1")))?;
    for (shell, path) in COMPLETIONS {
        let text = output(Command::new(&distlto).args(["completions", shell]))?;
        written += place.write(Path::new(path), text.as_bytes(), 0o644)?;
    }
    for path in files(&root().join("rules"))? {
        let below = path.strip_prefix(root()).context("rules lie in the repository")?;
        written += place.copy(&path, &Path::new("share/distlto").join(below), 0o644)?;
    }
    println!("installed to {}: {written} files differed, beside manual pages", place.0.display());
    Ok(())
}

/// The prefix, below `DESTDIR`.
struct Place(PathBuf);

impl Place {
    fn new(prefix: &Path) -> Result<Self> {
        let prefix = std::path::absolute(prefix).context("the prefix has no absolute form")?;
        Ok(Self(match env::var_os("DESTDIR").filter(|destination| !destination.is_empty()) {
            Some(destination) => Path::new(&destination).join(prefix.strip_prefix("/")?),
            None => prefix,
        }))
    }

    fn at(&self, below: &str) -> PathBuf {
        self.0.join(below)
    }

    fn copy(&self, from: &Path, below: &Path, mode: u32) -> Result<usize> {
        let bytes = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
        self.write(below, &bytes, mode)
    }

    fn write(&self, below: &Path, bytes: &[u8], mode: u32) -> Result<usize> {
        Ok(write_if_changed_with_mode(&self.0.join(below), bytes, mode)?.into())
    }
}

/// All files below a directory, sorted.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() { found.extend(files(&path)?) } else { found.push(path) }
    }
    found.sort();
    Ok(found)
}
