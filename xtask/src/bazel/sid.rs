//! The Bazel of Debian's unstable release, in a folder of its own with the libraries and the Java that it needs.
//!
//! Nothing of the system is touched: programs run by that release's loader, links and class paths name the folder. A
//! build needs no network: the rules and modules that Bazel itself loads are Debian's.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::bazel::folder;
use crate::debian::{self, Closure, quoted, write_script};
use crate::shell::{output, remove};

const CLOSURE: Closure = Closure {
    // Debian's package does not name the library of digests that Bazel's own is linked with.
    packages: &["bazel-bootstrap", "default-jre-headless", "libblake3-0"],
    without: &["build-essential", "ca-certificates-java", "default-jdk-headless", "python3", "zlib1g-dev"],
    release: "sid",
};

/// The least that the tests are for.
const LEAST: (u32, u32) = (7, 7);

/// Programs that Bazel's server and the loader's scripts run, below the folder.
const PROGRAMS: [&str; 6] = [
    "usr/bin/bazel",
    "usr/libexec/x86_64-linux-gnu/bazel/build-runfiles",
    "usr/libexec/x86_64-linux-gnu/bazel/daemonize",
    "usr/libexec/x86_64-linux-gnu/bazel/linux-sandbox",
    "usr/libexec/x86_64-linux-gnu/bazel/process-wrapper",
    "usr/libexec/x86_64-linux-gnu/bazel/zipper",
];

/// The same for Java, below its own folder.
const JAVA: [&str; 2] = ["bin/java", "lib/jspawnhelper"];

/// Modules that Bazel's own names and a build of C++ has no use for; Debian has none of them.
const UNUSED: [&str; 4] = ["apple_support", "buildozer", "protobuf", "zlib"];

/// What Bazel loads of one of them.
const BUILDOZER: &str = "\
def _buildozer_binary(_context):
    pass

