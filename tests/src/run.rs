//! Running commands: captures everything and, on failure, shows the command so that it can be repeated by hand.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::store;

/// Runs a command to its end with no input.
pub fn capture(command: &mut Command) -> Result<Output> {
    store::give(command);
    command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {}", shown(command)))
}

/// Runs a command that must succeed; the error holds the command and all it said.
pub fn succeed(command: &mut Command) -> Result<Output> {
    let output = capture(command)?;
    if !output.status.success() {
        bail!("{}", told(command, &output));
    }
    Ok(output)
}

/// Runs a command that must fail by itself, not by a signal, and gives what it printed on standard error.
pub fn fail(command: &mut Command) -> Result<(i32, String)> {
    let output = capture(command)?;
    match output.status.code() {
        Some(code) if code != 0 => Ok((code, String::from_utf8_lossy(&output.stderr).into_owned())),
        _ => bail!("this should have failed with an exit code of its own: {}", told(command, &output)),
    }
}

/// Waits until something is so, for as long as the slowest machine takes.
pub fn wait(what: &str, done: impl Fn() -> bool) -> Result<()> {
    let start = Instant::now();
    while !done() {
        ensure!(start.elapsed() < Duration::from_secs(300), "{what} never came");
        sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// A command, its end and its output, for people.
pub fn told(command: &Command, output: &Output) -> String {
    let end = match (output.status.code(), output.status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, signal) => format!("signal {signal:?}"),
    };
    format!(
        "{end} from\n  {}\n{}{}",
        shown(command),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// A command as one would type it.
pub fn shown(command: &Command) -> String {
    let mut text = String::new();
    if let Some(dir) = command.get_current_dir() {
        let _ = write!(text, "cd {} && ", quoted(dir.as_os_str()));
    }
    text.push_str(&quoted(command.get_program()));
    for arg in command.get_args() {
        text.push(' ');
        text.push_str(&quoted(arg));
    }
    text
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    shlex::try_quote(&word).map_or_else(|_| format!("{word:?}"), |quoted| quoted.into_owned())
}
