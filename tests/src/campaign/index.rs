//! `campaign index`: what a foreign build gets for its own rules, at random. Thin links by `--thinlto-index-only` against lld
//! alone: list, shards and import lists are the same, what is as it was keeps its file. And backends with recorded flags
//! against clang with all the words of the recorded command: objects are the same.
//!
//! Programs are edited between links. A shard that stays though lld's has other bytes has to say the same.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use shlex::try_quote;

use super::backends::same_meaning;
use super::change::{change, prepare};
use super::links::{Request, each};
use super::model::Program;
use super::outcome::save_commands;
use super::random::Random;
use super::workspace::Workspace;
use super::{generate, line};
use crate::distlto;
use crate::run::{capture, shown};
use crate::toolchain::Toolchain;

/// Links of one program: the first, and one after each edit.
const LINKS: usize = 3;
/// Backends of one link that are compared.
const BACKENDS: usize = 3;
const LLD: &str = "by-lld-index";
const OURS: &str = "by-our-index";

/// Words of compilations of C, in groups that stand together. What they say of sources, no backend needs.
const FLAGS: &[&[&str]] = &[
    &["-O0"],
    &["-O1"],
    &["-O3"],
    &["-Os"],
    &["-g"],
    &["-fno-pic"],
    &["-fPIE"],
    &["-mcmodel=large"],
    &["-mno-red-zone"],
    &["-march=haswell"],
    &["-mtune=skylake"],
    &["-falign-functions=64"],
    &["-ffunction-sections", "-fdata-sections"],
    &["-fno-omit-frame-pointer"],
    &["-fstack-protector-strong"],
    &["-fno-asynchronous-unwind-tables"],
    &["-fno-jump-tables"],
    &["-fno-vectorize"],
    &["-fno-plt"],
    &["-mllvm", "-inline-threshold=1"],
    &["-mllvm=-align-all-nofallthru-blocks=4"],
    &["-Xclang", "-mrelax-all"],
    &["-Wa,--noexecstack"],
    &["-Wall", "-Wno-unused"],
    &["-Wp,-DX=1"],
    &["-D", "Y=a b"],
    &["-DZ='$x' #1"],
    &["-I", "include dir"],
    &["-Iinclude"],
    &["-include", "nowhere.h"],
    &["-isystem", "/nowhere"],
    &["-U__linux__"],
    &["-std=gnu11"],
    &["-nostdinc"],
    &["-pipe"],
    &["-MT", "target"],
    &["-fmacro-prefix-map=./="],
    &["-flto=thin"],
    &["-Xclang", "-flto-unit"],
    &["--target=x86_64-linux-gnu"],
    &["-target", "x86_64-linux-gnu"],
];

/// What came of it.
#[derive(Debug, Default)]
pub struct Found {
    /// Links.
    pub links: usize,
    /// Links that lld refuses, and so do we.
    pub refused: usize,
    /// Shards and import lists.
    pub files: usize,
    /// Shards that stayed, though lld's has other bytes.
    pub kept: usize,
    /// Backends.
    pub backends: usize,
    /// Backends that clang refuses, and so do we.
    pub failed: usize,
    /// What differs.
    pub messages: Vec<String>,
}

impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { links, refused, files, kept, backends, failed, messages } = self;
        write!(
            formatter,
            "{links} thin links, of which lld refuses {refused}; {files} shards and import lists, of which {kept} stayed; \
             {backends} backends, of which clang refuses {failed}; differences: {}",
            messages.len()
        )?;
        messages.iter().try_for_each(|message| write!(formatter, "\n{message}"))
    }
}

/// Compares the links of so many programs.
pub fn index(request: &Request, toolchain: Toolchain) -> Result<Found> {
    each(
        request,
        |seed| program(request, toolchain, seed),
        |all: &mut Found, one: Found| {
            all.links += one.links;
            all.refused += one.refused;
            all.files += one.files;
            all.kept += one.kept;
            all.backends += one.backends;
            all.failed += one.failed;
            all.messages.extend(one.messages);
        },
    )
}

