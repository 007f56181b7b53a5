//! `distlto cargo build --release`: has rustc write bitcode and leave LTO to a linker that distlto serves.
//!
//! Nothing is set where the user has chosen a linker or LTO. cargo is asked for its configuration, and rustc for its
//! linker and its LLVM. Our flags go where cargo takes the user's from, so that both count. A profile's own LTO is
//! turned off: it would be done before there is anything to distribute. Does not depend on links.

mod line;
mod settings;

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use distlto_planner::words::{Word, path_of};
use serde::Deserialize;

use crate::serve::linkers::can_ask;
use line::CargoLine;
use settings::{Choice, Configuration, Manifest, UserSettings};

/// Profiles whose programs are for debugging, and not optimised.
const UNOPTIMISED: [&str; 2] = ["dev", "test"];
/// Has rustc write bitcode.
const PLUGIN_LTO: &str = "-Clinker-plugin-lto";
/// Further versions of LLVM that are looked for: an older one cannot read rustc's bitcode.
const NEWER: u32 = 6;

/// What a cargo command needs.
#[derive(Debug)]
pub enum Preparation {
    /// Nothing: it is no cargo command that links, or has all that it needs.
    None,
    /// These variables.
    Set(Variables),
    /// It builds as without distlto, for this reason.
    Left(String),
}

/// Variables of a cargo command.
#[derive(Debug)]
pub struct Variables {
    /// Their names and values.
    pub all: Vec<(String, OsString)>,
    flags: Vec<String>,
    compiler: Option<PathBuf>,
    /// Whether the profile asks rustc for another LTO.
    replaces_lto: bool,
}

impl fmt::Display for Variables {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "cargo has {} for ThinLTO by the linker", self.flags.join(" "))?;
        if let Some(compiler) = &self.compiler {
            write!(formatter, ", and {} has -flto=thin", compiler.display())?;
        }
        let replaced = if self.replaces_lto { ", in place of the profile's own LTO" } else { "" };
        write!(formatter, "{replaced} (DISTLTO_PLAIN=1: without)")
    }
}

/// What a cargo command builds, as `cargo metadata` prints it.
#[derive(Debug, Deserialize)]
struct Workspace {
    workspace_root: PathBuf,
    #[serde(default)]
    workspace_default_members: Vec<String>,
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    id: String,
    name: String,
    targets: Vec<Target>,
}

#[derive(Debug, Deserialize)]
struct Target {
    crate_types: Vec<String>,
}

/// The compiler of a cargo command.
struct Rustc {
    words: Vec<OsString>,
    host: String,
    /// The major version of its LLVM.
    llvm: u32,
}

/// Returns what a command needs for links that distlto serves.
pub fn prepare(command: &[Word]) -> Preparation {
    let Some(line) = CargoLine::read(command) else { return Preparation::None };
    if UNOPTIMISED.contains(&&*line.profile) {
        return Preparation::Left(format!(
            "the profile {} is not optimised, so cargo links without LTO: --release has it",
            line.profile
        ));
    }
    match variables(&line) {
        Ok(found) => found,
        Err(error) => Preparation::Left(format!("cargo links without LTO by the linker: {error}")),
    }
}

/// The line of a rustc that does not optimise its crate, without LTO: it gains nothing there. So build scripts and
/// procedural macros are linked as ever.
pub fn without_lto(words: &[Word]) -> Option<Vec<Word>> {
    let is_rustc = path_of(words.first()?).file_name()? == "rustc";
    let level = |word: &Word| {
        let word = word.strip_prefix(b"-C").unwrap_or(word);
        word.strip_prefix(b"opt-level=").is_some_and(|level| level != b"0") || word == b"-O"
    };
    let is_lto = |word: &Word| word == PLUGIN_LTO.as_bytes();
    (is_rustc && words.iter().any(is_lto) && !words.iter().any(level))
        .then(|| words.iter().filter(|word| !is_lto(word)).cloned().collect())
}

