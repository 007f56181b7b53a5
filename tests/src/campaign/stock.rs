//! `campaign stock`: random archives and modules, given to Buck2's own Python tools and to those of distlto, for linkers
//! of type gnu and darwin. Manifests, members and native objects have to be the same, byte for byte.
//!
//! The Python tools are no part of this repository: the user names their directory. What distlto does otherwise on
//! purpose (`docs/design/buck2-files.md`) is not made here. Knows nothing of how either tool works.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::links::{Request, each};
use super::random::Random;
use crate::distlto;
use crate::run::{capture, succeed};
use crate::toolchain::Toolchain;

/// What came of all comparisons.
#[derive(Debug, Default)]
pub struct Found {
    /// Archives that were taken apart, for gnu and darwin.
    pub archives: [usize; 2],
    /// Their members.
    pub members: [usize; 2],
    /// Backends that were compared.
    pub backends: [usize; 2],
    /// Backends that both tools refuse.
    pub refused: [usize; 2],
    /// What differs.
    pub messages: Vec<String>,
}

impl fmt::Display for Found {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, kind) in ["gnu", "darwin"].iter().enumerate() {
            let Self { archives, members, backends, refused, .. } = self;
            writeln!(
                formatter,
                "{kind}: {} archives with {} members, {} backends, of which both refuse {}",
                archives[at], members[at], backends[at], refused[at]
            )?;
        }
        write!(formatter, "differences: {}", self.messages.len())?;
        self.messages.iter().try_for_each(|message| write!(formatter, "\n{message}"))
    }
}

/// Compares as many seeds as asked for, each with one archive and one link of both kinds.
pub fn stock(request: &Request, toolchain: Toolchain, tools: &Path) -> Result<Found> {
    let tools = fs::canonicalize(tools).with_context(|| format!("no directory {}", tools.display()))?;
    let ours = distlto::binary()?;
    let work = |seed| {
        let mut found = Found::default();
        for (at, darwin) in [false, true].into_iter().enumerate() {
            let directory = request.directory.join(format!("stock-{seed}-{at}"));
            let _ = fs::remove_dir_all(&directory);
            fs::create_dir_all(&directory)?;
            let (tools, random) = (tools.clone(), Random::new(seed * 2 + at as u64));
            let mut pair = Pair { directory, tools, ours, toolchain, darwin, random };
            let said = [pair.archive(&mut found, at), pair.backends(&mut found, at)];
            for message in said.into_iter().filter_map(Result::err) {
                found
                    .messages
                    .push(format!("seed {seed}, {}: {message:#}", if darwin { "darwin" } else { "gnu" }));
            }
            if !request.keep {
                fs::remove_dir_all(&pair.directory)?;
            }
        }
        Ok(found)
    };
    each(request, work, |all: &mut Found, one: Found| {
        for at in 0..2 {
            all.archives[at] += one.archives[at];
            all.members[at] += one.members[at];
            all.backends[at] += one.backends[at];
            all.refused[at] += one.refused[at];
        }
        all.messages.extend(one.messages);
    })
}

/// The stock tool and ours, on the same files.
struct Pair<'a> {
    directory: PathBuf,
    tools: PathBuf,
    ours: &'a Path,
    toolchain: Toolchain,
    darwin: bool,
    random: Random,
}

const NAMES: [&str; 7] = ["a.o", "b.o", "util.o", "two.parts.o", "d+e.o", "x-y.o", "data.cpp.o"];
const SYSTEM: &str = "--- !tapi-tbd\ntbd-version: 4\ntargets: [ arm64-macos ]\n\
    install-name: '/usr/lib/libSystem.B.dylib'\nexports:\n  - targets: [ arm64-macos ]\n    \
    symbols: [ dyld_stub_binder ]\n...\n";

