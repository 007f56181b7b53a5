//! Where a program's units stand: plain on the line, in archives, between `--start-lib`, in shared libraries and scripts;
//! and the options of the link.

use super::generate::definition;
use super::model::{Element, Form, Kind, Language, Library, Program, Use, What};
use super::random::Random;

#[derive(Clone, Copy)]
enum Place {
    Plain,
    Archive(usize),
    Lazy(usize),
    Shared,
    Script,
    Named,
}

/// Fills in the line, the libraries and the options.
pub fn arrange(random: &mut Random, program: &mut Program) {
    let mut archives: Vec<Vec<usize>> = vec![Vec::new(); 3];
    let mut lazy: Vec<Vec<usize>> = vec![Vec::new(); 2];
    let (mut plain, mut shared, mut script, mut named) = (vec![0], Vec::new(), Vec::new(), Vec::new());
    for unit in 1..program.units.len() {
        match place(random, program, unit) {
            Place::Plain => plain.push(unit),
            Place::Archive(number) => archives[number].push(unit),
            Place::Lazy(number) => lazy[number].push(unit),
            Place::Shared => shared.push(unit),
            Place::Script => script.push(unit),
            Place::Named => named.push(unit),
        }
    }
    if random.chance(8) {
        plain.clear();
        archives[0].insert(0, 0);
    }
    if random.chance(10) {
        let again = random.between(1, program.units.len() - 1);
        archives[1].push(again);
    }
    let mut elements: Vec<Element> = plain.iter().skip(1).map(|unit| Element::Object(*unit)).collect();
    archive_elements(random, program, &archives, &mut elements);
    for units in lazy.into_iter().filter(|units| !units.is_empty()) {
        let again = random.chance(10).then(|| random.between(1, program.units.len() - 1));
        elements.push(Element::Lazy(units, again.into_iter().collect()));
    }
    if !script.is_empty() {
        elements.push(Element::Script(script));
    }
    shared_library(random, program, shared, &mut elements);
    if !named.is_empty() {
        let user = random.pick(&plain).copied().unwrap_or(0);
        program.units[user].library = Some("dep".to_owned());
        program.archives.push(Library { name: "dep".to_owned(), members: named, thin: random.chance(30) });
    }
    random.shuffle(&mut elements);
    if let Some(first) = plain.first() {
        let at = if random.chance(70) { 0 } else { random.between(0, elements.len()) };
        elements.insert(at, Element::Object(*first));
    }
    program.line = elements;
    options(random, program);
}

fn place(random: &mut Random, program: &Program, unit: usize) -> Place {
    let unit = &program.units[unit];
    let native = unit.form == Form::Native;
    let share = |percent: usize| if native { percent } else { 0 };
    let shares = program.options.kind != Kind::Static && unit.language != Language::Assembly;
    let archive = Place::Archive(random.below(3));
    let lazy = Place::Lazy(random.below(2));
    let weights = [
        (35, archive),
        (12, lazy),
        (if shares { share(12) } else { 0 }, Place::Shared),
        (share(8), Place::Script),
        (4, Place::Named),
    ];
    random.weighed(Place::Plain, &weights)
}

fn archive_elements(
    random: &mut Random,
    program: &mut Program,
    archives: &[Vec<usize>],
    elements: &mut Vec<Element>,
) {
    let first = elements.len();
    for (number, members) in archives.iter().enumerate().filter(|(_, members)| !members.is_empty()) {
        let name = format!("a{number}");
        if random.chance(25) {
            for unit in members {
                program.units[*unit].object = format!("o/u{unit}/m.o");
            }
        }
        let element = match random.chance(35) {
            true => Element::Named(name.clone()),
            false => Element::Archive(name.clone()),
        };
        let twice = random.chance(20);
        if twice {
            elements.push(element.clone());
        }
        let whole = random.chance(15);
        elements.push(if whole { Element::Whole(vec![element]) } else { element });
        let thin = random.chance(35);
        program.archives.push(Library { name, members: members.clone(), thin });
    }
    if elements.len() > first + 1 && random.chance(35) {
        let mut group = elements.split_off(first);
        // lld refuses a group within a group.
        if random.chance(6) {
            group = vec![Element::Group(group)];
        }
        elements.push(Element::Group(group));
    }
}

fn shared_library(
    random: &mut Random,
    program: &mut Program,
    units: Vec<usize>,
    elements: &mut Vec<Element>,
) {
    if units.is_empty() {
        return;
    }
    for unit in &units {
        program.units[*unit].position = "-fPIC";
    }
    // What the library and the program share cannot be hidden in either.
    if random.chance(90) {
        for unit in &mut program.units {
            unit.defines.iter_mut().for_each(|definition| definition.visibility = "");
        }
    }
    let name = "s".to_owned();
    elements.push(if random.chance(50) {
        Element::Shared(name.clone())
    } else {
        Element::Named(name.clone())
    });
    program.shared.push(Library { name, members: units, thin: false });
}

fn options(random: &mut Random, program: &mut Program) {
    let mut words = Vec::new();
    let count = program.units.len();
    if random.chance(35) {
        words.push("--gc-sections".to_owned());
    }
    if random.chance(15) {
        let unit = random.below(count);
        let mut wrapper = definition(random, "__wrap_f_0", What::Strong, unit);
        wrapper.visibility = "";
        if program.units[unit].language != Language::Assembly {
            wrapper.calls = vec!["__real_f_0".to_owned()];
        }
        program.units[unit].defines.push(wrapper);
        words.push("--wrap=f_0".to_owned());
    }
    if random.chance(12) {
        let user = random.below(count);
        program.units[user].uses.push(Use::Call("other_f_1".to_owned()));
        words.push("--defsym=other_f_1=f_1".to_owned());
    }
    let rare = [
        (8, "-u=f_1"),
        (8, "-z=muldefs"),
        (6, "--icf=safe"),
        (10, "--export-dynamic"),
        (6, "--as-needed"),
        (5, "--exclude-libs=ALL"),
        (5, "-Bsymbolic"),
        (5, "--build-id"),
        (5, "--lto-O1"),
        (4, "--warn-backrefs"),
    ];
    for (percent, word) in rare {
        if random.chance(percent) {
            words.push(word.to_owned());
        }
    }
    program.options.linker = words;
    let share = if program.options.kind == Kind::Shared { 60 } else { 6 };
    if random.chance(share) {
        let all = ["report_u*", "v_*", "f_*", "d_*", "note", "t_*"];
        let kept = all.iter().filter(|_| random.chance(40)).map(|text| (*text).to_owned());
        let entry = if program.options.kind == Kind::Shared { "entry" } else { "main" };
        let patterns: Vec<String> = [entry.to_owned()].into_iter().chain(kept).collect();
        program.options.version = Some(patterns);
    }
}
