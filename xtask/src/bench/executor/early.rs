//! How soon backends start: what lies between the linker's end and the first backend of a first link, and what starting
//! backends while the linker still writes shards could gain at most.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result};

use super::Tools;
use super::spans::Spans;
use crate::bench::measure::{measure, middle};
use crate::bench::program::Program;

/// Measures and prints.
pub fn early(program: &Program, tools: &Tools, runs: usize) -> Result<()> {
    let mut rows = Vec::new();
    for run in 0..runs {
        eprintln!("first backend of {}: run {} of {runs}", program.name, run + 1);
        let name = tools.fresh("early", run);
        let trace = program.dir.join(format!("{name}.trace"));
        let path = trace.to_str().context("the target directory's path is UTF-8")?;
        let whole = measure(&mut tools.link(program, &name, &["--trace", path]))?;
        let backends = Spans::of_trace(&trace, "opt", None)?;
        let thin_link = Spans::of_trace(&trace, "link", Some("thin link"))?;
        rows.push([
            thin_link.total(),
            writing(program)?,
            backends.start() - thin_link.end(),
            backends.makespan(),
            whole.wall,
        ]);
        program.remove(&name)?;
    }
    let median = |column: usize| middle(rows.iter().map(|row| row[column]).collect());
    println!(
        "\nfirst backend of {}, medians of {runs} runs {:>12} {:>10}",
        program.name, "seconds", "of link"
    );
    let rows = [
        "thin link",
        "of it, from the first whole shard on",
        "from its end to the first backend",
        "backends",
        "whole link",
    ];
    for (column, name) in rows.iter().enumerate() {
        println!("{name:44} {:12.3} {:10.3}", median(column), median(column) / median(4));
    }
    println!("the second line is the most that backends could gain that start while the linker runs");
    Ok(())
}

/// From the last write to the first shard to the linker's end, in seconds, in a thin link by hand. It writes into memory, as
/// that of distlto does.
fn writing(program: &Program) -> Result<f64> {
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let dir = tempfile::tempdir_in(place)?;
    let dir = dir.path().to_str().context("the directory of temporary files has a UTF-8 path")?;
    let mut command = program.link(&program.words[0], &format!("{dir}/program"));
    command.arg(format!("-Wl,--thinlto-index-only={dir}/list,--thinlto-emit-imports-files"));
    command.arg(format!("-Wl,--thinlto-prefix-replace=;{dir}/"));
    measure(&mut command)?;
    let end = SystemTime::now();
    let first = first_shard(Path::new(dir))?.context("the thin link wrote no shard")?;
    Ok(end.duration_since(first).unwrap_or_default().as_secs_f64())
}

fn first_shard(dir: &Path) -> Result<Option<SystemTime>> {
    let mut first: Option<SystemTime> = None;
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let found = if path.is_dir() {
            first_shard(&path)?
        } else if path.to_string_lossy().ends_with(".thinlto.bc") {
            Some(fs::metadata(&path)?.modified()?)
        } else {
            None
        };
        first = [first, found].into_iter().flatten().min();
    }
    Ok(first)
}
