//! The Debian package: what dpkg wants to know of a finished tree, asked of the tree itself by dpkg's own tools.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::glibc::{self, Glibc};
use super::{Tree, VERSION, commit, is_program, settle};
use crate::install::{DOCUMENTATION, files};
use crate::shell::{output, quietly, root};

/// The revision of this packaging.
const REVISION: u32 = 1;

/// Clang and lld of one version from 15 on: Debian's default may be older, and would take the place of a newer lld.
const CONTROL: &str = "\
Source: distlto
Section: devel
Priority: optional
Maintainer: MAINTAINER
Standards-Version: 4.6.2

Package: distlto
Architecture: any
Depends: ${shlibs:Depends}
Recommends: clang-22 | clang-19 | clang (>= 1:15), lld-22 | lld-19 | lld (>= 1:15), llvm-22 | llvm-19 | llvm (>= 1:15)
Suggests: make, ninja-build, cmake
Description: distributed ThinLTO for any build system
 distlto turns a ThinLTO link by clang and lld into a graph of actions and runs
 it: in parallel here, on engines of remote execution, or by make, ninja, Bazel
 or Buck2. After an edit, backends run again only where their inputs changed.
 .
 This package has the programs, the library that linkers load, the
 DTLTO plugin, and the rules that build files load.
";

const COPYRIGHT: &str = "\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: distlto
Comment: The programs and libraries are made of other crates too, of which
 crates.txt beside this file has the names and licences.

Files: *
Copyright: the contributors of distlto
License: Apache-2.0 or Expat

License: Apache-2.0
 On Debian systems the text of this licence is in
 /usr/share/common-licenses/Apache-2.0.

License: Expat
";

/// What lintian finds that is meant to be so.
const OVERRIDES: &str = "\
# A linker loads it by this name; nothing is linked with it.
distlto: sharedobject-in-library-directory-missing-soname [usr/lib/libDTLTOdistlto.so]
# Names of distlto link for builds that take one word for a compiler.
distlto: no-manual-page [usr/bin/distlto-clang*]
distlto: no-manual-page [usr/bin/distlto-ld.lld*]
# The package is not made for Debian's archive.
distlto: initial-upload-closes-no-bugs *
";

/// Makes the package in `out`.
pub fn make(tree: &Tree, out: &Path) -> Result<PathBuf> {
    let work = tree.prefix.parent().context("the prefix has a directory")?;
    let package = work.join("package");
    fs::create_dir_all(package.join("DEBIAN"))?;
    fs::rename(&tree.prefix, package.join("usr"))?;
    fs::create_dir_all(work.join("debian"))?;
    let maintainer = maintainer()?;
    fs::write(work.join("debian/control"), CONTROL.replace("MAINTAINER", &maintainer))?;
    let date = output(Command::new("date").args(["-u", "-R", "-d", &format!("@{}", tree.time)]))?;
    let changelog = format!(
        "distlto ({VERSION}-{REVISION}) unstable; urgency=medium\n\n  * Version {VERSION}; changelog.gz says what changed.\n\n \
         -- {maintainer}  {date}"
    );
    fs::write(work.join("debian/changelog"), &changelog)?;
    documents(&package.join("usr").join(DOCUMENTATION), &changelog)?;
    let overrides = package.join("usr/share/lintian/overrides");
    fs::create_dir_all(&overrides)?;
    fs::write(overrides.join("distlto"), OVERRIDES)?;
    control(&package, work)?;
    settle(&package, tree.time)?;
    let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
    let to = out.join(format!("distlto_{VERSION}-{REVISION}_{}.deb", architecture.trim()));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "--threads-max=1"]);
    build.args(if tree.quick { ["-Zgzip", "-z1"] } else { ["-Zxz", "-z6"] });
    build.arg("--build").arg(&package).arg(&to).env("SOURCE_DATE_EPOCH", tree.time.to_string());
    quietly(build.stdout(Stdio::null()))?;
    Ok(to)
}

/// Documents in the places and forms where Debian looks for them.
fn documents(directory: &Path, changelog: &str) -> Result<()> {
    let licence = fs::read_to_string(root().join("LICENSE-MIT"))?;
    let lines = licence.trim().lines().map(|line| match line.trim_end() {
        "" => " .\n".to_owned(),
        line => format!(" {line}\n"),
    });
    fs::write(directory.join("copyright"), lines.fold(COPYRIGHT.to_owned(), |text, line| text + &line))?;
    // Debian has both in the file above and in common-licenses.
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        fs::remove_file(directory.join(name))?;
    }
    fs::rename(directory.join("CHANGELOG.md"), directory.join("changelog"))?;
    fs::write(directory.join("changelog.Debian"), changelog)?;
    quietly(Command::new("gzip").arg("-9n").args(["changelog", "changelog.Debian"]).current_dir(directory))
}

/// What dpkg reads of a package: which libraries programs need, how large it is, and digests.
fn control(package: &Path, work: &Path) -> Result<()> {
    let all = files(&package.join("usr"))?;
    let programs: Vec<_> = all.iter().filter(|path| is_program(path)).cloned().collect();
    ensure!(!programs.is_empty(), "no programs are installed");
    quietly(Command::new("dpkg-shlibdeps").args(&programs).current_dir(work))?;
    set_glibc(&work.join("debian/substvars"), glibc::needed(&programs)?)?;
    let mut generate = Command::new("dpkg-gencontrol");
    quietly(generate.arg(format!("-P{}", package.display())).current_dir(work))?;
    let files = all.iter().filter(|path| !path.is_symlink());
    let below = files.map(|path| path.strip_prefix(package)).collect::<Result<Vec<_>, _>>()?;
    let digests = output(Command::new("md5sum").args(below).current_dir(package))?;
    Ok(fs::write(package.join("DEBIAN/md5sums"), digests)?)
}

/// Names the glibc that the programs need. dpkg-shlibdeps names 2.34 for each symbol that this release moved between libraries.
fn set_glibc(variables: &Path, needed: Glibc) -> Result<()> {
    let text = fs::read_to_string(variables)?;
    let (before, after) = text.split_once("libc6 (>= ").context("dpkg-shlibdeps names no libc6")?;
    let (_, after) = after.split_once(')').context("a version ends with a parenthesis")?;
    Ok(fs::write(variables, format!("{before}libc6 (>= {needed}){after}"))?)
}

/// Who makes it: as Debian's tools are told, else who made the commit.
fn maintainer() -> Result<String> {
    match (env::var("DEBFULLNAME"), env::var("DEBEMAIL")) {
        (Ok(name), Ok(address)) => Ok(format!("{name} <{address}>")),
        _ => commit("%an <%ae>").context("DEBFULLNAME and DEBEMAIL can say who makes the package"),
    }
}
