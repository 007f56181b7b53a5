//! `campaign links`: random programs, each linked in every way, run and compared with the oracles.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Result, bail};

use super::generate;
use super::line;
use super::outcome::{Difference, Outcome, difference, outcome, save_commands};
use super::ways::{self, By, COLLISION, DTLTO, EXACT, IN_PROCESS, SERVED, Way};
use super::workspace::Workspace;
use crate::toolchain::Toolchain;

/// What to do.
#[derive(Debug)]
pub struct Request {
    /// The first seed.
    pub seed: u64,
    /// How many seeds from there.
    pub count: usize,
    /// How many programs at a time.
    pub jobs: usize,
    /// Where programs are made.
    pub directory: PathBuf,
    /// Whether they stay.
    pub keep: bool,
}

/// What was counted of one way.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Counts {
    /// Links in which it differs, by kind.
    pub differences: BTreeMap<&'static str, usize>,
    /// Links in which it differs and says so, by kind.
    pub told: BTreeMap<&'static str, usize>,
    /// Programs that were compared byte for byte.
    pub compared: usize,
}

/// What came of all links.
#[derive(Debug, Default)]
pub struct Found {
    /// Links.
    pub links: usize,
    /// Links that lld refuses.
    pub refused: usize,
    /// Links that lld in process cannot do, though they are valid: its DTLTO is the oracle there.
    pub collided: usize,
    /// Those of them that its DTLTO cannot do either, and no served link.
    pub without_oracle: usize,
    /// By the way's name.
    pub ways: BTreeMap<&'static str, Counts>,
    /// What differs, and in which link.
    pub messages: Vec<String>,
}

impl Found {
    /// The counts of a way.
    pub fn counts(&self, way: Way) -> Counts {
        self.ways.get(way.name).cloned().unwrap_or_default()
    }

    /// The counts as a table.
    pub fn table(&self) -> String {
        let Self { links, refused, collided, without_oracle, .. } = self;
        let mut text = format!(
            "{links} links, of which lld refuses {refused}; {collided} are for its DTLTO alone, and {without_oracle} not for that either\n"
        );
        let heads = ["status", "behaviour", "exports", "order", "bytes", "refused"];
        let row = |name: &str, columns: &[String]| {
            let columns: String = columns.iter().map(|column| format!(" {column:>11}")).collect();
            format!("{name:<20}{columns}\n")
        };
        text += &row("way", &heads.map(str::to_owned));
        for (name, Counts { differences, told, compared }) in &self.ways {
            let column = |head| {
                let number = differences.get(head).or(told.get(head)).copied().unwrap_or(0);
                match head {
                    "bytes" if *compared > 0 => format!("{number} of {compared}"),
                    "bytes" => "-".to_owned(),
                    _ => number.to_string(),
                }
            };
            text += &row(name, &heads.map(column));
        }
        text
    }
}

/// Runs the campaign; tells each difference as it is found.
pub fn links(request: &Request, toolchain: Toolchain) -> Result<Found> {
    each(request, |seed| link(request, toolchain, seed), Found::add)
}

