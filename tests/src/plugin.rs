//! The DTLTO plugin under test, and a C program that does a linker's part (`data/plugin/host.c` says how).
//!
//! Knows the host's command line and what it prints. Oracles run the commands of the interface one at a time.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

use anyhow::{Context, Result, anyhow, ensure};

use crate::distlto;
use crate::run::{capture, succeed, told};
use crate::toolchain::{Toolchain, profile_dir, repository};

/// The options of code generation that lld hands to a distributor for a default link.
pub const OPTIONS: &[&str] = &[
    "-O2",
    "-faddrsig",
    "-ffunction-sections",
    "-fdata-sections",
    "-fpic",
    "-Wno-unused-command-line-argument",
];

/// What the modules are compiled to.
pub const TRIPLE: &str = "x86_64-pc-linux-gnu";

/// The plugin, with the program that it starts beside it.
pub fn library() -> Result<PathBuf> {
    Ok(distlto::directory()?.join("libDTLTOdistlto.so"))
}

/// A program of `data/plugin`, compiled once per test process.
pub fn compiled(name: &str) -> Result<PathBuf> {
    static COMPILED: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut compiled =
        COMPILED.lock().map_err(|_| anyhow!("another test has failed to compile a program"))?;
    if let Some(program) = compiled.get(name) {
        return Ok(program.clone());
    }
    let source = repository().join("tests/data/plugin").join(name).with_extension("c");
    let dir = profile_dir()?.join("programs/plugin-hosts");
    fs::create_dir_all(&dir)?;
    // Another test process may run the program that this one replaces.
    let temporary = dir.join(format!("{name}.{}", std::process::id()));
    let mut clang = Command::new(Toolchain { version: crate::toolchain::NEWEST }.tool("clang")?);
    clang
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-pthread", "-I"])
        .arg(repository().join("plugin/include"))
        .arg(source)
        .arg("-o")
        .arg(&temporary);
    succeed(&mut clang)?;
    let program = dir.join(name);
    fs::rename(&temporary, &program)?;
    compiled.insert(name.to_owned(), program.clone());
    Ok(program)
}

/// The linker command that a driver would run for these words.
pub fn linker_words(clang: &Path, words: &[String], dir: &Path) -> Result<Vec<String>> {
    let mut asked = Command::new(clang);
    asked.args(["-###", "-fuse-ld=lld", "-flto=thin"]).args(words).current_dir(dir);
    let said = String::from_utf8(succeed(&mut asked)?.stderr)?;
    let line = said.lines().rfind(|line| line.contains("ld.lld")).context("the driver names no ld.lld")?;
    shlex::split(line).context("a driver quotes as a shell does")
}

/// One run of the host.
#[derive(Debug)]
pub struct Host {
    /// The compiled host.
    pub program: PathBuf,
    /// The plugin.
    pub library: PathBuf,
    /// `distlto` and options.
    pub name: String,
    /// Calls for each output directory.
    pub rounds: usize,
    /// Whether output directories are worked on at the same time.
    pub threads: bool,
    /// A file that is removed after the thin link.
    pub remove: Option<String>,
    /// Output directories, relative to where it runs.
    pub outputs: Vec<String>,
    /// The link.
    pub linker: Vec<String>,
    /// Where it runs.
    pub directory: PathBuf,
    /// Environment variables.
    pub environment: Vec<(&'static str, OsString)>,
}

/// A native object that a host's calls made.
#[derive(Debug, Clone)]
pub struct Object {
    /// The output directory of its link.
    pub output: String,
    /// The module's identifier.
    pub module: String,
    /// The file with the module.
    pub path: PathBuf,
    /// The module's shard.
    pub shard: PathBuf,
    /// The object.
    pub native: PathBuf,
}

impl Host {
    /// One call for one output directory, `out`.
    pub fn new(name: &str, linker: Vec<String>, directory: &Path) -> Result<Self> {
        Ok(Self {
            program: compiled("host")?,
            library: library()?,
            name: name.to_owned(),
            rounds: 1,
            threads: false,
            remove: None,
            outputs: vec!["out".to_owned()],
            linker,
            directory: directory.to_owned(),
            environment: Vec::new(),
        })
    }

    /// The command that runs it.
    pub fn command(&self) -> Result<Command> {
        let mut command = Command::new(&self.program);
        command
            .arg(&self.library)
            .arg(&self.name)
            .arg(TRIPLE)
            .arg(self.rounds.to_string())
            .arg(if self.threads { "threads" } else { "serial" })
            .arg(self.remove.as_deref().unwrap_or("-"))
            .args(&self.outputs)
            .arg("--")
            .args(OPTIONS)
            .arg("--")
            .args(&self.linker)
            .current_dir(&self.directory)
            .env_remove("DISTLTO_DTLTO_OPTIONS")
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        Ok(command)
    }

    /// Runs it; everything must go well. Gives what it printed and the objects.
    pub fn links(&self) -> Result<(String, Vec<Object>)> {
        let output = succeed(&mut self.command()?)?;
        let said = String::from_utf8(output.stdout)?;
        let objects = said.lines().filter_map(|line| self.object(line)).collect();
        Ok((said, objects))
    }

    /// Runs it; a call must fail and all else go well. Gives what the plugin told.
    pub fn fails(&self) -> Result<String> {
        let mut command = self.command()?;
        let output = capture(&mut command)?;
        ensure!(output.status.code() == Some(10), "no call failed: {}", told(&command, &output));
        Ok(text(&output))
    }

    fn object(&self, line: &str) -> Option<Object> {
        let mut words = line.strip_prefix("object\t")?.split('\t');
        let output = words.next()?.to_owned();
        let module = words.next()?.to_owned();
        let mut path = || Some(self.directory.join(words.next()?));
        Some(Object { output, module, path: path()?, shard: path()?, native: path()? })
    }
}

/// What a program printed on both streams.
pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The object of one compilation as the interface words it, run by itself in `place`, which holds copies of all
/// modules under their identifiers.
pub fn compile_alone(clang: &Path, object: &Object, place: &Path) -> Result<Vec<u8>> {
    let out = place.join("alone.native.o");
    let mut command = Command::new(clang);
    command.args(OPTIONS).args(["-c", "-x", "ir"]);
    command.arg(format!("-fthinlto-index={}", object.shard.display()));
    command.args(["-target", TRIPLE, "-o"]).arg(&out).arg(&object.module).current_dir(place);
    let output = succeed(&mut command)?;
    ensure!(output.stderr.is_empty(), "{}", told(&command, &output));
    Ok(fs::read(out)?)
}

/// Copies of all modules under their identifiers.
pub fn modules_in_place(objects: &[Object], place: &Path) -> Result<()> {
    for object in objects {
        let copy = place.join(&object.module);
        fs::create_dir_all(copy.parent().context("a copy lies in a directory")?)?;
        fs::copy(&object.path, copy)?;
    }
    Ok(())
}
