//! `campaign links` and `edits` with `--format`: random programs for other formats than ELF, against their linker alone.
//!
//! The programs are those of the other campaigns, without things that the format lacks. They are compared byte for
//! byte, and a link after that has nothing to do, or runs no backend. Programs for Windows that differ run under wine.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Result, ensure};
use clap::ValueEnum;

use super::change::change;
use super::generate;
use super::links::{Request, each};
use super::model::{Definition, Element, Form, Language, Program, Unit, Use, What};
use super::random::Random;
use super::source;
use super::windows;
use crate::distlto;
use crate::run::{capture, shown, succeed};
use crate::store;
use crate::toolchain::Toolchain;

/// An object format beside ELF's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Mach-O, by ld64.lld.
    Macho,
    /// WebAssembly, by wasm-ld.
    Wasm,
    /// COFF, by lld-link.
    Coff,
    /// COFF, by ld.lld as the linker of MinGW.
    #[value(name = "mingw")]
    MinGw,
}

/// The system's library of a Mach-O program, as a text-based stub.
pub const LIBRARY: &str = "--- !tapi-tbd\ntbd-version: 4\ntargets: [ arm64-macos ]\ninstall-name: '/usr/lib/libSystem.B.dylib'\n\
    exports:\n  - targets: [ arm64-macos ]\n    symbols: [ dyld_stub_binder, __tlv_bootstrap, ___cxa_atexit, _printf, _puts ]\n...\n";

impl Format {
    /// The target of a compiler.
    pub fn target(self) -> &'static str {
        match self {
            Self::Macho => "--target=arm64-apple-macos13",
            Self::Wasm => "--target=wasm32-unknown-unknown",
            Self::Coff => "--target=x86_64-pc-windows-msvc",
            Self::MinGw => "--target=x86_64-w64-mingw32",
        }
    }

    /// The first LLVM whose linker is served.
    pub fn oldest(self) -> u32 {
        match self {
            Self::Macho => 19,
            Self::Wasm | Self::Coff | Self::MinGw => 22,
        }
    }

    /// Whether it is one of Windows.
    pub fn is_for_windows(self) -> bool {
        matches!(self, Self::Coff | Self::MinGw)
    }

    /// The name of its programs.
    pub fn program(self) -> &'static str {
        if self.is_for_windows() { "program.exe" } else { "program" }
    }

    /// The words of a link after its driver, without inputs and output.
    pub fn link_words(self) -> &'static [&'static str] {
        match self {
            Self::Macho => &[
                "-fuse-ld=lld",
                "-flto=thin",
                "-nostdlib",
                "-L.",
                "-lSystem",
                "-Wl,-undefined,dynamic_lookup",
            ],
            Self::Wasm => &["-flto=thin", "-nostdlib", "-Wl,--no-entry,--export-all,--allow-undefined"],
            Self::Coff => &[
                "-fuse-ld=lld",
                "-flto=thin",
                "-nostdlib",
                "-Wl,/nodefaultlib,/entry:start,/subsystem:console,/brepro",
                "support.obj",
                "kernel32.lib",
            ],
            Self::MinGw => {
                &["-fuse-ld=lld", "-flto=thin", "-static", "-lstdc++", "-Wl,--no-insert-timestamp"]
            }
        }
    }

    /// Leaves out things that the format lacks.
    fn adapt(self, program: &mut Program) {
        program.options.twins = 0;
        program.options.classes = false;
        if self.is_for_windows() {
            windows::adapt(self, program);
        }
        for unit in &mut program.units {
            if unit.language == Language::Assembly {
                unit.language = Language::C;
            }
            unit.link = None;
            unit.library = None;
            let has_destructors = self != Self::Wasm;
            unit.constructors.iter_mut().for_each(|constructor| constructor.destructor &= has_destructors);
            unit.defines.iter_mut().for_each(|definition| self.adapt_definition(definition));
            if self == Self::Wasm {
                for usage in &mut unit.uses {
                    if let Use::Tls(name) = usage {
                        *usage = Use::Data(format!("plain_{name}"));
                    }
                }
            }
        }
    }

    fn adapt_definition(self, definition: &mut Definition) {
        if definition.visibility == "protected" {
            definition.visibility = "hidden";
        }
        definition.what = match (self, definition.what) {
            (_, What::Ifunc) | (Self::Macho, What::Alias) => What::Strong,
            (Self::Macho, What::WeakAlias) => What::Weak,
            (Self::Wasm | Self::Coff, What::Common) => What::WeakData,
            (Self::Wasm, What::Tls | What::WeakTls) => {
                definition.name = format!("plain_{}", definition.name);
                What::WeakData
            }
            (_, what) => what,
        };
    }
}

