//! Random edits of a program: what a developer or a build system does to sources, archives, scripts and the line.

use super::generate::define;
use super::model::{Constructor, Element, Form, Language, Program, Unit, Use, What};
use super::random::Random;

/// Something done to files beside the program's own texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Also {
    /// Nothing.
    Nothing,
    /// An input's time is set to this moment.
    Touch,
    /// An output is removed.
    Delete,
}

const KINDS: [&str; 20] = [
    "constant",
    "constant",
    "body",
    "body",
    "add function",
    "remove function",
    "swap weak and strong",
    "constructor",
    "add member",
    "remove member",
    "replace thin member",
    "touch",
    "reorder",
    "version script",
    "linker script",
    "response file",
    "switch link",
    "delete output",
    "level",
    "form",
];

/// Makes a program ready for edits: one native object is a symbolic link.
pub fn prepare(random: &mut Random, program: &mut Program) {
    let native: Vec<usize> = native_objects(program);
    if let Some(unit) = random.pick(&native) {
        program.units[*unit].link = Some(0);
    }
}

/// An edit of a program; its name, and what else is to be done. One that finds nothing to edit changes nothing.
pub fn change(random: &mut Random, program: &mut Program) -> (&'static str, Also) {
    let kind = KINDS[random.below(KINDS.len())];
    let count = program.units.len();
    let unit = random.below(count);
    match kind {
        "constant" => value(random, &mut program.units[unit]),
        "body" => body(random, &mut program.units[unit]),
        "add function" => add_function(random, program),
        "remove function" => remove_function(random, program),
        "swap weak and strong" => swap(random, &mut program.units[unit]),
        "constructor" => constructor(&mut program.units[unit]),
        "add member" => add_member(random, program),
        "remove member" => remove_member(random, program),
        "replace thin member" => {
            let thin = program.archives.iter().filter(|library| library.thin);
            let members: Vec<usize> = thin.flat_map(|library| library.members.clone()).collect();
            if let Some(unit) = random.pick(&members) {
                value(random, &mut program.units[*unit]);
            }
        }
        "touch" => return (kind, Also::Touch),
        "reorder" => {
            let (one, other) = (random.below(program.line.len()), random.below(program.line.len()));
            program.line.swap(one, other);
        }
        "version script" => {
            if let Some(patterns) = &mut program.options.version {
                match patterns.iter().position(|pattern| pattern == "report_u*") {
                    Some(at) => drop(patterns.remove(at)),
                    None => patterns.push("report_u*".to_owned()),
                }
            }
        }
        "linker script" => script(random, program),
        "response file" => {
            // Its contents, where there is one.
            if !program.options.response || random.chance(30) {
                program.options.response = !program.options.response;
            } else {
                random.shuffle(&mut program.line);
            }
        }
        "switch link" => {
            let linked = program.units.iter_mut().find(|unit| unit.link.is_some());
            if let Some(unit) = linked {
                value(random, unit);
                unit.link = unit.link.map(|number| number + 1);
            }
        }
        "delete output" => return (kind, Also::Delete),
        "level" => program.units[unit].level = 3 - program.units[unit].level,
        _ => form(&mut program.units[unit]),
    }
    (kind, Also::Nothing)
}

fn native_objects(program: &Program) -> Vec<usize> {
    let native = |element: &Element| match element {
        Element::Object(unit) if program.units[*unit].form == Form::Native => Some(*unit),
        _ => None,
    };
    program.line.iter().filter_map(native).collect()
}

fn value(random: &mut Random, unit: &mut Unit) {
    let at = random.below(unit.defines.len());
    if let Some(definition) = unit.defines.get_mut(at) {
        definition.value += 1000 + random.below(50);
    }
}

fn body(random: &mut Random, unit: &mut Unit) {
    let at = random.below(unit.defines.len());
    if let Some(definition) = unit.defines.get_mut(at) {
        match random.below(3) {
            0 => definition.long = !definition.long,
            1 => definition.local = !definition.local,
            _ => drop(definition.calls.pop()),
        }
    }
}

