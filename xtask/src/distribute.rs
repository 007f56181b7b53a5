//! A DTLTO distributor with no more cleverness than running several jobs at a time: what `bench` compares distlto with.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// Runs the jobs of lld's job file in its order, `limit` at a time.
pub fn distribute(limit: usize, file: &Path) -> Result<()> {
    let file: Value = serde_json::from_slice(&fs::read(file)?)?;
    let common = words(&file["common"]["args"])?;
    let jobs = file["jobs"].as_array().context("no jobs")?;
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let worker = || -> Result<()> {
            while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let mut command = Command::new(&common[0]);
                command.args(&common[1..]).args(words(&job["args"])?);
                let status = command.status()?;
                ensure!(status.success(), "{status} from a backend");
            }
            Ok(())
        };
        let workers: Vec<_> = (0..limit.max(1)).map(|_| scope.spawn(worker)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|_| bail!("a worker panicked")))
    })
}

fn words(list: &Value) -> Result<Vec<String>> {
    let list = list.as_array().context("expected a list of strings")?;
    list.iter().map(|word| Ok(word.as_str().context("expected a string")?.to_owned())).collect()
}
