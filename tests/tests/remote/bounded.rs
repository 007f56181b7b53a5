//! What a server may cost a link: its time is that of the options, its sizes those of objects, its words fit for a terminal.
//!
//! The servers are stopped, killed, slow or liars. A link that waited without end would be told by [`FOR_EVER`] alone: no test
//! here looks at how quick this machine is.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use distlto_reapi_server::{Faults, Options, Server};
use distlto_tests::toolchain::{NEWEST, Toolchain, helper};
use rustix::process::{Pid, Signal, kill_process};

use super::program::{Checkout, Ended, MODULES, Running, refused, warnings};

/// What no link takes that waits for the times of these tests, on whatever machine.
const FOR_EVER: Duration = Duration::from_secs(400);

/// What a link says whose cache never answers uploads.
fn with_stalled_uploads(options: &[&str]) -> Result<String> {
    let stall = vec!["FindMissingBlobs".to_owned()];
    let server =
        Server::start(Options::default(), Faults { no_execution: true, stall, ..Faults::default() })?;
    let checkout = Checkout::new()?;
    let url = server.url();
    let begun = Instant::now();
    let words = [&["-j1", "--remote-cache", &url], options].concat();
    let said = Running::start(checkout.link(&words)?)?.right(&checkout)?;
    ensure!(begun.elapsed() < FOR_EVER, "{:?}: {said}", begun.elapsed());
    ensure!(warnings(&said).len() == 1 && server.counts().of("FindMissingBlobs") > 0, "{said}");
    Ok(said)
}

#[test]
fn uploads_hold_a_link_for_a_limited_time() -> Result<()> {
    let said = with_stalled_uploads(&["--remote-retry-time=10m", "--remote-upload-time=1s"])?;
    ensure!(said.contains("results were not uploaded to grpc://"), "{said}");
    ensure!(said.contains("--remote-upload-time=TIME waits longer"), "{said}");
    Ok(())
}

#[test]
fn the_first_failure_of_a_cache_ends_all_uploads() -> Result<()> {
    let said = with_stalled_uploads(&["--remote-retry-time=1s"])?;
    ensure!(said.contains("lost the cache at grpc://") && said.contains(", continuing here: "), "{said}");
    Ok(())
}

/// A program of its own, since a thread of this one cannot be stopped.
struct Process {
    child: Child,
    url: String,
}

