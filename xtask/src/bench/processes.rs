//! `cargo xtask bench processes`: a shell that starts short programs, by itself and as a command of distlto, in pairs.

use std::process::Command;

use anyhow::{Context, Result};

use super::machine;
use super::measure::{Cost, measure, median};
use crate::install;

/// Starts the program of the first argument as often as the second says.
const LOOP: &str = "i=0; while [ $i -lt $1 ]; do \"$0\"; i=$((i + 1)); done";
const PROGRAM: &str = "/bin/true";

/// Measures so many pairs of so many processes.
pub fn processes(count: usize, pairs: usize) -> Result<()> {
    let distlto = install::build(false)?.join("distlto");
    let shell = ["sh", "-c", LOOP, PROGRAM, &count.to_string()].map(str::to_owned);
    let run = |words: &[String]| measure(Command::new(&words[0]).args(&words[1..]));
    let with = [&[distlto.to_str().context("UTF-8")?.to_owned()][..], &shell].concat();
    let mut ratios: Vec<Cost> = Vec::new();
    for _ in 0..pairs {
        let alone = run(&shell)?;
        ratios.push(run(&with)?.relative_to(alone));
    }
    let ratio = median(&ratios);
    println!("{count} processes of {PROGRAM}, {pairs} pairs, {}", machine());
    println!("with distlto to without: wall {:.3}, cpu {:.3}", ratio.wall, ratio.cpu);
    Ok(())
}
