//! `distlto cache`: looks after caches of results and stores of unpacked archive members.
//!
//! Both are looked after alike; what they hold is known to the crates that fill them.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use distlto_executor::cache::store::limits::{parse_age, parse_size};
use distlto_executor::cache::store::{Cache, CacheLimits};
use distlto_executor::describe::compiler::Compilers;
use distlto_prepare::check::CheckReport;
use distlto_prepare::error::PrepareError;
use distlto_prepare::exit;
use distlto_prepare::prune::PruneReport;
use distlto_prepare::store::Store;
use distlto_prepare::write::to_standard_output;
use serde_json::{Map, Value, json};

/// Look after a cache of results or a store of unpacked archive members
#[derive(Debug, Args)]
#[command(after_help = exit::help())]
pub struct CacheCommandArgs {
    /// What to do
    #[command(subcommand)]
    pub command: CacheCommand,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum CacheCommand {
    /// Say how much is kept, and how it was used
    #[command(after_help = exit::help())]
    Stats {
        #[command(flatten)]
        which: Which,
    },
    /// Remove what was not used for longest, until the rest is small and young enough
    ///
    /// Others may use the cache or store at the same time. Without a limit only what killed runs left is removed.
    #[command(after_help = exit::help())]
    Prune {
        #[command(flatten)]
        which: Which,
        /// Keep at most so many bytes; K, M, G and T stand for powers of 1024
        #[arg(long, value_name = "SIZE", value_parser = parse_size)]
        max_size: Option<u64>,
        /// Remove what was not used for this time: a number of days, or one with d, h, m or s
        #[arg(long, value_name = "AGE", value_parser = parse_age)]
        max_age: Option<Duration>,
    },
    /// Read everything, name each damaged file and remove it
    ///
    /// Runs check what they take in any case: a damaged file is made again by the next run that needs it. The exit code
    /// is 3 if anything was damaged.
    #[command(after_help = exit::help())]
    Verify {
        #[command(flatten)]
        which: Which,
        /// Leave damaged files where they are
        #[arg(long)]
        keep: bool,
    },
}

/// What is looked after, and how that is told.
#[derive(Debug, Args)]
pub struct Which {
    /// The cache of results in this directory
    #[arg(long, value_name = "DIR", required_unless_present = "store")]
    pub cache: Option<PathBuf>,
    /// The store of unpacked archive members in this directory
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// One of the two.
enum Kept {
    Cache(Cache),
    Store(Store),
}

impl Which {
    fn open(&self) -> Result<Vec<Kept>, PrepareError> {
        let mut opened = Vec::new();
        if let Some(directory) = &self.cache {
            opened.push(Kept::Cache(Cache::open_existing(directory, CacheLimits { size: None, age: None })?));
        }
        if let Some(directory) = &self.store {
            opened.push(Kept::Store(Store::open_existing(directory)?));
        }
        Ok(opened)
    }
}

/// Runs the command.
pub fn run(args: &CacheCommandArgs) -> Result<u8, PrepareError> {
    let mut code = 0;
    let (CacheCommand::Stats { which }
    | CacheCommand::Prune { which, .. }
    | CacheCommand::Verify { which, .. }) = &args.command;
    let mut json = Map::from_iter([("version".to_owned(), json!(1))]);
    let mut text = String::new();
    for kept in which.open()? {
        let value = match &args.command {
            CacheCommand::Stats { .. } => kept.stats(&mut text)?,
            CacheCommand::Prune { max_size, max_age, .. } => kept.prune(*max_size, *max_age, &mut text)?,
            CacheCommand::Verify { keep, .. } => {
                let report = kept.verify(*keep)?;
                if !report.bad.is_empty() {
                    code = exit::BAD_INPUT;
                }
                verified(&kept.name(), &report, &mut text)
            }
        };
        json.insert(kept.kind().to_owned(), value);
    }
    if which.json {
        text = format!("{}\n", Value::Object(json));
    }
    to_standard_output(text.as_bytes())?;
    Ok(code)
}

impl Kept {
    fn kind(&self) -> &'static str {
        match self {
            Self::Cache(_) => "cache",
            Self::Store(_) => "store",
        }
    }

    fn directory(&self) -> &Path {
        match self {
            Self::Cache(cache) => cache.directory(),
            Self::Store(store) => store.directory(),
        }
    }

    fn name(&self) -> String {
        format!("{} {}", self.kind(), self.directory().display())
    }

