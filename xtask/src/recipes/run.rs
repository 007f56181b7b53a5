//! A copy of a project that is built step by step, with the programs of a prefix in PATH and nothing else of distlto.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::recipes::page::Page;
use crate::recipes::projects::Project;
use crate::shell::{self, quietly};

/// The lines of a failed step's output that are shown.
const SHOWN: usize = 30;

/// What build systems heed, besides variables of cargo and of distlto.
const FOREIGN: [&str; 10] =
    ["MAKEFLAGS", "MFLAGS", "CC", "CXX", "AR", "CFLAGS", "CXXFLAGS", "LDFLAGS", "RUSTFLAGS", "DESTDIR"];

/// A project and where it is built.
pub struct Build<'a> {
    /// What is built.
    pub project: &'a Project,
    /// The copy of its sources, in which commands run.
    pub work: PathBuf,
    /// Where it is installed.
    pub destination: PathBuf,
    page: &'a Page,
    prefix: &'a Path,
    log: PathBuf,
}

impl<'a> Build<'a> {
    /// Copies the sources anew.
    pub fn prepare(project: &'a Project, page: &'a Page, directory: &Path, prefix: &'a Path) -> Result<Self> {
        let sources = project.sources(directory)?;
        let place = directory.join(project.name);
        shell::remove(&place)?;
        fs::create_dir_all(&place)?;
        let build = Self {
            work: place.join("work"),
            destination: place.join("installed"),
            log: place.join("log"),
            project,
            page,
            prefix,
        };
        quietly(Command::new("cp").arg("-a").arg(sources).arg(&build.work))?;
        project.added.iter().try_for_each(|(from, to)| {
            quietly(Command::new("cp").arg("-aT").arg(shell::root().join(from)).arg(build.work.join(to)))
        })?;
        Ok(build)
    }

    /// Runs a step of the recipe, or what the project has in its place.
    pub fn step(&self, step: &str) -> Result<()> {
        let own = self.project.own.iter().find(|(name, _)| *name == step).map(|(_, script)| *script);
        let Project { recipe, variant, .. } = self.project;
        let said = self.page.step(recipe, step, variant);
        let text =
            own.or(said).with_context(|| format!("docs/recipes.md has no `sh {step}` under {recipe}"))?;
        let script = format!("{}{text}\n", self.page.script(recipe, "", ""));
        let mut command = command(&script, self.prefix, &self.work)?;
        command.args(self.project.options).env("DESTDIR", &self.destination);
        // Records are looked for below the folder of the build.
        command.env("XDG_CACHE_HOME", self.work.join(".cache"));
        command.envs(self.project.variables.iter().copied());
        let log = File::create(&self.log)?;
        let status = command.stdout(log.try_clone()?).stderr(log).status()?;
        if !status.success() {
            let said = fs::read(&self.log)?;
            let said = String::from_utf8_lossy(&said);
            let lines: Vec<&str> = said.lines().collect();
            let last = lines[lines.len().saturating_sub(SHOWN)..].join("\n");
            bail!("{step}: {status}\n{text}\n{last}\n(all of it: {})", self.log.display());
        }
        Ok(())
    }

    /// Gives one function other code that does the same.
    pub fn edit(&self) -> Result<()> {
        let (file, line, inserted) = self.project.edit;
        let path = self.work.join(file);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        ensure!(text.matches(line).count() == 1, "{file} has no line to edit");
        Ok(fs::write(path, text.replacen(line, &format!("{line}{inserted}\n"), 1))?)
    }
}

/// A shell as a user has it, with the prefix's programs: nothing of the make or cargo that runs this program.
fn command(script: &str, prefix: &Path, directory: &Path) -> Result<Command> {
    let mut command = Command::new("sh");
    command.args(["-c", script, "recipe"]).current_dir(directory).stdin(Stdio::null());
    let foreign =
        |name: &str| FOREIGN.contains(&name) || name.starts_with("DISTLTO_") || name.starts_with("CARGO");
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(foreign)) {
        if name != "CARGO_HOME" {
            command.env_remove(name);
        }
    }
    let search = env::var_os("PATH").context("PATH is not set")?;
    let path = env::join_paths([prefix.join("bin")].into_iter().chain(env::split_paths(&search)))?;
    command.env("PATH", path);
    Ok(command)
}
