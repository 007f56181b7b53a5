//! A program of someone else's, by the rules of this repository, by Bazel's own `thin_lto` and by lld in process.
//!
//! Its compilations come from CMake's `compile_commands.json`. For each way the sources are compiled first; then the link
//! is timed, and again after an edit of one source.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Version;
use super::log::Actions;
use super::same::{Same, as_one_lld};
use super::workspace::Workspace;
use crate::run::succeed;

/// Where a program is, and what is edited.
pub struct Subject {
    /// Its sources.
    pub sources: PathBuf,
    /// Where CMake was run, with what it generated.
    pub build: PathBuf,
    /// A file of the sources, and a line in a function of it, after which code is added.
    pub edited: (String, String),
}

/// One way to link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// One action that does all.
    InProcess,
    /// Bazel's own feature.
    Native,
    /// The rules of this repository.
    Distlto,
}

impl Way {
    /// All.
    pub const ALL: [Self; 3] = [Self::InProcess, Self::Native, Self::Distlto];

    fn options(self) -> &'static [&'static str] {
        match self {
            Self::InProcess => &["--copt=-flto=thin", "--linkopt=-flto=thin"],
            Self::Native => &["--features=thin_lto"],
            Self::Distlto => &[],
        }
    }

    fn program(self) -> &'static str {
        match self {
            Self::Distlto => "distlto",
            Self::InProcess | Self::Native => "cc",
        }
    }
}

/// What a way took.
#[derive(Debug)]
pub struct Figures {
    /// The link from compiled sources.
    pub cold: Duration,
    /// The compilation of the edited source and the link.
    pub edit: Duration,
    /// What that ran.
    pub ran: Actions,
    /// Bytes in the disk cache after the cold link, and what the edit added.
    pub cache: [u64; 2],
    /// What the program says of itself.
    pub said: String,
    /// How far the program of the rules is that of one lld, after the edit.
    pub same: Option<Same>,
}

/// Measures a way.
pub fn measure(subject: &Subject, way: Way) -> Result<Figures> {
    let workspace = Workspace::create(Version::Seven, &format!("compare-{way:?}"))?;
    let modules = lay_out(subject, &workspace)?;
    ensure!(modules >= 100, "{modules} modules are few");
    let cache = workspace.folder.join("cache");
    let disk = format!("--disk_cache={}", cache.display());
    let mut options =
        vec!["--compilation_mode=opt", "--repo_env=CC=clang-22", "--linkopt=-fuse-ld=lld", &disk];
    options.extend(way.options());
    let build = |target: &str| -> Result<(Duration, Actions)> {
        let start = Instant::now();
        let actions = workspace.build(&[&[target], options.as_slice()].concat())?;
        Ok((start.elapsed(), actions))
    };
    build(&format!("//:{}_compiled", way.program()))?;
    let (cold, _) = build(&format!("//:{}", way.program()))?;
    let filled = bytes(&cache)?;
    let (file, line) = &subject.edited;
    workspace.edit(
        &format!("src/{file}"),
        line,
        &format!("{line}\t__asm__ volatile(\"\" : : \"r\"(7u));\n"),
    )?;
    let (edit, ran) = build(&format!("//:{}", way.program()))?;
    let added = bytes(&cache)? - filled;
    let mut program = Command::new(workspace.output(way.program()));
    let said = String::from_utf8(succeed(program.arg("--version"))?.stdout)?;
    let same = (way == Way::Distlto).then(|| as_one_lld(&workspace, "//:distlto", &options)).transpose()?;
    Ok(Figures { cold, edit, ran, cache: [filled, added], said, same })
}

/// Copies sources and generated headers, and writes a build file; how many sources there are.
fn lay_out(subject: &Subject, workspace: &Workspace) -> Result<usize> {
    copy(&subject.sources, &workspace.path("src"))?;
    copy(&subject.build, &workspace.path("generated"))?;
    let commands = fs::read(subject.build.join("compile_commands.json"))?;
    let commands: Value = serde_json::from_slice(&commands)?;
    let mut groups: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
    let mut modules = 0;
    for command in commands.as_array().context("compile_commands.json is a list")? {
        let text = |name: &str| command.get(name).and_then(Value::as_str).context("a command has words");
        let flags = flags(subject, &shlex::split(text("command")?).context("a command has words")?);
        groups.entry(flags).or_default().push(place(subject, Path::new(text("file")?))?);
        modules += 1;
    }
    workspace.write("BUILD", build_file(&groups)?)?;
    Ok(modules)
}

/// Copies sources and headers below a directory.
fn copy(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
        let path = entry?.path();
        let to = to.join(path.file_name().context("an entry has a name")?);
        if path.is_dir() {
            copy(&path, &to)?;
        } else if path
            .extension()
            .is_some_and(|extension| ["c", "h", "inc"].contains(&&*extension.to_string_lossy()))
        {
            fs::create_dir_all(to.parent().context("a file has a directory")?)?;
            fs::copy(&path, &to)?;
        }
    }
    Ok(())
}

/// What of a command's words says what is compiled.
fn flags(subject: &Subject, words: &[String]) -> Vec<String> {
    let mut flags = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let directory = word
            .strip_prefix("-I")
            .or_else(|| (word == "-isystem").then(|| words.next().map_or("", String::as_str)));
        if let Some(directory) = directory {
            flags.extend(place(subject, Path::new(directory)).map(|place| format!("-I{place}")));
        } else if word.starts_with("-D") || word.starts_with("-std=") {
            flags.push(word.clone());
        }
    }
    flags
}

/// Where something of the program is in the workspace.
fn place(subject: &Subject, path: &Path) -> Result<String> {
    let below = |root: &Path, name: &str| Some(Path::new(name).join(path.strip_prefix(root).ok()?));
    let found = below(&subject.build, "generated").or_else(|| below(&subject.sources, "src"));
    let found = found.with_context(|| format!("{} is not of the program", path.display()))?;
    Ok(found.to_str().context("paths of the program are text")?.trim_end_matches('/').to_owned())
}

fn build_file(groups: &BTreeMap<Vec<String>, Vec<String>>) -> Result<String> {
    let mut text = String::from(
        "load(\"@distlto//:defs.bzl\", \"distlto_binary\", \"distlto_library\")\n\
         load(\"@rules_cc//cc:defs.bzl\", \"cc_binary\", \"cc_library\")\n\n\
         HEADERS = glob([\"src/**/*.h\", \"src/**/*.inc\", \"generated/**/*.h\"])\n",
    );
    for kind in ["cc", "distlto"] {
        let mut deps = Vec::new();
        for (at, (flags, sources)) in groups.iter().enumerate() {
            let name = format!("{kind}_{at}");
            // Bazel splits what cc rules are given as a shell does.
            let quoted = |flag: &String| if kind == "cc" { flag.replace('"', "\\\"") } else { flag.clone() };
            let flags: Vec<String> = flags.iter().map(quoted).collect();
            writeln!(
                text,
                "{kind}_library(name = {name:?}, srcs = {sources:?}, copts = {flags:?}, textual_hdrs = HEADERS, alwayslink = True)"
            )?;
            deps.push(format!(":{name}"));
        }
        writeln!(text, "filegroup(name = \"{kind}_compiled\", srcs = {deps:?})")?;
        writeln!(text, "{kind}_binary(name = {kind:?}, deps = {deps:?}, linkopts = [\"-lpthread\"])")?;
    }
    Ok(text)
}

/// The size of all files below a directory.
fn bytes(directory: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let found = entry.metadata()?;
        sum += if found.is_dir() { bytes(&entry.path())? } else { found.len() };
    }
    Ok(sum)
}
