//! `campaign flags`: two small modules for a random machine with random flags, linked by lld in process and by distlto: the
//! program is lld's, byte for byte.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::flag_groups::{GROUPS, Group, MACHINES};
use super::links::{Request, each};
use super::random::Random;
use super::ways::{By, EXACT, IN_PROCESS, SERVED, Way, names_of_served};
use crate::distlto;
use crate::run::{capture, shown};
use crate::store;
use crate::toolchain::Toolchain;

const FIRST: &str = "int next(int);\nfloat sum(const float *, int);\nextern __thread int calls;\nextern int table[];\n\
static int many(int x) {\n  switch (x) {\n  case 0: return 7;\n  case 1: return next(3);\n  case 2: return 11;\n\
  case 3: return table[1];\n  case 4: return -2;\n  case 5: return next(x) * 5;\n  default: return x;\n  }\n}\n\
int (*chosen)(int) = many;\n\
__attribute__((visibility(\"default\"))) int first(int x, const float *of) {\n\
  char room[64];\n  for (int i = 0; i < 64; i++) room[i] = x + i;\n\
  return next(x) + calls + many(x) + (int)sum(of, x) + room[x & 63] + chosen(x);\n}\n";
const SECOND: &str = "extern \"C\" {\nextern __thread int calls;\n__thread int calls;\nint table[4] = {1, 2, 3};\n\
double sin(double);\nstatic int kept;\nint next(int x) { calls++; kept += x; return x * 2.5 + kept; }\n\
float sum(const float *of, int n) { float all = 0; for (int i = 0; i < n; i++) all += of[i] * of[i]; return all; }\n\
void waves(double *of, int n) { for (int i = 0; i < n; i++) of[i] = sin(of[i]); }\n}\n\
struct Shape { virtual int area() const; virtual int edges() const; int side; };\n\
int Shape::area() const { return side * side; }\nint Shape::edges() const { return 4; }\n\
extern \"C\" int measured(const Shape *of) { return of->area() + of->edges(); }\n";

/// Nothing is linked that has a start, `memcpy` or `sin`.
const UNRESOLVED: &str = "-Wl,-e,first,--unresolved-symbols=ignore-all";

/// How the programs of one way compare.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Those of lld in process.
    pub same: usize,
    /// Another program than either, or one where lld makes none.
    pub other: usize,
    /// None where lld makes one.
    pub failed: usize,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Found {
    /// Links.
    pub links: usize,
    /// Sets of flags that clang does not compile for the machine.
    pub uncompiled: usize,
    /// Links that lld refuses.
    pub refused: usize,
    /// By the way's name.
    pub ways: BTreeMap<&'static str, Counts>,
    /// What differs.
    pub messages: Vec<String>,
}

impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { links, uncompiled, refused, ways, .. } = self;
        writeln!(formatter, "{links} links; clang refuses {uncompiled} more, and lld {refused} of them")?;
        writeln!(formatter, "{:<20} {:>8} {:>8} {:>8}", "way", "as lld", "other", "failed")?;
        for (name, Counts { same, other, failed }) in ways {
            writeln!(formatter, "{name:<20} {same:>8} {other:>8} {failed:>8}")?;
        }
        Ok(())
    }
}

/// Compares so many links.
pub fn flags(request: &Request, toolchain: Toolchain) -> Result<Found> {
    each(
        request,
        |seed| link(request, toolchain, seed),
        |all: &mut Found, one: Found| {
            all.links += one.links;
            all.uncompiled += one.uncompiled;
            all.refused += one.refused;
            for (name, counts) in one.ways {
                let sum = all.ways.entry(name).or_default();
                sum.same += counts.same;
                sum.other += counts.other;
                sum.failed += counts.failed;
            }
            for message in one.messages {
                println!("{message}");
                all.messages.push(message);
            }
        },
    )
}

/// How a program is loaded.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Shared,
    Pie,
    Fixed,
}