impl Pair<'_> {
    fn tool(&self, name: &str) -> Result<Command> {
        let mut command = Command::new(self.toolchain.tool(name)?);
        command.current_dir(&self.directory);
        Ok(command)
    }

    fn compile(&mut self, target: &str, number: usize, output: &str, flags: &[&str]) -> Result<()> {
        let source = format!("source{number}.c");
        fs::write(self.directory.join(&source), source_text(&mut self.random, number))?;
        let mut clang = self.tool("clang")?;
        clang.arg(format!("--target={target}")).args(flags).args(["-c", &source, "-o", output]);
        succeed(&mut clang).map(drop)
    }

    fn target(&self) -> &'static str {
        if self.darwin { "arm64-apple-macos13" } else { "x86_64-pc-linux-gnu" }
    }

    /// The stock tool of a name, then ours.
    fn commands(&self, name: &str) -> [Command; 2] {
        let kind = if self.darwin { "darwin" } else { "gnu" };
        let mut stock = Command::new("python3");
        stock.arg(self.tools.join(format!("dist_lto_{name}_{kind}.py")));
        let mut ours = Command::new(self.ours);
        ours.arg(name);
        [stock, ours]
    }

    /// Makes an archive for a target; members may share a name.
    fn make_archive(&mut self, target: &str, archive: &str) -> Result<usize> {
        let count = self.random.between(1, 8);
        let mut ar = self.tool("llvm-ar")?;
        ar.args(["qcS", archive]);
        for number in 0..count {
            let name = self.random.pick(&NAMES).copied().unwrap_or("a.o");
            let path = format!("{archive}.{number}/{name}");
            fs::create_dir_all(self.directory.join(format!("{archive}.{number}")))?;
            let flags: &[&str] = if self.random.chance(70) { &["-O2", "-flto=thin"] } else { &["-O1"] };
            self.compile(target, number, &path, flags)?;
            ar.arg(path);
        }
        succeed(&mut ar)?;
        Ok(count)
    }

    fn archive(&mut self, found: &mut Found, at: usize) -> Result<()> {
        found.members[at] += self.make_archive(self.target(), "libone.a")?;
        found.archives[at] += 1;
        if self.darwin && self.random.chance(40) {
            self.make_archive("x86_64-apple-macos13", "libother.a")?;
            fs::rename(self.directory.join("libone.a"), self.directory.join("libslice.a"))?;
            let mut lipo = self.tool("llvm-lipo")?;
            succeed(lipo.args(["-create", "libslice.a", "libother.a", "-output", "libone.a"]))?;
        }
        let ar = self.toolchain.tool("llvm-ar")?;
        for (folder, mut command) in ["by-stock", "by-distlto"].into_iter().zip(self.commands("prepare")) {
            let folder = self.directory.join(folder);
            fs::create_dir_all(&folder)?;
            fs::copy(self.directory.join("libone.a"), folder.join("libone.a"))?;
            command.args([
                "--manifest-out",
                "manifest.json",
                "--objects-out",
                "objects",
                "--name",
                "libone.a",
            ]);
            command.args(["--archive", "libone.a", "--ar"]).arg(&ar);
            if self.darwin {
                command.arg("--lipo").arg(self.toolchain.tool("llvm-lipo")?);
                command.args(["--target-architecture", "arm64"]);
            }
            succeed(command.current_dir(&folder))?;
        }
        let manifest = |folder: &str| -> Result<serde_json::Value> {
            Ok(serde_json::from_slice(&fs::read(self.directory.join(folder).join("manifest.json"))?)?)
        };
        let (stock, ours) = (manifest("by-stock")?, manifest("by-distlto")?);
        ensure!(stock == ours, "manifests: stock {stock}, distlto {ours}");
        for member in stock["objects"].as_array().context("a manifest lists objects")? {
            let member = member.as_str().context("members are text")?;
            let place = if self.darwin { format!("objects/{member}") } else { member.to_owned() };
            let read = |folder: &str| fs::read(self.directory.join(folder).join(&place));
            ensure!(read("by-stock")? == read("by-distlto")?, "{member} has another content");
        }
        Ok(())
    }

    /// Modules that call each other, their shards, and a backend of each.
    fn backends(&mut self, found: &mut Found, at: usize) -> Result<()> {
        let count = self.random.between(2, 4);
        let level = *self.random.pick(&["-O1", "-O2", "-O3", "-Os", "-O0"]).unwrap_or(&"-O2");
        let debug = self.random.chance(40).then_some("-g");
        let flags: Vec<&str> = [level, "-flto=thin", "-fPIC"].into_iter().chain(debug).collect();
        let mut modules = Vec::new();
        for number in 0..count {
            modules.push(format!("m{number}.o"));
            self.compile(self.target(), number, &modules[number], &flags)?;
        }
        self.thin_link(&modules)?;
        let split = *self.random.pick(&["none", "single", "split"]).unwrap_or(&"none");
        let arguments = self.arguments();
        fs::write(self.directory.join("args"), arguments.join("\n"))?;
        let wrapper = self.directory.join("wrapper");
        fs::write(&wrapper, "#!/bin/sh\ncc=${1#--cc=}; shift; exec \"$cc\" \"$@\"\n")?;
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
        let clang = self.toolchain.tool("clang")?;
        for module in &modules {
            let mut results = Vec::new();
            for mut command in self.commands("opt") {
                command.args([
                    "--out",
                    "out.o",
                    "--input",
                    module,
                    "--index",
                    &format!("{module}.thinlto.bc"),
                ]);
                if self.darwin {
                    command.arg("--compiler").arg(&clang).args(["--shared-args", "args", "--"]);
                } else {
                    command.args(["--args", "args", "--split-dwarf", split]);
                    command.args((split == "split").then_some(["--dwo", "out.dwo"]).into_iter().flatten());
                    command.arg("--").arg(&wrapper).arg(format!("--cc={}", clang.display()));
                }
                let output = capture(command.current_dir(&self.directory))?;
                let take = |name: &str| {
                    let path = self.directory.join(name);
                    let bytes = fs::read(&path).ok();
                    let _ = fs::remove_file(path);
                    bytes
                };
                results.push((output.status.success(), take("out.o"), take("out.dwo")));
            }
            found.backends[at] += 1;
            let same = match (&results[0], &results[1]) {
                ((false, ..), (false, ..)) => {
                    found.refused[at] += 1;
                    true
                }
                (stock, ours) => stock == ours,
            };
            ensure!(
                same,
                "{module} with {level}, {debug:?}, {arguments:?}, --split-dwarf={split}: another object"
            );
        }
        Ok(())
    }

    fn thin_link(&self, modules: &[String]) -> Result<()> {
        let mut lld = self.tool(if self.darwin { "ld64.lld" } else { "ld.lld" })?;
        if self.darwin {
            fs::write(self.directory.join("System.tbd"), SYSTEM)?;
            lld.args(["-arch", "arm64", "-platform_version", "macos", "13", "13", "-dylib", "System.tbd"]);
        } else {
            lld.arg("-shared");
        }
        lld.args(["--thinlto-index-only=index", "-o", "program"]).args(modules);
        succeed(&mut lld).map(drop)
    }

    /// Link flags for gnu, the compiler's for darwin.
    fn arguments(&mut self) -> Vec<String> {
        let gnu: &[&[&str]] = &[
            &["-pie"],
            &["-shared"],
            &["-Wl,-plugin-opt,O1"],
            &["-Wl,-plugin-opt,O3"],
            &["-Wl,-mllvm,-inline-threshold=3"],
            &["-Wl,-plugin-opt,-inline-threshold=500"],
            &["-Wl,-plugin-opt=-vectorize-loops=false"],
            &["-Xlinker", "-mllvm", "-Xlinker", "-unroll-threshold=0"],
            &["-Xlinker", "--gc-sections"],
            &["-Wl,--gc-sections"],
            &["-lm"],
            &["-Lsome/where"],
            &["-flto=thin"],
            &["-fno-function-sections"],
            &["-fno-data-sections"],
            &["-Wl,--lto-whole-program-visibility"],
            &["-Wl,-mllvm,-no-such-option"],
        ];
        let darwin: &[&[&str]] = &[
            &["-O3"],
            &["-Os"],
            &["-O1"],
            &["-flto=thin"],
            &["-mllvm", "-inline-threshold=3"],
            &["-mllvm", "-vectorize-loops=false"],
            &["-fno-unroll-loops"],
            &["-ffunction-sections"],
            &["-fomit-frame-pointer"],
            &["-Wno-unused-command-line-argument"],
            &["-g"],
            &["-no-such-option"],
        ];
        let mut chosen: Vec<String> = Vec::new();
        if self.darwin {
            chosen.extend(["-target".to_owned(), self.target().to_owned()]);
        }
        let all = if self.darwin { darwin } else { gnu };
        for _ in 0..self.random.below(5) {
            // What both refuse is rare, or nothing else would be compared.
            let limit = if self.random.chance(10) { all.len() } else { all.len() - 1 };
            let at = self.random.below(limit);
            chosen.extend(all[at].iter().map(|&word| word.to_owned()));
        }
        chosen
    }
}

/// Functions with loops and calls of other modules.
fn source_text(random: &mut Random, number: usize) -> String {
    let mut text = String::new();
    for other in 0..8 {
        text += &format!("int f{other}_0(int), f{other}_1(int);\nextern int v{other}[8];\n");
    }
    text += &format!("int v{number}[8] = {{{}, {}}};\n", random.below(9), random.below(9));
    for function in 0..2 {
        let (other, limit) = (random.below(8), random.between(1, 40));
        let call = match random.below(3) {
            // A chain that ends: of two modules only the lower one calls.
            0 if number > 0 => format!("f{}_{}(x + i)", number - 1, random.below(2)),
            1 => "v0[i & 7] * x".to_owned(),
            _ => format!("(x ^ {}) + i", random.below(100)),
        };
        text += &format!(
            "int f{number}_{function}(int x) {{ int sum = {other}; for (int i = 0; i < {limit}; i++) sum += {call}; \
             return sum; }}\n"
        );
    }
    text + if number == 0 { "int main(void) { return f0_0(1); }\n" } else { "" }
}
