//! `distlto stats`: sums of backends that ran and objects that were found, over all builds of a user.
//!
//! Each link appends a line to a file in the user's cache folder. A link never fails because of it. The numbers are
//! defined in [`distlto_record::usage`].

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use distlto_prepare::exit;
use distlto_prepare::io_error::IoError;
use distlto_prepare::json_lines::{self, JsonLines};
use distlto_prepare::text::printable;
use distlto_prepare::write::{remove, to_standard_output};
use distlto_record::run::RunRecord;
use distlto_record::usage::{LinkUsage, UsageTotals};
use miette::{Diagnostic, Report};
use thiserror::Error;

use crate::store::{lack, own_cache};

/// The file in the cache folder, and its first line.
const FILE: &str = "usage-v1";
const HEADER: &str = "distlto usage 1\n";
/// The size at which the older half of the links is left out, in bytes.
const LIMIT: u64 = 16 << 20;

/// Count links, backends that ran, objects that were found, and links that passed through
///
/// Counts the links of this user since the last --zero, in all builds. A link passes through if it has bitcode and its linker
/// links by itself; the reasons are listed.
#[derive(Debug, Args)]
#[command(after_help = exit::help())]
pub struct StatsArgs {
    /// Count the links of commands in this directory and below it alone
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Begin anew: forget all links so far, once they are printed
    #[arg(long, conflicts_with = "directory")]
    pub zero: bool,
}

/// There is no place for the file.
#[derive(Debug, Error, Diagnostic)]
#[error("links are not counted: {0}")]
#[diagnostic(code(distlto::usage), help("set XDG_CACHE_HOME to a folder of your own"))]
pub struct NoPlace(&'static str);

/// Prints the sums.
pub fn run(args: &StatsArgs) -> Result<u8, Report> {
    let place = own_cache().ok_or_else(|| NoPlace(lack()))?.join(FILE);
    let mut links: Vec<LinkUsage> = JsonLines::new(&place, HEADER).read();
    if let Some(directory) = &args.directory {
        let directory = directory.canonicalize().map_err(IoError::on("find", directory))?;
        links.retain(|link| Path::new(&link.directory).starts_with(&directory));
    }
    let totals: UsageTotals = links.iter().sum();
    let text = match args.json {
        true => json_lines::line(&totals),
        false => totals.table().lines().map(|line| printable(line).into_owned() + "\n").collect(),
    };
    to_standard_output(text.as_bytes())?;
    if args.zero {
        remove(&place)?;
    }
    Ok(0)
}

/// Counts a link.
pub fn count(link: &LinkUsage) {
    let Some(cache) = own_cache() else { return };
    let place = cache.join(FILE);
    let mut file = JsonLines::new(&place, HEADER);
    if fs::metadata(&place).is_ok_and(|found| found.len() > LIMIT) {
        let lines: Vec<String> = file.read::<LinkUsage>().iter().map(json_lines::line).collect();
        // Without room for it, the file stays as it is.
        let _ = file.replace(&lines[lines.len() / 2..]);
    }
    // A full disk fails no link.
    let _ = file.append(link);
}

/// The links of the output of `runs`, the oldest first: those that were counted, and those of the records themselves.
pub fn history(runs: &[RunRecord]) -> Vec<LinkUsage> {
    let mut links: Vec<LinkUsage> = runs.iter().map(LinkUsage::of).collect();
    let counted = own_cache().map(|cache| JsonLines::new(&cache.join(FILE), HEADER).read::<LinkUsage>());
    if let Some(place) = links.last().map(LinkUsage::place) {
        links.extend(counted.into_iter().flatten().filter(|link| link.place() == place));
    }
    links.sort_by_key(|link| link.begun_ms);
    links.dedup_by_key(|link| link.begun_ms);
    links
}

/// The output of a link that is the same file as this one. Cargo makes a hard link to each program, and prints its name.
pub fn linked_as(path: &Path) -> Option<PathBuf> {
    let identity =
        |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino(), found.nlink()));
    let named = identity(path).filter(|(.., links)| *links > 1)?;
    let links = JsonLines::new(&own_cache()?.join(FILE), HEADER).read::<LinkUsage>();
    let places: BTreeSet<PathBuf> = links.iter().map(LinkUsage::place).collect();
    places.into_iter().find(|place| place != path && identity(place) == Some(named))
}

/// A link of this command that leaves no record: which output, and when.
pub fn without_record(output: &str) -> LinkUsage {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    LinkUsage {
        begun_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
        directory: std::env::current_dir().unwrap_or_default().display().to_string(),
        output: output.to_owned(),
        ..LinkUsage::default()
    }
}