/// What came of all links.
#[derive(Debug, Default)]
pub struct Found {
    /// Links.
    pub links: usize,
    /// Links that the linker refuses.
    pub refused: usize,
    /// Backends that ran.
    pub ran: usize,
    /// Programs of other bytes that print the same.
    pub alike: usize,
    /// What differs, and in which link.
    pub messages: Vec<String>,
}

impl fmt::Display for Found {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { links, refused, ran, alike, messages } = self;
        let differing = messages.len();
        writeln!(
            out,
            "{links} links, of which the linker refuses {refused}; {ran} backends ran; {differing} differ, \
             {alike} in bytes alone"
        )
    }
}

impl Found {
    fn add(&mut self, one: Self) {
        self.links += one.links;
        self.refused += one.refused;
        self.ran += one.ran;
        self.alike += one.alike;
        for message in one.messages {
            println!("{message}");
            self.messages.push(message);
        }
    }
}

/// Runs the campaign: so many programs, each with so many edits.
pub fn links(request: &Request, toolchain: Toolchain, format: Format, edits: usize) -> Result<Found> {
    each(request, |seed| program(request, toolchain, format, (seed, edits)), Found::add)
}

fn program(
    request: &Request,
    toolchain: Toolchain,
    format: Format,
    (seed, edits): (u64, usize),
) -> Result<Found> {
    let mut program = generate::program(seed);
    let mut random = Random::new(!seed);
    let path = request.directory.join(format!("{format:?}-{seed}").to_lowercase());
    if path.exists() {
        fs::remove_dir_all(&path)?;
    }
    store::prepare(&path)?;
    let mut built = Built { path, toolchain, format, made: BTreeMap::new(), commands: Vec::new() };
    fs::create_dir_all(built.path.join("o"))?;
    fs::write(built.path.join("libSystem.tbd"), LIBRARY)?;
    if format == Format::Coff {
        windows::runtime(&built.path, toolchain)?;
    }
    let mut found = Found::default();
    let mut edit = "nothing";
    for number in 0..=edits {
        let mut adapted = program.clone();
        format.adapt(&mut adapted);
        if let Err(text) = built.check(&adapted, &mut found)? {
            let again = format!(
                "cargo xtask campaign edits --format {format:?} --seed {seed} --count {number} --keep DIR"
            );
            found.messages.push(format!(
                "seed {seed}, edit {number} ({edit}): {text}\n  again: {}",
                again.to_lowercase()
            ));
        }
        edit = change(&mut random, &mut program).0;
        built.commands.push(format!("echo edit {}: {edit}", number + 1));
    }
    fs::write(built.path.join("commands.sh"), built.commands.join("\n"))?;
    if !request.keep {
        fs::remove_dir_all(&built.path)?;
    }
    Ok(found)
}

/// Counts the backends that ran, from distlto's output.
fn ran(text: &str) -> usize {
    let count = |end: &str| text.lines().filter(|line| line.contains(end)).count();
    text.lines().filter(|line| line.contains("] opt ")).count().saturating_sub(count("(from the cache)"))
}

/// A program's directory.
struct Built {
    path: PathBuf,
    toolchain: Toolchain,
    format: Format,
    /// The source and the command of each object.
    made: BTreeMap<String, String>,
    commands: Vec<String>,
}

impl Built {
    fn run(&mut self, command: &mut Command) -> Result<Output> {
        command.current_dir(&self.path);
        self.commands.push(shown(command));
        capture(command)
    }

    fn compile(&mut self, program: &Program, unit: &Unit) -> Result<()> {
        let mut text = source::text(program, unit);
        if self.format.is_for_windows() {
            text = windows::source(program, unit, &text);
        }
        let mut words = vec![self.format.target().to_owned(), format!("-O{}", unit.level), "-w".to_owned()];
        if unit.language == Language::Cpp {
            let plain = ["-std=c++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"];
            words.extend(plain.map(str::to_owned));
        } else if self.format == Format::Macho {
            words.push("-fcommon".to_owned());
        }
        words.extend(windows::flags(self.format, program).iter().map(|&flag| flag.to_owned()));
        words.extend(match unit.form {
            Form::Thin => Some("-flto=thin".to_owned()),
            Form::Full => Some("-flto=full".to_owned()),
            Form::Native => None,
        });
        words.extend(["-c".to_owned(), unit.source(), "-o".to_owned(), unit.object.clone()]);
        let made = format!("{words:?}\n{text}");
        if self.made.insert(unit.object.clone(), made.clone()).as_ref() == Some(&made) {
            return Ok(());
        }
        fs::write(self.path.join(unit.source()), text)?;
        if let Some(parent) = self.path.join(&unit.object).parent() {
            fs::create_dir_all(parent)?;
        }
        let mut command = Command::new(self.toolchain.tool("clang")?);
        command.current_dir(&self.path).args(words);
        self.commands.push(shown(&command));
        succeed(&mut command).map(drop)
    }

