//! `cargo xtask test --buck2`: the example of `examples/buck2`, built by Buck2 itself with the tools of this repository.
//!
//! Needs nothing but the executable `buck2`: its prelude is bundled. Works in a copy and with a daemon of its own, which
//! is stopped at the end. What ran is Buck2's own account.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, iter};

use anyhow::{Context, Result, bail, ensure};

use crate::shell::{self, cargo, find, output, quietly, run, shown};

const SAID: &str = "9 words, longest quick: dhvpx, fletcher 65256, adler 1541148634\n";

/// The programs of the example: by distlto's own rules, with a shared library, and by the prelude's.
const PROGRAMS: [&str; 3] = ["words", "words-shared", "words-prelude"];

/// Builds, runs, edits and builds again.
pub fn test(release: bool) -> Result<()> {
    let project = Project::create(release)?;
    project.expect(SAID)?;
    project.edit("checksum/adler.cpp", "a = 1", "a = 2")?;

    // The member itself and the one module that imports it.
    project.build("words")?;
    project.ran("distlto_opt", &["libchecksum.a(adler.o)", "app/main.cpp.o"])?;

    project.edit("checksum/adler.cpp", "a = 2", "a = 1")?;
    project.expect(SAID)?;

    project.edit("text/longest.cpp", "> found", ">= found")?;
    project.build("words")?;
    project.ran("distlto_opt", &["text/longest.cpp.o", "app/main.cpp.o"])?;
    project.build("words-prelude")?;
    project.ran("thin_lto_opt_object_executable", &["text/longest.cpp.o", "app/main.cpp.o"])?;
    project.expect(&SAID.replace("quick: dhvpx", "jumps: whzcf"))?;

    project.edit("text/split.cpp", "#include", "// A comment changes no bitcode.\n#include")?;
    project.build("words")?;
    project.ran("distlto_thin_link", &[])?;
    project.build("words")?;
    project.ran_nothing()?;
    println!("test result: ok. Buck2 builds, runs and rebuilds {}", PROGRAMS.join(", "));
    Ok(())
}

/// A copy of what the example needs.
struct Project {
    buck2: PathBuf,
    /// The example in it.
    dir: PathBuf,
    /// With this distlto in it; the daemon keeps the one that it was started with.
    path: OsString,
}

impl Project {
    fn create(release: bool) -> Result<Self> {
        let buck2 = find("buck2").context(
            "buck2 is not in PATH; get it from the releases of facebook/buck2 on GitHub, or build it by \
             `cargo install --git` from there as its README says",
        )?;
        let profile = if release { "release" } else { "debug" };
        let mut build = cargo();
        build.args(["build", "--quiet", "--package", "distlto", "--bin", "distlto"]);
        if release {
            build.arg("--release");
        }
        run(&mut build)?;
        let dir = shell::target().join("buck2");
        shell::remove(&dir)?;
        for part in [".buckconfig", "examples/buck2", "rules/buck2"] {
            copy(&shell::root().join(part), &dir.join(part))?;
        }
        // The repository around it is a project, too.
        fs::write(dir.join(".buckroot"), "")?;
        let dir = dir.join("examples/buck2");
        let built = shell::target().join(profile);
        let path = env::join_paths(
            iter::once(built).chain(env::split_paths(&env::var_os("PATH").unwrap_or_default())),
        )?;
        Ok(Self { buck2, dir, path })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.buck2);
        command.args(["--isolation-dir", "distlto-test"]).args(arguments);
        command.current_dir(&self.dir).env("PATH", &self.path);
        command
    }

    fn build(&self, program: &str) -> Result<()> {
        run(&mut self.command(&["build", "--console", "simple", &format!("//:{program}")]))
    }

    /// Builds and runs the programs, which all say the same.
    fn expect(&self, text: &str) -> Result<()> {
        for program in PROGRAMS {
            let mut command = self.command(&["run", "--console", "simple", &format!("//:{program}")]);
            eprintln!("$ {}", shown(&command));
            let said = output(&mut command)?;
            ensure!(said == text, "{program} says {said:?} and not {text:?}");
        }
        Ok(())
    }

    /// Checks what the last build ran commands of a category for, by the ends of Buck2's identifiers.
    fn ran(&self, category: &str, expected: &[&str]) -> Result<()> {
        let log = output(self.command(&["log", "what-ran"]).stderr(Stdio::null()))?;
        let found: Vec<&str> = log.lines().filter_map(|line| identifier(line, category)).collect();
        let right = |end: &&str| found.iter().any(|identifier| identifier.ends_with(end));
        ensure!(
            found.len() == expected.len() && expected.iter().all(right),
            "{category} ran for {found:?}, not for {expected:?}:\n{log}"
        );
        println!("{category} ran for {found:?}");
        Ok(())
    }

    /// Checks that the last build ran no command.
    fn ran_nothing(&self) -> Result<()> {
        let log = output(self.command(&["log", "what-ran"]).stderr(Stdio::null()))?;
        ensure!(log.trim().is_empty(), "commands ran though nothing had changed:\n{log}");
        Ok(())
    }

    fn edit(&self, file: &str, from: &str, to: &str) -> Result<()> {
        let path = self.dir.join(file);
        let text = fs::read_to_string(&path)?;
        ensure!(text.contains(from), "{file} does not hold {from}");
        eprintln!("edit of {file}");
        fs::write(&path, text.replacen(from, to, 1))
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        // A daemon would stay for days.
        if let Err(error) = quietly(self.command(&["kill"]).stdout(Stdio::null()).stderr(Stdio::null())) {
            eprintln!("{error:#}");
        }
    }
}

/// What an action was run for, if the line of Buck2's account is one of this category:
/// `build\troot//:words (platform#hash) (category identifier)\t...`
fn identifier<'a>(line: &'a str, category: &str) -> Option<&'a str> {
    let action = line.split('\t').nth(1)?;
    let (_, action) = action.split_once(&format!(" ({category}"))?;
    let action = action.strip_suffix(')')?;
    Some(action.strip_prefix(' ').unwrap_or(action))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if !from.exists() {
        bail!("{} is missing", from.display());
    }
    fs::create_dir_all(to.parent().context("the target directory has a parent")?)?;
    quietly(Command::new("cp").arg("-R").arg(from).arg(to))
}
