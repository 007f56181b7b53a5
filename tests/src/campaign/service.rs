//! `campaign service`: what users do to a service and its hook: several links under one command, in several directories, with
//! one job or a thousand; other preloaded libraries, and programs that insist on theirs; and an end in the middle.
//!
//! The oracle is one quiet link of the same program, which `links` compares with stock tools. A link that was ended has to leave
//! the earlier program or the right one, nothing beside it and no process, and the next link has to be right.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::links::{Request, each};
use super::model::Program;
use super::outcome::{run, save_commands};
use super::random::Random;
use super::ways::{By, IN_PROCESS, SERVED, Way};
use super::workspace::Workspace;
use super::{generate, line};
use crate::distlto;
use crate::run::{capture, shown, succeed};
use crate::store;
use crate::toolchain::{Toolchain, system_tool};

/// Rounds for each program.
const ROUNDS: usize = 4;
/// Where the links of a round go.
const PLACES: [&str; 5] = ["by-0", "by-1", "by-2", "by-3", "by-4"];
/// What lies in the place of the program before a round.
const EARLIER: &[u8] = b"the earlier program\n";
/// Longer than any round takes, and than a process stays that was told to end.
const STUCK: Duration = Duration::from_secs(240);
/// What a process may be told that is to end.
const SIGNALS: [Signal; 4] = [Signal::KILL, Signal::TERM, Signal::INT, Signal::HUP];

/// A program that its compiler's sanitizer refuses to run where another library was loaded first.
const SANITIZED: &str = "int main(void) { return 0; }\n";
/// A library of somebody else's, which stands between programs and the C library too.
const OTHER: &str = "#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
typedef int opener(const char *, int, mode_t);
static int pass(const char *name, const char *path, int flags, mode_t mode) {
  return ((opener *)dlsym(RTLD_NEXT, name))(path, flags, mode);
}
#define OPEN(name) \\
  int name(const char *path, int flags, ...) { \\
    va_list list; va_start(list, flags); mode_t mode = va_arg(list, mode_t); va_end(list); \\
    return pass(#name, path, flags, mode); \\
  }
OPEN(open)
OPEN(open64)
";

/// What came of all rounds.
#[derive(Debug, Default)]
pub struct Found {
    /// Programs.
    pub programs: usize,
    /// Programs that lld refuses, as they are to be refused.
    pub refused: usize,
    /// Links.
    pub links: usize,
    /// Rounds, by what was done: how many there were, and how many of them were ended before the link was done.
    pub rounds: BTreeMap<&'static str, [usize; 2]>,
    /// What is wrong, and where.
    pub wrong: Vec<String>,
}

impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { programs, refused, links, rounds, wrong } = self;
        writeln!(formatter, "{:36} {:>7} {:>22}", "what was done", "rounds", "ended with no program")?;
        for (name, [number, ended]) in rounds {
            writeln!(formatter, "{name:36} {number:7} {ended:22}")?;
        }
        write!(
            formatter,
            "{links} links of {programs} programs, {refused} more refused by lld; wrong {}",
            wrong.len()
        )
    }
}

/// Runs the campaign; tells what is wrong as it is found.
pub fn service(request: &Request, toolchain: Toolchain) -> Result<Found> {
    each(
        request,
        |seed| program(request, toolchain, seed),
        |all: &mut Found, one: Found| {
            one.wrong.iter().for_each(|message| println!("{message}"));
            all.programs += one.programs;
            all.refused += one.refused;
            all.links += one.links;
            all.wrong.extend(one.wrong);
            for (name, counts) in one.rounds {
                let sum = all.rounds.entry(name).or_default();
                sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            }
        },
    )
}

/// What is done in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// Several links under one command.
    Together,
    /// The command is ended.
    Ended(Signal),
    /// So is its whole group, as a terminal does.
    EndedAll(Signal),
    /// There is no hook.
    NoHook,
    /// Another preloaded library.
    Preloaded,
    /// `fakeroot` around all of it.
    FakerootAround,
    /// `fakeroot` within the command.
    FakerootWithin,
    /// The command runs a program that has to have its own library first.
    Sanitized,
}

impl What {
    fn draw(random: &mut Random) -> Self {
        let signal = random.pick(&SIGNALS).copied().unwrap_or(Signal::TERM);
        random.weighed(
            Self::Ended(signal),
            &[
                (25, Self::Together),
                (15, Self::EndedAll(signal)),
                (4, Self::NoHook),
                (7, Self::Preloaded),
                (6, Self::FakerootAround),
                (6, Self::FakerootWithin),
                (7, Self::Sanitized),
            ],
        )
    }

