//! Makes a program of a seed: which units there are, what each defines and uses. Where units stand on the line is for
//! `arrange`.

use super::arrange::arrange;
use super::assembly;
use super::model::{Constructor, Definition, Form, Kind, Language, Options, Program, Unit, Use, What};
use super::random::Random;
use crate::toolchain::Toolchain;

/// The program of a seed, without functions that are chosen when the program starts where the LLVM is old: 14 loses them, and the
/// compiler of 16 may crash.
pub fn program_for(seed: u64, toolchain: Toolchain) -> Program {
    let mut program = program(seed);
    if !toolchain.has_dtlto() {
        let defined = program.units.iter_mut().flat_map(|unit| &mut unit.defines);
        defined.filter(|definition| definition.what == What::Ifunc).for_each(|of| of.what = What::Strong);
    }
    program
}

/// The program of a seed.
pub fn program(seed: u64) -> Program {
    let mut random = Random::new(seed);
    let kind = random.weighed(Kind::Pie, &[(25, Kind::Fixed), (15, Kind::Static), (20, Kind::Shared)]);
    let full = random.chance(40);
    let count = random.between(3, 12);
    let units = (0..count).map(|number| unit(&mut random, number, kind, full)).collect();
    let options = Options {
        kind,
        level: random.between(1, 3),
        linker: Vec::new(),
        version: None,
        map: random.chance(20),
        response: random.chance(20),
        twins: 0,
        classes: false,
    };
    let (archives, shared, line) = (Vec::new(), Vec::new(), Vec::new());
    let mut program = Program { seed, units, archives, shared, line, options };
    symbols(&mut random, &mut program);
    reports(&mut random, &mut program.units);
    arrange(&mut random, &mut program);
    program.options.twins = random.weighed(0, &[(6, 2), (6, 3)]);
    // All bitcode of a link has to be split, or none; twins are not.
    program.options.classes = program.options.twins == 0 && random.chance(20);
    program
}

fn unit(random: &mut Random, number: usize, kind: Kind, full: bool) -> Unit {
    let mut language = random.weighed(Language::C, &[(40, Language::Cpp), (15, Language::Assembly)]);
    // The first unit prints with printf, which takes more than the few instructions of the others.
    if language == Language::Assembly && (number == 0 || !assembly::RUNS) {
        language = Language::C;
    }
    let form = match language {
        Language::Assembly => Form::Native,
        _ => random.weighed(Form::Thin, &[(28, Form::Native), (if full { 15 } else { 0 }, Form::Full)]),
    };
    let position = match kind {
        Kind::Pie => random.weighed("-fPIE", &[(30, "-fPIC")]),
        Kind::Fixed | Kind::Static => random.weighed("-fno-pic", &[(15, "-fPIE"), (15, "-fPIC")]),
        Kind::Shared => "-fPIC",
    };
    let mut constructors = Vec::new();
    if random.chance(55) {
        for number in 0..random.between(1, 2) {
            constructors.push(Constructor {
                number,
                priority: random.chance(30).then(|| 200 + random.below(4)),
                object: random.chance(50),
                destructor: random.chance(30),
            });
        }
    }
    Unit {
        number,
        language,
        form,
        level: random.between(1, 2),
        position,
        object: format!("o/u{number}.o"),
        link: None,
        defines: Vec::new(),
        uses: Vec::new(),
        constructors,
        library: None,
    }
}

/// A definition in a unit, with a value of its own.
pub fn definition(random: &mut Random, name: &str, what: What, unit: usize) -> Definition {
    Definition {
        name: name.to_owned(),
        what,
        value: unit * 100 + random.between(1, 99),
        visibility: random.weighed("", &[(8, "hidden"), (5, "protected")]),
        calls: Vec::new(),
        local: random.chance(30),
        long: random.chance(20),
    }
}

