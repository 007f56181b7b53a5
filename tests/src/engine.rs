//! Real engines of the Remote Execution API for tests: each is one process tree for one test process, and ends with it.
//!
//! `cargo xtask engine` knows how they are installed and started; this only holds the other end of its standard input. An
//! engine that does not run a program that does nothing is replaced by another one: what tests ask is what distlto does with
//! an engine that works.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc;
use std::time::Duration;
use std::{env, thread};

use anyhow::{Context, Result, anyhow, bail};
use distlto_reapi_server::plain::{Plain, Wanted};

use crate::distlto;
use crate::toolchain::profile_dir;

/// How long an engine may take to be installed and started, on whatever machine.
const PATIENCE: Duration = Duration::from_secs(240);
/// How many are started before none is thought to work.
const TRIES: usize = 3;

/// The URL of an engine that the tests of this process share: a buildbox-casd of their own, or the engine that
/// `DISTLTO_TEST_ENGINE` names.
pub fn url() -> Result<&'static str> {
    static ENGINE: OnceLock<Result<(Option<Engine>, String), String>> = OnceLock::new();
    let start = || match env::var("DISTLTO_TEST_ENGINE") {
        Ok(url) => Ok((None, url)),
        Err(_) => working("casd").map(|(engine, url)| (Some(engine), url)),
    };
    match ENGINE.get_or_init(|| start().map_err(|error| format!("{error:#}"))) {
        Ok((_, url)) => Ok(url),
        Err(error) => bail!("{error}"),
    }
}

/// An engine that runs until its standard input ends, which it does when this process does.
struct Engine(Child);

/// Starts one that runs what it is asked to.
fn working(name: &str) -> Result<(Engine, String)> {
    let mut wrong = anyhow!("none was started");
    for _ in 0..TRIES {
        match start(name) {
            Ok(started) => return Ok(started),
            Err(error) => wrong = error,
        }
        eprintln!("{wrong:#}");
    }
    Err(wrong.context(format!("{TRIES} engines were tried")))
}

fn start(name: &str) -> Result<(Engine, String)> {
    let mut command = distlto::xtask();
    command.args(["engine", name, "run"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut engine = Engine(command.spawn().context("cannot start cargo")?);
    let stdout = engine.0.stdout.take().context("standard output was asked for")?;
    let (tell, said) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        let read = BufReader::new(stdout).read_line(&mut line).map(|_| line);
        // Nobody waits any more where it came too late.
        let _ = tell.send(read);
    });
    let Ok(url) = said.recv_timeout(PATIENCE) else {
        bail!("`cargo xtask engine {name} run` says nothing for {} s", PATIENCE.as_secs());
    };
    let url = url?.trim().to_owned();
    if url.is_empty() {
        bail!("`cargo xtask engine {name} run` ended with {} and no URL", engine.0.wait()?);
    }
    let log = || engine.log(name).unwrap_or_else(|error| format!("{error:#}"));
    try_out(&url).with_context(|| format!("{name} does not run what it is asked to, and says\n{}", log()))?;
    Ok((engine, url))
}

/// Has a program run that does nothing.
fn try_out(url: &str) -> Result<()> {
    let environment = [("PATH", "/usr/bin:/bin")];
    let wanted = Wanted { words: &["true"], environment: &environment, ..Wanted::default() };
    let result = Plain::new(url)?.run(&wanted)?.result.context("no result")?;
    if result.exit_code != 0 {
        bail!("`true` ended with {}: {}", result.exit_code, String::from_utf8_lossy(&result.stderr_raw));
    }
    Ok(())
}

impl Engine {
    /// What its program has said.
    fn log(&self, name: &str) -> Result<String> {
        let target = profile_dir()?.parent().context("a profile lies in a folder")?.join("engines/run");
        let log = target.join(format!("{name}-{}", self.0.id())).join(format!("{name}.log"));
        fs::read_to_string(&log).with_context(|| format!("cannot read {}", log.display()))
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // What it started ends with it. It may have ended itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
