//! The floor that Buck2's tools are measured against: the same file operations on two threads, and nothing else.
//!
//! No JSON is read, no import looked up, and what is written is blanks of the right length. Hidden subcommands of a
//! release build of this program.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, bail};

use super::tree::{ARGUMENTS, FINAL, INDEX, LINK_PLAN, META, Tree};

const THREADS: usize = 2;
const AT_A_TIME: usize = 64;

/// What the planner does to the files of a tree in the current directory.
pub fn planner(objects: usize, imports: usize) -> Result<()> {
    let tree = Tree { root: Path::new(""), objects, imports };
    fs::rename("aside", INDEX)?;
    for name in [META, ARGUMENTS, &format!("{INDEX}/index"), &format!("{INDEX}/index.full")] {
        fs::read(name).with_context(|| name.to_owned())?;
    }
    // Two paths, the fields' names, and indices of five digits.
    let plan = vec![b' '; 400 + 7 * imports];
    in_parallel(objects, |number, buffer| {
        buffer.clear();
        fs::File::open(tree.indexed(number, ".imports"))?.read_to_end(buffer)?;
        fs::rename(tree.indexed(number, ".thinlto.bc"), tree.shard(number))?;
        Ok(fs::write(tree.plan(number), &plan)?)
    })?;
    fs::write(LINK_PLAN, vec![b' '; 16 * objects])?;
    Ok(fs::write(FINAL, vec![b' '; 90 * objects])?)
}

/// Reads an archive and writes it in `members` equal pieces to a directory that it makes, and a manifest.
pub fn prepare(archive: &Path, members: usize, directory: &Path) -> Result<()> {
    fs::create_dir(directory)?;
    let bytes = fs::read(archive)?;
    let size = bytes.len() / members.max(1);
    in_parallel(members, |number, _| {
        Ok(fs::write(directory.join(format!("m{number}.o")), &bytes[number * size..(number + 1) * size])?)
    })?;
    Ok(fs::write(directory.with_extension("json"), vec![b' '; 60 * members])?)
}

fn in_parallel(count: usize, work: impl Fn(usize, &mut Vec<u8>) -> Result<()> + Sync) -> Result<()> {
    let next = AtomicUsize::new(0);
    let worker = || -> Result<()> {
        let mut buffer = Vec::new();
        loop {
            let first = next.fetch_add(AT_A_TIME, Ordering::Relaxed);
            if first >= count {
                return Ok(());
            }
            (first..(first + AT_A_TIME).min(count)).try_for_each(|number| work(number, &mut buffer))?;
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(worker)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|_| bail!("a worker panicked")))
    })
}