impl Process {
    fn start(options: &[&str]) -> Result<Self> {
        let mut command = Command::new(helper("distlto-test-server")?);
        let mut child = command.args(options).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut url = String::new();
        BufReader::new(child.stdout.take().context("it was asked for")?).read_line(&mut url)?;
        Ok(Self { child, url: url.trim().to_owned() })
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have been killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Links with a process to which something happens while it has jobs of that link.
fn link_while(happens: impl Fn(&Process) -> Result<()>, options: &[&str]) -> Result<(String, Checkout)> {
    let process = Process::start(&["--hold"])?;
    let checkout = Checkout::new()?;
    let words = [&["-j1", "-vv", "--remote", &process.url, "--remote-retry-time=1s"], options].concat();
    let mut command = checkout.link(&words)?;
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stderr.take().context("it was asked for")?).lines();
    let mut said = String::new();
    let mut next = |said: &mut String| -> Result<bool> {
        let Some(line) = lines.next() else { return Ok(false) };
        said.push_str(&line?);
        said.push('\n');
        Ok(true)
    };
    // The first job has started.
    while !said.lines().any(|line| line.starts_with("+ ")) && next(&mut said)? {}
    let begun = Instant::now();
    happens(&process)?;
    while next(&mut said)? {}
    let ended = child.wait()?;
    ensure!(begun.elapsed() < FOR_EVER, "{:?}: {said}", begun.elapsed());
    ensure!(ended.success(), "{ended}: {said}");
    checkout.check().with_context(|| said.clone())?;
    Ok((said, checkout))
}

#[test]
fn a_server_that_is_stopped_or_killed_is_lost_at_once() -> Result<()> {
    for signal in [Signal::STOP, Signal::KILL] {
        let (said, _) = link_while(|process| process.signal(signal), &[])?;
        let lost = said.find("distlto: warning: lost the engine at grpc://").context(said.clone())?;
        ensure!(warnings(&said).len() == 1, "{said}");
        // Jobs end after that, and not before it is said.
        ensure!(said[lost..].contains(&format!("[{MODULES}/{MODULES}] ")), "{signal:?}: {said}");
    }
    Ok(())
}

#[test]
fn a_server_that_did_not_answer_is_left_alone() -> Result<()> {
    let server = Server::start(Options::default(), Faults { freeze: true, ..Faults::default() })?;
    let checkout = Checkout::new()?;
    let soon = ["--remote-retry-time=1s"];
    let said = checkout.linked(&server, &soon)?;
    ensure!(warnings(&said).len() == 1 && said.contains("no engine is used"), "{said}");
    let asked = server.counts().connections;
    ensure!(asked > 0);
    // With the same ledger.
    checkout.clear()?;
    let said = checkout.linked(&server, &[])?;
    ensure!(warnings(&said).len() == 1 && said.contains(" did not answer "), "{said}");
    ensure!(said.contains("`distlto remote check` asks it at once"), "{said}");
    ensure!(server.counts().connections == asked, "it was asked");

    // Where this machine is not to do it, the server may be back.
    checkout.clear()?;
    let never = [&soon[..], &["--remote-fallback=never"]].concat();
    let (code, said) = refused(checkout.remote_link(&server.url(), &never)?, &checkout)?;
    ensure!(code == 7 && server.counts().connections > asked, "{code}: {said}");

    server.change(|faults| faults.freeze = false);
    let mut check = checkout.command(distlto_tests::distlto::binary()?)?;
    let clang = Toolchain { version: NEWEST }.tool("clang")?;
    check.args(["remote", "check", &server.url(), "--compiler"]).arg(clang);
    let ended = Running::start(check)?.end()?;
    ensure!(ended.output.status.success(), "{}", ended.told());
    let executed = server.counts().all_executed();
    let said = checkout.linked(&server, &[])?;
    ensure!(warnings(&said).is_empty() && server.counts().all_executed() > executed, "{said}");
    Ok(())
}

/// Time to retry that no test has: only a link that does not wait for its end is done before [`FOR_EVER`].
const LONG: &str = "--remote-retry-time=20m";

#[test]
fn this_machine_compiles_what_a_silent_server_was_asked_for() -> Result<()> {
    for kind in ["--remote-cache", "--remote"] {
        let server = Server::start(Options::default(), Faults::default())?;
        let begun = Instant::now();
        let link = || -> Result<String> {
            let checkout = Checkout::new()?;
            let command = checkout.link(&["-j1", "-v", LONG, kind, &server.url()])?;
            Running::start(command)?.right(&checkout)
        };
        link()?;
        // The first ones are the downloads, since whatever is compiled here may be uploaded.
        for method in ["BatchReadBlobs", "GetActionResult"] {
            let asked = server.counts();
            server.change(|faults| faults.stall = vec![method.to_owned()]);
            let said = link().with_context(|| format!("{kind} without {method}"))?;
            ensure!(begun.elapsed() < FOR_EVER, "{kind} {method}: {:?}: {said}", begun.elapsed());
            let counts = server.counts();
            ensure!(warnings(&said).is_empty() && counts.of(method) > asked.of(method), "{said}");
            ensure!(
                !said.contains("from the cache") && !said.contains("on the engine"),
                "{kind} {method}: {said}"
            );
        }
    }
    Ok(())
}

/// A link of a server that errs in this way, from its beginning on.
fn link_with(set: fn(&mut Faults), options: &[&str]) -> Result<(Ended, Checkout, Server)> {
    let mut faults = Faults::default();
    set(&mut faults);
    let server = Server::start(Options::default(), faults)?;
    let checkout = Checkout::new()?;
    let begun = Instant::now();
    let ended = Running::start(checkout.remote_link(&server.url(), options)?)?.end()?;
    ensure!(begun.elapsed() < FOR_EVER, "{:?}: {}", begun.elapsed(), ended.told());
    Ok((ended, checkout, server))
}

#[test]
fn sizes_that_nothing_has_are_not_believed() -> Result<()> {
    let outputs: fn(&mut Faults) = |faults| faults.false_outputs = u32::MAX;
    let stderr: fn(&mut Faults) = |faults| faults.false_stderr = u32::MAX;
    for set in [outputs, stderr] {
        let (ended, checkout, server) = link_with(set, &[])?;
        ensure!(ended.output.status.success(), "{}", ended.told());
        checkout.check().with_context(|| ended.told())?;
        ensure!(server.counts().all_executed() > 0, "{}", ended.told());

        let (ended, checkout, _) = link_with(set, &["--remote-fallback=never"])?;
        let why = "1099511627776 bytes is not downloaded";
        ensure!(ended.output.status.code() == Some(7) && ended.said().contains(why), "{}", ended.told());
        checkout.check_temporaries()?;
    }
    // What may be is downloaded, and is no object; or this machine was quicker.
    let set: fn(&mut Faults) = |faults| (faults.false_outputs, faults.false_size) = (u32::MAX, 32 << 20);
    let (ended, checkout, server) = link_with(set, &[])?;
    ensure!(ended.output.status.success() && server.counts().of("Read") > 0, "{}", ended.told());
    checkout.check().with_context(|| ended.told())
}

#[test]
fn what_trickles_is_lost_in_time() -> Result<()> {
    // A byte at a time, of a download or of everything.
    let downloads: fn(&mut Faults) = |faults| {
        (faults.batch_limit, faults.read_message) = (1, 1);
        faults.message_delay = Duration::from_millis(100);
    };
    let all: fn(&mut Faults) = |faults| faults.trickle = Duration::from_millis(50);
    for set in [downloads, all] {
        let (ended, checkout, _) = link_with(set, &["--remote-retry-time=1s"])?;
        ensure!(ended.output.status.success(), "{}", ended.told());
        checkout.check().with_context(|| ended.told())?;
    }
    Ok(())
}

#[test]
fn no_word_of_a_server_reaches_the_terminal_as_it_is() -> Result<()> {
    let escapes: fn(&mut Faults) =
        |faults| faults.stderr = "warning: \u{1b}]0;title\u{7}\u{1b}[2J\u{202e}done\r\n".to_owned();
    // The second one finds it in the action cache.
    let (ended, checkout, server) = link_with(escapes, &[])?;
    checkout.check().with_context(|| ended.told())?;
    checkout.clear()?;
    let again = checkout.linked(&server, &[])?;
    for said in [ended.said(), again] {
        ensure!(said.contains("warning: \\u{1b}]0;title\\u{7}\\u{1b}[2J\\u{202e}done\\r\n"), "{said:?}");
        ensure!(!said.contains(|c: char| c.is_control() && c != '\n'), "{said:?}");
    }
    Ok(())
}
