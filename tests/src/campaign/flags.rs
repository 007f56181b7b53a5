//! `campaign flags`: two small modules for a random machine with random flags, linked by lld in process, by its DTLTO and by
//! distlto in both ways: the program is lld's, byte for byte, and so are the objects of two steps, or the flag is refused by name.
//! Older LLVMs take two steps alone.
//!
//! Some machines, and the lowest levels, lld in process tells otherwise than a compiler can be told: there a served program may be
//! another one. Of two steps a program that is the same as that of lld's DTLTO counts too.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::flag_groups::{GROUPS, Group, MACHINES};
use super::links::{Request, each};
use super::random::Random;
use super::ways::{self, By, DTLTO, IN_PROCESS, SERVED, Way};
use crate::run::{capture, shown};
use crate::toolchain::Toolchain;
use crate::{distlto, program, toolchain};

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

/// The name of the object that no module is for, among those that lld keeps.
const WITHOUT_MODULE: &str = "object";

/// Machines and flags of which lld in process tells its backends something else than clang does, as docs/reference.md says.
const OTHERWISE: &[&str] = &["arm", "thumb", "riscv", "mips", "-O0"];

/// What lld calls an object of its backends: for some machines it defines what they refer to only before they run.
const BACKENDS_OBJECT: [&str; 2] = ["program.lto.", "lto.tmp"];

/// How the programs of one way compare.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Those of lld in process.
    pub same: usize,
    /// Another program of a served link, for a reason that is known.
    pub otherwise: usize,
    /// Those of lld's DTLTO alone.
    pub as_dtlto: usize,
    /// Of two steps, where lld cannot link what its own backends made.
    pub beyond: usize,
    /// Another program than either, or one where lld makes none.
    pub other: usize,
    /// Refused, with the flag's name.
    pub refused: usize,
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
        writeln!(
            formatter,
            "{:<20} {:>8} {:>10} {:>14} {:>12} {:>8} {:>16} {:>8}",
            "way", "as lld", "otherwise", "as DTLTO only", "lld cannot", "other", "refused by name", "failed"
        )?;
        for (name, Counts { same, otherwise, as_dtlto, beyond, other, refused, failed }) in ways {
            writeln!(
                formatter,
                "{name:<20} {same:>8} {otherwise:>10} {as_dtlto:>14} {beyond:>12} {other:>8} {refused:>16} {failed:>8}"
            )?;
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
                sum.otherwise += counts.otherwise;
                sum.as_dtlto += counts.as_dtlto;
                sum.beyond += counts.beyond;
                sum.other += counts.other;
                sum.refused += counts.refused;
                sum.failed += counts.failed;
            }
            for message in one.messages {
                println!("{message}");
                all.messages.push(message);
            }
        },
    )
}

/// Those of [`OTHERWISE`] by which the programs do not differ any more: there is one link for each.
pub fn closed(request: &Request, toolchain: Toolchain) -> Result<Vec<&'static str>> {
    let mut closed = Vec::new();
    for &reason in OTHERWISE {
        let machine = MACHINES.iter().find(|machine| machine.starts_with(reason)).unwrap_or(&MACHINES[0]);
        let groups =
            GROUPS.iter().find(|group| group.link.first().is_some_and(|word| word.starts_with(reason)));
        let groups = groups.into_iter().collect();
        // For MIPS programs with a fixed place differ alone.
        let kind = if reason == "mips" { Kind::Fixed } else { Kind::Pie };
        let draw = Draw { machine, kind, groups, compiled: [Vec::new(), Vec::new()] };
        ensure!(draw.is_otherwise(), "{reason} is neither a machine nor a flag of a link");
        let mut place = Place::create(request.directory.join(reason), toolchain)?;
        ensure!(place.compile(&draw)?, "{reason}: clang does not compile");
        let [lld, served] = [IN_PROCESS, SERVED].map(|way| place.link(&draw, way));
        match (lld?, served?) {
            (Ok(lld), Ok(served)) if lld.is(&served, SERVED) => closed.push(reason),
            (Ok(_), Ok(_)) => {}
            (Err(error), _) | (_, Err(error)) => bail!("{reason}: {error}"),
        }
    }
    Ok(closed)
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

impl Draw {
    /// Whether lld in process tells its backends something else than clang does.
    fn is_otherwise(&self) -> bool {
        let mut words = self.groups.iter().flat_map(|group| group.link).copied().chain([self.machine]);
        words.any(|word| OTHERWISE.iter().any(|start| word.starts_with(start)))
    }
}

