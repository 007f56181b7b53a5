//! `campaign options`: links of a few modules with options from the linker's own `--help`, by the linker alone and by distlto.
//!
//! A seed draws the options, their values and their places on the line. Compared are the exit code, what is printed, and
//! every file of the directory, twice: as distlto compiles the modules, and as it finds them in its store. What differs between
//! links of the linker alone is not compared, nor its cache, which distlto replaces. Lines that begin with `distlto:` are distlto's own to say.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_planner::backend_flags::stable_names::ARGUMENTS;
use distlto_planner::link_line::LinkLine;
use distlto_planner::linker::options::last;

use super::links::{Request, each};
use super::option_values::{FILES, Listed, listed};
use super::random::Random;
use super::ways::last_record;
use crate::distlto;
use crate::run::{capture, shown, succeed};
use crate::store;
use crate::toolchain::{Toolchain, system_tool};

/// The sources, and how each is compiled.
const SOURCES: &[(&str, &str, &[&str])] = &[
    (
        "main.c",
        "int part(int), one(int), native(int), twin(int);\nextern int counter;\n\
         static int hidden(int x) { return x * 3 + counter; }\nint (*chosen)(int) = hidden;\n\
         int main(void) { return part(1) + one(2) + native(3) + chosen(4) + twin(5); }\n",
        &["-flto=thin"],
    ),
    (
        "part.c",
        "int one(int);\nint counter = 1;\nstatic int times(int x) { return x * counter + 9; }\n\
         int part(int x) { return one(x) + times(x); }\n\
         __attribute__((noinline)) int twin(int x) { return x * counter + 9; }\n",
        &["-flto=thin", "-g", "-ggnu-pubnames"],
    ),
    ("one.c", "int one(int x) { return x - 1; }\n", &["-flto=thin"]),
    ("two.c", "int one(int);\nint two(int x) { return one(x) * 2; }\n", &["-flto=thin"]),
    ("extra.c", "int part(int);\nint extra(int x) { return part(x) + 4; }\n", &["-flto=thin"]),
    (
        "native.c",
        "int native(int x) { return x + 1; }\nint unused(int x) { return x; }\n",
        &["-ffunction-sections"],
    ),
];
/// What every link has, in an order that options may come between.
const INPUTS: [&str; 4] = ["main.o", "part.o", "native.o", "libmore.a"];
const KINDS: [&[&str]; 3] = [&["-e", "main"], &["-pie", "-e", "main"], &["-shared"]];
/// Where links run, beside the store.
const PLACE: &str = "here";
const STREAMS: [&str; 2] = ["standard output", "standard error"];
/// Seconds after which a link is ended; the exit code is that of `timeout`.
const PATIENCE: &str = "120";
/// Shells add this to the number of a signal for an exit code.
const SIGNAL: i32 = 128;
/// So many links of the linker alone show what is the same in all of them.
const ORACLES: usize = 50;
/// How lld's cache begins the names of its files.
const CACHED: &str = "llvmcache";
/// Asks for split debug information, whose files lld numbers and distlto names after modules; their names stand in the program.
const SPLITS: &str = "dwo_dir=";
/// What distlto says itself.
const OWN: &[u8] = b"distlto: ";

/// What came of it.
#[derive(Debug, Default)]
pub struct Found {
    /// Lines.
    pub links: usize,
    /// Lines that distlto links as the linker does.
    pub equal: usize,
    /// Those of them whose linker has asked distlto.
    pub served: usize,
    /// Lines that the linker refuses, and distlto with the same words.
    pub refused: usize,
    /// What differs, in which line.
    pub messages: Vec<String>,
}

impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { links, equal, served, refused, messages } = self;
        let differ = messages.len();
        write!(
            formatter,
            "{links} lines: {equal} equal, {served} of them served; {refused} refused by both, {differ} differ"
        )
    }
}

/// Compares so many lines.
pub fn options(request: &Request, toolchain: Toolchain) -> Result<Found> {
    let modules = Modules::compile(&request.directory.join("options"), toolchain)?;
    each(
        request,
        |seed| modules.compare(request, seed),
        |all: &mut Found, one: Found| {
            all.links += one.links;
            all.equal += one.equal;
            all.served += one.served;
            all.refused += one.refused;
            for message in one.messages {
                println!("{message}");
                all.messages.push(message);
            }
        },
    )
}

/// What all links share.
struct Modules {
    linker: PathBuf,
    options: Vec<Listed>,
    /// The files that lie in the directory before a link.
    files: BTreeMap<String, Vec<u8>>,
}