    /// Builds, links by distlto and by the linker alone, and compares.
    fn check(&mut self, program: &Program, found: &mut Found) -> Result<Result<(), String>> {
        for unit in &program.units {
            self.compile(program, unit)?;
        }
        for library in &program.archives {
            let name = format!("lib{}.a", library.name);
            // One that is there may be thin.
            let _ = fs::remove_file(self.path.join(&name));
            let mut ar = Command::new(self.toolchain.tool("llvm-ar")?);
            ar.current_dir(&self.path).arg("qcs").args(library.thin.then_some("--thin")).arg(&name);
            succeed(ar.args(library.members.iter().map(|unit| &program.units[*unit].object)))?;
        }
        let mut inputs: Vec<String> =
            program.line.iter().flat_map(|element| self.words(program, element)).collect();
        if self.format.is_for_windows() {
            // Those that objects of other formats name.
            inputs.extend(program.archives.iter().map(|library| format!("lib{}.a", library.name)));
        }
        // One word twice is one file twice.
        let mut seen = BTreeSet::new();
        inputs.retain(|word| !word.ends_with(".o") || seen.insert(word.clone()));
        let (linker, words) = self.linker(program, inputs)?;
        let link = |before: Option<&Path>| {
            let mut command = match before {
                Some(program) => {
                    let mut command = Command::new(program);
                    command.args(["link", "-v", "--"]).arg(&linker);
                    command
                }
                None => Command::new(&linker),
            };
            store::give(&mut command);
            command.args(&words);
            command
        };
        let (mut alone, mut served, mut again) =
            (link(None), link(Some(distlto::binary()?)), link(Some(distlto::binary()?)));
        let output = self.path.join(self.format.program());
        // A linker that fails leaves the earlier one.
        let _ = fs::remove_file(&output);
        let plain = self.run(&mut alone)?;
        let mut expected = fs::read(&output).unwrap_or_default();
        found.links += 1;
        let ended = self.run(&mut served)?;
        let text = String::from_utf8_lossy(&ended.stderr).into_owned();
        if !plain.status.success() {
            found.refused += 1;
            let refused = String::from_utf8_lossy(&plain.stderr);
            // The last one is a crash: lld-link 22 may not survive one group in machine code and in bitcode.
            let known = ["duplicate", "undefined", "requires that symbol", "submit a bug report"];
            ensure!(known.iter().any(|known| refused.contains(known)), "{refused}");
            return Ok(match ended.status.success() {
                true => Err(format!("links although the linker refuses it\n{refused}")),
                false => Ok(()),
            });
        }
        found.ran += ran(&text);
        if !ended.status.success() {
            return Ok(Err(format!("fails\n{text}")));
        }
        let mut actual = fs::read(&output)?;
        if self.format == Format::Coff && windows::has_debug(program) {
            [actual, expected] = [actual, expected].map(windows::without_identity);
        }
        if actual != expected {
            let alone = self.path.join(format!("alone-{}", self.format.program()));
            fs::write(&alone, expected)?;
            if self.format.is_for_windows() {
                let [one, other] = [windows::run(&alone)?, windows::run(&output)?];
                let is_alike = one.status == other.status && one.stdout == other.stdout;
                found.alike += usize::from(is_alike);
                let end = if is_alike { "the same behaviour" } else { "another behaviour" };
                return Ok(Err(format!("other bytes, {end}")));
            }
            return Ok(Err("other bytes".to_owned()));
        }
        if text.contains("itself") && !text.contains("no input is ThinLTO") {
            return Ok(Err(format!("does not ask\n{text}")));
        }
        let again = self.run(&mut again)?;
        let text = String::from_utf8_lossy(&again.stderr);
        let is_idle = text.contains("nothing to do") || text.contains("no input is ThinLTO");
        // A link whose linker warns is made each time.
        let warns = self.format.is_for_windows() && text.contains("prints something");
        if !(is_idle || warns && ran(&text) == 0) {
            return Ok(Err(format!("links again\n{text}")));
        }
        self.check_graph(program, &linker, &words, &actual)
    }