fn program(request: &Request, toolchain: Toolchain, seed: u64) -> Result<Found> {
    let mut program = generate::program(seed);
    // Other numbers than those of the program.
    let mut random = Random::new(!seed);
    prepare(&mut random, &mut program);
    let workspace = Workspace::create(request.directory.join(format!("index-{seed}")), toolchain)?;
    let mut pair = Pair { workspace, random, found: Found::default() };
    for number in 0..LINKS {
        if number > 0 {
            change(&mut pair.random, &mut program);
        }
        pair.workspace.build(&program)?;
        if let Err(error) = pair.link(&program) {
            pair.found.messages.push(format!("seed {seed}, link {number}: {error:#}"));
        }
    }
    save_commands(&pair.workspace)?;
    if !request.keep {
        fs::remove_dir_all(&pair.workspace.path)?;
    }
    Ok(pair.found)
}

/// lld and we, on the same files.
struct Pair {
    workspace: Workspace,
    random: Random,
    found: Found,
}

impl Pair {
    fn path(&self, name: &str) -> PathBuf {
        self.workspace.path.join(name)
    }

    /// One thin link by both.
    fn link(&mut self, program: &Program) -> Result<()> {
        self.found.links += 1;
        let before = self.files(OURS)?;
        if self.path(LLD).exists() {
            fs::remove_dir_all(self.path(LLD))?;
        }
        let [theirs, ours] =
            [(LLD, false), (OURS, true)].map(|(dir, is_ours)| self.index(program, dir, is_ours));
        let (theirs, ours) = (theirs?, ours?);
        ensure!(theirs == ours, "lld ends with {theirs:?}, and we with {ours:?}");
        if theirs != Some(0) {
            self.found.refused += 1;
            return Ok(());
        }
        let ids = self.list(LLD)?;
        ensure!(ids == self.list(OURS)?, "the lists of modules differ");
        let (theirs, ours) = (self.files(LLD)?, self.files(OURS)?);
        for (name, (_, bytes)) in &theirs {
            self.found.files += 1;
            let (_, own) = ours.get(name).with_context(|| format!("{name} is missing"))?;
            if own != bytes {
                let stayed = before.get(name).is_some_and(|(_, before)| before == own);
                let places = [LLD, OURS].map(|dir| format!("{dir}/{}", name.trim_end_matches(".thinlto.bc")));
                ensure!(stayed && same_meaning(&self.workspace, &places)?, "{name} differs");
                self.found.kept += 1;
            }
        }
        ensure!(self.index(program, OURS, true)? == Some(0), "a second thin link fails");
        ensure!(self.files(OURS)? == ours, "a second thin link puts something into place");
        for id in self.some_of(ids) {
            self.backend(&id)?;
        }
        Ok(())
    }

    /// Runs a thin link, and says how it ends.
    fn index(&mut self, program: &Program, dir: &str, is_ours: bool) -> Result<Option<i32>> {
        fs::create_dir_all(self.path(dir))?;
        let driver = self.workspace.toolchain.tool("clang")?;
        let mut command = if is_ours { Command::new(distlto::binary()?) } else { Command::new(&driver) };
        if is_ours {
            command.args(["link", "--"]).arg(&driver);
        }
        command.args(line::words(program, dir)).arg(format!("-Wl,--thinlto-index-only={dir}/list"));
        command.args([
            "-Wl,--thinlto-emit-imports-files".to_owned(),
            format!("-Wl,--thinlto-prefix-replace=;{dir}/"),
        ]);
        self.workspace.commands.push(shown(command.current_dir(&self.workspace.path)));
        Ok(capture(&mut command)?.status.code())
    }

    /// The modules of a list.
    fn list(&self, dir: &str) -> Result<Vec<String>> {
        let text = fs::read_to_string(self.path(dir).join("list"))?;
        let id = |line: &str| line.strip_prefix(dir)?.strip_prefix('/').map(str::to_owned);
        text.lines().map(|line| id(line).with_context(|| format!("the list has {line}"))).collect()
    }

    /// Shards and import lists, with the numbers of their files.
    fn files(&self, dir: &str) -> Result<BTreeMap<String, (u64, Vec<u8>)>> {
        let mut files = BTreeMap::new();
        collect(&self.path(dir), "", &mut files)?;
        Ok(files)
    }

