//! `distlto cache`: looks after a store of unpacked archive members.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use distlto_prepare::error::Error;
use distlto_prepare::exit;
use distlto_prepare::store::Store;

/// Look after a store of unpacked archive members
#[derive(Debug, Args)]
#[command(after_help = exit::help())]
pub struct CacheArgs {
    /// What to do
    #[command(subcommand)]
    pub command: CacheCommand,
}

/// What can be done with a store.
#[derive(Debug, Subcommand)]
pub enum CacheCommand {
    /// Remove what was not used for longest, until the store is small and young enough
    #[command(after_help = exit::help())]
    Prune {
        /// Prune this store
        #[arg(long, value_name = "DIR")]
        store: PathBuf,
        /// Keep at most so many bytes; K, M and G stand for powers of 1024
        #[arg(long, value_name = "SIZE", value_parser = size)]
        max_size: Option<u64>,
        /// Remove what was not used for more than so many days
        #[arg(long, value_name = "DAYS")]
        max_age: Option<u32>,
    },
}

/// Runs the command.
pub fn run(args: &CacheArgs) -> Result<u8, Error> {
    let CacheCommand::Prune { store, max_size, max_age } = &args.command;
    let age = max_age.map(|days| Duration::from_secs(u64::from(days) * 24 * 60 * 60));
    let report = Store::open(store)?.prune(*max_size, age)?;
    println!("removed {} files, {} bytes", report.removed_files, report.removed_bytes);
    println!("kept {} files, {} bytes", report.kept_files, report.kept_bytes);
    Ok(0)
}

/// `10`, `512M`, `20G`.
fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.strip_suffix(['K', 'M', 'G']) {
        Some(number) => (number, text.as_bytes()[text.len() - 1]),
        None => (text, b'B'),
    };
    let shift = match unit {
        b'K' => 10,
        b'M' => 20,
        b'G' => 30,
        _ => 0,
    };
    let number: u64 = number.parse().map_err(|_| "expected a number, or one with K, M or G".to_owned())?;
    number.checked_mul(1 << shift).ok_or_else(|| "that many bytes there are not".to_owned())
}