    fn name(self) -> &'static str {
        match self {
            Self::Together => "several links",
            Self::Ended(Signal::KILL) => "distlto gets SIGKILL",
            Self::Ended(Signal::TERM) => "distlto gets SIGTERM",
            Self::Ended(Signal::INT) => "distlto gets SIGINT",
            Self::Ended(_) => "distlto gets SIGHUP",
            Self::EndedAll(Signal::KILL) => "all processes get SIGKILL",
            Self::EndedAll(_) => "all processes get another signal",
            Self::NoHook => "no hook",
            Self::Preloaded => "another preloaded library",
            Self::FakerootAround => "within fakeroot",
            Self::FakerootWithin => "fakeroot within",
            Self::Sanitized => "a program with gcc's sanitizer",
        }
    }
}

/// A program in its directory and in a copy of that, and what its quiet links made.
struct Served {
    seed: u64,
    program: Program,
    here: Workspace,
    there: Workspace,
    right: Vec<u8>,
    in_process: Vec<u8>,
    /// How long the quiet link took.
    took: Duration,
    found: Found,
}

fn program(request: &Request, toolchain: Toolchain, seed: u64) -> Result<Found> {
    let program = generate::program_for(seed, toolchain);
    let mut random = Random::new(seed ^ 0x73_6572_7669_6365);
    let mut here = Workspace::create(request.directory.join(format!("service-{seed}")), toolchain)?;
    here.build(&program)?;
    let mut there = here.copy(here.path.with_extension("there"))?;
    let in_process = quiet(&program, &mut here, IN_PROCESS)?;
    let begun = Instant::now();
    let right = quiet(&program, &mut here, SERVED)?;
    let took = begun.elapsed();
    let (right, in_process) = match (right, in_process) {
        (Some(right), Some(in_process)) => (right, in_process),
        (None, None) => {
            remove(request, &[&here.path, &there.path])?;
            return Ok(Found { refused: 1, ..Found::default() });
        }
        _ => bail!("only one of lld and distlto links it"),
    };
    fs::write(here.path.join("other.c"), OTHER)?;
    fs::write(here.path.join("sanitized.c"), SANITIZED)?;
    let found = Found { programs: 1, ..Found::default() };
    there.commands.clear();
    let mut served = Served { seed, program, here, there, right, in_process, took, found };
    for number in 0..ROUNDS {
        let what = What::draw(&mut random);
        served.round(&mut random, number, what)?;
    }
    save_commands(&served.here)?;
    remove(request, &[&served.here.path, &served.there.path])?;
    Ok(served.found)
}

fn remove(request: &Request, directories: &[&Path]) -> Result<()> {
    let mut directories = directories.iter().filter(|_| !request.keep);
    directories.try_for_each(fs::remove_dir_all).map_err(Into::into)
}

/// The program of a link that nothing disturbs; nothing of one that fails.
fn quiet(program: &Program, workspace: &mut Workspace, way: Way) -> Result<Option<Vec<u8>>> {
    let mut command = way.command(program, workspace, &[])?;
    workspace.commands.push(shown(&command));
    let linked = capture(&mut command)?;
    let output = workspace.path.join(line::output(program, way.dir));
    Ok(if linked.status.success() { Some(fs::read(output)?) } else { None })
}