fn draw(seed: u64, has_dtlto: bool) -> Draw {
    let mut random = Random::new(seed);
    let is_known = |name: &str| !has_dtlto && OTHERWISE.iter().any(|start| name.starts_with(start));
    let machines: Vec<&str> = MACHINES.iter().copied().filter(|machine| !is_known(machine)).collect();
    let machine =
        if random.chance(40) { None } else { random.pick(&machines).copied() }.unwrap_or(MACHINES[0]);
    let kind = random.weighed(Kind::Shared, &[(25, Kind::Pie), (25, Kind::Fixed)]);
    let fits = |group: &&Group| {
        let mut words = group.link.iter();
        group.machines.iter().any(|start| machine.starts_with(start)) && !words.any(|word| is_known(word))
    };
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

/// A program, and the objects of its modules, sorted.
struct Linked {
    program: Vec<u8>,
    objects: Vec<Vec<u8>>,
}

impl Linked {
    /// Whether a way made the same. Of two steps the final link orders symbols as objects have them, not as modules: the
    /// objects are compared, but for a link that is left to the linker.
    fn is(&self, other: &Self, way: Way) -> bool {
        self.program == other.program || !way.exact && self.objects == other.objects
    }
}

/// What was linked, or what was said instead.
type Made = Result<Linked, String>;

fn link(request: &Request, toolchain: Toolchain, seed: u64) -> Result<Found> {
    let draw = draw(seed, toolchain.has_dtlto());
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
        fs::create_dir_all(&path)?;
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

    fn link(&mut self, draw: &Draw, way: Way) -> Result<Made> {
        fs::create_dir_all(self.path.join(way.dir).join("kept"))?;
        let driver = self.toolchain.tool("clang")?;
        let mut command = match way.by {
            By::Lld | By::Distributor | By::Distribute => Command::new(&driver),
            By::Distlto(options) => {
                let mut command = Command::new(distlto::binary()?);
                command.arg("link").args(options).arg("--").arg(&driver);
                command
            }
        };
        command.arg(format!("--target={}", draw.machine)).args(["-fuse-ld=lld", "-flto=thin", "-nostdlib"]);
        command.args(match draw.kind {
            Kind::Shared => &["-shared"][..],
            Kind::Pie => &["-pie", UNRESOLVED],
            Kind::Fixed => &["-static", UNRESOLVED],
        });
        command.args(["-O2", "first.o", "second.o"]);
        command.args(draw.groups.iter().flat_map(|group| group.link));
        if way.by == By::Distributor {
            let helper = toolchain::helper("distlto-test-distributor")?;
            let helper = helper.to_str().context("the target directory's name is UTF-8")?;
            let driver = driver.to_str().context("a compiler's name is UTF-8")?;
            // Some machines' drivers do not tell the linker of their own option.
            command.arg(format!(
                "-Wl,--thinlto-distributor={helper},--thinlto-distributor-arg={}/kept,--thinlto-remote-compiler={driver}",
                way.dir
            ));
            let fixed: &[&str] = if matches!(draw.kind, Kind::Fixed) { &["-fno-pic"] } else { &[] };
            let remote = draw.groups.iter().flat_map(|group| group.remote).chain(fixed);
            command.args(remote.map(|word| format!("-Wl,--thinlto-remote-compiler-arg={word}")));
        }
        let program = format!("{}/program", way.dir);
        command.args(["-o", &program]);
        let output = self.run(&mut command)?;
        if !output.status.success() {
            return Ok(Err(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        let program = fs::read(self.path.join(program))?;
        if way.by == By::Lld {
            // Objects that are kept have other names, which stand in the program.
            command.arg(format!("-Wl,--lto-obj-path={}/kept/{WITHOUT_MODULE}", way.dir));
            self.run(&mut command)?;
        }
        Ok(Ok(Linked { program, objects: self.objects(way)? }))
    }

    /// The objects of the modules of a link.
    fn objects(&self, way: Way) -> Result<Vec<Vec<u8>>> {
        let dir = self.path.join(way.dir);
        let mut objects = Vec::new();
        if let By::Distlto(_) = way.by {
            objects.extend(
                program::objects(&dir.join("program.distlto/objects"))?.into_iter().map(|(_, bytes)| bytes),
            );
        } else {
            for entry in fs::read_dir(dir.join("kept"))? {
                let path = entry?.path();
                if !path.ends_with(WITHOUT_MODULE)
                    && path.extension().is_none_or(|extension| extension != "id")
                {
                    objects.push(fs::read(path)?);
                }
            }
        }
        objects.sort();
        Ok(objects)
    }

    fn compare(&mut self, draw: &Draw, seed: u64, found: &mut Found) -> Result<()> {
        let in_process = self.link(draw, IN_PROCESS)?;
        found.refused = usize::from(in_process.is_err());
        let has_dtlto = self.toolchain.has_dtlto();
        let by_dtlto = if has_dtlto { self.link(draw, DTLTO)? } else { Err(String::new()) };
        for &way in ways::own(self.toolchain) {
            let made = self.link(draw, way)?;
            let mut counts = Counts::default();
            let mut tell = |kind: &str, text: &str| {
                found.messages.push(format!(
                    "seed {seed}: {}: {kind}: {} {:?} {:?} link {:?}\n{text}",
                    way.name,
                    draw.machine,
                    draw.kind,
                    draw.compiled,
                    draw.groups.iter().flat_map(|group| group.link).collect::<Vec<_>>(),
                ));
            };
            match (&made, &in_process, &by_dtlto) {
                (Ok(made), Ok(linked), _) if made.is(linked, way) => counts.same = 1,
                (Err(_), Err(_), _) => counts.same = 1,
                (Ok(_), Ok(_), _) if way.exact && draw.is_otherwise() => counts.otherwise = 1,
                (Ok(made), _, Ok(linked)) if !way.exact && made.is(linked, way) => counts.as_dtlto = 1,
                (Ok(_), Err(error), Err(_))
                    if !way.exact && BACKENDS_OBJECT.iter().any(|name| error.contains(name)) =>
                {
                    counts.beyond = 1
                }
                (Ok(_), ..) => {
                    counts.other = 1;
                    tell("another program", in_process.as_ref().err().map_or("", String::as_str));
                }
                (Err(error), ..) if names_a_flag(error, draw) => counts.refused = 1,
                (Err(error), ..) => {
                    counts.failed = 1;
                    tell("no program", error);
                }
            }
            found.ways.insert(way.name, counts);
        }
        Ok(())
    }
}

/// Whether a complaint says which flag it is about.
fn names_a_flag(error: &str, draw: &Draw) -> bool {
    let mut words = draw.groups.iter().flat_map(|group| group.link);
    words.any(|word| word.rsplit(',').next().is_some_and(|last| error.contains(last)))
}