fn symbols(random: &mut Random, program: &mut Program) {
    let units = &mut program.units;
    let count = units.len();
    let variants: Vec<String> = (0..random.between(1, 4)).map(|number| format!("v_{number}")).collect();
    for name in &variants {
        // LLVM ends with an error where bitcode defines one symbol in groups and as plainly weak.
        let mixed = random.chance(3);
        let inline = random.chance(50);
        let mut strong = random.chance(40);
        for unit in several(random, count, 4) {
            let bitcode = units[unit].form != Form::Native;
            let what = match strong {
                true => What::Strong,
                false if !bitcode || mixed => any_variant(random),
                false if inline && units[unit].language != Language::Cpp => continue,
                false => variant(random, inline),
            };
            // A second strong one is an error, unless nothing takes its archive's member.
            strong = random.chance(1);
            define(random, units, unit, name, what);
        }
        defined_somewhere(random, units, name, What::Strong);
    }
    for number in 0..random.between(2, count + 2) {
        let name = format!("f_{number}");
        let others = if random.chance(1) { 2 } else { 1 };
        for unit in several(random, count, others) {
            let what = random.weighed(What::Strong, &[(8, What::Alias), (6, What::Ifunc)]);
            define(random, units, unit, &name, what);
            // Functions call those of lower numbers alone, so no choice of definitions makes a circle.
            let calls = (0..random.below(3)).map(|_| {
                let lower = random.below(number + variants.len());
                match variants.get(lower) {
                    Some(variant) => variant.clone(),
                    None => format!("f_{}", lower - variants.len()),
                }
            });
            let calls: Vec<String> = calls.collect();
            if let Some(definition) = units[unit].defines.last_mut() {
                definition.calls = calls;
            }
        }
        for user in several(random, count, 3) {
            let usage = if random.chance(25) { Use::WeakCall(name.clone()) } else { Use::Call(name.clone()) };
            units[user].uses.push(usage);
        }
    }
    for name in &variants {
        for user in several(random, count, 4) {
            units[user].uses.push(Use::Call(name.clone()));
        }
    }
    variables(random, units);
    for number in 0..random.below(3) {
        let name = format!("n_{number}");
        if random.chance(50) {
            define(random, units, number % count, &name, What::Strong);
        }
        for user in several(random, count, 3) {
            units[user].uses.push(Use::WeakCall(name.clone()));
        }
    }
    if random.chance(2) {
        units[count - 1].uses.push(Use::Call("missing".to_owned()));
    }
}

fn variables(random: &mut Random, units: &mut [Unit]) {
    for (prefix, tls) in [("d", false), ("t", true)] {
        for number in 0..random.below(4) {
            let name = format!("{prefix}_{number}");
            let mut strong = random.chance(40);
            let inline = random.chance(40);
            for unit in several(random, units.len(), if tls { 2 } else { 4 }) {
                let bitcode = units[unit].form != Form::Native;
                let what = match (tls, strong) {
                    (true, true) => What::Tls,
                    (true, false) => What::WeakTls,
                    (false, true) => What::Data,
                    (false, false) if bitcode && inline && units[unit].language == Language::Cpp => {
                        What::InlineData
                    }
                    (false, false) if bitcode && inline => continue,
                    (false, false) if bitcode => random.weighed(What::Common, &[(50, What::WeakData)]),
                    (false, false) => {
                        random.weighed(What::Common, &[(30, What::WeakData), (30, What::InlineData)])
                    }
                };
                strong = random.chance(1);
                define(random, units, unit, &name, what);
            }
            defined_somewhere(random, units, &name, What::Data);
            for user in several(random, units.len(), 3) {
                let usage = if tls { Use::Tls(name.clone()) } else { Use::Data(name.clone()) };
                units[user].uses.push(usage);
            }
        }
    }
}

/// A definition that stands aside for others: of those in groups, or of those that are plainly weak.
fn variant(random: &mut Random, inline: bool) -> What {
    match inline {
        true => random.weighed(What::Inline, &[(25, What::InlineStatic)]),
        false => random.weighed(What::Weak, &[(25, What::WeakAlias)]),
    }
}

fn any_variant(random: &mut Random) -> What {
    let inline = random.chance(50);
    variant(random, inline)
}

pub fn define(random: &mut Random, units: &mut [Unit], unit: usize, name: &str, what: What) {
    let definition = definition(random, name, what, unit);
    let unit = &mut units[unit];
    let what = match (unit.language, what) {
        (Language::Assembly, What::Ifunc) => What::Strong,
        _ => what,
    };
    let grouped = matches!(what, What::Inline | What::InlineStatic | What::InlineData);
    if grouped && unit.language == Language::Cpp {
        // C++ gives code to an inline definition that is used.
        let usage = if what.is_function() { Use::Call(name.to_owned()) } else { Use::Data(name.to_owned()) };
        unit.uses.push(usage);
    }
    unit.defines.push(Definition { what, ..definition });
}

fn defined_somewhere(random: &mut Random, units: &mut [Unit], name: &str, what: What) {
    if !units.iter().any(|unit| unit.has(name)) {
        define(random, units, 0, name, what);
    }
}

/// Between one and `most` different units.
fn several(random: &mut Random, count: usize, most: usize) -> Vec<usize> {
    let mut units: Vec<usize> = (0..count).collect();
    random.shuffle(&mut units);
    units.truncate(random.between(1, most));
    units
}

/// Which units report what others report; the first asks about all of them.
fn reports(random: &mut Random, units: &mut [Unit]) {
    let count = units.len();
    for unit in 1..count {
        match random.below(100) {
            0..35 => units[0].uses.push(Use::Report(unit)),
            35..80 => units[0].uses.push(Use::WeakReport(unit)),
            _ => {}
        }
        for _ in 0..random.below(3) {
            let other = random.between(1, count - 1);
            let usage = if random.chance(50) { Use::Report(other) } else { Use::WeakReport(other) };
            if other != unit {
                units[unit].uses.push(usage);
            }
        }
    }
    for unit in units {
        let mut seen: Vec<Use> = Vec::new();
        unit.uses.retain(|usage| {
            let first = !seen.contains(usage);
            seen.push(usage.clone());
            first
        });
    }
}