impl Served {
    fn round(&mut self, random: &mut Random, number: usize, what: What) -> Result<()> {
        let ends = matches!(what, What::Ended(_) | What::EndedAll(_));
        let links = match what {
            What::Together => random.between(2, PLACES.len()),
            _ => random.weighed(1, &[(30, 2)]),
        };
        // Whether each is in the copy of the directory.
        let links: Vec<(&'static str, bool)> =
            PLACES.iter().take(links).map(|place| (*place, random.chance(40))).collect();
        for &(place, is_there) in &links {
            self.prepare(random, place, is_there)?;
        }
        let before: Vec<Option<Vec<u8>>> =
            links.iter().map(|link| fs::read(self.output(*link)).ok()).collect();
        let mut command = self.command(random, what, &links)?;
        self.here.commands.push(shown(&command));
        let wait = self.took.mul_f64(random.below(120) as f64 / 100.0);
        let ended = Ended::of(&mut command, |child| match what {
            What::Ended(signal) => Some((wait, signal, child, false)),
            What::EndedAll(signal) => Some((wait, signal, child, true)),
            _ => None,
        })?;
        let mut wrong = Vec::new();
        if ended.is_stuck {
            wrong.push("it never ends, or a process of it does not".to_owned());
        }
        if !ends && ended.code != Some(0) {
            wrong.push(format!("it ends with {:?}\n{}", ended.code, ended.said));
        }
        let right = if what == What::NoHook { &self.in_process } else { &self.right };
        let mut unfinished = false;
        for (&link, before) in links.iter().zip(&before) {
            let now = fs::read(self.output(link)).ok();
            // A linker that has had no answer links as it does alone.
            let is_alone = ends && now.as_ref() == Some(&self.in_process);
            let is_right = is_alone || now.as_ref() == Some(right);
            unfinished |= !is_right;
            // Of a tool whose parents are killed nobody hears; it goes on, here as without distlto, and has to be right.
            let outlives = |now: &Vec<u8>| ended.code.is_none() && self.behaves(now).unwrap_or(false);
            if !is_right && (ended.code == Some(0) || now != *before && !now.as_ref().is_some_and(outlives)) {
                let what = match &now {
                    None => "gone".to_owned(),
                    Some(now) => format!("{} bytes where {} are right", now.len(), right.len()),
                };
                wrong.push(format!("the program in {} is {what}\n{}", link.0, ended.said));
            }
            wrong.extend(self.beside(link)?.map(|name| format!("{name} lies beside the program")));
        }
        for text in wrong {
            self.tell(number, what, &format!("{text}\n  {}", shown(&command)));
        }
        self.found.links += links.len();
        let counts = self.found.rounds.entry(what.name()).or_default();
        counts[0] += 1;
        counts[1] += usize::from(unfinished);
        if ends {
            self.next(number, what, links[0])?;
        }
        Ok(())
    }

    /// The link after one that was ended.
    fn next(&mut self, number: usize, what: What, link: (&'static str, bool)) -> Result<()> {
        let mut command = self.command(&mut Random::new(0), What::Preloaded, &[link])?;
        command.env_remove("LD_PRELOAD");
        self.here.commands.push(shown(&command));
        let linked = capture(&mut command)?;
        self.found.links += 1;
        let is_right = fs::read(self.output(link)).is_ok_and(|program| program == self.right);
        let beside = self.beside(link)?;
        if !linked.status.success() || !is_right || beside.is_some() {
            let said = String::from_utf8_lossy(&linked.stderr);
            let text = format!("right {is_right}, beside it {beside:?}\n{said}");
            self.tell(number, what, &format!("the next link: {}, {text}", linked.status));
        }
        Ok(())
    }

    fn tell(&mut self, number: usize, what: What, text: &str) {
        let (seed, what) = (self.seed, what.name());
        self.found.wrong.push(format!(
            "seed {seed}, round {number}: {what}: {text}\n  again: cargo xtask campaign service --seed {seed} --count 1 --keep DIR\n"
        ));
    }

    fn workspace(&self, is_there: bool) -> &Workspace {
        if is_there { &self.there } else { &self.here }
    }

    fn output(&self, (place, is_there): (&str, bool)) -> PathBuf {
        self.workspace(is_there).path.join(line::output(&self.program, place))
    }

    /// Whether a program does what the right one does.
    fn behaves(&self, bytes: &[u8]) -> Result<bool> {
        let mut copy = self.here.copy(self.here.path.with_extension("run"))?;
        let output = copy.path.join(line::output(&self.program, IN_PROCESS.dir));
        fs::create_dir_all(output.parent().context("a program lies in a folder")?)?;
        let mut said = Vec::new();
        for bytes in [bytes, &self.right] {
            fs::write(&output, bytes)?;
            fs::set_permissions(&output, Permissions::from_mode(0o755))?;
            said.push(run(&self.program, &mut copy, IN_PROCESS)?);
        }
        fs::remove_dir_all(&copy.path)?;
        Ok(said[0] == said[1])
    }

    /// Has something lie where a program will, or nothing, with or without what an earlier link has kept.
    fn prepare(&self, random: &mut Random, place: &str, is_there: bool) -> Result<()> {
        let output = self.output((place, is_there));
        let folder = output.parent().context("a program lies in a folder")?;
        if random.chance(50) && folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
        match random.chance(70) {
            true => fs::write(&output, EARLIER)?,
            false if output.exists() => fs::remove_file(&output)?,
            false => {}
        }
        Ok(())
    }

    /// What lies beside a program that no link is asked for.
    fn beside(&self, link: (&str, bool)) -> Result<Option<String>> {
        let output = self.output(link);
        let folder = output.parent().context("a program lies in a folder")?;
        let name = output.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let known = [name.clone(), format!("{name}.map")];
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !known.contains(&name) {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// `distlto link` with all of the links.
    fn command(
        &mut self,
        random: &mut Random,
        what: What,
        links: &[(&'static str, bool)],
    ) -> Result<Command> {
        let mut words = Vec::new();
        if what == What::FakerootAround {
            words.push(system_tool("fakeroot")?.into_os_string());
        }
        words.push(distlto::binary()?.as_os_str().to_owned());
        words.push("link".into());
        let jobs = random.pick(&["1", "2", "3", "7", "64", "1000"]).copied().unwrap_or("1");
        words.extend(random.chance(50).then(|| format!("-j{jobs}").into()));
        words.push("--".into());
        if what == What::FakerootWithin {
            words.push(system_tool("fakeroot")?.into_os_string());
        }
        let of_linker = random.chance(40).then(|| format!("-Wl,--thinlto-jobs={jobs}"));
        let mut commands = Vec::new();
        for &(place, is_there) in links {
            let way = Way { dir: place, by: By::Lld, ..IN_PROCESS };
            let mut command = way.command(&self.program, self.workspace(is_there), &[])?;
            command.args(&of_linker);
            commands.push((command, is_there));
        }
        match commands.as_slice() {
            [(command, false)] if what != What::Sanitized => {
                words.push(command.get_program().to_owned());
                words.extend(command.get_args().map(ToOwned::to_owned));
            }
            _ => {
                let first = if what == What::Sanitized { "./sanitized && " } else { "" };
                let mut rules = format!(".PHONY: all {0}\nall: {0}\n", PLACES[..commands.len()].join(" "));
                for ((command, _), place) in commands.iter().zip(PLACES) {
                    // So that what make is told ends the driver.
                    let text = shown(command).replacen("&& ", "&& exec ", 1).replace('$', "$$");
                    rules += &format!("{place}:\n\t{first}{text}\n");
                    // Once more, as a `configure` does with its little programs.
                    rules += &if random.chance(25) { format!("\t{text}\n") } else { String::new() };
                }
                fs::write(self.here.path.join("links.mk"), rules)?;
                words.push(system_tool("make")?.into_os_string());
                words.extend(["-j5", "-f", "links.mk"].map(Into::into));
            }
        }
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(&self.here.path);
        for name in ["DISTLTO_CACHE", "DISTLTO_STATE", "DISTLTO_LINK_OPTIONS"] {
            command.env_remove(name);
        }
        match what {
            What::NoHook => drop(command.env("DISTLTO_HOOK", "off")),
            What::Preloaded => {
                self.by_gcc(&["-shared", "-fPIC", "other.c", "-o", "other.so"], "other.so")?;
                command.env("LD_PRELOAD", self.here.path.join("other.so"));
            }
            What::Sanitized => {
                self.by_gcc(&["-fsanitize=address", "sanitized.c", "-o", "sanitized"], "sanitized")?
            }
            _ => {}
        }
        store::give(&mut command);
        Ok(command)
    }

    fn by_gcc(&mut self, words: &[&str], output: &str) -> Result<()> {
        if self.here.path.join(output).exists() {
            return Ok(());
        }
        let mut gcc = Command::new(system_tool("gcc")?);
        gcc.args(words).current_dir(&self.here.path);
        self.here.commands.push(shown(&gcc));
        succeed(&mut gcc).map(drop)
    }
}

/// How a command ended.
struct Ended {
    code: Option<i32>,
    said: String,
    /// Whether it or a process of it went on for ever.
    is_stuck: bool,
}

impl Ended {
    /// Runs a command, and sends it a signal after some time, alone or with all of its group.
    fn of(
        command: &mut Command,
        disturb: impl FnOnce(Pid) -> Option<(Duration, Signal, Pid, bool)>,
    ) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().with_context(|| shown(command))?;
        let mut said = child.stderr.take().context("piped")?;
        let (send, received) = mpsc::channel();
        thread::spawn(move || {
            let mut text = Vec::new();
            // What cannot be read has been said by nobody.
            let _ = said.read_to_end(&mut text);
            let _ = send.send(String::from_utf8_lossy(&text).into_owned());
        });
        if let Some((wait, signal, child, all)) = disturb(Pid::from_child(&child)) {
            thread::sleep(wait);
            // It may have ended.
            let _ = if all { kill_process_group(child, signal) } else { kill_process(child, signal) };
        }
        // Its standard error ends with the last process that has it.
        let said = received.recv_timeout(STUCK);
        let is_stuck = said.is_err();
        if is_stuck {
            end(&mut child)?;
        }
        let code = child.wait()?.code();
        Ok(Self { code, said: said.unwrap_or_default(), is_stuck })
    }
}

fn end(child: &mut Child) -> Result<()> {
    // It may have ended.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    Ok(())
}