/// What a seed draws.
#[derive(Debug)]
struct Draw {
    machine: &'static str,
    kind: Kind,
    groups: Vec<&'static Group>,
    /// Of each module, which groups it is compiled with.
    compiled: [Vec<&'static str>; 2],
}

fn draw(seed: u64) -> Draw {
    let mut random = Random::new(seed);
    let machine =
        if random.chance(40) { None } else { random.pick(MACHINES).copied() }.unwrap_or(MACHINES[0]);
    let kind = random.weighed(Kind::Shared, &[(25, Kind::Pie), (25, Kind::Fixed)]);
    let fits = |group: &&Group| group.machines.iter().any(|start| machine.starts_with(start));
    let fit: Vec<&Group> = GROUPS.iter().filter(fits).collect();
    let number = random.between(0, 4);
    // Its driver makes position-independent programs whatever it is told.
    let kind = if machine.ends_with("fuchsia") && matches!(kind, Kind::Fixed) { Kind::Pie } else { kind };
    let groups: Vec<&Group> = (0..number).filter_map(|_| random.pick(&fit).copied()).collect();
    let mut words = || {
        let chosen = groups.iter().filter(|_| random.chance(75));
        chosen.flat_map(|group| group.compile.iter().copied()).collect()
    };
    let compiled = [words(), words()];
    Draw { machine, kind, groups, compiled }
}

/// The directory of a link, and the commands that ran there.
struct Place {
    path: PathBuf,
    toolchain: Toolchain,
    commands: String,
}

/// The program, or what was said instead.
type Made = Result<Vec<u8>, String>;

fn link(request: &Request, toolchain: Toolchain, seed: u64) -> Result<Found> {
    let draw = draw(seed);
    let mut place = Place::create(request.directory.join(format!("flags-{seed}")), toolchain)?;
    let mut found = Found::default();
    if place.compile(&draw)? {
        found.links = 1;
        place.compare(&draw, seed, &mut found)?;
    } else {
        found.uncompiled = 1;
    }
    fs::write(place.path.join("commands.sh"), &place.commands)?;
    if !request.keep {
        fs::remove_dir_all(&place.path)?;
    }
    Ok(found)
}

impl Place {
    fn create(path: PathBuf, toolchain: Toolchain) -> Result<Self> {
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        store::prepare(&path)?;
        Ok(Self { path, toolchain, commands: String::new() })
    }

    fn run(&mut self, command: &mut Command) -> Result<std::process::Output> {
        command.current_dir(&self.path);
        for name in ["DISTLTO_CACHE", "DISTLTO_STATE", "DISTLTO_LINK_OPTIONS"] {
            command.env_remove(name);
        }
        self.commands += &format!("({})\n", shown(command));
        capture(command)
    }

    /// Compiles both modules; false where clang does not.
    fn compile(&mut self, draw: &Draw) -> Result<bool> {
        let how = match draw.kind {
            Kind::Shared => "-fPIC",
            Kind::Pie => "-fPIE",
            Kind::Fixed => "-fno-pic",
        };
        let sources = [("first.c", FIRST, "clang"), ("second.cpp", SECOND, "clang++")];
        for ((name, text, driver), words) in sources.into_iter().zip(&draw.compiled) {
            fs::write(self.path.join(name), text)?;
            let mut command = Command::new(self.toolchain.tool(driver)?);
            command.arg(format!("--target={}", draw.machine)).args(["-O2", how]);
            command
                .args(words)
                .args(["-flto=thin", "-c", name, "-o"])
                .arg(Path::new(name).with_extension("o"));
            if name.ends_with("pp") {
                command.args(["-fno-rtti"]);
            }
            if !self.run(&mut command)?.status.success() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn link(&mut self, draw: &Draw, way: Way, more: &[&str]) -> Result<Made> {
        fs::create_dir_all(self.path.join(way.dir))?;
        let driver = self.toolchain.tool("clang")?;
        let mut command = match way.by {
            By::Distlto => {
                let mut command = Command::new(distlto::binary()?);
                command.arg("link").args(more).arg("--").arg(&driver);
                command
            }
            _ => Command::new(&driver),
        };
        command.arg(format!("--target={}", draw.machine)).args(["-fuse-ld=lld", "-flto=thin", "-nostdlib"]);
        command.args(match draw.kind {
            Kind::Shared => &["-shared"][..],
            Kind::Pie => &["-pie", UNRESOLVED],
            Kind::Fixed => &["-static", UNRESOLVED],
        });
        command.args(["-O2", "first.o", "second.o"]);
        command.args(draw.groups.iter().flat_map(|group| group.link));
        if way.by == By::Lld {
            command.args(more);
        }
        let program = format!("{}/program", way.dir);
        command.args(["-o", &program]);
        let output = self.run(&mut command)?;
        if !output.status.success() {
            return Ok(Err(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        Ok(Ok(fs::read(self.path.join(program))?))
    }

    fn compare(&mut self, draw: &Draw, seed: u64, found: &mut Found) -> Result<()> {
        // Every second program has the linker's default names.
        let more: &[&str] = if seed % 2 == 1 { &[EXACT] } else { &[] };
        let made = self.link(draw, SERVED, more)?;
        let output = self.path.join(SERVED.dir).join("program");
        let in_process = self.link(draw, IN_PROCESS, names_of_served(&output)?)?;
        found.refused = usize::from(in_process.is_err());
        let mut counts = Counts::default();
        let mut tell = |kind: &str, text: &str| {
            found.messages.push(format!(
                "seed {seed}: {kind}: {} {:?} {:?} link {:?}\n{text}",
                draw.machine,
                draw.kind,
                draw.compiled,
                draw.groups.iter().flat_map(|group| group.link).collect::<Vec<_>>(),
            ));
        };
        match (&made, &in_process) {
            (Ok(made), Ok(linked)) if made == linked => counts.same = 1,
            (Err(_), Err(_)) => counts.same = 1,
            (Ok(_), _) => {
                counts.other = 1;
                tell("another program", in_process.as_ref().err().map_or("", String::as_str));
            }
            (Err(error), _) => {
                counts.failed = 1;
                tell("no program", error);
            }
        }
        found.ways.insert(SERVED.name, counts);
        Ok(())
    }
}