impl Modules {
    /// Compiles the modules, and reads the help of their linker.
    fn compile(directory: &Path, toolchain: Toolchain) -> Result<Self> {
        if directory.exists() {
            fs::remove_dir_all(directory)?;
        }
        fs::create_dir_all(directory)?;
        let run = |tool: &str, words: &[&str]| {
            succeed(Command::new(toolchain.tool(tool)?).args(words).current_dir(directory))
        };
        for (name, text, how) in SOURCES {
            fs::write(directory.join(name), text)?;
            run("clang", &[&["-O2", "-fPIC", "-c", name], *how].concat())?;
        }
        run("llvm-ar", &["rcs", "libmore.a", "one.o", "two.o"])?;
        run("ld.lld", &["-shared", "-soname", "libshared.so", "native.o", "-o", "libshared.so"])?;
        for (name, _, _) in SOURCES {
            fs::remove_file(directory.join(name))?;
        }
        for (name, text) in FILES {
            fs::write(directory.join(name), text)?;
        }
        let options = listed(&String::from_utf8(run("ld.lld", &["--help"])?.stdout)?);
        ensure!(options.len() > 100, "few options are in the help: {options:?}");
        Ok(Self { linker: toolchain.tool("ld.lld")?, options, files: files(directory)? })
    }

    /// The words of a line after the linker's name.
    fn line(&self, seed: u64) -> Vec<String> {
        let mut random = Random::new(seed ^ 0x6f70_7469);
        let mut groups: Vec<Vec<String>> = INPUTS.map(|input| vec![input.to_owned()]).into();
        for _ in 0..random.between(1, 4) {
            if let Some(option) = random.pick(&self.options) {
                let at = random.below(groups.len() + 1);
                groups.insert(at, option.draw(&mut random));
            }
        }
        let kind = random.pick(&KINDS).copied().unwrap_or_default();
        let begin = kind.iter().copied().chain(["-o", "program"]).map(str::to_owned);
        begin.chain(groups.into_iter().flatten()).collect()
    }

    /// Links a line in each way.
    fn compare(&self, request: &Request, seed: u64) -> Result<Found> {
        let directory = request.directory.join(format!("options-{seed}"));
        if directory.exists() {
            fs::remove_dir_all(&directory)?;
        }
        store::prepare(&directory)?;
        let place = Place { path: directory.join(PLACE), files: &self.files };
        let line = self.line(seed);
        let mut served = Command::new(distlto::binary()?);
        served.args(["link", "--"]).arg(&self.linker).args(&line);
        let ours = [place.made(&served)?, place.made(&served)?];
        let more = place.more_words(&line)?;
        let mut alone = Command::new(&self.linker);
        alone.args(&line).args(more.iter().flatten());
        let mut oracles = vec![place.made(&alone)?, place.made(&alone)?];
        let mut differences = told(&oracles, &ours);
        // Where threads race for a file, a line or the end of a process, two links may be equal by chance.
        while !differences.is_empty() && oracles.len() < ORACLES {
            oracles.push(place.made(&alone)?);
            differences = told(&oracles, &ours);
        }
        let mut found = Found { links: 1, ..Found::default() };
        match (differences.is_empty(), oracles[0].code) {
            (true, Some(0)) => (found.equal, found.served) = (1, usize::from(more.is_some())),
            (true, _) => found.refused = 1,
            (false, _) => found.messages.push(format!(
                "seed {seed}: {}\n{}\n{}\n(cargo xtask campaign options --count 1 --seed {seed} --keep DIR leaves its files)",
                line.join(" "),
                shown(&served),
                differences.join("\n")
            )),
        }
        if !request.keep {
            fs::remove_dir_all(&directory)?;
        }
        Ok(found)
    }
}

/// The directory of a line's links.
struct Place<'a> {
    path: PathBuf,
    files: &'a BTreeMap<String, Vec<u8>>,
}

