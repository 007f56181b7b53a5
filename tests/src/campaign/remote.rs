//! `campaign remote`: random programs, linked with a server that errs at random, in the beginning and while the link goes on.
//!
//! The oracle is the same link on this machine: the right program, or an error and no program. What errs and when follows from
//! the seed, as far as threads let it.

use std::fmt;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use distlto_reapi_server::{Break, CommittedSize, Cut, Faults, Missing, Options, Server, Worker};

use super::generate;
use super::line;
use super::links::{Request, each};
use super::model::Program;
use super::outcome::save_commands;
use super::random::Random;
use super::ways::{ONE_LLD, TWO_STEP, Way};
use super::workspace::Workspace;
use crate::program::objects;
use crate::run::{capture, shown};
use crate::toolchain::Toolchain;

const ONE_LLD_THERE: Way = Way { name: "one lld, remote", dir: "by-distlto", ..ONE_LLD };
const TWO_STEP_THERE: Way = Way { name: "two steps, remote", dir: "by-steps", ..TWO_STEP };
/// Longer than any link here takes, whatever errs.
const STUCK: Duration = Duration::from_secs(240);

/// What came of all links.
#[derive(Debug, Default)]
pub struct Found {
    /// Links.
    pub links: usize,
    /// Links that this machine alone refuses, as they are to be refused with a server.
    pub refused: usize,
    /// Links that made the right program.
    pub right: usize,
    /// Links that failed for the server's sake, and said so.
    pub errors: usize,
    /// Actions that the servers ran,
    pub executed: u64,
    /// and results of their action caches.
    pub cached: u64,
    /// Calls, uploaded bytes.
    pub calls: u64,
    /// Bytes of blobs that were uploaded.
    pub uploaded: u64,
    /// What is wrong, and in which link.
    pub wrong: Vec<String>,
}

impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { links, refused, right, errors, executed, cached, calls, uploaded, wrong } = self;
        writeln!(formatter, "{links} links, of which this machine alone refuses {refused}")?;
        writeln!(formatter, "right programs {right}, clear errors {errors}, wrong {}", wrong.len())?;
        write!(
            formatter,
            "{executed} actions executed, {cached} results kept, {calls} calls, {uploaded} bytes uploaded"
        )
    }
}

impl Found {
    fn add(&mut self, one: Self) {
        let Self { links, refused, right, errors, executed, cached, calls, uploaded, wrong } = one;
        wrong.iter().for_each(|message| println!("{message}"));
        self.links += links;
        self.refused += refused;
        self.right += right;
        self.errors += errors;
        self.executed += executed;
        self.cached += cached;
        self.calls += calls;
        self.uploaded += uploaded;
        self.wrong.extend(wrong);
    }
}

/// Runs the campaign; tells what is wrong as it is found.
pub fn remote(request: &Request, toolchain: Toolchain) -> Result<Found> {
    each(request, |seed| link(request, toolchain, seed), Found::add)
}

/// What a link made: the program and its objects, or nothing.
type Made = Option<(Vec<u8>, Vec<Vec<u8>>)>;

fn made(program: &Program, workspace: &Workspace, way: Way) -> Result<Made> {
    let output = workspace.path.join(line::output(program, way.dir));
    let Ok(bytes) = fs::read(&output) else { return Ok(None) };
    let mut objects: Vec<_> =
        objects(&crate::distlto::objects_dir(&output))?.into_iter().map(|(_, bytes)| bytes).collect();
    objects.sort();
    Ok(Some((bytes, objects)))
}

fn link(request: &Request, toolchain: Toolchain, seed: u64) -> Result<Found> {
    let program = generate::program(seed);
    let mut workspace = Workspace::create(request.directory.join(format!("remote-{seed}")), toolchain)?;
    workspace.build(&program)?;
    let mut random = Random::new(seed ^ 0x7265_6d6f_7465);
    let way = if random.chance(30) { TWO_STEP_THERE } else { ONE_LLD_THERE };
    let here = capture(&mut way.command(&program, &workspace, &[])?)?;
    let expected = if here.status.success() { made(&program, &workspace, way)? } else { None };
    let mut found = Found { refused: usize::from(expected.is_none()), ..Found::default() };
    let mut server = Server::start(workers(&mut random), faults(&mut random))?;
    // A second link finds what the first one left at the server.
    for round in 0..2 {
        let _ = fs::remove_dir_all(workspace.path.join(way.dir));
        let words = words(&mut random, &server.url());
        let never = words.iter().any(|word| word == "--remote-fallback=never");
        let mut command =
            way.command(&program, &workspace, &words.iter().map(String::as_str).collect::<Vec<_>>())?;
        workspace.commands.push(shown(&command));
        let mut child = start(&mut command)?;
        let stuck = disturb(&mut random, &mut server, &mut child)?;
        let ended = child.wait_with_output()?;
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        found.links += 1;
        let verdict = match (ended.status.code(), &expected) {
            _ if stuck => Err("it never ends".to_owned()),
            (Some(0), Some(_)) if made(&program, &workspace, way)? == expected => Ok(&mut found.right),
            (Some(0), _) => Err("it succeeds and makes another program".to_owned()),
            (Some(_), None) => Ok(&mut found.right),
            (Some(7), Some(_)) if never && said.contains("error: ") => Ok(&mut found.errors),
            (code, Some(_)) => Err(format!("it ends with {code:?}")),
            (None, None) => Err("a signal ends it".to_owned()),
        };
        match verdict {
            Ok(count) => *count += 1,
            Err(what) => found.wrong.push(format!(
                "seed {seed}, round {round}: {what}\n  {}\n{said}  again: cargo xtask campaign remote --seed {seed} --count 1 --keep DIR\n",
                shown(&command)
            )),
        }
        server.change(|current| *current = faults(&mut random));
    }
    let counts = server.counts();
    found.executed = counts.all_executed();
    found.cached = counts.cache_hits;
    found.calls = counts.calls.values().sum();
    found.uploaded = counts.blob_bytes_uploaded;
    save_commands(&workspace)?;
    if !request.keep {
        fs::remove_dir_all(&workspace.path)?;
    }
    Ok(found)
}

