//! Profiles for programs of a campaign: one of a real run, and one whose counts are made up.
//!
//! Knows nothing of edits: a profile is of the program as it was before them, as it is for who uses one.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use fastrand::Rng;

use crate::project::Project;
use crate::shell::{output, quietly};

/// What says how often a program's functions run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Counters of an instrumented run of the program.
    Instrumentation,
    /// Samples of its functions, at random.
    Sample,
}

impl Kind {
    /// Makes the profile of a program that these flags compile, by tools of this version of LLVM. Returns the flag that uses it.
    pub fn make(self, project: &Project, flags: &str, llvm: u32, random: &mut Rng) -> Result<String> {
        match self {
            Self::Instrumentation => instrumented(project, flags, llvm),
            Self::Sample => sampled(project, flags, llvm, random),
        }
    }
}

fn instrumented(project: &Project, flags: &str, llvm: u32) -> Result<String> {
    project.configure_with(llvm, &format!("{flags} -fprofile-generate"))?;
    project.compile()?;
    let words = project.link_words()?;
    quietly(Command::new(&words[0]).args(&words[1..]).current_dir(&project.build))?;
    let raw = project.build.join("campaign.profraw");
    // What the tests of a program print is not of interest.
    let mut program = Command::new(project.build.join(project.target));
    let status = program
        .arg("--version")
        .env("LLVM_PROFILE_FILE", &raw)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    ensure!(status.success(), "{} ended with {status}", project.target);
    let merged = project.build.join("campaign.profdata");
    let mut merge = Command::new(format!("llvm-profdata-{llvm}"));
    quietly(merge.arg("merge").arg("-o").arg(&merged).arg(&raw))?;
    Ok(format!("-fprofile-use={}", merged.display()))
}

fn sampled(project: &Project, flags: &str, llvm: u32, random: &mut Rng) -> Result<String> {
    project.configure_with(llvm, flags)?;
    project.compile()?;
    let names = functions(project, llvm)?;
    ensure!(!names.is_empty(), "{} has no functions", project.name);
    let mut text = String::new();
    for name in names {
        let counts = [random.u32(1..10_000), random.u32(1..10_000), random.u32(1..10_000)];
        writeln!(text, "{name}:{}:{}", counts.iter().sum::<u32>(), counts[0])?;
        for (line, count) in counts.iter().enumerate() {
            writeln!(text, " {}: {count}", line + 1)?;
        }
    }
    let place = project.build.join("campaign.prof");
    fs::write(&place, text)?;
    Ok(format!("-fprofile-sample-use={}", place.display()))
}

/// The functions that the program's objects define, each once.
fn functions(project: &Project, llvm: u32) -> Result<Vec<String>> {
    let objects: Vec<PathBuf> = project.linked()?;
    let mut command = Command::new(format!("llvm-nm-{llvm}"));
    command.args(["--defined-only", "--format=posix", "--quiet", "--no-sort"]).args(objects);
    let said = output(command.current_dir(&project.build)).context("what the objects define")?;
    let mut names: Vec<String> = said
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(_, kind)| kind.starts_with(['T', 't', 'W']))
        .map(|(name, _)| name.to_owned())
        .collect();
    names.sort();
    names.dedup();
    Ok(names)
}
