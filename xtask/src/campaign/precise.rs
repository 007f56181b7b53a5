//! `cargo xtask campaign precise`: third-party programs that are edited at random and linked again, once with import steps and
//! once without, and every object of the two compared byte for byte.
//!
//! Both link the same command into the same output and keep their objects apart. In the link without import steps clang
//! compiles each module with another shard or other imports, so it is the oracle: a kept object has to equal its object.
//! With a cache there is a second checkout, which has what the first compiled from the cache, and keeps what the first kept.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::available_parallelism;

use anyhow::{Context, Result};
use clap::Parser;
use fastrand::Rng;

use super::profile;
use super::source_edit::{Edited, KINDS, edit};
use crate::bench::measure::Cost;
use crate::linked::{self, Linked, Objects};
use crate::project::Project;
use crate::projects::Name;
use crate::setup::NEWEST;
use crate::{install, setup, shell};

/// Links edited programs with and without precise keys, and compares all objects.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask campaign precise")]
pub struct Arguments {
    /// The programs.
    #[arg(long = "program", value_delimiter = ',', value_enum, default_values = ["libgit2", "leveldb"])]
    programs: Vec<Name>,
    /// How many edits of each.
    #[arg(long, default_value_t = 50)]
    count: usize,
    /// What the edits follow from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Jobs at a time; the number of processors where absent.
    #[arg(long, short)]
    jobs: Option<usize>,
    /// Further flags of the compiler, such as -g.
    #[arg(long = "flag", allow_hyphen_values = true)]
    flags: Vec<String>,
    /// The version of LLVM.
    #[arg(long, default_value_t = NEWEST)]
    llvm: u32,
    /// Has the program be compiled with a profile.
    #[arg(long, value_enum)]
    profile: Option<profile::Kind>,
    /// Links each edit in a second checkout, too; both have a cache in common.
    #[arg(long)]
    cache: bool,
    /// The program under test; this checkout's, built for it, where absent.
    #[arg(long, value_name = "PATH")]
    distlto: Option<PathBuf>,
}

/// The link with import steps, and the one without.
const WITH: &str = "with";
const WITHOUT: &str = "without";
/// Has a compiler run each backend, so that there are no import steps.
const BY_COMPILER: &str = "--backend-arg=-w";
/// The state in the second checkout.
const STATE: &str = "state";

/// What was counted of one kind of edit.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    edits: usize,
    /// Backends whose shard or imports changed.
    changed: usize,
    ran: usize,
    kept: usize,
    /// Objects that are others than before the edit.
    others: usize,
    cost: Cost,
    cost_without: Cost,
    /// Backends that the second checkout ran, and those that it had from the cache.
    second_ran: usize,
    second_cached: usize,
}

impl Counts {
    fn plus(self, other: Self) -> Self {
        Self {
            edits: self.edits + other.edits,
            changed: self.changed + other.changed,
            ran: self.ran + other.ran,
            kept: self.kept + other.kept,
            others: self.others + other.others,
            cost: self.cost.plus(other.cost),
            cost_without: self.cost_without.plus(other.cost_without),
            second_ran: self.second_ran + other.second_ran,
            second_cached: self.second_cached + other.second_cached,
        }
    }
}

/// A program, its link and what keeps its objects.
struct Subject<'a> {
    project: Project,
    words: Vec<String>,
    arguments: &'a Arguments,
    distlto: &'a Path,
}

/// Runs the campaign with these words; whether nothing differs.
pub fn campaign(release: bool, words: &[String]) -> Result<bool> {
    let head = "cargo xtask campaign precise".to_owned();
    let arguments = Arguments::parse_from([head].iter().chain(words));
    setup::setup(&[arguments.llvm])?;
    let distlto = match &arguments.distlto {
        Some(given) => given.clone(),
        None => install::build(!release)?.join("distlto"),
    };
    let mut differing = 0;
    for name in &arguments.programs {
        differing += program(*name, &arguments, &distlto)?;
    }
    Ok(differing == 0)
}

