//! Random programs for Windows: the differences to other formats in their sources and in their links.
//!
//! A program for MSVC has a runtime of its own (`support.cpp`), so that no SDK is needed. Some of the symbols that a unit
//! uses are imported from a DLL by their declarations, although they are in the same link. Knows nothing of distlto.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result};

use super::formats::Format;
use super::model::{Definition, Element, Kind, Language, Program, Unit, Use, What};
use crate::run::{capture, succeed};
use crate::toolchain::{Toolchain, find, profile_dir};

/// The runtime, and the functions of the system that it imports.
const SUPPORT: &str = include_str!("windows/support.cpp");
const KERNEL: &str = "LIBRARY KERNEL32.dll\nEXPORTS\nExitProcess\nGetStdHandle\nWriteFile\n";

/// The options of every compilation of C++.
const CPP: [&str; 4] = ["-std=c++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"];

/// Makes the runtime of programs for MSVC: `support.obj` and `kernel32.lib`.
pub fn runtime(directory: &Path, toolchain: Toolchain) -> Result<()> {
    fs::write(directory.join("support.cpp"), SUPPORT)?;
    fs::write(directory.join("kernel32.def"), KERNEL)?;
    let mut clang = Command::new(toolchain.tool("clang")?);
    clang.arg(Format::Coff.target()).args(["-O1", "-w", "-fno-builtin"]).args(CPP);
    succeed(clang.args(["-c", "support.cpp", "-o", "support.obj"]).current_dir(directory))?;
    let mut library = Command::new(toolchain.tool("llvm-dlltool")?);
    library.args(["-m", "i386:x86-64", "-d", "kernel32.def", "-l", "kernel32.lib"]);
    succeed(library.current_dir(directory)).map(drop)
}

/// Runs a program.
pub fn run(program: &Path) -> Result<Output> {
    let mut wine = wine()?;
    capture(wine.arg(program))
}

/// Wine, without its messages and without a window.
pub fn wine() -> Result<Command> {
    let place = Path::new("/usr/lib/wine/wine64");
    let file = find("wine64").or_else(|| place.is_file().then(|| place.to_owned()));
    let mut wine = Command::new(file.context("wine64 is missing; install it with `cargo xtask setup`")?);
    // Tests have homes of their own, and making a prefix takes long.
    wine.env("WINEPREFIX", profile_dir()?.join("wine"));
    wine.env("WINEDEBUG", "-all")
        .env("WINEDLLOVERRIDES", "winedbg.exe,mscoree,mshtml=")
        .env_remove("DISPLAY");
    Ok(wine)
}

/// Leaves out things that a format lacks.
pub fn adapt(format: Format, program: &mut Program) {
    program.options.kind = Kind::Pie;
    let names: BTreeSet<String> = program.units.iter().flat_map(|unit| names(unit).cloned()).collect();
    for unit in &mut program.units {
        unit.defines.retain(|definition| !definition.name.starts_with("__wrap_"));
        unit.uses.retain(|usage| !matches!(usage, Use::Call(name) if name.starts_with("other_")));
        unit.defines.iter_mut().for_each(|definition| definition.visibility = "");
        match format {
            Format::MinGw => one_constructor(unit),
            _ => adapt_to_msvc(unit, &names),
        }
    }
    one_of_each(program);
}

fn names(unit: &Unit) -> impl Iterator<Item = &String> {
    unit.defines.iter().map(|definition| &definition.name)
}

/// clang does not let the linker's LTO decide on the order of a module's own constructors, which is another one.
fn one_constructor(unit: &mut Unit) {
    unit.constructors.truncate(1);
    for constructor in &mut unit.constructors {
        constructor.object = unit.language == Language::Cpp;
        constructor.priority = None;
        constructor.destructor &= constructor.object;
    }
    for definition in &mut unit.defines {
        if definition.what == What::InlineData {
            definition.what = What::WeakData;
        }
    }
}

fn adapt_to_msvc(unit: &mut Unit, names: &BTreeSet<String>) {
    // The linker's own LTO mixes the constructors of two members of one name.
    unit.object = format!("o/u{}.o", unit.number);
    for constructor in &mut unit.constructors {
        constructor.priority = None;
        constructor.destructor &= constructor.object && unit.language == Language::Cpp;
    }
    // Two objects that refer weakly to one symbol define it twice.
    unit.uses.retain(|usage| !matches!(usage, Use::WeakCall(name) if !names.contains(name)));
    for usage in &mut unit.uses {
        match usage {
            Use::Tls(name) => *usage = Use::Data(format!("plain_{name}")),
            Use::WeakCall(name) => *usage = Use::Call(std::mem::take(name)),
            Use::WeakReport(other) if *other != unit.number => *usage = Use::Report(*other),
            _ => {}
        }
    }
    for definition in &mut unit.defines {
        if definition.what.is_tls() {
            definition.name = format!("plain_{}", definition.name);
            definition.what = What::WeakData;
        }
    }
}

/// A symbol of the format has either one definition or several in groups: inline functions of C++, and variables of which
/// any is taken.
fn one_of_each(program: &mut Program) {
    let mut definers: BTreeMap<String, Vec<(usize, bool)>> = BTreeMap::new();
    for unit in &program.units {
        for definition in &unit.defines {
            let is_inline = unit.language == Language::Cpp && definition.what.is_function();
            definers.entry(definition.name.clone()).or_default().push((unit.number, is_inline));
        }
    }
    for unit in &mut program.units {
        let number = unit.number;
        unit.defines.retain_mut(|definition| {
            let all = &definers[&definition.name];
            let inline = all.iter().filter(|(_, is_inline)| *is_inline).count();
            if all.len() < 2 {
                return true;
            }
            if !definition.what.is_function() {
                definition.what = if definition.what.is_tls() { What::WeakTls } else { What::WeakData };
                return !definition.what.is_tls() || all[0].0 == number;
            }
            if inline < 2 {
                return all[0].0 == number;
            }
            if definition.what != What::InlineStatic {
                definition.what = What::Inline;
            }
            if unit.language == Language::Cpp {
                // C++ gives code to an inline definition that is used.
                unit.uses.push(Use::Call(definition.name.clone()));
            }
            unit.language == Language::Cpp
        });
    }
}