buildozer_binary = module_extension(
    implementation = _buildozer_binary,
    tag_classes = {\"buildozer\": tag_class(attrs = {\"sha256\": attr.string_dict(), \"version\": attr.string()})},
)
";

/// Where Debian has what is written in Java.
const JARS: &str = "/usr/share/java/";

/// The program to run, once it is installed.
pub fn launcher() -> PathBuf {
    folder().join("sid/bazel")
}

/// Makes it usable.
pub fn install() -> Result<()> {
    let to = folder().join("sid");
    if is_at(&to) {
        return Ok(());
    }
    remove(&to)?;
    // Renamed when it is whole.
    let partial = folder().join("sid.partial");
    remove(&partial)?;
    debian::unpack_closure(&CLOSURE, &folder().join("downloads/sid"), &partial)?;
    let label = fs::read_to_string(partial.join("usr/share/bazel/build-label.txt"))?;
    ensure!(
        version(&label) >= Some(LEAST),
        "Debian's unstable release has Bazel {label}, older than {LEAST:?}; remove {}",
        folder().join("downloads/sid").display()
    );
    set_up(&Tree { unpacked: &partial, runs_at: &to })?;
    Ok(fs::rename(partial, to)?)
}

/// Whether it is there and was set up to run from there: scripts and links name the folder, so a copy of it is of no use.
fn is_at(to: &Path) -> bool {
    let programs = to.join("usr/bin");
    fs::read_to_string(launcher()).is_ok_and(|text| text.contains(&*programs.to_string_lossy()))
}

fn version(label: &str) -> Option<(u32, u32)> {
    let mut numbers = label.trim().split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// What was unpacked, and where it will lie.
struct Tree<'a> {
    unpacked: &'a Path,
    runs_at: &'a Path,
}

fn set_up(tree: &Tree) -> Result<()> {
    tree.relink(tree.unpacked)?;
    let java = tree.java()?;
    let programs = PROGRAMS.iter().map(|&program| program.to_owned());
    for program in programs.chain(JAVA.map(|program| format!("{java}/{program}"))) {
        let real = format!("{program}.real");
        fs::rename(tree.unpacked.join(&program), tree.unpacked.join(&real))
            .with_context(|| format!("the packages hold no {program}"))?;
        debian::wrap(tree.unpacked, tree.runs_at, &real, &program)?;
    }
    tree.set_class_path()?;
    tree.set_options()?;
    let text = format!(
        "#!/bin/sh\nexec {} --nosystem_rc --bazelrc={} --server_javabase={} \"$@\"\n",
        quoted(&tree.runs_at.join("usr/bin/bazel"))?,
        quoted(&tree.runs_at.join("etc/bazel/bazelrc"))?,
        quoted(&tree.runs_at.join(java))?,
    );
    write_script(&tree.unpacked.join("bazel"), &text)
}

impl Tree<'_> {
    /// Java's folder, relative.
    fn java(&self) -> Result<String> {
        let found = fs::read_dir(self.unpacked.join("usr/lib/jvm"))?.flatten();
        let found =
            found.filter(|entry| entry.path().join("bin/java").is_file() && !entry.path().is_symlink());
        let java = found.map(|entry| entry.file_name()).next().context("the packages hold no Java")?;
        Ok(format!("usr/lib/jvm/{}", java.to_str().context("Debian's names are text")?))
    }

    /// Has absolute links lead into the tree.
    fn relink(&self, directory: &Path) -> Result<()> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                self.relink(&path)?;
            } else if entry.file_type()?.is_symlink()
                && let Ok(below) = fs::read_link(&path)?.strip_prefix("/")
            {
                fs::remove_file(&path)?;
                symlink(self.runs_at.join(below), &path)?;
            }
        }
        Ok(())
    }

    /// Writes out the class path of Bazel's server: what Debian lists, and what the manifests of that name by absolute
    /// paths of an installed system.
    fn set_class_path(&self) -> Result<()> {
        let file = self.unpacked.join("usr/share/bazel/bazel_classpath_debian_depends.txt");
        let listed = fs::read_to_string(&file)?;
        let mut waiting: VecDeque<String> = listed.lines().map(str::to_owned).collect();
        let mut found: Vec<String> = Vec::new();
        while let Some(path) = waiting.pop_front() {
            let Some(name) = path.strip_prefix(JARS) else { continue };
            let jar = self.unpacked.join("usr/share/java").join(name);
            // Debian lists some that it does not have.
            if !found.contains(&path) && fs::canonicalize(&jar).is_ok() {
                waiting.extend(manifest_class_path(&jar)?);
                found.push(path);
            }
        }
        let root = self.runs_at.to_str().context("the path of the repository is no text")?;
        ensure!(!found.is_empty(), "{} lists no archive that there is", file.display());
        Ok(fs::write(&file, found.iter().map(|path| format!("{root}{path}\n")).collect::<String>())?)
    }

    /// Keeps of Debian's options those that say where things are, and has what Bazel would fetch come from the packages:
    /// for modules as Debian does, and for workspaces.
    fn set_options(&self) -> Result<()> {
        let file = self.unpacked.join("etc/bazel/bazelrc");
        let root = self.runs_at.to_str().context("the path of the repository is no text")?;
        let text = fs::read_to_string(&file)?;
        let mut options = String::new();
        for line in text.lines().filter(|line| line.starts_with("startup ") || line.starts_with("common ")) {
            let line = line.replace("=/usr/share/", &format!("={root}/usr/share/")) + "\n";
            if line.contains("--override_module=") {
                let repository = line.replace("--override_module=", "--override_repository=");
                // A workspace has one of them by two names.
                if line.contains("=rules_java=") {
                    options += &repository.replace("=rules_java=", "=rules_java_builtin=");
                }
                options += &repository;
            }
            options += &line;
        }
        for name in UNUSED {
            let module = self.unpacked.join("unused").join(name);
            fs::create_dir_all(&module)?;
            fs::write(module.join("MODULE.bazel"), format!("module(name = \"{name}\")\n"))?;
            fs::write(module.join("BUILD"), "")?;
            options += &format!("common --override_module={name}={root}/unused/{name}\n");
        }
        fs::write(self.unpacked.join("unused/buildozer/buildozer_binary.bzl"), BUILDOZER)?;
        Ok(fs::write(&file, options)?)
    }
}

/// What the manifest of a jar names by absolute paths.
fn manifest_class_path(jar: &Path) -> Result<Vec<String>> {
    let mut unzip = Command::new("unzip");
    let text = output(unzip.arg("-p").arg(jar).arg("META-INF/MANIFEST.MF").stdin(Stdio::null()))?;
    // A line that begins with a space continues the one before it.
    let text = text.replace('\r', "").replace("\n ", "");
    let words =
        text.lines().filter_map(|line| line.strip_prefix("Class-Path:")).flat_map(str::split_whitespace);
    Ok(words.filter(|word| word.starts_with(JARS)).map(str::to_owned).collect())
}