    /// Some modules that are files of their own and import from such alone: a backend cannot read a member.
    fn some_of(&mut self, mut ids: Vec<String>) -> Vec<String> {
        let imports = |id: &str| fs::read_to_string(self.path(&format!("{OURS}/{id}.imports")));
        let is_file = |id: &str| self.path(id).is_file();
        ids.retain(|id| is_file(id) && imports(id).is_ok_and(|imports| imports.lines().all(is_file)));
        self.random.shuffle(&mut ids);
        ids.truncate(BACKENDS);
        ids
    }

    /// One backend, by clang with a whole command and by ours with what is recorded of it.
    fn backend(&mut self, id: &str) -> Result<()> {
        self.found.backends += 1;
        let words: Vec<&str> =
            FLAGS.iter().filter(|_| self.random.chance(20)).flat_map(|group| group.iter().copied()).collect();
        let quoted =
            words.iter().map(|word| Ok(try_quote(word)?.into_owned())).collect::<Result<Vec<_>>>()?;
        let recorded = quoted.join(" ").replace('$', "$$").replace('#', "$(pound)");
        let record = Path::new(id).with_file_name(format!(
            ".{}.cmd",
            Path::new(id).file_name().and_then(|name| name.to_str()).context("a module has a name")?
        ));
        fs::write(
            self.workspace.path.join(record),
            format!("savedcmd_{id} := clang {recorded} -c -o {id} x.c ; objtool x\n\nsource_{id} := x.c\n"),
        )?;
        let driver = self.workspace.toolchain.tool("clang")?;
        let shard = format!("{OURS}/{id}.thinlto.bc");
        let mut theirs = Command::new(&driver);
        theirs.args(&words).args(["-x", "ir", "-fno-lto", "-Wno-unused-command-line-argument"]);
        theirs.arg(format!("-fthinlto-index={shard}")).args(["-c", "-o", "theirs.o", id]);
        let mut ours = Command::new(distlto::binary()?);
        ours.args([
            "opt",
            "--out",
            "ours.o",
            "--input",
            id,
            "--index",
            &shard,
            "--flags-from",
            "kbuild",
            "--",
        ]);
        ours.arg(&driver).env_remove("DISTLTO_CACHE");
        let [theirs, ours] =
            [("theirs.o", theirs), ("ours.o", ours)].map(|(object, command)| self.make(object, command));
        match (theirs?, ours?) {
            ((false, ..), (false, ..)) => self.found.failed += 1,
            ((true, theirs, _), (true, ours, _)) if theirs == ours => {}
            ((_, _, theirs), (_, _, ours)) => bail!(
                "the object of {id} with {}: clang says {}, and we {}",
                quoted.join(" "),
                String::from_utf8_lossy(&theirs),
                String::from_utf8_lossy(&ours)
            ),
        }
        Ok(())
    }
}

impl Pair {
    /// Runs a compilation: whether it succeeds, its object, and what it says.
    fn make(&mut self, object: &str, mut command: Command) -> Result<(bool, Vec<u8>, Vec<u8>)> {
        let object = self.path(object);
        if object.exists() {
            fs::remove_file(&object)?;
        }
        self.workspace.commands.push(shown(command.current_dir(&self.workspace.path)));
        let ended = capture(&mut command)?;
        let made = if ended.status.success() { fs::read(object)? } else { Vec::new() };
        Ok((ended.status.success(), made, ended.stderr))
    }
}

fn collect(dir: &Path, name: &str, files: &mut BTreeMap<String, (u64, Vec<u8>)>) -> Result<()> {
    let Ok(entries) = fs::read_dir(dir.join(name)) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        let own = entry.file_name().into_string().ok().context("a name is UTF-8")?;
        let path = if name.is_empty() { own } else { format!("{name}/{own}") };
        if entry.file_type()?.is_dir() {
            collect(dir, &path, files)?;
        } else if path.ends_with(".thinlto.bc") || path.ends_with(".imports") {
            files.insert(path, (entry.metadata()?.ino(), fs::read(entry.path())?));
        }
    }
    Ok(())
}
