//! Real engines of the Remote Execution API for tests: each is one process tree for one test process, and ends with it.
//!
//! `cargo xtask engine` knows how they are installed and started; this only holds the other end of its standard input.

use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};

use crate::distlto;

/// The URL of an engine that the tests of this process share: a buildbox-casd of their own, or the engine that
/// `DISTLTO_TEST_ENGINE` names.
pub fn url() -> Result<&'static str> {
    static ENGINE: OnceLock<Result<(Option<Child>, String), String>> = OnceLock::new();
    let start = || match env::var("DISTLTO_TEST_ENGINE") {
        Ok(url) => Ok((None, url)),
        Err(_) => start("casd").map(|(child, url)| (Some(child), url)),
    };
    match ENGINE.get_or_init(|| start().map_err(|error| format!("{error:#}"))) {
        Ok((_, url)) => Ok(url),
        Err(error) => bail!("{error}"),
    }
}

/// Starts an engine that runs until its standard input ends, which it does when this process does.
fn start(name: &str) -> Result<(Child, String)> {
    let mut command = distlto::cargo();
    command.args(["run", "--quiet", "--package", "xtask", "--", "engine", name, "run"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().context("cannot start cargo")?;
    let stdout = child.stdout.take().context("standard output was asked for")?;
    let mut url = String::new();
    BufReader::new(stdout).read_line(&mut url)?;
    if url.trim().is_empty() {
        bail!("`cargo xtask engine {name} run` ended with {} and no URL", child.wait()?);
    }
    Ok((child, url.trim().to_owned()))
}