/// Returns how many objects differ.
fn program(name: Name, arguments: &Arguments, distlto: &Path) -> Result<usize> {
    // A build directory is of one compiler.
    let dir = shell::target().join(format!("campaign/precise-{}", arguments.llvm));
    let before = name.open(&dir)?;
    // It has the edits of the last campaign, and what was compiled of them may be newer than the sources are.
    shell::remove(&before.sources)?;
    shell::remove(&before.build)?;
    let project = name.open(&dir)?;
    let mut flags = arguments.flags.join(" ");
    if let Some(profile) = arguments.profile {
        let mut random = Rng::with_seed(arguments.seed);
        let used = profile.make(&project, &flags, arguments.llvm, &mut random)?;
        flags = format!("{flags} {used}");
    }
    project.configure_with(arguments.llvm, &flags)?;
    project.compile()?;
    let words = project.link_words()?;
    let subject = Subject { project, words, arguments, distlto };
    for place in [subject.state(WITH), subject.state(WITHOUT), subject.second(), subject.cache()] {
        let _ = fs::remove_dir_all(place);
    }
    println!("{}, {} edits from seed {}", subject.project.name, arguments.count, arguments.seed);
    subject.link(WITH)?;
    subject.link(WITHOUT)?;
    if arguments.cache {
        subject.link_second()?;
    }
    subject.edits()
}

