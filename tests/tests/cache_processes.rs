//! One cache and many processes: killed at any moment, at work at the same time, on a disk that is full. Afterwards what
//! the cache gives is right, it verifies clean, and no temporaries are left.
//!
//! The processes are `distlto-test-cache`, which knows what each result has to be.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use distlto_tests::run::{capture, succeed, told};
use distlto_tests::{distlto, small_disk};

const USER: &str = env!("CARGO_BIN_EXE_distlto-test-cache");

/// Bytes at which results are dropped: less than a third of all results, so that pruning is always under way.
const SIZE: &str = "2M";
const KINDS: u64 = 300;

struct Case {
    scratch: tempfile::TempDir,
}

impl Case {
    fn new() -> Result<Self> {
        Ok(Self { scratch: tempfile::tempdir()? })
    }

    fn cache(&self) -> PathBuf {
        self.scratch.path().join("cache")
    }

    fn user(&self, name: &str, size: &str, lookups: u64) -> Command {
        let mut command = Command::new(USER);
        command.arg(self.cache()).arg(size).arg(self.scratch.path().join(name));
        command.args([lookups.to_string(), KINDS.to_string()]);
        command
    }

    fn verify(&self) -> Result<()> {
        succeed(Command::new(distlto::binary()?).args(["cache", "verify", "--cache"]).arg(self.cache()))?;
        Ok(())
    }

    fn temporaries(&self) -> Result<usize> {
        Ok(fs::read_dir(self.cache().join("results-v1/tmp"))?.count())
    }

    /// Runs a user to its end.
    fn run(&self, name: &str, lookups: u64) -> Result<u64> {
        let mut command = self.user(name, SIZE, lookups);
        let output = capture(&mut command)?;
        self.expect(&command, &output)
    }

    /// Expects a user that worked and had nothing to complain of; gives its hits.
    fn expect(&self, command: &Command, output: &Output) -> Result<u64> {
        ensure!(output.status.success() && output.stderr.is_empty(), "{}", told(command, output));
        hits(&String::from_utf8_lossy(&output.stdout))
    }
}

fn hits(said: &str) -> Result<u64> {
    let hits = said.split_whitespace().nth(1).context("it prints its hits")?;
    Ok(hits.parse()?)
}

fn start(command: &mut Command) -> Result<Child> {
    Ok(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
}

#[test]
fn killed_at_fifty_moments() -> Result<()> {
    let case = Case::new()?;
    let random = RandomState::new();
    let mut at_work = 0;
    for round in 0..50u64 {
        let mut command = case.user("killed", SIZE, 1_000_000);
        let mut child = start(&mut command)?;
        std::thread::sleep(Duration::from_micros(random.hash_one(round) % 200_000));
        child.kill()?;
        let output = child.wait_with_output()?;
        ensure!(output.status.code().is_none(), "it ended by itself: {}", told(&command, &output));
        at_work += usize::from(case.temporaries().is_ok_and(|left| left > 0));
        if round % 10 == 9 {
            case.verify()?;
        }
        case.run("next", 50)?;
        ensure!(case.temporaries()? == 0, "{} temporaries are left", case.temporaries()?);
    }
    ensure!(at_work >= 10, "only {at_work} were killed while they had something to write");
    ensure!(case.run("last", 2000)? > 100, "nothing was kept");
    case.verify()
}

fn at_once(users: usize, lookups: u64) -> Result<()> {
    let case = Case::new()?;
    let mut commands: Vec<_> = (0..users).map(|user| case.user(&user.to_string(), SIZE, lookups)).collect();
    let children: Vec<_> = commands.iter_mut().map(start).collect::<Result<_>>()?;
    // While they are at it.
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(50));
        case.verify()?;
    }
    let mut sum = 0;
    for (command, child) in commands.iter().zip(children) {
        sum += case.expect(command, &child.wait_with_output()?)?;
    }
    ensure!(sum > lookups / 10, "{sum} hits");
    ensure!(case.temporaries()? == 0, "{} temporaries are left", case.temporaries()?);
    case.verify()?;
    let held = used(&case.cache())?;
    ensure!(held <= 2 << 20, "{held} bytes are kept");
    Ok(())
}

#[test]
fn two_at_once() -> Result<()> {
    at_once(2, 3000)
}

#[test]
fn eight_at_once() -> Result<()> {
    at_once(8, 1000)
}

/// The space that a cache takes, as it counts it.
fn used(cache: &Path) -> Result<u64> {
    let mut command = Command::new(distlto::binary()?);
    let said = succeed(command.args(["cache", "stats", "--json", "--cache"]).arg(cache))?;
    let told: serde_json::Value = serde_json::from_slice(&said.stdout)?;
    told["cache"]["disk"].as_u64().context("a number")
}

#[test]
fn a_full_disk_costs_time_only() -> Result<()> {
    let case = Case::new()?;
    let script = format!(
        "
        {USER} \"$SMALL/cache\" 1G out 2000 {KINDS} 2> first
        # Nothing but the cache can make room.
        df --output=avail \"$SMALL\" | tail -n 1
        {distlto} cache verify --cache \"$SMALL/cache\" > verified
        ls -A \"$SMALL/cache/results-v1/tmp\" > temporaries
        {USER} \"$SMALL/cache\" 1G out 500 {KINDS} 2> second
        {distlto} cache verify --cache \"$SMALL/cache\" >> verified
        # Something else takes all there is.
        cat /dev/zero > \"$SMALL/other\" 2> /dev/null || true
        {USER} \"$SMALL/cache\" 1G out 200 {KINDS} 2> third
        {distlto} cache verify --cache \"$SMALL/cache\" >> verified
        rm \"$SMALL/other\"
        {USER} \"$SMALL/cache\" 1G out 500 {KINDS}
        {distlto} cache verify --cache \"$SMALL/cache\" >> verified
        ls -A \"$SMALL/cache/results-v1/tmp\" >> temporaries
        ",
        distlto = distlto::binary()?.display(),
    );
    let said = small_disk::run(case.scratch.path(), 1024, &script)?;
    let read = |name: &str| fs::read_to_string(case.scratch.path().join(name));
    let lines: Vec<&str> = said.lines().collect();
    ensure!(lines.len() == 5, "{said}");
    for line in [lines[0], lines[2], lines[4]] {
        ensure!(hits(line)? > 10, "{said}");
    }
    let complaints = [read("first")?, read("second")?, read("third")?];
    ensure!(complaints[0].contains("No space left on device"), "the disk was never full: {complaints:?}");
    ensure!(complaints.iter().all(|said| said.lines().count() <= 2), "{complaints:?}");
    ensure!(read("temporaries")?.is_empty(), "{}", read("temporaries")?);
    ensure!(read("verified")?.matches(" 0 damaged").count() == 4, "{}", read("verified")?);
    Ok(())
}