    /// Links by a graph, which makes the same program.
    fn check_graph(
        &mut self,
        program: &Program,
        linker: &Path,
        words: &[String],
        expected: &[u8],
    ) -> Result<Result<(), String>> {
        let output = self.path.join(self.format.program());
        fs::remove_file(&output)?;
        let mut index = Command::new(distlto::binary()?);
        index.args(["index", "--index", "graph", "--"]).arg(linker).args(words);
        let mut run = Command::new(distlto::binary()?);
        run.args(["run", "graph"]);
        for mut command in [index, run] {
            store::give(&mut command);
            let ended = self.run(&mut command)?;
            if !ended.status.success() {
                return Ok(Err(format!("the graph fails\n{}", String::from_utf8_lossy(&ended.stderr))));
            }
        }
        let mut actual = fs::read(&output)?;
        if self.format == Format::Coff && windows::has_debug(program) {
            actual = windows::without_identity(actual);
        }
        Ok(if actual == expected { Ok(()) } else { Err("other bytes by a graph".to_owned()) })
    }

    /// The linker or the driver, and the words of a link.
    fn linker(&self, program: &Program, inputs: Vec<String>) -> Result<(PathBuf, Vec<String>)> {
        let output = self.format.program();
        let fixed = self.format.link_words().iter().map(|&word| word.to_owned());
        let (target, level) = (self.format.target().to_owned(), format!("-O{}", program.options.level));
        let own = match self.format.is_for_windows() {
            true => windows::link_words(self.format, program),
            false => Vec::new(),
        };
        if windows::is_direct(self.format, program) {
            // The linker's own words are those that a driver passes on.
            let fixed = fixed.filter(|word| !word.starts_with("-fuse-ld") && *word != "-nostdlib");
            let fixed = fixed.flat_map(|word| match word.strip_prefix("-Wl,") {
                Some(words) => words.split(',').map(str::to_owned).collect(),
                None if word == "-flto=thin" => Vec::new(),
                None => vec![word],
            });
            let inputs = inputs.into_iter().map(|word| word.replacen("-Wl,", "", 1));
            let words: Vec<String> =
                fixed.chain(own).chain(inputs).chain([format!("/out:{output}")]).collect();
            fs::write(self.path.join("line.rsp"), words.join("\n"))?;
            return Ok((self.toolchain.tool("lld-link")?, vec!["@line.rsp".to_owned()]));
        }
        let driver = if self.format == Format::MinGw { "clang++" } else { "clang" };
        let own = own.into_iter().map(|word| format!("-Wl,{word}"));
        let fixed = fixed.chain(own);
        let words: Vec<String> = match self.format.is_for_windows() {
            // Libraries after the objects that use them.
            true => [target, level].into_iter().chain(inputs).chain(fixed).collect(),
            false => [target, level].into_iter().chain(fixed).chain(inputs).collect(),
        };
        let words = words.into_iter().chain(["-o".to_owned(), output.to_owned()]);
        Ok((self.toolchain.tool(driver)?, words.collect()))
    }

    /// The words of one element of the line.
    fn words(&self, program: &Program, element: &Element) -> Vec<String> {
        let object = |unit: &usize| program.units[*unit].object.clone();
        let nested = |elements: &[Element]| -> Vec<String> {
            elements.iter().flat_map(|element| self.words(program, element)).collect()
        };
        let between = |first: &str, inside: Vec<String>, last: &str| {
            [vec![format!("-Wl,{first}")], inside, vec![format!("-Wl,{last}")]].concat()
        };
        match element {
            Element::Object(unit) => vec![object(unit)],
            Element::Archive(name) => vec![format!("lib{name}.a")],
            Element::Named(name) if program.archives.iter().any(|library| library.name == *name) => {
                vec![format!("lib{name}.a")]
            }
            Element::Whole(elements) if matches!(self.format, Format::Wasm | Format::MinGw) => {
                between("--whole-archive", nested(elements), "--no-whole-archive")
            }
            Element::Whole(elements) => {
                let load = |word: String| match word.ends_with(".a") {
                    true if self.format == Format::Coff => format!("-Wl,/wholearchive:{word}"),
                    true => format!("-Wl,-force_load,{word}"),
                    false => word,
                };
                nested(elements).into_iter().map(load).collect()
            }
            Element::Group(elements) => nested(elements),
            // Its linker has no such option.
            Element::Lazy(units, _) if self.format == Format::MinGw => units.iter().map(object).collect(),
            Element::Lazy(units, _) => {
                let [first, last] = match self.format {
                    Format::Coff => ["/start-lib", "/end-lib"],
                    _ => ["--start-lib", "--end-lib"],
                };
                between(first, units.iter().map(object).collect(), last)
            }
            Element::Shared(name) | Element::Named(name) => {
                let shared = program.shared.iter().filter(|library| library.name == *name);
                shared.flat_map(|library| library.members.iter().map(object)).collect()
            }
            Element::Script(units) => units.iter().map(object).collect(),
        }
    }
}