fn start(command: &mut Command) -> Result<Child> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().context("cannot start distlto")
}

/// Changes the server at random moments until the link ends. Whether it had to be ended.
fn disturb(random: &mut Random, server: &mut Server, child: &mut Child) -> Result<bool> {
    let begun = Instant::now();
    let mut due = begun + Duration::from_millis(random.between(50, 900) as u64);
    let mut left = random.below(5);
    while child.try_wait()?.is_none() {
        if begun.elapsed() > STUCK {
            child.kill()?;
            return Ok(true);
        }
        if left > 0 && Instant::now() > due {
            left -= 1;
            due = Instant::now() + Duration::from_millis(random.between(50, 900) as u64);
            match random.below(6) {
                0 => server.resume()?,
                1 => server.resume_empty()?,
                2 => server.evict_all()?,
                3 => server.lose_worker("two"),
                4 => {
                    server.change(|faults| faults.freeze = true);
                    std::thread::sleep(Duration::from_millis(random.between(50, 1500) as u64));
                    server.change(|faults| faults.freeze = false);
                }
                _ => server.change(|current| *current = faults(random)),
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(false)
}

fn workers(random: &mut Random) -> Options {
    let workers = [Worker::new("one", random.between(1, 3)), Worker::new("two", random.between(1, 2))];
    Options { workers: workers.to_vec(), ..Options::default() }
}

fn words(random: &mut Random, url: &str) -> Vec<String> {
    let place = if random.chance(20) { "--remote-cache" } else { "--remote" };
    let mut words = vec![format!("-j{}", random.between(1, 3)), place.to_owned(), url.to_owned()];
    words.push(format!("--remote-retry-time={}s", random.between(1, 5)));
    let rare = [
        (35, "--remote-fallback=never".to_owned()),
        (20, "--remote-compression=on".to_owned()),
        (20, "--remote-cache-mode=read-only".to_owned()),
        (20, format!("--remote-jobs={}", random.between(1, 9))),
        (20, "--remote-queue-time=2s".to_owned()),
        (10, "--remote-run-time=3s".to_owned()),
    ];
    words.extend(rare.into_iter().filter(|(percent, _)| random.chance(*percent)).map(|(_, word)| word));
    words
}

/// Most of a good server, and some faults.
fn faults(random: &mut Random) -> Faults {
    let mut faults = Faults::default();
    let codes = [
        "UNAVAILABLE",
        "RESOURCE_EXHAUSTED",
        "INTERNAL",
        "UNKNOWN",
        "ABORTED",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "FAILED_PRECONDITION",
        "PERMISSION_DENIED",
    ];
    let methods = [
        "*",
        "*",
        "FindMissingBlobs",
        "BatchUpdateBlobs",
        "BatchReadBlobs",
        "Write",
        "Read",
        "GetActionResult",
        "Execute",
        "WaitExecution",
        "UpdateActionResult",
    ];
    for _ in 0..random.below(4) {
        let few = random.between(1, 6) as u32;
        let cut = |random: &mut Random, after: usize| {
            let how = random.weighed(Break::Status, &[(30, Break::End), (30, Break::Connection)]);
            Some(Cut { streams: few, after: random.below(after) as u64, how })
        };
        match random.below(18) {
            0 => faults.goaway_after = Some(random.between(2, 12) as u32),
            1 => faults.refuse_streams = few,
            2 | 3 => {
                let code = random.pick(&codes).copied().unwrap_or("INTERNAL");
                let method = random.pick(&methods).copied().unwrap_or("*");
                let text = format!("{code}:{method}:{few}:{}", random.below(20));
                faults.refuse.extend(text.parse());
            }
            4 => faults.latency = Duration::from_millis(random.below(40) as u64),
            5 => faults.message_delay = Duration::from_millis(random.below(80) as u64),
            6 => faults.batch_limit = [0, 1500, 65536][random.below(3)],
            7 => faults.no_zstd = true,
            8 => {
                faults.committed_size =
                    [CommittedSize::Full, CommittedSize::Stream, CommittedSize::Unknown][random.below(3)]
            }
            9 => faults.evict_uploads = few,
            10 => faults.deny_missing = few,
            11 => {
                faults.missing =
                    [Missing::Precondition, Missing::Internal, Missing::NotFound][random.below(3)];
                faults.missing_as_error = random.chance(50);
                faults.evict_uploads = few;
            }
            12 => faults.wrong_bytes = few,
            13 => faults.cut_reads = cut(random, 3000),
            14 => faults.cut_writes = cut(random, 3000),
            15 => {
                faults.cut_executions = cut(random, 3);
                faults.wait_not_found = random.below(3) as u32;
            }
            16 => faults.hollow_results = few,
            _ => {
                faults.poison_results = few;
                faults.poison = ["", "no object", "\u{7f}ELF"][random.below(3)].to_owned();
            }
        }
    }
    faults.merge = random.chance(30);
    faults.read_only_cache = random.chance(10);
    faults
}

/// That a campaign found nothing wrong, and met something.
pub fn check(found: &Found) -> Result<()> {
    ensure!(found.wrong.is_empty(), "{}", found.wrong.join("\n"));
    ensure!(found.executed > 0 && found.right > 0, "{found}");
    Ok(())
}
