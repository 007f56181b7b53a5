//! `campaign reads`: links that read all kinds of things, of which one changes at a time, against fresh links.
//!
//! A seed decides what the link reads ([`Part`]), then what changes. The oracle is the same link in a copy of the folder
//! without what earlier links left. After a change of nothing that it reads the link has to have nothing to do, and so has
//! the link after any other.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Result, ensure};

use super::links::{Request, each};
use super::random::Random;
use super::read_parts::{Change, Part, Part::*};
use crate::distlto;
use crate::run::{capture, succeed, told};
use crate::store;
use crate::toolchain::{NEWEST, Toolchain, system_tool};

/// Changes of each link.
const CHANGES: usize = 8;
/// The name of the program.
pub(super) const PROGRAM: &str = "program";

/// What came of all links.
#[derive(Debug, Default)]
pub struct Found {
    /// Relinks.
    pub links: usize,
    /// By the change: how many there were, and after how many of them the program differed from the earlier one.
    pub changes: BTreeMap<&'static str, [usize; 2]>,
    /// Programs that are not those of fresh links, and outputs that are missing.
    pub stale: usize,
    /// Links that ran although nothing that they read had changed.
    pub needless: usize,
    /// What is wrong, and where.
    pub messages: Vec<String>,
}

impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{:40} {:>7} {:>15}", "what changed", "times", "other programs")?;
        for (name, [number, other]) in &self.changes {
            writeln!(formatter, "{name:40} {number:7} {other:15}")?;
        }
        let Self { links, stale, needless, .. } = self;
        write!(formatter, "{links} relinks; stale {stale}, needless {needless}")
    }
}

/// A link in a folder of its own.
pub(super) struct Link {
    seed: u64,
    pub(super) path: PathBuf,
    toolchain: Toolchain,
    parts: Vec<Part>,
    pub(super) variables: BTreeMap<String, String>,
    /// Counts up, so that whatever is written is new.
    number: usize,
    done: Vec<&'static str>,
    found: Found,
}

/// Runs the campaign; tells what is wrong as it is found.
pub fn reads(request: &Request, toolchain: Toolchain) -> Result<Found> {
    each(
        request,
        |seed| program(request, toolchain, seed),
        |all: &mut Found, one: Found| {
            one.messages.iter().for_each(|message| println!("{message}"));
            all.links += one.links;
            all.stale += one.stale;
            all.needless += one.needless;
            all.messages.extend(one.messages);
            for (name, counts) in one.changes {
                let sum = all.changes.entry(name).or_default();
                sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            }
        },
    )
}

fn program(request: &Request, toolchain: Toolchain, seed: u64) -> Result<Found> {
    let mut random = Random::new(seed ^ 0x6368_616e_6765);
    let mut link = Link::create(request, toolchain, seed)?;
    let (mut before, _) = link.link()?;
    for _ in 0..CHANGES {
        let change = link.draw(&mut random);
        match link.after(&mut random, change, &before) {
            Ok(program) => before = program,
            Err(error) => {
                link.tell(&format!("{error:#}"));
                break;
            }
        }
    }
    if !request.keep {
        fs::remove_dir_all(&link.path)?;
    }
    Ok(link.found)
}

impl Link {
    /// What a seed decides, in a new folder.
    pub(super) fn create(request: &Request, toolchain: Toolchain, seed: u64) -> Result<Self> {
        let mut random = Random::new(seed ^ 0x7265_6164);
        let path = request.directory.join(format!("reads-{seed}"));
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        store::prepare(&path)?;
        // Rust's LLVM is the newest.
        let is_for = |part: &Part| *part != Rust || toolchain.version == NEWEST;
        let parts = Part::ALL.into_iter().filter(|_| random.chance(45)).filter(is_for).collect();
        let mut link = Self {
            seed,
            path,
            toolchain,
            parts,
            variables: BTreeMap::new(),
            number: 0,
            done: Vec::new(),
            found: Found::default(),
        };
        link.build()?;
        Ok(link)
    }

    fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }

    pub(super) fn draw(&self, random: &mut Random) -> Change {
        let of = |part: &Part| match part {
            Searched | UserConfiguration => Change::Appeared(*part),
            Map | SplitDebug => Change::Removed,
            part => Change::Of(*part),
        };
        let other = [
            Change::Source,
            Change::Variable,
            Change::Removed,
            Change::Overwritten,
            Change::Touched,
            Change::Copied,
            Change::Nothing,
        ];
        let of_part = self.parts.get(random.below(self.parts.len())).filter(|_| random.chance(65)).map(of);
        of_part.unwrap_or_else(|| other[random.below(other.len())])
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> Result<()> {
        let place = self.path.join(name);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)?;
        }
        Ok(fs::write(place, text)?)
    }

    fn run(&self, tool: &str, words: &[&str]) -> Result<()> {
        let mut command = Command::new(self.toolchain.tool(tool)?);
        succeed(command.args(words).current_dir(&self.path)).map(drop)
    }

    /// Compiles a source that returns this number.
    fn compile(&self, name: &str, number: usize, words: &[&str]) -> Result<()> {
        let function = name.rsplit('/').next().unwrap_or(name);
        let text = match function {
            "main" => format!("int f(int); int main(int n, char **v) {{ return f(n) + {number}; }}\n"),
            "f" => format!(
                "int puts(const char *);\n__attribute__((noinline)) int g(int n) {{ return n * {number}; }}\n\
                 int f(int n) {{ if (n > 3) return g(n) + 7; puts(\"few\"); return {number}; }}\n"
            ),
            "data" => "__asm__(\".data\\n.globl data\\ndata: .incbin \\\"data.bin\\\"\\n.text\\n\");\n\
                       int near_data(void) { return 1; }\n"
                .to_owned(),
            _ => format!("int {function}(void) {{ return {number}; }}\n"),
        };
        self.write(&format!("{name}.c"), text)?;
        let (source, object) = (format!("{name}.c"), format!("{name}.o"));
        let debug = if self.has(SplitDebug) { "-g" } else { "-g0" };
        self.run("clang", &[&["-O2", "-c", debug, &source, "-o", &object], words].concat())
    }

    fn archive(&self, kind: &str, name: &str, members: &[&str]) -> Result<()> {
        let place = self.path.join(name);
        if place.exists() {
            fs::remove_file(place)?;
        }
        self.run("llvm-ar", &[&[kind, name], members].concat())
    }

    fn build(&mut self) -> Result<()> {
        for folder in ["lib", "early", "late", "out", "user", "unread"] {
            fs::create_dir_all(self.path.join(folder))?;
        }
        self.compile("main", 1, &["-flto=thin"])?;
        self.compile("f", 2, &["-flto=thin"])?;
        for part in self.parts.clone() {
            self.renew(part)?;
        }
        if self.has(Included) {
            self.write("script.ld", "INCLUDE values.ld\n")?;
        }
        if self.has(Response) {
            self.write("outer.rsp", "@inner.rsp\n")?;
        }
        if self.has(Configuration) {
            self.write("options.cfg", "@more.cfg\n")?;
        }
        if self.has(Searched) {
            self.compile("late/found", 40, &[])?;
            self.archive("rcs", "late/libfound.a", &["late/found.o"])?;
        }
        Ok(())
    }

    /// Writes anew what a part reads.
    fn renew(&mut self, part: Part) -> Result<()> {
        self.number += 1;
        let number = self.number;
        match part {
            Archive => {
                self.compile("lib/arch", number, &["-flto=thin"])?;
                self.archive("rcs", "lib/libarch.a", &["lib/arch.o"])
            }
            ThinArchive => {
                self.compile("thin", number, &[])?;
                self.archive("rcsT", "thin.a", &["thin.o"])
            }
            Included => self.write("values.ld", format!("included = {number};\n")),
            Response => self.write("inner.rsp", format!("-Wl,--defsym=response={number}\n")),
            Configuration => self.write("more.cfg", format!("-Wl,--defsym=configured={number}\n")),
            Data => {
                self.write("data.bin", format!("data {number}"))?;
                if self.path.join("data.o").exists() {
                    return Ok(());
                }
                self.compile("data", 0, &["-flto=thin"])
            }
            SymbolicLink => {
                let target = format!("target-{number}.o");
                self.compile("target", number, &[])?;
                fs::rename(self.path.join("target.o"), self.path.join(&target))?;
                let place = self.path.join("linked.o");
                if place.is_symlink() {
                    fs::remove_file(&place)?;
                }
                Ok(symlink(target, place)?)
            }
            Wrapper => {
                let linker = self.toolchain.tool("ld.lld")?;
                let text =
                    format!("#!/bin/sh\nexec '{}' \"$@\" --defsym=wrapped={number}\n", linker.display());
                // A shell may still have the earlier one open.
                self.write("ld.lld.new", text)?;
                fs::set_permissions(self.path.join("ld.lld.new"), Permissions::from_mode(0o755))?;
                Ok(fs::rename(self.path.join("ld.lld.new"), self.path.join("ld.lld"))?)
            }
            Order => {
                let names = if number.is_multiple_of(2) { "main\ng\nf\n" } else { "f\nmain\ng\n" };
                self.write("order.txt", names)
            }
            Profile => {
                let text = format!("main:{0}:{0}\n 0: {0}\n 1: {0} f:{0}\n", 1000 * number);
                self.write("samples.prof", text)
            }
            Replay => {
                let call = format!("f.c:3:1: 'g' inlined into 'f' at callsite f:{number}:0;\n");
                self.write("replay.txt", call)
            }
            Cxx => {
                let text = format!(
                    "#include <string>\n\
                     extern \"C\" int cxx(int n) {{ return std::string(n + {number}, 'a').size() + std::to_string(n).size(); }}\n"
                );
                self.write("cxx.cc", text)?;
                self.run("clang++", &["-O2", "-flto=thin", "-c", "cxx.cc", "-o", "cxx.o"])
            }
            Rust => {
                let text = format!(
                    "#![no_std]\n#[unsafe(no_mangle)]\npub extern \"C\" fn rust(n: i32) -> i32 {{ n.wrapping_mul({number}) }}\n"
                );
                self.write("rust.rs", text)?;
                let words = [
                    "--crate-type=lib",
                    "--emit=obj",
                    "-Clinker-plugin-lto",
                    "-Copt-level=2",
                    "-Cpanic=abort",
                ];
                let mut rustc = Command::new(system_tool("rustc")?);
                rustc.args(words).args(["rust.rs", "-o", "rust.o"]).current_dir(&self.path);
                succeed(&mut rustc).map(drop)
            }
            Searched | Map | SplitDebug | UserConfiguration => Ok(()),
        }
    }

    pub(super) fn change(&mut self, random: &mut Random, change: Change) -> Result<()> {
        self.number += 1;
        match change {
            Change::Source => {
                let name = if random.chance(50) { "main" } else { "f" };
                self.compile(name, self.number, &["-flto=thin"])
            }
            Change::Of(part) => self.renew(part),
            Change::Variable => {
                let name = ["LLD_VERSION", "SOURCE_DATE_EPOCH"][random.below(2)];
                if self.variables.remove(name).is_none() {
                    self.variables.insert(name.to_owned(), self.number.to_string());
                }
                Ok(())
            }
            Change::Removed => Ok(fs::remove_file(self.output(random))?),
            Change::Overwritten => Ok(fs::write(self.output(random), "another\n")?),
            Change::Touched => {
                Ok(File::options().append(true).open(self.input(random))?.set_modified(SystemTime::now())?)
            }
            Change::Copied => {
                let (input, copy) = (self.input(random), self.path.join("copy"));
                fs::copy(&input, &copy)?;
                Ok(fs::rename(copy, input)?)
            }
            Change::Nothing => {
                self.write("unread/file", self.number.to_string())?;
                // A script might read any.
                if !self.has(Wrapper) {
                    self.variables.insert("UNREAD".to_owned(), self.number.to_string());
                }
                Ok(())
            }
            Change::Appeared(Searched) => {
                let place = self.path.join("early/libfound.a");
                if place.exists() {
                    return Ok(fs::remove_file(place)?);
                }
                self.compile("early/found", self.number, &[])?;
                self.archive("rcs", "early/libfound.a", &["early/found.o"])
            }
            Change::Appeared(_) => {
                let place = self.path.join("user/clang.cfg");
                if place.exists() {
                    return Ok(fs::remove_file(place)?);
                }
                self.write("user/clang.cfg", format!("-Wl,--defsym=user={}\n", self.number))
            }
        }
    }

    fn output(&self, random: &mut Random) -> PathBuf {
        let outputs: Vec<&str> = self.outputs().collect();
        self.path.join(outputs[random.below(outputs.len())])
    }

    pub(super) fn outputs(&self) -> impl Iterator<Item = &'static str> {
        [PROGRAM].into_iter().chain(self.parts.iter().flat_map(|part| part.outputs()).copied())
    }

    fn input(&self, random: &mut Random) -> PathBuf {
        let inputs = [
            "main.o",
            "f.o",
            "values.ld",
            "inner.rsp",
            "more.cfg",
            "data.bin",
            "order.txt",
            "lib/libarch.a",
            "samples.prof",
        ];
        let there: Vec<_> = inputs.into_iter().filter(|name| self.path.join(name).exists()).collect();
        self.path.join(there[random.below(there.len())])
    }

    pub(super) fn command(&self, path: &Path) -> Result<Command> {
        let mut command = Command::new(distlto::binary()?);
        command.args(["link", "-v", "--"]).arg(self.toolchain.tool("clang")?);
        command.args(["-O2", "-flto=thin", "-fuse-ld=lld", "main.o", "f.o", "-o", PROGRAM]);
        command.args(self.parts.iter().flat_map(|part| part.words())).current_dir(path);
        command.envs(&self.variables);
        for name in ["DISTLTO_CACHE", "DISTLTO_STATE", "DISTLTO_LINK_OPTIONS"] {
            command.env_remove(name);
        }
        store::give(&mut command);
        Ok(command)
    }

    /// Links; gives the program, and whether there was nothing to do.
    fn link(&mut self) -> Result<(Vec<u8>, bool)> {
        // What was written in this tick of the clock is too young to be recorded.
        std::thread::sleep(Duration::from_millis(60));
        let output = succeed(&mut self.command(&self.path)?)?;
        self.found.links += 1;
        let nothing = String::from_utf8_lossy(&output.stderr).contains("nothing to do");
        Ok((fs::read(self.path.join(PROGRAM))?, nothing))
    }

    /// The program of a link of the same files that finds nothing of earlier links, and whether one that finds what this link has left
    /// makes the same.
    fn fresh(&self) -> Result<(Vec<u8>, bool)> {
        let copy = self.path.with_extension("fresh");
        if copy.exists() {
            fs::remove_dir_all(&copy)?;
        }
        let mut copies = Command::new("cp");
        succeed(copies.arg("-a").arg(&self.path).arg(&copy))?;
        distlto::forget(&copy.join(PROGRAM))?;
        let mut command = self.command(&copy)?;
        let output = capture(&mut command)?;
        ensure!(output.status.success(), "{}", told(&command, &output));
        let program = fs::read(copy.join(PROGRAM))?;
        // As another checkout, with the store that the first has filled before the change.
        fs::remove_file(copy.join(PROGRAM))?;
        let mut command = self.command(&copy)?;
        let output = capture(command.env("XDG_CACHE_HOME", self.path.join(store::CACHE)))?;
        ensure!(output.status.success(), "{}", told(&command, &output));
        let is_same = fs::read(copy.join(PROGRAM))? == program;
        fs::remove_dir_all(copy)?;
        Ok((program, is_same))
    }

    /// Changes something and links again.
    fn after(&mut self, random: &mut Random, change: Change, before: &[u8]) -> Result<Vec<u8>> {
        self.done.push(change.name());
        self.change(random, change)?;
        let (fresh, is_same) = self.fresh()?;
        if !is_same {
            self.found.stale += 1;
            self.tell("another checkout with the same store gets another program");
        }
        let (program, nothing) = self.link()?;
        let counts = self.found.changes.entry(change.name()).or_default();
        counts[0] += 1;
        counts[1] += usize::from(program != before);
        if program != fresh {
            self.found.stale += 1;
            self.tell("the program is not that of a fresh link");
        }
        let gone: Vec<_> = self.outputs().filter(|name| !self.path.join(name).is_file()).collect();
        let overwritten =
            self.outputs().find(|name| fs::read(self.path.join(name)).is_ok_and(|text| text == b"another\n"));
        if !gone.is_empty() || overwritten.is_some() {
            self.found.stale += 1;
            self.tell(&format!("not made again: {gone:?} {overwritten:?}"));
        }
        if !change.has_effect() && !nothing {
            self.found.needless += 1;
            self.tell("the link ran, though nothing that it reads had changed");
        }
        let (again, nothing) = self.link()?;
        if !nothing || again != program {
            self.found.needless += 1;
            self.tell("the link after that ran, though nothing had changed");
        }
        Ok(program)
    }

    fn tell(&mut self, text: &str) {
        let Self { seed, parts, done, .. } = self;
        self.found.messages.push(format!(
            "seed {seed}: {text}\n  it reads {parts:?}\n  changed: {done:?}\n  again: cargo xtask campaign reads --seed {seed} --count 1 --keep DIR\n"
        ));
    }
}