/// Adds up what a function finds for each seed, so many at a time; stops at the first error.
pub(super) fn each<F: Default + Send>(
    request: &Request,
    work: impl Fn(u64) -> Result<F> + Sync,
    add: impl Fn(&mut F, F) + Sync,
) -> Result<F> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(F::default());
    thread::scope(|scope| {
        let worker = || -> Result<()> {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= request.count {
                    return Ok(());
                }
                let seed = request.seed + number as u64;
                match work(seed) {
                    Ok(one) => add(&mut found.lock().unwrap_or_else(PoisonError::into_inner), one),
                    Err(error) => {
                        next.store(request.count, Ordering::Relaxed);
                        bail!("seed {seed}: {error:#}");
                    }
                }
            }
        };
        let workers: Vec<_> = (0..request.jobs.max(1)).map(|_| scope.spawn(worker)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    Ok(found.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn link(request: &Request, toolchain: Toolchain, seed: u64) -> Result<Found> {
    let program = generate::program_for(seed, toolchain);
    let mut workspace = Workspace::create(request.directory.join(format!("link-{seed}")), toolchain)?;
    workspace.build(&program)?;
    let mut oracle = outcome(&program, &mut workspace, IN_PROCESS, &[])?;
    let mut found = Found { links: 1, ..Found::default() };
    let collides = |oracle: &Outcome| oracle.error.as_deref().is_some_and(|error| error.contains(COLLISION));
    if collides(&oracle) {
        found.collided = 1;
        if toolchain.has_dtlto() {
            oracle = outcome(&program, &mut workspace, DTLTO, &[])?;
        }
        if collides(&oracle) {
            oracle = outcome(&program, &mut workspace, SERVED, &[])?;
            found.without_oracle = 1;
        }
    }
    found.refused = usize::from(oracle.error.is_some());
    let mut by_dtlto: Option<Outcome> = None;
    for way in ways::compared(toolchain, seed) {
        // Every second program has the linker's default names.
        let more: &[&str] = if way.by == By::Distlto && seed % 2 == 1 { &[EXACT] } else { &[] };
        let linked = outcome(&program, &mut workspace, way, more)?;
        let mut counts = Counts::default();
        let mut differences = Vec::new();
        let kind = difference(way, &linked, &oracle);
        match kind {
            Some(kind) if kind.counts() => differences.push((kind.name(), explain(kind, &linked, &oracle))),
            Some(kind) => drop(counts.told.insert(kind.name(), 1)),
            None => {}
        }
        let links = linked.error.is_none() && oracle.error.is_none();
        let names = match way.by {
            By::Distlto if links => {
                let output = workspace.path.join(line::output(&program, way.dir));
                ways::names_of_served(&output)?
            }
            _ => &[],
        };
        let by_source = (!names.is_empty() && found.collided == 0)
            .then(|| outcome(&program, &mut workspace, IN_PROCESS, names))
            .transpose()?;
        let stock = match &by_dtlto {
            // The linker's own program; but DTLTO's where it has none.
            _ if matches!(way.by, By::Distlto | By::Graph(_)) => {
                (found.collided == 0).then_some(by_source.as_ref().unwrap_or(&oracle))
            }
            // Programs that behave otherwise have other bytes.
            Some(stock) if way.by == By::Distribute && stock.error.is_none() => Some(stock),
            _ => None,
        };
        if let Some(stock) = stock.filter(|_| links) {
            counts.compared = 1;
            if stock.bytes != linked.bytes {
                differences.push(("bytes", String::new()));
            }
        }
        for (kind, text) in differences {
            *counts.differences.entry(kind).or_default() += 1;
            found.messages.push(format!(
                "seed {seed}: {}: {kind}\n{text}  again: cargo xtask campaign links --seed {seed} --count 1 --keep DIR\n",
                way.name
            ));
        }
        found.ways.insert(way.name, counts);
        if way == DTLTO {
            by_dtlto = Some(linked);
        }
    }
    save_commands(&workspace)?;
    if !request.keep {
        fs::remove_dir_all(&workspace.path)?;
    }
    Ok(found)
}

impl Found {
    fn add(&mut self, one: Self) {
        self.links += one.links;
        self.refused += one.refused;
        self.collided += one.collided;
        self.without_oracle += one.without_oracle;
        for (name, counts) in one.ways {
            let all = self.ways.entry(name).or_default();
            all.compared += counts.compared;
            for (kind, number) in counts.differences {
                *all.differences.entry(kind).or_default() += number;
            }
            for (kind, number) in counts.told {
                *all.told.entry(kind).or_default() += number;
            }
        }
        for message in one.messages {
            println!("{message}");
            self.messages.push(message);
        }
    }
}

/// The first line in which two outcomes differ, or the complaint of the one that failed.
pub(super) fn explain(kind: Difference, found: &Outcome, oracle: &Outcome) -> String {
    if kind == Difference::Status {
        let said = |outcome: &Outcome| {
            let error = outcome.error.as_deref().unwrap_or("links");
            error.lines().take(6).collect::<Vec<_>>().join("\n    ")
        };
        return format!("  found: {}\n  lld:   {}\n", said(found), said(oracle));
    }
    if kind == Difference::Exports {
        let only = |one: &Outcome, other: &Outcome| {
            let names: Vec<_> = one.exports.difference(&other.exports).map(String::as_str).collect();
            names.join(", ")
        };
        return format!("  only found: {}\n  only lld:   {}\n", only(found, oracle), only(oracle, found));
    }
    let (mut ours, mut theirs) = (found.said.lines(), oracle.said.lines());
    loop {
        match (ours.next(), theirs.next()) {
            (None, None) => return String::new(),
            (ours, theirs) if ours == theirs => {}
            (ours, theirs) => {
                return format!("  found: {}\n  lld:   {}\n", ours.unwrap_or("-"), theirs.unwrap_or("-"));
            }
        }
    }
}
