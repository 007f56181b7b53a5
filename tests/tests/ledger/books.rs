//! The books themselves: who holds what, and what becomes of that when a process dies or somebody tampers.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use distlto_executor::ledger::holding::Holding;
use distlto_executor::ledger::{Ledger, LedgerError};
use distlto_tests::run::{capture, succeed, told};
use tempfile::TempDir;

const USER: &str = env!("CARGO_BIN_EXE_distlto-test-ledger");

fn place() -> Result<(TempDir, PathBuf)> {
    let scratch = tempfile::tempdir()?;
    let place = scratch.path().join("ledger");
    Ok((scratch, place))
}

fn user(place: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(USER);
    command.arg(place).args(words);
    command
}

/// A process that is killed if a test fails: one that was stopped would stay for ever.
struct Holder(Child);

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A process that holds memory until it is killed or what is given beside it is dropped.
fn holder(place: &Path, memory: u64) -> Result<(Holder, ChildStdin)> {
    let mut command = user(place, &["hold", &memory.to_string()]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut said = String::new();
    BufReader::new(child.stdout.take().context("it is piped")?).read_line(&mut said)?;
    ensure!(said == "held\n", "it says {said:?}");
    let input = child.stdin.take().context("it is piped")?;
    Ok((Holder(child), input))
}

fn files(place: &Path) -> Result<usize> {
    Ok(fs::read_dir(place)?.count())
}

/// Waits until the ledger is as it is said to be. Whoever waits for ever is ended by the harness of tests.
fn wait_until(ledger: &Ledger, what: &str, is_so: impl Fn(&[Holding]) -> bool) -> Result<()> {
    for _ in 0..12_000 {
        if is_so(&ledger.holdings()?) {
            return Ok(());
        }
        sleep(Duration::from_millis(10));
    }
    bail!("{what}: {:?}", ledger.holdings()?)
}

#[test]
fn what_one_process_holds_another_waits_for_until_it_ends() -> Result<()> {
    for is_killed in [true, false] {
        let (_scratch, place) = place()?;
        let (mut first, input) = holder(&place, 80)?;
        let ledger = Ledger::open(place.clone())?;
        let held = ledger.holdings()?;
        ensure!(held.len() == 1 && (held[0].process, held[0].memory) == (first.0.id(), 80), "{held:?}");

        let mut command = user(&place, &["work", "3", "30", "100", "100"]);
        let second = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let number = second.id();
        wait_until(&ledger, "nobody waits", |all| {
            all.iter().any(|one| one.process == number && one.waits.is_some_and(|wish| wish.memory == 30))
        })?;
        // It had every chance, and holds nothing.
        let held = ledger.holdings()?;
        let own = held.iter().find(|one| one.process == number).context("it takes part")?;
        ensure!((own.slots, own.memory) == (0, 0), "{held:?}");
        if is_killed {
            first.0.kill()?;
        }
        drop(input);
        first.0.wait()?;
        let output = second.wait_with_output()?;
        ensure!(output.status.success(), "{}", told(&command, &output));
        ensure!(ledger.holdings()?.is_empty() && files(&place)? == 0, "something is left");
    }
    Ok(())
}

#[test]
fn fifty_at_once_hold_no_more_than_there_is_and_all_end() -> Result<()> {
    let (_scratch, place) = place()?;
    // Some need nearly all, one more than all.
    let memory = |at: usize| [10, 20, 35, 95][at % 4].to_string();
    let mut commands: Vec<_> =
        (0..49).map(|at| user(&place, &["work", "4", &memory(at), "100", "100"])).collect();
    commands.push(user(&place, &["work", "2", "150", "100", "100"]));
    let start = |command: &mut Command| command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let children: Vec<_> = commands.iter_mut().map(start).collect::<Result<_, _>>()?;
    for (command, child) in commands.iter().zip(children) {
        let output = child.wait_with_output()?;
        ensure!(output.status.success(), "{}", told(command, &output));
    }
    ensure!(files(&place)? == 0, "something is left");
    Ok(())
}

#[test]
fn who_was_stopped_or_waits_for_us_is_not_waited_for() -> Result<()> {
    let (_scratch, place) = place()?;
    let (stopped, _input) = holder(&place, 80)?;
    let process = rustix::process::Pid::from_child(&stopped.0);
    rustix::process::kill_process(process, rustix::process::Signal::STOP)?;
    succeed(&mut user(&place, &["work", "2", "30", "100", "200"]))?;
    drop(stopped);

    let mut seat = Ledger::open(place.clone())?.join()?;
    seat.turn()?.write(&Holding { slots: 1, memory: 80, ..Holding::default() })?;
    // A build that waits for its links: this process is above that one.
    let output = capture(&mut user(&place, &["work", "1", "30", "100", "200"]))?;
    ensure!(output.status.success(), "{output:?}");
    Ok(())
}

#[test]
fn damaged_and_foreign_files_hold_nothing_and_are_not_waited_for() -> Result<()> {
    let (scratch, place) = place()?;
    let ledger = Ledger::open(place.clone())?;
    let mut seat = ledger.join()?;
    seat.turn()?.write(&Holding { slots: 2, memory: 5, ..Holding::default() })?;
    let own = fs::read_dir(&place)?.next().context("its file")??.path();

    // Of dead runs: torn, empty, whole. Of nobody: pipe, directory, link, what has another name.
    fs::copy(&own, place.join("run-whole"))?;
    fs::write(place.join("run-empty"), "")?;
    fs::write(place.join("run-torn"), &fs::read(&own)?[..30])?;
    succeed(Command::new("mkfifo").arg(place.join("run-pipe")))?;
    fs::create_dir(place.join("run-directory"))?;
    let outside = scratch.path().join("outside");
    fs::copy(&own, &outside)?;
    symlink(&outside, place.join("run-link"))?;
    fs::write(place.join("other"), "")?;
    let held = ledger.holdings()?;
    ensure!(held.len() == 1 && (held[0].slots, held[0].memory) == (2, 5), "{held:?}");
    for dead in ["run-whole", "run-empty", "run-torn"] {
        ensure!(!place.join(dead).exists(), "{dead} is left");
    }
    ensure!(outside.exists() && place.join("other").exists(), "what is not the ledger's was removed");

    // A living run's file that says nothing holds nothing, and is mended by its run.
    fs::write(&own, "{\"ledger\":1,\"pro")?;
    ensure!(ledger.holdings()?.is_empty(), "{:?}", ledger.holdings()?);
    seat.turn()?.write(&Holding { slots: 1, memory: 7, ..Holding::default() })?;
    ensure!(ledger.holdings()?.iter().map(|one| one.memory).eq([7]), "{:?}", ledger.holdings()?);

    // Somebody tidies up: the run takes its place again.
    fs::remove_dir_all(&place)?;
    seat.turn()?.write(&Holding { slots: 1, memory: 9, ..Holding::default() })?;
    ensure!(ledger.holdings()?.iter().map(|one| one.memory).eq([9]), "{:?}", ledger.holdings()?);
    drop(seat);
    ensure!(files(&place)? == 0, "something is left");
    Ok(())
}

#[test]
fn places_that_cannot_be_a_ledger_are_refused() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let at = |name: &str| scratch.path().join(name);
    let refused = |path: &Path| -> Result<String> {
        match Ledger::open(path.to_owned()) {
            Err(error) => Ok(error.to_string()),
            Ok(_) => bail!("{} was taken", path.display()),
        }
    };
    fs::write(at("file"), "")?;
    succeed(Command::new("mkfifo").arg(at("pipe")))?;
    fs::create_dir(at("good"))?;
    symlink(at("good"), at("link"))?;
    for name in ["file", "pipe", "link"] {
        ensure!(refused(&at(name))?.ends_with("is no directory"), "{}", refused(&at(name))?);
    }
    ensure!(
        refused(&at("file/ledger"))?.contains("cannot create directory"),
        "{}",
        refused(&at("file/ledger"))?
    );
    fs::create_dir(at("open"))?;
    fs::set_permissions(at("open"), Permissions::from_mode(0o777))?;
    ensure!(refused(&at("open"))?.contains("(mode 777)"), "{}", refused(&at("open"))?);
    // Root can give a directory away; anybody else has one that is root's.
    let foreign = if chown(at("good"), Some(65_534), None).is_ok() { at("good") } else { PathBuf::from("/") };
    ensure!(matches!(Ledger::open(foreign), Err(LedgerError::Exposed(_))), "a foreign directory was taken");
    Ledger::open(at("below/several/that/are/missing"))?;
    Ok(())
}