fn add_function(random: &mut Random, program: &mut Program) {
    let count = program.units.len();
    let number = (0..).find(|number| {
        let name = format!("added_{number}");
        !program.units.iter().any(|unit| unit.has(&name))
    });
    let name = format!("added_{}", number.unwrap_or_default());
    let (unit, user) = (random.below(count), random.below(count));
    define(random, &mut program.units, unit, &name, What::Strong);
    program.units[user].uses.push(Use::Call(name));
}

fn remove_function(random: &mut Random, program: &mut Program) {
    let unit = random.below(program.units.len());
    let defines = &program.units[unit].defines;
    let Some(name) = random.pick(defines).map(|definition| definition.name.clone()) else { return };
    program.units[unit].defines.retain(|definition| definition.name != name);
    // Sometimes the link fails until another edit mends it.
    if program.units.iter().any(|unit| unit.has(&name)) || random.chance(10) {
        return;
    }
    for unit in &mut program.units {
        unit.uses.retain(|usage| match usage {
            Use::Call(used) | Use::Data(used) | Use::Tls(used) => *used != name,
            _ => true,
        });
        for definition in &mut unit.defines {
            definition.calls.retain(|called| *called != name);
        }
    }
}

fn swap(random: &mut Random, unit: &mut Unit) {
    let at = random.below(unit.defines.len());
    if let Some(definition) = unit.defines.get_mut(at) {
        definition.what = match definition.what {
            What::Strong => What::Weak,
            What::Weak => What::Strong,
            What::Alias => What::WeakAlias,
            What::WeakAlias => What::Alias,
            What::Data => What::WeakData,
            What::WeakData => What::Data,
            What::Tls => What::WeakTls,
            What::WeakTls => What::Tls,
            other => other,
        };
    }
}

fn constructor(unit: &mut Unit) {
    if unit.constructors.pop().is_none() {
        unit.constructors.push(Constructor { number: 9, priority: None, object: true, destructor: false });
    }
}

/// An object of the line becomes a member of an archive.
fn add_member(random: &mut Random, program: &mut Program) {
    let at = random.below(program.line.len());
    let archive = random.below(program.archives.len());
    let (Some(Element::Object(unit)), Some(archive)) =
        (program.line.get(at), program.archives.get_mut(archive))
    else {
        return;
    };
    archive.members.insert(random.below(archive.members.len() + 1), *unit);
    program.line.remove(at);
}

/// A member of an archive becomes an object of the line, or disappears.
fn remove_member(random: &mut Random, program: &mut Program) {
    let archive = random.below(program.archives.len());
    let Some(archive) = program.archives.get_mut(archive).filter(|archive| archive.members.len() > 1) else {
        return;
    };
    let unit = archive.members.remove(random.below(archive.members.len()));
    if random.chance(70) {
        program.line.push(Element::Object(unit));
    }
}

/// A native object of the line moves into the linker script, or out of it.
fn script(random: &mut Random, program: &mut Program) {
    let native = native_objects(program);
    let found = program.line.iter_mut().find_map(|element| match element {
        Element::Script(units) => Some(units),
        _ => None,
    });
    let Some(units) = found else {
        if let Some(unit) = random.pick(&native) {
            program.line.retain(|element| *element != Element::Object(*unit));
            program.line.push(Element::Script(vec![*unit]));
        }
        return;
    };
    if let Some(unit) = random.pick(&native) {
        units.push(*unit);
        program.line.retain(|element| *element != Element::Object(*unit));
    } else if units.len() > 1
        && let Some(unit) = units.pop()
    {
        program.line.push(Element::Object(unit));
    }
}

fn form(unit: &mut Unit) {
    if unit.language != Language::Assembly && unit.link.is_none() {
        unit.form = match unit.form {
            Form::Native => Form::Thin,
            Form::Thin | Form::Full => Form::Native,
        };
    }
}
