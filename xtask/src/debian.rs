//! What Debian has besides this system's packages: sources, and packages of other releases with all that they need.
//!
//! A system seldom lists either. apt is asked where its packages come from, and given lists of its own of what else is
//! there, which it checks by the archive's signatures; so nothing of the system changes and no rights are needed.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

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
    let apt = Apt::new(&mirrors("deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)")?)?;
    apt.run(dir, &["update"])?;
    let wanted = format!("{}={}", package.name, package.version);
    apt.run(dir, &["source", "--only-source", "--download-only", "--tar-only", &wanted])
}

/// Packages of another release with all that they need, so that they can run by that release's own loader.
pub struct Closure {
    /// The packages, the first of which gives the closure its name.
    pub packages: &'static [&'static str],
    /// What they are said to need and can do without here.
    pub without: &'static [&'static str],
    /// The release.
    pub release: &'static str,
}

/// The loader of a closure's release, below its tree.
pub const LOADER: &str = "usr/lib64/ld-linux-x86-64.so.2";
/// Where that release has its libraries.
pub const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// Unpacks a closure to `to`. A release that is not stable keeps no version for long, so what it has at this moment is
/// taken, by the digests of its signed lists, and kept in `dir`.
pub fn unpack_closure(closure: &Closure, dir: &Path, to: &Path) -> Result<()> {
    let archives = || -> Result<Vec<PathBuf>> {
        let found = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
        Ok(found.filter(|path| path.extension().is_some_and(|extension| extension == "deb")).collect())
    };
    if archives()?.is_empty() {
        fetch_closure(closure, dir).with_context(|| {
            let Closure { packages, release, .. } = closure;
            format!(
                "cannot fetch {} of Debian {release} with apt-get; put their archives, and those of all that they \
                 need, into {}",
                packages.join(", "),
                dir.display()
            )
        })?;
    }
    fs::create_dir_all(to)?;
    for archive in archives()? {
        quietly(Command::new("dpkg-deb").arg("--extract").arg(archive).arg(to))?;
    }
    Ok(())
}

fn fetch_closure(closure: &Closure, dir: &Path) -> Result<()> {
    let source = |uri: &str| format!("deb {uri} {} main\n", closure.release);
    // The first mirror has the releases themselves; others have what is added to one.
    let mirrors = mirrors("$(REPO_URI)")?;
    let first = mirrors.lines().find(|uri| !uri.trim_end_matches('/').ends_with("-security"));
    let apt = Apt::new(&source(first.context("apt knows no mirror of Debian")?))?;
    let partial = dir.with_extension("partial");
    remove(&partial)?;
    fs::create_dir_all(partial.join("partial"))?;
    apt.run(&partial, &["update"])?;
    // Nothing else counts as installed: the closure ends at the loader.
    let status = apt.private.path().join("status");
    fs::write(&status, closure.without.iter().map(|package| installed(package)).collect::<String>())?;
    let place = |key: &str, path: &Path| format!("{key}={}", path.display());
    let (status, archives) = (place("Dir::State::status", &status), place("Dir::Cache::Archives", &partial));
    let install = ["install", "--yes", "--no-install-recommends", "--download-only"];
    apt.run(&partial, &[&["-o", &status, "-o", &archives], install.as_slice(), closure.packages].concat())?;
    remove(dir)?;
    Ok(fs::rename(partial, dir)?)
}

/// What dpkg would say of a package that is newer than any.
fn installed(package: &str) -> String {
    format!(
        "Package: {package}\nStatus: install ok installed\nVersion: 99:0\nArchitecture: amd64\nMulti-Arch: foreign\n\
         Maintainer: none\nDescription: none\n\n"
    )
}

/// Puts a script, below the tree of a closure, that runs a program of it by its own release's loader and libraries, once
/// the tree lies at `runs_at`.
pub fn wrap(unpacked: &Path, runs_at: &Path, program: &str, script: &str) -> Result<()> {
    let word = |path: &str| quoted(&runs_at.join(path));
    let text = format!(
        "#!/bin/sh\nexec {} --library-path {} {} \"$@\"\n",
        word(LOADER)?,
        word(LIBRARIES)?,
        word(program)?
    );
    write_script(&unpacked.join(script), &text)
}

/// A path as a word of a shell.
pub fn quoted(path: &Path) -> Result<String> {
    let text = path.to_str().context("the path of the repository is no text")?;
    Ok(shlex::try_quote(text)?.into_owned())
}

/// Writes an executable text.
pub fn write_script(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(fs::set_permissions(path, Permissions::from_mode(0o755))?)
}

/// Where apt has this system's packages from, each in a form of apt's.
fn mirrors(form: &str) -> Result<String> {
    let of = ["Created-By: Packages", "Origin: Debian"];
    output(Command::new("apt-get").args(["indextargets", "--format", form]).args(of))
}

/// apt with lists of its own.
struct Apt {
    private: TempDir,
}

impl Apt {
    fn new(sources: &str) -> Result<Self> {
        let private = tempfile::tempdir()?;
        fs::create_dir_all(private.path().join("lists/partial"))?;
        fs::write(private.path().join("sources.list"), sources)?;
        Ok(Self { private })
    }

    /// Runs apt-get in `dir`.
    fn run(&self, dir: &Path, words: &[&str]) -> Result<()> {
        let private = self.private.path();
        let mut command = Command::new("apt-get");
        command.arg("-qq").args(["-o", "Dir::Etc::sourceparts=/dev/null"]).current_dir(dir);
        command.arg("-o").arg(format!("Dir::Etc::sourcelist={}", private.join("sources.list").display()));
        command.arg("-o").arg(format!("Dir::State::Lists={}", private.join("lists").display()));
        command.args(["-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache="]);
        // A directory of the user's own may be closed to apt's user.
        command.args(["-o", "APT::Sandbox::User=root"]).args(words).stdout(Stdio::null());
        quietly(&mut command)
    }
}
