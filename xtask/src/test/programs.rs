//! Test programs: built by one cargo, and divided into jobs that can run side by side.
//!
//! A job of cases is one case. Other tests that share a module share what the first of them builds, so they are one job.
//! Knows nothing of how jobs run.

use std::collections::BTreeMap;
use std::env;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use cargo_metadata::{Message, TargetKind};

use super::jobs::Job;
use crate::shell::{cargo, output, shown, target};
use crate::unstable_llvm;

/// The program of `tests/cases`, which has options of its own.
const CASES: &str = "programs";

/// One test program.
pub struct Program {
    /// Its crate and target: `planner all`.
    pub name: String,
    file: PathBuf,
    /// The crate's folder, where cargo runs tests.
    directory: PathBuf,
    /// The built distlto, beside the other tools.
    distlto: PathBuf,
    /// This program, which tests have install, pack and start things.
    xtask: PathBuf,
}

/// Builds all test programs, and all that they start.
pub fn build(release: bool) -> Result<Vec<Arc<Program>>> {
    let profile = release.then_some("--release");
    let distlto = target().join(if release { "release" } else { "debug" }).join("distlto");
    // One cargo for all: another choice of packages is another choice of features, and has most of them compiled again.
    let mut build = cargo();
    build.args(["build", "--quiet", "--workspace", "--all-targets"]).args(profile);
    build.arg("--message-format=json-render-diagnostics");
    eprintln!("$ {}", shown(&build));
    let mut child = build.stdout(Stdio::piped()).spawn().context("cannot start cargo")?;
    let stdout = child.stdout.take().context("standard output was asked for")?;
    let xtask = env::current_exe()?;
    let mut programs = Vec::new();
    for message in Message::parse_stream(BufReader::new(stdout)) {
        let Message::CompilerArtifact(artifact) = message? else { continue };
        let Some(file) = artifact.executable.filter(|_| artifact.profile.test) else { continue };
        let directory = artifact.manifest_path.parent().context("a manifest lies in a folder")?;
        let package = directory.file_name().unwrap_or("?");
        let unit = !artifact.target.kind.contains(&TargetKind::Test);
        let kind = if unit { "unit " } else { "" };
        programs.push(Arc::new(Program {
            name: format!("{package} {kind}{}", artifact.target.name),
            file: file.into(),
            directory: directory.into(),
            distlto: distlto.clone(),
            xtask: xtask.clone(),
        }));
    }
    ensure!(child.wait()?.success(), "the tests do not build");
    Ok(programs)
}

impl Program {
    /// Whether this one runs the cases of `tests/cases` with a given LLVM.
    pub fn are_cases(&self) -> bool {
        self.name.ends_with(CASES)
    }

    /// A command that runs it as cargo would.
    pub fn command(&self, llvm: u32) -> Result<Command> {
        // What starts the tests may ignore signals, as a shell does for a job in the background, and distlto then does too.
        let mut command = Command::new("env");
        command.arg("--default-signal=HUP,INT,QUIT,TERM").arg(&self.file);
        command.current_dir(&self.directory).env("CARGO_MANIFEST_DIR", &self.directory);
        command.env("DISTLTO_TEST_BIN", &self.distlto).env("DISTLTO_TEST_XTASK", &self.xtask);
        unstable_llvm::choose(&mut command, llvm)?;
        Ok(command)
    }

    /// Its tests, as jobs; those alone that hold the filter.
    pub fn jobs(self: &Arc<Self>, llvm: u32, filter: Option<&str>) -> Result<Vec<Job>> {
        let said = output(self.command(llvm)?.args(["--list", "--format", "terse"]))?;
        let names = said.lines().filter_map(|line| line.strip_suffix(": test"));
        let names = names.filter(|name| filter.is_none_or(|filter| name.contains(filter)));
        let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for name in names {
            let group = match name.split_once("::") {
                _ if self.are_cases() => name,
                Some((module, _)) if self.name.ends_with(" all") => module,
                _ => "",
            };
            groups.entry(group).or_default().push(name.to_owned());
        }
        let jobs = groups.into_values().map(|tests| Job { program: Arc::clone(self), llvm, tests });
        Ok(jobs.collect())
    }
}
