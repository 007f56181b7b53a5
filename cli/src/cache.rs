//! `distlto cache`: looks after the store of objects and records of links, and other caches of results.
//!
//! The crates that fill them know their contents.

use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use distlto_commands::link::state::{KEPT, LinkState};
use distlto_commands::store::{self, VARIABLE};
use distlto_executor::cache::store::limits::{parse_age, parse_size};
use distlto_executor::cache::store::{Cache, CacheLimits, Transferred};
use distlto_executor::describe::compiler::Compilers;
use distlto_prepare::damage::CheckReport;
use distlto_prepare::exit;
use distlto_prepare::io_error::IoError;
use distlto_prepare::prune::PruneReport;
use distlto_prepare::warning::warn;
use distlto_prepare::write::{place as place_file, to_standard_output};
use distlto_record::progress::text::{counted, size};
use miette::{Diagnostic, Report};
use serde_json::{Value, json};
use thiserror::Error;

/// Look after the store of objects and records of links
///
/// That of the user, unless --cache or DISTLTO_CACHE names another.
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
    #[command(visible_alias = "show")]
    #[command(after_help = exit::help())]
    Stats {
        /// The store.
        #[command(flatten)]
        which: Which,
    },
    /// Remove what was not used for longest, until the rest is small and young enough
    ///
    /// Others may use the store at the same time. Without a limit it removes leftovers of killed runs, and records of links
    /// that nobody has made for 90 days.
    #[command(after_help = exit::help())]
    Prune {
        /// The store.
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
    #[command(visible_alias = "check", after_help = exit::help())]
    Verify {
        /// The store.
        #[command(flatten)]
        which: Which,
        /// Leave damaged files where they are
        #[arg(long)]
        keep: bool,
    },
    /// Write objects to an archive, those that were used last first
    ///
    /// A tar file, which is not compressed. Records of links stay where they are.
    #[command(after_help = exit::help())]
    Export {
        /// The store.
        #[command(flatten)]
        which: Which,
        /// Write at most so many bytes; K, M, G and T stand for powers of 1024
        #[arg(long, value_name = "SIZE", value_parser = parse_size)]
        max_size: Option<u64>,
        /// Write objects that were used within this time: a number of days, or one with d, h, m or s
        #[arg(long, value_name = "AGE", value_parser = parse_age)]
        max_age: Option<Duration>,
        /// The archive; - for standard output
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Take objects from an archive
    ///
    /// Each is checked; the exit code is 3 if anything was damaged. Import archives of people alone whom you trust with your programs.
    #[command(after_help = exit::help())]
    Import {
        /// The store.
        #[command(flatten)]
        which: Which,
        /// The archive; - for standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// The store, and the form of the output.
#[derive(Debug, Args)]
pub struct Which {
    /// The store in this directory
    #[arg(long, value_name = "DIR", env = VARIABLE)]
    pub cache: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl Which {
    /// Opens the store, which must exist.
    fn open(&self) -> Result<Cache, Report> {
        Ok(Cache::open_existing(&place(self.cache.as_deref())?, UNLIMITED)?)
    }
}

const UNLIMITED: CacheLimits = CacheLimits { size: None, age: None };

/// Where the store is.
fn place(named: Option<&Path>) -> Result<PathBuf, NoStore> {
    match named.filter(|named| !named.as_os_str().is_empty()) {
        Some(named) => Ok(named.to_owned()),
        None => store::own_cache().map(Path::to_owned).ok_or(NoStore),
    }
}

/// No directory for the store.
#[derive(Debug, Error, Diagnostic)]
#[error("there is no store: neither HOME nor XDG_CACHE_HOME names a place for one")]
#[diagnostic(code(distlto::usage), help("name it with --cache or DISTLTO_CACHE"))]
pub struct NoStore;

/// Runs the command.
pub fn run(args: &CacheCommandArgs) -> Result<u8, Report> {
    let mut code = 0;
    let mut text = String::new();
    let (which, value) = match &args.command {
        CacheCommand::Export { which, max_size, max_age, file } => {
            return export(which, CacheLimits { size: *max_size, age: *max_age }, file);
        }
        CacheCommand::Import { which, file } => return import(which, file),
        CacheCommand::Stats { which } => (which, stats(&which.open()?, &mut text)?),
        CacheCommand::Prune { which, max_size, max_age } => {
            let limits = CacheLimits { size: *max_size, age: *max_age };
            (which, prune(&which.open()?, limits, &mut text)?)
        }
        CacheCommand::Verify { which, keep } => {
            let cache = which.open()?;
            let report = verify(&cache, *keep)?;
            if !report.bad.is_empty() {
                code = exit::BAD_INPUT;
            }
            (which, verified(&name(&cache), &report, &mut text))
        }
    };
    if which.json {
        text = format!("{}\n", json!({ "version": 1, "cache": value }));
    }
    to_standard_output(text.as_bytes())?;
    Ok(code)
}

/// Whether a file is a standard stream.
fn is_stream(file: &Path) -> bool {
    file == Path::new("-")
}

fn export(which: &Which, limits: CacheLimits, file: &Path) -> Result<u8, Report> {
    let cache = which.open()?;
    if is_stream(file) {
        let out = BufWriter::new(io::stdout().lock());
        cache.export(limits, out, Path::new("standard output"))?;
        return Ok(0);
    }
    let mut done = Transferred::default();
    place_file(file, |temporary| {
        let out = BufWriter::new(File::create_new(temporary)?);
        done = cache.export(limits, out, file).map_err(|error| error.source)?;
        Ok(())
    })?;
    tell("exported", cache.directory(), &done, which.json)
}

fn import(which: &Which, file: &Path) -> Result<u8, Report> {
    let directory = place(which.cache.as_deref())?;
    let cache = Cache::open(&directory, CacheLimits::default())?;
    let done = if is_stream(file) {
        cache.import(io::stdin().lock(), Path::new("standard input"))?
    } else {
        let archive = File::open(file).map_err(IoError::on("read", file))?;
        cache.import(BufReader::new(archive), file)?
    };
    done.bad.iter().for_each(|bad| warn(format_args!("left out: {bad}")));
    tell("imported", &directory, &done, which.json)
}

fn tell(what: &str, directory: &Path, done: &Transferred, as_json: bool) -> Result<u8, Report> {
    let Transferred { files, bytes, present, bad } = done;
    let text = if as_json {
        let mut value = json!({ "version": 1, "directory": directory.display().to_string() });
        value[what] = json!({ "files": files, "bytes": bytes, "present": present, "bad": bad });
        format!("{value}\n")
    } else {
        let there = counted(*present, "file");
        let present = if *present > 0 { format!("; {there} had been there") } else { String::new() };
        format!("cache {}\n  {what} {}{present}\n", directory.display(), amount(*files, *bytes))
    };
    to_standard_output(text.as_bytes())?;
    Ok(if bad.is_empty() { 0 } else { exit::BAD_INPUT })
}

/// `3 files, 12 MiB`.
fn amount(files: impl TryInto<u64>, bytes: u64) -> String {
    format!("{}, {}", counted(files, "file"), size(bytes))
}

fn name(cache: &Cache) -> String {
    format!("cache {}", cache.directory().display())
}

fn stats(cache: &Cache, text: &mut String) -> Result<Value, Report> {
    let held = cache.holdings()?;
    let line = |text: &mut String, name: &str, value: &dyn std::fmt::Display| {
        text.push_str(&format!("  {name:<10}{value}\n"));
    };
    text.push_str(&format!("{}\n", name(cache)));
    line(text, "objects", &held.records);
    line(text, "content", &amount(held.blobs, held.bytes));
    line(text, "on disk", &size(held.disk));
    let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    for (name, time) in [("oldest", held.oldest), ("newest", held.newest)] {
        if let Some(time) = time {
            line(text, name, &format!("used {} ago", ago(time)));
        }
    }
    let (links, bytes) = LinkState::held(&cache.directory().join(store::LINKS));
    line(text, "links", &format!("{}, {}", counted(links, "record"), size(bytes)));
    let mut value = json!({
        "directory": cache.directory().display().to_string(),
        "records": held.records,
        "files": held.blobs,
        "bytes": held.bytes,
        "disk": held.disk,
        "oldest": held.oldest.map(seconds),
        "newest": held.newest.map(seconds),
        "links": { "records": links, "bytes": bytes },
    });
    if let Some(usage) = cache.usage() {
        line(text, "hits", &format!("{} of {}", usage.hits, usage.hits.saturating_add(usage.misses)));
        line(text, "stored", &usage.stored);
        line(text, "removed", &format!("{}, by its limits", counted(usage.removed, "file")));
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

fn prune(cache: &Cache, limits: CacheLimits, text: &mut String) -> Result<Value, Report> {
    let report = cache.prune(limits)?;
    let PruneReport { removed_files, removed_bytes, kept_files, kept_bytes, temporaries } = report;
    text.push_str(&format!(
        "{}\n  removed {}\n  kept {}\n",
        name(cache),
        amount(removed_files, removed_bytes),
        amount(kept_files, kept_bytes),
    ));
    let links = cache.directory().join(store::LINKS);
    let links = LinkState::prune(&links, limits.age.unwrap_or(KEPT))?;
    if links > 0 {
        text.push_str(&format!("  removed the records of {}\n", counted(links, "link")));
    }
    let forgotten = Compilers::prune(cache.directory())?;
    if forgotten > 0 {
        text.push_str(&format!("  forgot {} of compilers that are gone\n", counted(forgotten, "file")));
    }
    Ok(json!({
        "directory": cache.directory().display().to_string(),
        "removed_files": removed_files,
        "removed_bytes": removed_bytes,
        "kept_files": kept_files,
        "kept_bytes": kept_bytes,
        "temporaries": temporaries,
        "links": links,
        "forgotten": forgotten,
    }))
}

fn verify(cache: &Cache, keep: bool) -> Result<CheckReport, Report> {
    let mut report = cache.verify(keep)?;
    if let Some(bad) = Compilers::check(cache.directory(), keep) {
        report.bad.push(bad);
        report.removed += usize::from(!keep);
    }
    Ok(report)
}

fn verified(name: &str, report: &CheckReport, text: &mut String) -> Value {
    text.push_str(&format!("{name}\n"));
    for bad in &report.bad {
        text.push_str(&format!("  {}: {}\n", bad.path.display(), bad.problem));
    }
    let (files, bytes, bad) = (report.files, report.bytes, report.bad.len());
    text.push_str(&format!("  {}: {bad} damaged, {} removed\n", amount(files, bytes), report.removed));
    if report.incomplete > 0 {
        let incomplete = counted(report.incomplete, "object");
        text.push_str(&format!("  {incomplete} whose files had been pruned\n"));
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