impl Subject<'_> {
    fn edits(&self) -> Result<usize> {
        let mut random = Rng::with_seed(self.arguments.seed);
        let sources = self.sources()?;
        let mut counts: BTreeMap<&str, Counts> = BTreeMap::new();
        let (mut differing, mut uncompiled, mut done) = (0, 0, 0);
        while done < self.arguments.count {
            let kind = KINDS[random.usize(..KINDS.len())];
            let Some(edited) = edit(kind, &sources, &mut random)? else { continue };
            if !self.project.compiles()? {
                edited.undo()?;
                self.project.compile()?;
                uncompiled += 1;
                continue;
            }
            done += 1;
            differing += self.compare(done, &edited, counts.entry(kind).or_default())?;
        }
        println!("{}", table(&counts));
        if self.arguments.cache {
            let sum = |of: fn(&Counts) -> usize| counts.values().map(of).sum::<usize>();
            let (ran, cached) = (sum(|counts| counts.second_ran), sum(|counts| counts.second_cached));
            println!("in the second checkout {ran} backends ran, {cached} objects came from the cache");
        }
        println!("{differing} objects differ; {uncompiled} further edits did not compile\n");
        Ok(differing)
    }

    /// Links both ways after an edit. Returns how many objects differ.
    fn compare(&self, number: usize, edited: &Edited, counts: &mut Counts) -> Result<usize> {
        let before = self.objects(&self.state(WITHOUT), &self.store(WITHOUT))?;
        let with = self.link(WITH)?;
        let program = fs::read(self.output())?;
        let without = self.link(WITHOUT)?;
        let (ours, theirs) = (
            self.objects(&self.state(WITH), &self.store(WITH))?,
            self.objects(&self.state(WITHOUT), &self.store(WITHOUT))?,
        );
        let names: Vec<_> =
            theirs.keys().chain(ours.keys().filter(|name| !theirs.contains_key(*name))).collect();
        let differing: Vec<_> =
            names.into_iter().filter(|name| ours.get(*name) != theirs.get(*name)).collect();
        for name in &differing {
            println!("edit {number} ({edited}): the objects of {} differ", name);
        }
        let is_other = program != fs::read(self.output())?;
        if is_other && differing.is_empty() {
            println!("edit {number} ({edited}): the programs differ");
        }
        *counts = counts.plus(Counts {
            edits: 1,
            changed: without.ran,
            ran: with.ran,
            kept: with.kept,
            others: theirs.iter().filter(|(name, bytes)| before.get(*name) != Some(bytes)).count(),
            cost: with.cost,
            cost_without: without.cost,
            ..Counts::default()
        });
        if with.ran + with.kept + with.cached != without.ran {
            println!(
                "edit {number} ({edited}): {} ran, {} were kept, {} cached, {} changed",
                with.ran, with.kept, with.cached, without.ran
            );
        }
        let mut differences = differing.len() + usize::from(is_other && differing.is_empty());
        if self.arguments.cache {
            let (second, objects_there) =
                (self.link_second()?, self.objects(&self.second().join(STATE), &self.cache())?);
            *counts = counts.plus(Counts {
                second_ran: second.ran,
                second_cached: second.cached,
                ..Counts::default()
            });
            if objects_there != theirs {
                println!("edit {number} ({edited}): objects of the second checkout differ");
                differences += 1;
            }
        }
        Ok(differences)
    }

    fn state(&self, which: &str) -> PathBuf {
        self.project.build.join(format!("state-{which}"))
    }

    /// Where a way keeps its objects; the second checkout has those of the first.
    fn store(&self, which: &str) -> PathBuf {
        if which == WITH && self.arguments.cache { self.cache() } else { self.state(which).join("store") }
    }

    fn second(&self) -> PathBuf {
        self.project.build.with_file_name("second")
    }

    fn cache(&self) -> PathBuf {
        self.project.build.with_file_name("cache")
    }

    fn output(&self) -> PathBuf {
        self.project.build.join(self.project.target)
    }

    fn link(&self, which: &str) -> Result<Linked> {
        let is_with = which == WITH;
        self.link_in(&self.project.build, &self.state(which), is_with, &self.store(which))
    }

    /// Links the same bitcode in another directory, with a state of its own.
    fn link_second(&self) -> Result<Linked> {
        let second = self.second();
        self.project.copy_linked(&second)?;
        fs::create_dir_all(second.join(self.project.target).parent().context("a program has a directory")?)?;
        self.link_in(&second, &second.join(STATE), true, &self.cache())
    }

    fn link_in(&self, directory: &Path, state: &Path, precise: bool, store: &Path) -> Result<Linked> {
        let jobs = self.arguments.jobs.unwrap_or_else(|| available_parallelism().map_or(1, usize::from));
        let mut command = Command::new(self.distlto);
        command.args(["link", "--json", "-j", &jobs.to_string(), "--state"]).arg(state);
        command.arg("--cache").arg(store);
        if !precise {
            command.arg(BY_COMPILER);
        }
        command.arg("--").args(&self.words).current_dir(directory);
        linked::link(&mut command)
    }

    /// The objects of the one link whose record is in a folder.
    fn objects(&self, state: &Path, store: &Path) -> Result<Objects> {
        linked::objects_of(&linked::only_record(state)?, store)
    }

    /// The program's own sources.
    fn sources(&self) -> Result<Vec<PathBuf>> {
        let mut sources = Vec::new();
        let mut left = vec![self.project.sources.clone()];
        let compiled = self.project.compiled()?;
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(&directory)? {
                let path = entry?.path();
                // CMake does not know of what rustc compiles.
                let is_own = path.extension().is_some_and(|extension| extension == "h" || extension == "rs");
                if path.is_dir() {
                    left.push(path);
                } else if is_own || compiled.contains(&path) {
                    sources.push(path);
                }
            }
        }
        sources.sort();
        Ok(sources)
    }
}

fn table(counts: &BTreeMap<&str, Counts>) -> String {
    let mut text = format!(
        "{:<16}{:>7}{:>10}{:>8}{:>8}{:>8}{:>12}{:>12}\n",
        "edit", "edits", "changed", "ran", "kept", "other", "cpu ratio", "wall ratio"
    );
    let mut all = Counts::default();
    let mut row = |name: &str, counts: &Counts| {
        text += &format!(
            "{name:<16}{:>7}{:>10}{:>8}{:>8}{:>8}{:>12.3}{:>12.3}\n",
            counts.edits,
            counts.changed,
            counts.ran,
            counts.kept,
            counts.others,
            counts.cost.cpu / counts.cost_without.cpu,
            counts.cost.wall / counts.cost_without.wall,
        );
    };
    for (name, counts) in counts {
        row(name, counts);
        all = all.plus(*counts);
    }
    row("all", &all);
    text
}
