//! Upstream sources of Debian's source packages, fetched by apt-get into a directory of one's own.
//!
//! A system seldom lists its mirrors' sources. apt is asked where its packages come from, and given lists of its own of
//! the sources there, so nothing of the system changes and no rights are needed.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::shell::{output, quietly, remove};

/// One release of a package.
pub struct SourcePackage {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The archive with the upstream sources.
    pub archive: &'static str,
    /// That file's digest.
    pub sha256: &'static str,
}

/// Unpacks the package's upstream sources to `to`, unless they are there. The archive is kept in `dir`.
pub fn unpack(package: &SourcePackage, dir: &Path, to: &Path) -> Result<()> {
    if to.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(dir)?;
    if !dir.join(package.archive).is_file() {
        fetch(package, dir).with_context(|| {
            format!(
                "cannot fetch the sources of {} {} with apt-get; put {} (SHA-256 {}) into {}",
                package.name,
                package.version,
                package.archive,
                package.sha256,
                dir.display()
            )
        })?;
    }
    let said = output(Command::new("sha256sum").arg(package.archive).current_dir(dir))?;
    ensure!(
        said.split_whitespace().next() == Some(package.sha256),
        "{} is not the file that is expected: remove it",
        dir.join(package.archive).display()
    );
    // Renamed when it is whole.
    let partial = to.with_extension("partial");
    remove(&partial)?;
    fs::create_dir(&partial)?;
    let archive = dir.join(package.archive);
    quietly(Command::new("tar").arg("-xf").arg(&archive).args(["--strip-components=1", "-C"]).arg(&partial))?;
    Ok(fs::rename(partial, to)?)
}

fn fetch(package: &SourcePackage, dir: &Path) -> Result<()> {
    let private = tempfile::tempdir()?;
    let (sources, lists) = (private.path().join("sources.list"), private.path().join("lists"));
    fs::create_dir_all(lists.join("partial"))?;
    let mirrors = output(Command::new("apt-get").args([
        "indextargets",
        "--format",
        "deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)",
        "Created-By: Packages",
        "Origin: Debian",
    ]))?;
    fs::write(&sources, mirrors)?;
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        command.arg("-qq").args(["-o", "Dir::Etc::sourceparts=/dev/null"]).current_dir(dir);
        command.arg("-o").arg(format!("Dir::Etc::sourcelist={}", sources.display()));
        command.arg("-o").arg(format!("Dir::State::Lists={}", lists.display()));
        command.args(["-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache="]).args(words);
        // A directory of the user's own may be closed to apt's user.
        command.args(["-o", "APT::Sandbox::User=root"]);
        quietly(&mut command)
    };
    apt(&["update"])?;
    let wanted = format!("{}={}", package.name, package.version);
    apt(&["source", "--only-source", "--download-only", "--tar-only", &wanted])
}
