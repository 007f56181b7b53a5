//! A server that is not there, goes away, comes back, or is silent.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use distlto_reapi_server::{Faults, Options, Server};
use rustix::process::{Pid, Signal, kill_process};

use super::program::{Checkout, Running, refused, warnings};
use super::until;

/// A server with the link's actions in its queue, of which it begins none before it is told to.
fn queued(options: &[&str]) -> Result<(Server, Checkout, Running)> {
    asked("Execute", Faults { hold: true, ..Faults::default() }, options)
}

/// A server that has some calls of this method.
fn asked(method: &str, faults: Faults, options: &[&str]) -> Result<(Server, Checkout, Running)> {
    let server = Server::start(Options::default(), faults)?;
    let checkout = Checkout::new()?;
    let mut link = Running::start(checkout.remote_link(&server.url(), options)?)?;
    until(|| Ok(server.counts().of(method) > 4 || link.has_ended()?))?;
    Ok((server, checkout, link))
}

#[test]
fn a_server_that_comes_back_goes_on() -> Result<()> {
    for with_contents in [true, false] {
        let (mut server, checkout, link) = queued(&[])?;
        if with_contents {
            server.resume()?
        } else {
            server.resume_empty()?
        }
        server.change(|faults| faults.hold = false);
        let said = link.right(&checkout)?;
        ensure!(warnings(&said).is_empty(), "{said}");
        ensure!(server.counts().all_executed() > 0, "{said}");
    }
    Ok(())
}

/// A network that is cut for five seconds is what people have, so that time is what this waits for.
#[test]
fn a_network_that_is_cut_for_a_while_is_waited_for() -> Result<()> {
    let (server, checkout, link) = queued(&[])?;
    server.change(|faults| faults.freeze = true);
    std::thread::sleep(Duration::from_secs(5));
    server.change(|faults| {
        faults.freeze = false;
        faults.hold = false;
    });
    let said = link.right(&checkout)?;
    ensure!(warnings(&said).is_empty(), "{said}");
    Ok(())
}

/// A server may come back, and this machine does meanwhile what it has not done.
#[test]
fn no_server_is_waited_for_while_there_is_work() -> Result<()> {
    for (method, is_stopped) in
        [("Execute", true), ("Execute", false), ("GetActionResult", true), ("GetActionResult", false)]
    {
        let faults = Faults { stall: vec![method.to_owned()], ..Faults::default() };
        // A link that waits for its end takes longer than any other.
        let options = ["--remote-retry-time=20m", "--remote-upload-time=1s"];
        let (mut server, checkout, link) = asked(method, faults, &options)?;
        match is_stopped {
            true => server.stop(),
            false => server.change(|faults| faults.freeze = true),
        }
        let begun = Instant::now();
        let said = link.right(&checkout)?;
        ensure!(begun.elapsed() < Duration::from_secs(400), "{method}: {:?}: {said}", begun.elapsed());
        ensure!(!said.contains("lost the engine") && server.counts().all_executed() == 0, "{method}: {said}");
    }
    Ok(())
}

#[test]
fn a_server_that_is_gone_for_good_is_told_once() -> Result<()> {
    // In any longer time this machine could do all that is late there, and the server would not be missed.
    let (mut server, checkout, link) = queued(&["--remote-retry-time=0s"])?;
    server.stop();
    let said = link.right(&checkout)?;
    ensure!(
        warnings(&said).len() == 1
            && said.contains("lost the engine at grpc://")
            && said.contains(", continuing here: "),
        "{said}"
    );

    let (mut server, checkout, link) = queued(&["--remote-retry-time=0s", "--remote-fallback=never"])?;
    server.stop();
    let ended = link.end()?;
    ensure!(ended.output.status.code() == Some(7), "{}", ended.told());
    let errors = ended.said().lines().filter(|line| line.starts_with("error: ")).count();
    ensure!(errors == 1, "{errors} errors: {}", ended.told());
    checkout.check_temporaries()
}

#[test]
fn a_server_that_never_was_is_told_soon() -> Result<()> {
    let mut server = Server::start(Options::default(), Faults::default())?;
    let url = server.url();
    server.stop();
    let checkout = Checkout::new()?;
    let said = Running::start(checkout.remote_link(&url, &[])?)?.right(&checkout)?;
    ensure!(warnings(&said).len() == 1 && said.contains("this machine does all of it"), "{said}");
    let checkout = Checkout::new()?;
    let (code, said) = refused(checkout.remote_link(&url, &["--remote-fallback=never"])?, &checkout)?;
    ensure!(
        code == 7 && said.contains("GetCapabilities") && !said.contains("does not answer"),
        "exit code {code}: {said}"
    );
    Ok(())
}

/// Whatever a link waits for of a server, a signal ends it; what the server does is not waited for.
#[test]
fn a_signal_ends_a_link_that_waits() -> Result<()> {
    for (freeze, never) in [(false, false), (true, true)] {
        let fallback = if never { "--remote-fallback=never" } else { "--remote-fallback=local" };
        let (server, checkout, mut link) = queued(&[fallback])?;
        server.change(|faults| faults.freeze = freeze);
        end_by_signal(&mut link)?;
        let ended = link.end()?;
        ensure!(ended.output.status.code() == Some(130), "{}", ended.told());
        ensure!(!checkout.path.join("program").exists());
        checkout.check_temporaries()?;
    }
    // One that does not even answer the first call.
    let server = Server::start(Options::default(), Faults { freeze: true, ..Faults::default() })?;
    let checkout = Checkout::new()?;
    let mut link = Running::start(checkout.remote_link(&server.url(), &[])?)?;
    until(|| Ok(server.counts().connections > 0 || link.has_ended()?))?;
    end_by_signal(&mut link)?;
    let ended = link.end()?;
    ensure!(ended.output.status.code() == Some(130), "{}", ended.told());
    Ok(())
}

fn end_by_signal(link: &mut Running) -> Result<()> {
    let pid = i32::try_from(link.id()).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process has a number"), Signal::INT)?;
    let begun = Instant::now();
    until(|| link.has_ended())?;
    // Far above what it takes, and far below what any call waits for.
    ensure!(begun.elapsed() < Duration::from_secs(15), "it took {:?} to end", begun.elapsed());
    Ok(())
}