fn variables(line: &CargoLine) -> io::Result<Preparation> {
    let left = |why: String| Ok(Preparation::Left(format!("cargo links as without distlto: {why}")));
    let (configuration, workspace) = (configuration(line)?, Workspace::of(line));
    if let Some(package) = workspace.as_ref().and_then(|workspace| workspace.with_archive(line)) {
        return left(format!("{package} is a staticlib, and other linkers than lld cannot read bitcode"));
    }
    let manifest = workspace.as_ref().map_or_else(|| Ok(Manifest::default()), Workspace::manifest)?;
    let settings = UserSettings {
        configuration: &configuration,
        manifest: &manifest,
        variable: &|name| std::env::var_os(name),
    };
    let rustc = Rustc::of(line, &settings)?;
    let targets = if line.targets.is_empty() { settings.targets() } else { line.targets.clone() };
    if let Some(other) = targets.iter().find(|target| **target != rustc.host) {
        return left(format!("the target {other} is not that of this machine"));
    }
    match settings.choice(&rustc.host, &line.profile) {
        Some(Choice::LinkerLto) => return Ok(Preparation::None),
        Some(Choice::Other(why)) => return left(why),
        None => {}
    }
    let mut flags = vec![PLUGIN_LTO.to_owned()];
    let has_own_linker = rustc.links_by_lld()?;
    if !has_own_linker {
        let Some(clang) = clang_with_lld(rustc.llvm) else {
            let llvm = rustc.llvm;
            return left(format!(
                "rustc has LLVM {llvm}, and there is no clang and lld of it or later: apt install clang-{llvm} lld-{llvm}"
            ));
        };
        flags.extend([format!("-Clinker={clang}"), "-Clink-arg=-fuse-ld=lld".to_owned()]);
    }
    let Some(variable) = settings.with_flags(&rustc.host, &flags) else {
        return left("flags of rustc are both in [build] and in a table with a condition".to_owned());
    };
    let mut all = vec![variable];
    for profile in ["release", &line.profile] {
        let name = profile.to_uppercase().replace('-', "_");
        all.push((format!("CARGO_PROFILE_{name}_LTO"), "false".into()));
    }
    // With a target of its own, a build script is linked by another linker, which may not read clang's bitcode.
    let reads_bitcode = has_own_linker || targets.is_empty();
    let compilers = [("CC", "CFLAGS", "cc"), ("CXX", "CXXFLAGS", "c++")];
    let compiled = compilers.map(|names| c_flags(&rustc, names).filter(|_| reads_bitcode));
    let compiler = compiled.iter().flatten().map(|(compiler, _)| compiler.clone()).next();
    all.extend(compiled.into_iter().flatten().map(|(_, variable)| variable));
    let replaces_lto = settings.has_other_lto(&line.profile);
    Ok(Preparation::Set(Variables { all, flags, compiler, replaces_lto }))
}

/// The variable with a C compiler's flags for the crate cc, if it is a clang that writes bitcode for this LLVM.
fn c_flags(
    rustc: &Rustc,
    (compiler, flags, usual): (&str, &str, &str),
) -> Option<(PathBuf, (String, OsString))> {
    let target = rustc.host.replace(['-', '.'], "_");
    // The crate's order.
    let names = |name: &str| {
        [
            format!("{name}_{}", rustc.host),
            format!("{name}_{target}"),
            format!("TARGET_{name}"),
            name.to_owned(),
        ]
    };
    let set = |name: &str| names(name).into_iter().find_map(|name| Some((std::env::var_os(&name)?, name)));
    let compiler = set(compiler).map_or_else(|| usual.into(), |(value, _)| value);
    let said = output(Command::new(&compiler).arg("--version")).ok()?;
    let version = major_after(&said, "clang version ").filter(|&version| version <= rustc.llvm)?;
    debug_assert!(version > 0);
    let (mut value, name) = set(flags).unwrap_or_else(|| (OsString::new(), format!("{flags}_{target}")));
    if !value.is_empty() {
        value.push(" ");
    }
    value.push("-flto=thin");
    Some((compiler.into(), (name, value)))
}

/// Asks cargo. The command is unstable, as its output may become another; then it cannot be read, which is told.
fn configuration(line: &CargoLine) -> io::Result<Configuration> {
    let mut cargo = cargo(line);
    cargo.env("RUSTC_BOOTSTRAP", "1").args(line.configuration.iter().map(|word| path_of(word)));
    cargo.args(["-Zunstable-options", "config", "get", "--format", "json"]);
    Ok(serde_json::from_str(&output(&mut cargo)?)?)
}

impl Workspace {
    /// Asks cargo. A program from a registry has none yet, and any other lack is reported by the build.
    fn of(line: &CargoLine) -> Option<Self> {
        let mut cargo = cargo(line);
        cargo.args(["metadata", "--no-deps", "--format-version", "1"]);
        if let Some(manifest) = &line.manifest {
            cargo.arg("--manifest-path").arg(path_of(manifest));
        }
        serde_json::from_str(&output(&mut cargo).ok()?).ok()
    }