/// A number that a name has in a program.
fn number(program: &Program, unit: &Unit, name: &str) -> u64 {
    let name = format!("{name}{}", unit.number);
    name.bytes().fold(program.seed, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte))) >> 2
}

/// The source of a unit, with imports of symbols of the same link, and with a class that has a virtual destructor.
pub fn source(program: &Program, unit: &Unit, text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for line in &mut lines {
        // Weak variables are of one definition alone.
        if line.contains("] = {") && !line.contains("__thread") {
            *line = line.replace("__attribute__((weak)) ", "__declspec(selectany) ");
        }
    }
    // A member of an archive is not taken for an import.
    let plain: Vec<&Unit> = program
        .line
        .iter()
        .filter_map(|element| match element {
            Element::Object(unit) => Some(&program.units[*unit]),
            _ => None,
        })
        .collect();
    let is_plain = |definition: &&Definition| {
        matches!(definition.what, What::Strong | What::Alias | What::Data | What::WeakData)
    };
    let defines = |other: &&Unit, name: &str| {
        other.defines.iter().filter(is_plain).any(|definition| definition.name == name)
    };
    let is_own = |name: &str| unit.has(name) || !plain.iter().any(|other| defines(other, name));
    for usage in &unit.uses {
        let (Use::Call(name) | Use::Data(name)) = usage else { continue };
        let chosen = number(program, unit, name);
        if is_own(name) || !chosen.is_multiple_of(3) {
            continue;
        }
        let [function, data] = [format!("unsigned {name}(unsigned);"), format!("extern unsigned {name}[];")];
        let declared = lines.iter_mut().find(|line| **line == function || **line == data);
        let Some(declared) = declared else { continue };
        *declared = format!("__declspec(dllimport) {declared}");
        let call = format!("{name}(7)");
        // Every other function is called by its address.
        if let Some(line) =
            lines.iter_mut().find(|line| line.contains(&call)).filter(|_| chosen.is_multiple_of(2))
        {
            *line = format!(
                "  {{ unsigned (*volatile taken)(unsigned) = {name}; {} }}",
                line.replace(&call, "taken(7)")
            );
        }
    }
    if unit.language == Language::Cpp {
        let name = unit.number;
        lines.push(format!(
            "struct Base {{ virtual ~Base() {{ puts(\"end of a base\"); }} virtual unsigned of(unsigned x) {{ return x; }} }};\n\
             struct Derived_u{name} : Base {{\n  ~Derived_u{name}() override {{ puts(\"end of u{name}\"); }}\n  \
             unsigned of(unsigned x) override {{ return x + local_u{name}(x); }}\n}};\n\
             static Base *volatile base_u{name};\nstatic struct Run_u{name} {{ Run_u{name}() {{\n  \
             base_u{name} = new Derived_u{name}; printf(\"%s %u\\n\", \"of\", base_u{name}->of(3)); delete base_u{name};\n}} }} run_u{name};"
        ));
    }
    lines.join("\n") + "\n"
}

/// The options of a compilation: some programs have debug information, by the rules of their linker.
pub fn flags(format: Format, program: &Program) -> &'static [&'static str] {
    match format {
        Format::Coff if has_debug(program) => &["-g", "-gcodeview"],
        _ => &[],
    }
}

/// Whether there is debug information.
pub fn has_debug(program: &Program) -> bool {
    program.seed.is_multiple_of(4)
}

/// A program's bytes without its identity, which depends on the names of objects in the file with debug information: the
/// time stamps, and the GUID after `RSDS`.
pub fn without_identity(mut program: Vec<u8>) -> Vec<u8> {
    let header = program.get(0x3c..0x40).and_then(|place| place.try_into().ok()).map(u32::from_le_bytes);
    let stamp =
        header.and_then(|header| Some(program.get(header as usize + 8..)?.first_chunk::<4>()?.to_vec()));
    for (text, before, length) in [(Some(b"RSDS".to_vec()), 4, 16), (stamp, 0, 4)] {
        let Some(text) = text.filter(|text| text.iter().any(|byte| *byte != 0)) else { continue };
        let found: Vec<usize> = (0..program.len()).filter(|at| program[*at..].starts_with(&text)).collect();
        for at in found {
            program.iter_mut().skip(at + before).take(length).for_each(|byte| *byte = 0);
        }
    }
    program
}

/// Whether the linker is the command itself, and reads a response file.
pub fn is_direct(format: Format, program: &Program) -> bool {
    format == Format::Coff && program.seed.is_multiple_of(2)
}

/// The words of the link that depend on the program.
pub fn link_words(format: Format, program: &Program) -> Vec<String> {
    let refers = match program.seed % 3 {
        0 => ["/opt:noref", "--no-gc-sections"],
        _ => ["/opt:ref", "--gc-sections"],
    };
    match format {
        Format::Coff => {
            let debug = if has_debug(program) { &["/debug", "/pdb:program.pdb"][..] } else { &[] };
            let level = format!("/opt:lldlto={}", program.options.level);
            let all = debug.iter().copied().chain([refers[0], &level]).map(str::to_owned);
            all.collect()
        }
        _ => vec![refers[1].to_owned()],
    }
}
