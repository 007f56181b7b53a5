//! `campaign remote`: random programs, linked with a server that errs at random, in the beginning and while the link goes on.
//!
//! The oracle is the same link on this machine: the right program, or an error and no program. What errs and when follows from
//! the seed, as far as threads let it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use distlto_reapi_server::{Options, Server, Worker};

use super::generate;
use super::line;
use super::links::{Request, each};
use super::model::Program;
use super::outcome::save_commands;
use super::random::Random;
use super::server_faults::{NOTHING, Names, disturb, faults};
use super::ways::{SERVED, Way};
use super::workspace::Workspace;
use crate::run::{capture, shown};
use crate::store;
use crate::toolchain::Toolchain;

const SERVED_THERE: Way = Way { name: "served, remote", dir: "by-distlto", ..SERVED };
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
    /// Links of these that came whole from a server.
    pub whole: usize,
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
    /// How links ended, by what erred while they ran.
    pub by_fault: BTreeMap<&'static str, Endings>,
}

/// How links ended while something erred.
#[derive(Debug, Default)]
pub struct Endings {
    /// Those that were right, ended with a clear error, and are wrong.
    counts: [usize; 3],
    /// The time of the one that took longest.
    longest: Duration,
}

/// How a link with a server ended, as a place in [`Endings::counts`].
#[derive(Clone, Copy)]
enum Ending {
    Right,
    Error,
    Wrong,
}

impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { links, refused, right, whole, errors, executed, cached, calls, uploaded, wrong, by_fault } =
            self;
        writeln!(
            formatter,
            "{:44} {:>6} {:>6} {:>6} {:>8}",
            "what erred while the link ran", "right", "error", "wrong", "longest"
        )?;
        for (name, Endings { counts: [right, error, wrong], longest }) in by_fault {
            let longest = longest.as_secs_f64();
            writeln!(formatter, "{name:44} {right:6} {error:6} {wrong:6} {longest:6.1} s")?;
        }
        writeln!(formatter, "{links} links, of which this machine alone refuses {refused}")?;
        writeln!(
            formatter,
            "right programs {right}, {whole} of them whole from a server, clear errors {errors}, wrong {}",
            wrong.len()
        )?;
        write!(
            formatter,
            "{executed} actions executed, {cached} results kept, {calls} calls, {uploaded} bytes uploaded"
        )
    }
}

impl Found {
    fn add(&mut self, one: Self) {
        let Self { links, refused, right, whole, errors, executed, cached, calls, uploaded, wrong, by_fault } =
            one;
        wrong.iter().for_each(|message| println!("{message}"));
        self.links += links;
        self.refused += refused;
        self.right += right;
        self.whole += whole;
        self.errors += errors;
        self.executed += executed;
        self.cached += cached;
        self.calls += calls;
        self.uploaded += uploaded;
        self.wrong.extend(wrong);
        for (name, endings) in by_fault {
            let known = self.by_fault.entry(name).or_default();
            known.counts.iter_mut().zip(endings.counts).for_each(|(known, count)| *known += count);
            known.longest = known.longest.max(endings.longest);
        }
    }