    fn manifest(&self) -> io::Result<Manifest> {
        let text = fs::read_to_string(self.workspace_root.join("Cargo.toml"))?;
        toml::from_str(&text).map_err(io::Error::other)
    }

    /// A package whose archive the command makes: that is for any linker, and must have native code.
    fn with_archive(&self, line: &CargoLine) -> Option<&str> {
        let is_archive = |types: &[String]| types.iter().any(|one| one == "staticlib");
        let is_meant = |package: &&Package| match (&line.packages[..], line.is_of_workspace) {
            ([], true) => true,
            ([], false) => self.workspace_default_members.contains(&package.id),
            (named, _) => named.iter().any(|name| name.split('@').next() == Some(&package.name)),
        };
        let makes_archive = |package: &&Package| match &line.crate_types[..] {
            [] => package.targets.iter().any(|target| is_archive(&target.crate_types)),
            types => is_archive(types),
        };
        let found = self.packages.iter().filter(is_meant).find(makes_archive)?;
        Some(&found.name)
    }
}

fn cargo(line: &CargoLine) -> Command {
    let mut words = line.cargo.iter().map(|word| path_of(word));
    let mut cargo = Command::new(words.next().unwrap_or(Path::new("cargo").into()));
    cargo.args(words);
    cargo
}

impl Rustc {
    fn of(line: &CargoLine, settings: &UserSettings<'_>) -> io::Result<Self> {
        let usual = || {
            let toolchain = line.cargo[1..].iter().map(|word| path_of(word).into_os_string());
            std::iter::once("rustc".into()).chain(toolchain).collect()
        };
        let words = settings.rustc().map_or_else(usual, |rustc| vec![rustc]);
        let mut rustc = Self { words, host: String::new(), llvm: 0 };
        let said = output(rustc.command().arg("-vV"))?;
        let host = said.lines().find_map(|line| line.strip_prefix("host: "));
        let unknown = || io::Error::other("rustc -vV names no host and LLVM version");
        rustc.host = host.ok_or_else(unknown)?.to_owned();
        rustc.llvm = major_after(&said, "LLVM version: ").ok_or_else(unknown)?;
        Ok(rustc)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]);
        command
    }

    /// Whether it links by its own lld, which can be made to ask. It is asked how it would link a library of nothing.
    fn links_by_lld(&self) -> io::Result<bool> {
        let place = tempfile::tempdir()?;
        let mut link = self.command();
        link.args([
            "-",
            "--crate-name=x",
            "--crate-type=cdylib",
            "--print=link-args",
            "-Clinker=true",
            "--out-dir",
        ]);
        let line = output(link.arg(place.path()))?;
        let words: Vec<_> = line.split('"').collect();
        let folder = words.iter().find_map(|word| word.strip_prefix("-B"));
        let Some(folder) = folder.filter(|_| words.contains(&"-fuse-ld=lld")) else { return Ok(false) };
        // A program in that folder starts the linker, which lies above.
        let linker = Path::new(folder).parent().map(|above| above.join("rust-lld"));
        Ok(linker.is_some_and(|linker| can_ask(&linker).unwrap_or(false)))
    }
}

/// The name of a clang in PATH that, with its lld, reads the bitcode of this LLVM.
fn clang_with_lld(llvm: u32) -> Option<String> {
    let versioned = (llvm..=llvm + NEWER).map(|version| format!("clang-{version}"));
    let is_fit = |clang: &String| {
        let version = |program: &str, before: &str| {
            let said = output(Command::new(program).arg("--version")).ok()?;
            major_after(&said, before).filter(|&version| version >= llvm)
        };
        let lld = output(Command::new(clang).arg("-print-prog-name=ld.lld"));
        version(clang, "clang version ").is_some()
            && lld.is_ok_and(|lld| version(lld.trim_end(), "LLD ").is_some())
    };
    versioned.chain(["clang".to_owned()]).find(is_fit)
}

/// The number after some words.
fn major_after(text: &str, before: &str) -> Option<u32> {
    let (_, rest) = text.split_once(before)?;
    rest.split(|char: char| !char.is_ascii_digit()).next()?.parse().ok()
}

/// The standard output of a program that says yes.
fn output(command: &mut Command) -> io::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let said = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
    if !said.status.success() {
        let why = String::from_utf8_lossy(&said.stderr);
        return Err(io::Error::other(format!("{name}: {}", why.lines().next().unwrap_or("it failed"))));
    }
    Ok(String::from_utf8_lossy(&said.stdout).into_owned())
}
