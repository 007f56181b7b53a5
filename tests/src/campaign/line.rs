//! The words of a program's link line, and the files that the line names besides objects and libraries.

use std::collections::BTreeMap;

use super::model::{Element, Kind, Program, Unit};

/// What is linked, in the directory `dir`.
pub fn output(program: &Program, dir: &str) -> String {
    match program.options.kind {
        Kind::Shared => format!("{dir}/libp.so"),
        _ => format!("{dir}/program"),
    }
}

/// The words after the driver.
pub fn words(program: &Program, dir: &str) -> Vec<String> {
    let options = &program.options;
    let output = output(program, dir);
    let mut words = vec![format!("-O{}", options.level), "-flto=thin".to_owned(), "-fuse-ld=lld".to_owned()];
    words.extend(kind_words(options.kind).iter().map(|word| (*word).to_owned()));
    for word in &options.linker {
        words.push(match word.strip_prefix('-').and_then(|word| word.split_once('=')) {
            Some((name, value)) if name.len() == 1 => format!("-Wl,-{name},{value}"),
            _ => format!("-Wl,{word}"),
        });
    }
    if options.version.is_some() {
        words.push(format!("-Wl,--version-script={VERSION}"));
    }
    if options.map {
        words.push(format!("-Wl,-Map={output}.map"));
    }
    words.extend(["-Wl,-rpath,$ORIGIN/..".to_owned(), "-L.".to_owned()]);
    match options.response {
        true => words.push(format!("@{RESPONSE}")),
        false => words.extend(inputs(program)),
    }
    words.extend(["-o".to_owned(), output]);
    words
}

fn kind_words(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Pie => &["-pie"],
        Kind::Fixed => &["-no-pie"],
        Kind::Static => &["-static"],
        Kind::Shared => &["-shared", "-Wl,-soname,libp.so"],
    }
}

/// What lld's DTLTO does not tell a compiler of such a link, in the spelling of a driver.
pub fn left_out(program: &Program) -> &'static [&'static str] {
    match program.options.kind {
        Kind::Fixed | Kind::Static => &["-Wl,--thinlto-remote-compiler-arg=-fno-pic"],
        Kind::Pie | Kind::Shared => &[],
    }
}

const VERSION: &str = "version.map";
const RESPONSE: &str = "inputs.rsp";
const SCRIPT: &str = "inputs.ld";
const INCLUDED: &str = "included.ld";
/// The archive of the last of the objects of one content.
pub const TWINS: &str = "libtwins.a";

fn inputs(program: &Program) -> Vec<String> {
    let units = program.line.iter().flat_map(|element| element_words(program, element));
    let mut twins = twins(program);
    if twins.pop().is_some() {
        twins.push(format!("-Wl,--whole-archive,{TWINS},--no-whole-archive"));
    }
    units.chain(twins).collect()
}

/// The objects of one content.
pub fn twins(program: &Program) -> Vec<String> {
    (0..program.options.twins).map(|number| format!("o/twin{number}.o")).collect()
}

fn element_words(program: &Program, element: &Element) -> Vec<String> {
    let object = |unit: &usize| program.units[*unit].object.clone();
    let between = |first: &str, inside: Vec<String>, last: &str| {
        let ends = |word: &str| vec![format!("-Wl,{word}")];
        [ends(first), inside, ends(last)].concat()
    };
    let nested = |elements: &[Element]| {
        elements.iter().flat_map(|element| element_words(program, element)).collect::<Vec<_>>()
    };
    match element {
        Element::Object(unit) => vec![object(unit)],
        Element::Archive(name) => vec![format!("lib{name}.a")],
        Element::Named(name) => vec![format!("-l{name}")],
        Element::Whole(elements) => between("--whole-archive", nested(elements), "--no-whole-archive"),
        Element::Group(elements) => between("--start-group", nested(elements), "--end-group"),
        Element::Lazy(units, again) => {
            let again = again.iter().map(|unit| format!("./{}", object(unit)));
            between("--start-lib", units.iter().map(object).chain(again).collect(), "--end-lib")
        }
        Element::Shared(name) => vec![format!("lib{name}.so")],
        Element::Script(_) => vec![SCRIPT.to_owned()],
    }
}

/// Files that the line or a file of these names, with their contents.
pub fn files(program: &Program) -> BTreeMap<&'static str, String> {
    let mut files = BTreeMap::new();
    if let Some(patterns) = &program.options.version {
        let list: String = patterns.iter().map(|pattern| format!(" {pattern};")).collect();
        files.insert(VERSION, format!("{{ global:{list} local: *; }};\n"));
    }
    if program.options.response {
        files.insert(RESPONSE, inputs(program).join("\n") + "\n");
    }
    for element in &program.line {
        if let Element::Script(units) = element {
            let names: Vec<&str> = units.iter().map(|unit| program.units[*unit].object.as_str()).collect();
            files.insert(SCRIPT, format!("INCLUDE {INCLUDED}\n"));
            files.insert(INCLUDED, format!("INPUT({})\n", names.join(" ")));
        }
    }
    files
}

/// The options that a unit is compiled with.
pub fn compile_words(unit: &Unit, flags: &[&str]) -> Vec<String> {
    let level = format!("-O{}", unit.level);
    let first = [level.as_str(), unit.position, "-w"];
    first.iter().chain(flags).map(|word| (*word).to_owned()).collect()
}