    /// A link ended while this erred.
    fn ended(&mut self, ending: Ending, took: Duration, mut names: Names) {
        match ending {
            Ending::Right => self.right += 1,
            Ending::Error => self.errors += 1,
            Ending::Wrong => {}
        }
        if names.is_empty() {
            names.insert(NOTHING);
        }
        for name in names {
            let endings = self.by_fault.entry(name).or_default();
            endings.counts[ending as usize] += 1;
            endings.longest = endings.longest.max(took);
        }
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
    let mut objects: Vec<_> = crate::distlto::objects(&output)?.into_iter().map(|(_, bytes)| bytes).collect();
    objects.sort();
    Ok(Some((bytes, objects)))
}

fn link(request: &Request, toolchain: Toolchain, seed: u64) -> Result<Found> {
    let program = generate::program(seed);
    let mut workspace = Workspace::create(request.directory.join(format!("remote-{seed}")), toolchain)?;
    workspace.build(&program)?;
    let mut random = Random::new(seed ^ 0x7265_6d6f_7465);
    let way = SERVED_THERE;
    let here = capture(&mut way.command(&program, &workspace, &[])?)?;
    let expected = if here.status.success() { made(&program, &workspace, way)? } else { None };
    let mut found = Found { refused: usize::from(expected.is_none()), ..Found::default() };
    let mut names = Names::new();
    let mut server = Server::start(workers(&mut random), faults(&mut random, &mut names))?;
    // A second link finds what the first one left at the server.
    for round in 0..2 {
        let _ = fs::remove_dir_all(workspace.path.join(way.dir));
        let _ = fs::remove_dir_all(store::of(&workspace.path)?);
        let words = words(&mut random, &server.url());
        let never = words.iter().any(|word| word == "--remote-fallback=never");
        let mut command =
            way.command(&program, &workspace, &words.iter().map(String::as_str).collect::<Vec<_>>())?;
        // Of its own: other links have servers at the same port.
        let ledger = workspace.path.join("ledger");
        if random.chance(50) {
            // What did not answer is asked again.
            let _ = fs::remove_dir_all(&ledger);
        }
        command.env("DISTLTO_LEDGER", ledger);
        workspace.commands.push(shown(&command));
        let begun = Instant::now();
        let mut child = start(&mut command)?;
        let stuck = follow(&mut random, &mut server, &mut child, &mut names)?;
        let ended = child.wait_with_output()?;
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        found.links += 1;
        let is_whole = said.contains(": a cache has the whole link");
        found.whole += usize::from(is_whole);
        let output = workspace.path.join(line::output(&program, way.dir));
        let is_right = |expected: &(Vec<u8>, Vec<Vec<u8>>)| match is_whole {
            // It leaves no record of its objects.
            true => Ok(fs::read(&output)? == expected.0),
            false => Ok::<_, anyhow::Error>(made(&program, &workspace, way)?.as_ref() == Some(expected)),
        };
        let verdict = match (ended.status.code(), &expected) {
            _ if stuck => Err("it never ends".to_owned()),
            _ if said.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t')) => {
                Err("it says what a terminal would obey".to_owned())
            }
            (Some(0), Some(expected)) if is_right(expected)? => Ok(Ending::Right),
            (Some(0), _) => Err("it succeeds and makes another program".to_owned()),
            (Some(_), None) => Ok(Ending::Right),
            (Some(7), Some(_)) if never && said.contains("error: ") => Ok(Ending::Error),
            (code, Some(_)) => Err(format!("it ends with {code:?}")),
            (None, None) => Err("a signal ends it".to_owned()),
        };
        let ending = verdict.unwrap_or_else(|what| {
            found.wrong.push(format!(
                "seed {seed}, round {round}: {what}\n  {}\n{said}  again: cargo xtask campaign remote --seed {seed} --count 1 --keep DIR\n",
                shown(&command)
            ));
            Ending::Wrong
        });
        found.ended(ending, begun.elapsed(), std::mem::take(&mut names));
        // It may have been killed.
        server.revive()?;
        server.change(|current| *current = faults(&mut random, &mut names));
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

/// Disturbs the server at random moments until the link ends. Whether it had to be ended.
fn follow(random: &mut Random, server: &mut Server, child: &mut Child, names: &mut Names) -> Result<bool> {
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
            disturb(random, server, &mut || Ok(child.try_wait()?.is_some()), names)?;
            due = Instant::now() + Duration::from_millis(random.between(50, 900) as u64);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(false)
}

/// Some workers are so slow that much happens before a link ends.
fn workers(random: &mut Random) -> Options {
    let mut workers = [Worker::new("one", random.between(1, 3)), Worker::new("two", random.between(1, 2))];
    for worker in &mut workers {
        worker.delay = Duration::from_millis(random.weighed(0, &[(30, 200), (20, 1000)]));
    }
    Options { workers: workers.to_vec(), ..Options::default() }
}

fn words(random: &mut Random, url: &str) -> Vec<String> {
    let place = if random.chance(40) { "--remote-cache" } else { "--remote" };
    let jobs = random.weighed(1, &[(20, 3)]);
    let mut words = vec!["-v".to_owned(), format!("-j{jobs}"), place.to_owned(), url.to_owned()];
    words.push(format!("--remote-retry-time={}s", random.between(1, 5)));
    let rare = [
        (70, "--share-links".to_owned()),
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

/// That a campaign found nothing wrong, and met something.
pub fn check(found: &Found) -> Result<()> {
    ensure!(found.wrong.is_empty(), "{}", found.wrong.join("\n"));
    ensure!(found.executed > 0 && found.right > 0, "{found}");
    Ok(())
}
