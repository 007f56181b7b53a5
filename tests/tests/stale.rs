//! A link whose surroundings have changed makes the program that a fresh link makes: one case for each thing that a link
//! reads without the command naming it, or writes beside the program.
//!
//! The oracle is the same link from nothing. Each case sees for itself that what it changes changes the program, and that
//! the link before the change has nothing to do, so that "nothing to do" is what would be stale.

mod commands;
mod files;
mod outputs;
mod search;
mod tools;
mod variables;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::{succeed, told};
use distlto_tests::toolchain::Toolchain;

/// Ways of `distlto link`, by the options that choose them.
const WAYS: [&[&str]; 2] = [&[], &["--plain-shards"]];

/// A program of two modules in a folder of its own, and the command that links it.
struct Link {
    folder: Folder,
    way: &'static [&'static str],
    program: String,
    /// Words directly behind the program.
    first: Vec<String>,
    words: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Link {
    /// In a folder of this name, by one of the ways.
    fn new(name: &str, way: &'static [&'static str]) -> Result<Self> {
        let name = format!("stale/{name}{}", way.concat());
        let folder = Folder::create(Toolchain::from_env()?, &name)?;
        let link = Self {
            program: folder.toolchain.tool("clang")?.display().to_string(),
            folder,
            way,
            first: Vec::new(),
            words: Vec::new(),
            variables: Vec::new(),
        };
        link.folder.write("main.c", "int f(int); int main(int n, char **v) { return f(n); }\n")?;
        let f =
            "__attribute__((noinline)) int f(int n) { if (n > 3) return n * 7; puts(\"few\"); return 2; }\n";
        link.folder.write("f.c", format!("int puts(const char *);\n{f}"))?;
        link.lto("main.c")?;
        link.lto("f.c")?;
        Ok(link)
    }

    fn with(mut self, words: &[&str]) -> Self {
        self.words.extend(words.iter().map(|&word| word.to_owned()));
        self
    }

    /// With this program in clang's place.
    fn by(self, program: impl Into<String>) -> Self {
        Self { program: program.into(), ..self }
    }

    fn set(&mut self, name: &str, value: impl Into<String>) {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), value.into()));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path.join(name)
    }

    fn tool(&self, name: &str) -> Result<String> {
        Ok(self.folder.toolchain.tool(name)?.display().to_string())
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        self.folder.write(name, text).map(drop)
    }

    /// A shell script that can be run.
    fn script(&self, name: &str, text: &str) -> Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let place = self.folder.write(&format!("{name}.new"), format!("#!/bin/sh\n{text}"))?;
        fs::set_permissions(&place, fs::Permissions::from_mode(0o755))?;
        Ok(fs::rename(&place, self.path(name))?)
    }

    fn compile(&self, source: &str, words: &[&str]) -> Result<()> {
        let object = format!("{}.o", source.trim_end_matches(".c"));
        let mut command = Command::new(self.folder.toolchain.tool("clang")?);
        command.args(["-O2", "-c", source, "-o", &object]).args(words).current_dir(&self.folder.path);
        succeed(&mut command).map(drop)
    }

    fn lto(&self, source: &str) -> Result<()> {
        self.compile(source, &["-flto=thin"])
    }

    /// A native object of one function.
    fn native(&self, name: &str, text: &str) -> Result<()> {
        self.write(&format!("{name}.c"), text)?;
        self.compile(&format!("{name}.c"), &[])
    }

    fn archive(&self, name: &str, kind: &str, members: &[&str]) -> Result<()> {
        let mut command = Command::new(self.folder.toolchain.tool("llvm-ar")?);
        let place = self.path(name);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)?;
        }
        command.arg(kind).arg(name).args(members).current_dir(&self.folder.path);
        succeed(&mut command).map(drop)
    }

    fn command(&self, output: &str) -> Result<Command> {
        let mut command = Command::new(distlto::binary()?);
        command.arg("link").arg("-v").args(self.way).arg("--");
        command.arg(&self.program).args(&self.first).args(["-O2", "-flto=thin", "-fuse-ld=lld"]);
        command.args(["main.o", "f.o", "-o", output]).args(&self.words).current_dir(&self.folder.path);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        Ok(command)
    }

    /// Links; gives the program and whether there was nothing to do.
    fn run(&self, output: &str) -> Result<(Vec<u8>, bool)> {
        // What is found only while linking is too young to be recorded if it was written in this tick of the clock.
        std::thread::sleep(Duration::from_millis(60));
        let mut command = self.command(output)?;
        let ended = succeed(&mut command)?;
        let nothing = String::from_utf8_lossy(&ended.stderr).contains("nothing to do");
        ensure!(self.path(output).is_file(), "{}", told(&command, &ended));
        Ok((fs::read(self.path(output))?, nothing))
    }

    /// The program of a link from nothing.
    fn fresh(&self) -> Result<Vec<u8>> {
        let place = self.path("fresh");
        if place.exists() {
            fs::remove_file(&place)?;
        }
        let mut command = self.command("fresh")?;
        succeed(command.env("XDG_CACHE_HOME", self.path("fresh-cache")).env_remove("DISTLTO_CACHE"))?;
        fs::remove_dir_all(self.path("fresh-cache"))?;
        Ok(fs::read(place)?)
    }

    /// Links twice, changes something, links again.
    fn changed_by(&mut self, change: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let (first, _) = self.run("program")?;
        ensure!(first == self.fresh()?, "the first link is not a fresh one");
        let (_, nothing) = self.run("program")?;
        ensure!(nothing, "the second link had something to do");
        self.then(&first, change)
    }

    /// Links twice, changes something, links again; each time, as the command is no driver and no linker.
    fn each_time(&mut self, change: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let (first, _) = self.run("program")?;
        let (_, nothing) = self.run("program")?;
        ensure!(!nothing, "what the command reads is not known, and it did not run");
        change(self)?;
        let fresh = self.fresh()?;
        ensure!(fresh != first, "the change does not show in the program: the case shows nothing");
        let (again, nothing) = self.run("program")?;
        ensure!(again == fresh && !nothing, "the program is stale");
        Ok(())
    }

    /// Changes something after a link that gave `first`, and links again.
    fn then(&mut self, first: &[u8], change: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        change(self)?;
        let fresh = self.fresh()?;
        ensure!(fresh != first, "the change does not show in the program: the case shows nothing");
        let (again, _) = self.run("program")?;
        ensure!(again == fresh, "the program is stale");
        let (_, nothing) = self.run("program")?;
        ensure!(nothing, "the link after that had something to do");
        Ok(())
    }
}

/// Runs a case in every way that this LLVM has.
fn in_every_way(name: &str, case: impl Fn(Link) -> Result<()>) -> Result<()> {
    let has_dtlto = Toolchain::from_env()?.has_dtlto();
    for way in WAYS.into_iter().filter(|way| way.is_empty() || has_dtlto) {
        case(Link::new(name, way)?).map_err(|error| error.context(format!("in the way {way:?}")))?;
    }
    Ok(())
}