impl Place<'_> {
    /// Runs a link among the files that lie there before.
    fn made(&self, link: &Command) -> Result<Made> {
        self.restore()?;
        let mut command = Command::new(system_tool("timeout")?);
        command.args(["-k", "5", PATIENCE]).arg(link.get_program()).args(link.get_args());
        for name in ["DISTLTO_CACHE", "DISTLTO_STATE", "DISTLTO_LINK_OPTIONS"] {
            command.env_remove(name);
        }
        let output = capture(command.current_dir(&self.path))?;
        let splits = link.get_args().any(|word| word.to_string_lossy().contains(SPLITS));
        let files = if splits { BTreeMap::new() } else { files(&self.path)? };
        // As distlto tells it.
        let code = output.status.code().or_else(|| Some(SIGNAL + output.status.signal()?));
        Ok(Made { code, printed: [lines(&output.stdout), lines(&output.stderr)], files })
    }

    /// Puts back what a link has changed, and removes what it has written. A file that is the same keeps its time.
    fn restore(&self) -> Result<()> {
        fs::create_dir_all(&self.path)?;
        for entry in fs::read_dir(&self.path)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            match self.files.get(&name) {
                Some(bytes) if fs::read(&path).is_ok_and(|found| found == *bytes) => {}
                _ if path.is_dir() => fs::remove_dir_all(&path)?,
                _ => fs::remove_file(&path)?,
            }
        }
        fs::create_dir_all(self.path.join("folder"))?;
        for (name, bytes) in self.files.iter().filter(|(name, _)| !self.path.join(name).exists()) {
            fs::write(self.path.join(name), bytes)?;
            if name.ends_with(".sh") {
                fs::set_permissions(self.path.join(name), Permissions::from_mode(0o755))?;
            }
        }
        Ok(())
    }

    /// The words by which the linker alone makes the program of the last served link: distlto takes the place of a distributor.
    /// `None` if the link was left to the linker.
    fn more_words(&self, line: &[String]) -> Result<Option<Vec<&'static str>>> {
        let words = line.iter().map(|word| word.as_bytes().to_vec()).collect();
        // A line that nobody can read is left to the linker.
        let Ok(line) = LinkLine::read(words) else { return Ok(None) };
        let Some(record) = last_record(&self.path.join(line.output()))? else { return Ok(None) };
        let names = if record.stable_names { &ARGUMENTS[..] } else { &[] };
        let has_distributor = last(line.arguments(), "thinlto-distributor").is_some();
        let without = has_distributor.then_some("--thinlto-distributor=");
        Ok(Some(names.iter().copied().chain(without).collect()))
    }
}

/// What came of one link.
#[derive(Debug, PartialEq, Eq)]
struct Made {
    code: Option<i32>,
    /// The lines of each of [`STREAMS`].
    printed: [Vec<Vec<u8>>; 2],
    files: BTreeMap<String, Vec<u8>>,
}

/// How links differ from what links of the linker alone have in common.
fn told(alone: &[Made], ours: &[Made; 2]) -> Vec<String> {
    let differs = |made: &Made, which| {
        let told = differences(alone, made).join("\n");
        (!told.is_empty()).then(|| format!("{which} link: {told}"))
    };
    ours.iter().zip(["first", "second"]).filter_map(|(made, which)| differs(made, which)).collect()
}

fn differences(alone: &[Made], made: &Made) -> Vec<String> {
    let oracle = &alone[0];
    let mut told = Vec::new();
    if made.code != oracle.code && alone.iter().all(|other| other.code == oracle.code) {
        told.push(format!("exit code {:?}, and alone {:?}", made.code, oracle.code));
    }
    // Then one thread may end the process before another has printed the stack.
    let has_crashed = oracle.code.is_some_and(|code| code > SIGNAL);
    for (at, name) in STREAMS.iter().enumerate() {
        let (found, expected) = (&made.printed[at], &oracle.printed[at]);
        if found != expected && !has_crashed && alone.iter().all(|other| other.printed[at] == *expected) {
            let lines = [unshared("+", found, expected), unshared("-", expected, found)];
            told.push(format!("{name}:\n{}", lines.concat()));
        }
    }
    let names: BTreeSet<&String> = oracle.files.keys().chain(made.files.keys()).collect();
    for name in names {
        let (expected, found) = (oracle.files.get(name), made.files.get(name));
        if expected.is_some() == found.is_some() {
            let is_steady = alone.iter().all(|other| other.files.get(name) == expected);
            if let (Some(expected), Some(found)) = (expected, found)
                && expected != found
                && is_steady
            {
                told.push(format!("{name} differs: {} bytes, and alone {}", found.len(), expected.len()));
            }
        } else if alone.iter().all(|other| other.files.contains_key(name) == expected.is_some()) {
            told.push(format!("{name} is {}", if found.is_some() { "written" } else { "missing" }));
        }
    }
    told
}

/// The first lines of a list that another one lacks, each with a mark.
fn unshared(mark: &str, lines: &[Vec<u8>], others: &[Vec<u8>]) -> String {
    let lines = lines.iter().filter(|line| !others.contains(line)).take(10);
    lines.map(|line| format!("  {mark} {}\n", String::from_utf8_lossy(line))).collect()
}

/// The lines of a text without distlto's own, sorted: threads print them.
fn lines(text: &[u8]) -> Vec<Vec<u8>> {
    let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.starts_with(OWN));
    let mut lines: Vec<Vec<u8>> = lines.map(<[u8]>::to_vec).collect();
    lines.sort_unstable();
    lines
}

/// All files below a directory, by their names from there, but those of lld's cache.
fn files(directory: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().context("an entry has a name")?.to_string_lossy().into_owned();
        if path.is_dir() {
            let below = files(&path)?.into_iter().map(|(below, bytes)| (format!("{name}/{below}"), bytes));
            found.extend(below);
        } else if !name.starts_with(CACHED) {
            found.insert(name, fs::read(&path)?);
        }
    }
    Ok(found)
}
