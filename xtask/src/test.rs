//! `cargo xtask test`: everything CI runs, in the order in which mistakes are found soonest.
//!
//! The closing line sums up every test program's own `test result:` line.

mod silence;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Instant;
use std::{env, thread};

use anyhow::{Context, Result};

use crate::shell::{cargo, run, shown, target};
use crate::{setup, tidy};

/// The older LLVM that CI tests with, beside the newest.
const OLDER: u32 = 16;

struct Total {
    start: Instant,
    passed: usize,
    failed: usize,
    broken: Vec<String>,
}

/// Runs the checks; with a version or a filter only the programs. Returns whether all is well.
pub fn test(llvm: Option<u32>, release: bool, filter: Option<&str>) -> Result<bool> {
    let mut total = Total { start: Instant::now(), passed: 0, failed: 0, broken: Vec::new() };
    // The crates' own tests read what five versions write.
    setup::setup(&setup::SUPPORTED)?;
    if llvm.is_some() || filter.is_some() {
        total.programs(llvm.unwrap_or(setup::NEWEST), release, filter)?;
    } else {
        run(cargo().args(["fmt", "--all", "--check"]))?;
        tidy::tidy()?;
        run(cargo().args(["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
        let mut tests = cargo();
        tests
            .args(["test", "--workspace", "--no-fail-fast"])
            .env("DISTLTO_TEST_LLVM", setup::NEWEST.to_string());
        if release {
            tests.arg("--release");
        }
        total.add(&mut tests)?;
        total.programs(OLDER, release, None)?;
    }
    for command in &total.broken {
        println!("failed: {command}");
    }
    let word = if total.broken.is_empty() { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {word}. {} passed; {} failed; 0 ignored; 0 measured; 0 filtered out; finished in {:.2}s",
        total.passed,
        total.failed,
        total.start.elapsed().as_secs_f64()
    );
    Ok(total.broken.is_empty())
}

impl Total {
    /// The programs of `tests/cases` with one LLVM.
    fn programs(&mut self, version: u32, release: bool, filter: Option<&str>) -> Result<()> {
        let mut tests = cargo();
        tests.args(["test", "--quiet", "--package", "distlto-tests", "--test", "programs"]);
        if release {
            tests.arg("--release");
        }
        if let Some(filter) = filter {
            tests.args(["--", filter]);
        }
        self.add(tests.env("DISTLTO_TEST_LLVM", version.to_string()))
    }

    /// Runs test programs, passing on what they print.
    fn add(&mut self, command: &mut Command) -> Result<()> {
        let text = shown(command);
        println!("$ {text}");
        let mut child =
            command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start {text}"))?;
        let stdout = child.stdout.take().context("stdout was asked for")?;
        let (tell, lines) = mpsc::channel();
        // What a test that fails prints need not be UTF-8.
        thread::spawn(move || BufReader::new(stdout).split(b'\n').try_for_each(|line| tell.send(line)));
        loop {
            let line = match lines.recv_timeout(silence::LONGEST) {
                Ok(line) => line?,
                Err(RecvTimeoutError::Timeout) if child.try_wait()?.is_none() => {
                    silence::end(&child);
                    continue;
                }
                // What a test has left behind may still hold its output.
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            };
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            if let Some(counts) = line.strip_prefix("test result: ") {
                self.passed += count(counts, " passed");
                self.failed += count(counts, " failed");
                println!("{:.0} s since the beginning, {}", self.start.elapsed().as_secs_f64(), free());
            }
        }
        if !child.wait()?.success() {
            self.broken.push(text);
        }
        Ok(())
    }
}

/// What is free where tests write: a full disk has tests fail that say nothing of it.
fn free() -> String {
    let free = |folder: &Path| match rustix::fs::statvfs(folder) {
        Ok(disk) => format!("{} MiB in {}", (disk.f_bavail * disk.f_frsize) >> 20, folder.display()),
        Err(error) => format!("{} is not known: {error}", folder.display()),
    };
    format!("free: {}, {}", free(&target()), free(&env::temp_dir()))
}

/// The number before a word in `ok. 3 passed; 0 failed; ...`.
fn count(line: &str, word: &str) -> usize {
    let before = line.split(word).next().unwrap_or_default();
    before.rsplit([' ', '.']).next().and_then(|number| number.parse().ok()).unwrap_or(0)
}