    fn stats(&self, text: &mut String) -> Result<Value, PrepareError> {
        let (held, usage, records) = match self {
            Self::Cache(cache) => (cache.holdings()?, cache.usage(), "results"),
            Self::Store(store) => (store.holdings()?, None, "archives"),
        };
        let line = |text: &mut String, name: &str, value: &dyn std::fmt::Display| {
            text.push_str(&format!("  {name:<10}{value}\n"));
        };
        text.push_str(&format!("{}\n", self.name()));
        line(text, records, &held.records);
        line(text, "files", &format!("{}, {} bytes", held.blobs, held.bytes));
        line(text, "on disk", &format!("{} bytes", held.disk));
        let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        for (name, time) in [("oldest", held.oldest), ("newest", held.newest)] {
            if let Some(time) = time {
                line(text, name, &format!("used {} ago", ago(time)));
            }
        }
        let mut value = json!({
            "directory": self.directory().display().to_string(),
            "records": held.records,
            "files": held.blobs,
            "bytes": held.bytes,
            "disk": held.disk,
            "oldest": held.oldest.map(seconds),
            "newest": held.newest.map(seconds),
        });
        if let Some(usage) = usage {
            line(text, "hits", &format!("{} of {}", usage.hits, usage.hits.saturating_add(usage.misses)));
            line(text, "stored", &usage.stored);
            line(text, "removed", &format!("{} files, by its limits", usage.removed));
            for (name, count) in [
                ("hits", usage.hits),
                ("misses", usage.misses),
                ("stored", usage.stored),
                ("removed", usage.removed),
                ("since", usage.since),
            ] {
                value[name] = json!(count);
            }
        }
        Ok(value)
    }

    fn prune(
        &self,
        size: Option<u64>,
        age: Option<Duration>,
        text: &mut String,
    ) -> Result<Value, PrepareError> {
        let report = match self {
            Self::Cache(cache) => cache.prune(CacheLimits { size, age })?,
            Self::Store(store) => store.prune(size, age)?,
        };
        let PruneReport { removed_files, removed_bytes, kept_files, kept_bytes, temporaries } = report;
        text.push_str(&format!(
            "{}\n  removed {removed_files} files, {removed_bytes} bytes\n  kept {kept_files} files, {kept_bytes} bytes\n",
            self.name(),
        ));
        let mut value = json!({
            "directory": self.directory().display().to_string(),
            "removed_files": removed_files,
            "removed_bytes": removed_bytes,
            "kept_files": kept_files,
            "kept_bytes": kept_bytes,
            "temporaries": temporaries,
        });
        if let Self::Cache(cache) = self {
            let forgotten = Compilers::prune(cache.directory())?;
            if forgotten > 0 {
                text.push_str(&format!("  forgot {forgotten} files of compilers that are gone\n"));
            }
            value["forgotten"] = json!(forgotten);
        }
        Ok(value)
    }

    fn verify(&self, keep: bool) -> Result<CheckReport, PrepareError> {
        Ok(match self {
            Self::Cache(cache) => {
                let mut report = cache.verify(keep)?;
                if let Some(bad) = Compilers::check(cache.directory(), keep) {
                    report.bad.push(bad);
                    report.removed += usize::from(!keep);
                }
                report
            }
            Self::Store(store) => store.check(keep)?,
        })
    }
}

fn verified(name: &str, report: &CheckReport, text: &mut String) -> Value {
    text.push_str(&format!("{name}\n"));
    for bad in &report.bad {
        text.push_str(&format!("  {}: {}\n", bad.path.display(), bad.problem));
    }
    let (files, bytes, bad) = (report.files, report.bytes, report.bad.len());
    text.push_str(&format!("  {files} files, {bytes} bytes: {bad} damaged, {} removed\n", report.removed));
    if report.incomplete > 0 {
        text.push_str(&format!("  {} results whose files had been pruned\n", report.incomplete));
    }
    let bad = report
        .bad
        .iter()
        .map(|bad| json!({ "path": bad.path.display().to_string(), "problem": bad.problem.as_str() }));
    json!({
        "files": files,
        "bytes": bytes,
        "bad": bad.collect::<Vec<_>>(),
        "removed": report.removed,
        "incomplete": report.incomplete,
        "temporaries": report.temporaries,
    })
}

/// How long ago, to the unit that matters.
fn ago(time: SystemTime) -> String {
    let seconds = SystemTime::now().duration_since(time).unwrap_or_default().as_secs();
    let units = [(24 * 60 * 60, "days"), (60 * 60, "hours"), (60, "minutes")];
    match units.iter().find(|(unit, _)| seconds >= 2 * unit) {
        Some((unit, name)) => format!("{} {name}", seconds / unit),
        None => format!("{seconds} seconds"),
    }
}
