//! Which functions of one module another one imports, and LLVM's reason for each one that it refused.
//!
//! The linker is asked: it repeats the thin link of the recorded command with `-print-import-failures`
//! (`FunctionImport.cpp`, LLVM 7 and later), and writes into a scratch directory alone. A shard lists imports by GUID,
//! and the other module has their names. Does not decide what LLVM imports.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::{fmt, fs};

use camino::Utf8PathBuf;
use distlto_executor::cancel::Cancel;
use distlto_executor::execute::spawn::PLAIN;
use distlto_planner::bitcode::BitcodeError;
use distlto_planner::link_command::{self, GivenCommand, LinkCommandError, Resolved};
use distlto_planner::link_line::LinkLine;
use distlto_planner::linker::options::last;
use distlto_planner::references;
use distlto_planner::runner::Runner;
use distlto_planner::shard::{self, OwnSymbols};
use distlto_planner::words::Word;
use distlto_prepare::io_error::IoError;
use distlto_prepare::regular;
use distlto_prepare::text::printable;
use miette::Report;
use serde::Serialize;

use super::is_called;
use crate::link::error::LinkError;
use crate::link::line::without_further_outputs;
use crate::link_description::{LinkDescription, LinkDescriptionError};
use crate::scratch::scratch;
use crate::serve::modules::ModuleFiles;
use crate::serve::process::linker_words;
use crate::tool::{KEEP, ToolRunner};

/// Makes LLVM print each function that it refuses to import.
const OPTION: &str = "-print-import-failures";
/// Begins LLVM's lines about one importer.
const HEADING: &str = "Missed imports into module ";
/// So many folders lie between the scratch directory and the shards: that of `../a.o` is inside too.
const DEPTH: usize = 64;

/// The functions of a module, as another one sees them.
#[derive(Debug, Serialize)]
pub(super) struct Functions {
    version: u32,
    module: String,
    from: String,
    /// The imported ones, then the refused ones, the largest first.
    functions: Vec<Function>,
    /// How many more the module has.
    others: usize,
    /// Why LLVM's reasons are missing, and the remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Function {
    name: String,
    guid: u64,
    instructions: u64,
    imported: bool,
    /// LLVM's reason, and its meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not: Option<String>,
}

/// Symbols by GUID: those that the importer takes from the other module, and all of that module.
struct Pair {
    imported: OwnSymbols,
    offered: OwnSymbols,
}

impl Functions {
    /// Of two modules by their numbers, the importer first.
    pub(super) fn of(seen: &LinkDescription, numbers: [usize; 2], cancel: &Cancel) -> Result<Self, Report> {
        let [module, from] = numbers.map(|number| seen.modules[number].label.clone());
        let mut files = ModuleFiles::new(seen.root().as_std_path(), "");
        let (pair, refused, note) = match ask(seen, numbers, &mut files, cancel) {
            Ok((pair, refused)) => (pair, refused, None),
            Err(_) if cancel.is_cancelled() => {
                return Err(LinkError::Interrupted { exit_code: cancel.exit_code() }.into());
            }
            Err(error) => match Pair::kept(seen, numbers) {
                Ok(pair) => (pair, Vec::new(), Some(error)),
                Err(missing) => return Err(if seen.command.is_empty() { missing } else { error }),
            },
        };
        let names = files.with_labelled(&from, |bytes| references::read(bytes).ok()?);
        let name = |guid| Some(String::from_utf8_lossy(names.as_ref()?.name(guid)?).into_owned());
        let imported = pair.imported.keys().filter_map(|&guid| {
            let instructions = pair.instructions(guid)?;
            let name = name(guid).unwrap_or_else(|| format!("guid {guid}"));
            Some(Function { name, guid, instructions, imported: true, why_not: None })
        });
        let refused = refused.into_iter().filter(|function| pair.offered.contains_key(&function.guid));
        let mut functions: Vec<Function> = imported.chain(refused).collect();
        functions.sort_by_key(|function| (!function.imported, Reverse(function.instructions), function.guid));
        let listed: HashSet<u64> = functions.iter().map(|function| function.guid).collect();
        let others = pair.offered.keys().filter(|guid| !listed.contains(guid));
        let others = others.filter_map(|&guid| pair.instructions(guid)).count();
        let note = note.map(|error| {
            let remedy = error.help().map_or_else(String::new, |help| format!("; {help}"));
            format!("LLVM's reasons are not known: {error}{remedy}")
        });
        Ok(Self { version: 1, module, from, functions, others, note })
    }
}

impl Pair {
    /// From the shards of both modules, if they are of the link that was seen. `is_called` says whether a path in them
    /// is that of the first or the second module.
    fn of(
        seen: &LinkDescription,
        numbers: [usize; 2],
        shards: [Utf8PathBuf; 2],
        is_called: impl Fn(&[u8], usize) -> bool,
    ) -> Result<Self, Report> {
        let mut symbols = [OwnSymbols::new(), OwnSymbols::new()];
        for (at, place) in shards.iter().enumerate() {
            if !place.exists() {
                let help = "run the command where the link ran, or name its output; a build system may keep no shards";
                return Err(unable(format!("{place} is not there, which says what is imported"), help));
            }
            let bytes = regular::read(place.as_std_path()).map_err(IoError::on("read", place))?;
            let broken = |error: BitcodeError| unable(format!("{place}: {error}"), error.remedy);
            let shard = shard::read(&bytes).map_err(broken)?;
            let name = |which| {
                let found = shard.modules.iter().find(|module| is_called(&module.path, which));
                found.map_or_else(String::new, |module| module.name().into_owned())
            };
            let cost =
                shard.cost(&name(at)).map_err(|error| unable(error.to_string(), "link by another LLVM"))?;
            let known = &seen.modules[numbers[at]];
            let known_cost = [known.own_instructions, known.imported_instructions];
            if [cost.own_instructions, cost.imported_instructions] != known_cost {
                return Err(changed(&known.label));
            }
            symbols[at] = shard::own_symbols(&bytes, &name(1)).map_err(broken)?.unwrap_or_default();
        }
        let [imported, offered] = symbols;
        Ok(Self { imported, offered })
    }

    /// The size of a function of the other module, be it one under another name; `None` for a variable.
    fn instructions(&self, guid: u64) -> Option<u64> {
        let symbol = self.offered.get(&guid)?;
        let function = if symbol.is_alias { self.offered.get(symbol.refers_to.first()?)? } else { symbol };
        function.is_function.then_some(function.instructions)
    }

    /// From the shards that the link left.
    fn kept(seen: &LinkDescription, numbers: [usize; 2]) -> Result<Self, Report> {
        let [Some(own), Some(other)] = numbers.map(|number| seen.shard(number)) else {
            let what = format!("{} does not say where the index shards of its modules are", seen.named);
            return Err(unable(what, "name the output, or the state directory of the link"));
        };
        Self::of(seen, numbers, [own, other], |path, which| {
            is_called(path, &seen.modules[numbers[which]].label)
        })
    }
}

fn unable(what: String, help: &str) -> Report {
    LinkDescriptionError::Unreadable { what, help: help.to_owned() }.into()
}

fn changed(label: &str) -> Report {
    unable(format!("{label} or a module that it imports has changed since this link"), "link again")
}

/// Asks the linker: the functions of both modules, and all that LLVM refused to import into the first one.
fn ask(
    seen: &LinkDescription,
    numbers: [usize; 2],
    files: &mut ModuleFiles,
    cancel: &Cancel,
) -> Result<(Pair, Vec<Function>), Report> {
    let runner = ToolRunner { spawner: &PLAIN, cancel, directory: Some(seen.root().as_std_path()) };
    let (mut words, line) = linker(seen, &runner)?;
    let scratch = scratch("explain")?;
    let inside = |name: &str| format!("{}/{name}", scratch.path().display());
    let shards = inside(&"x/".repeat(DEPTH));
    fs::create_dir_all(&shards).map_err(IoError::on("create directory", &shards))?;
    words.extend(without_further_outputs(line.arguments(), line.words()));
    words.extend(["-mllvm", OPTION].map(|word| word.as_bytes().to_vec()));
    let outputs = [("output=", "program"), ("thinlto-index-only=", "list")];
    words.extend(outputs.map(|(option, name)| format!("--{option}{}", inside(name)).into_bytes()));
    words.push(format!("--thinlto-prefix-replace=;{shards}").into_bytes());
    // A linker with a distributor gives members of archives other names.
    words.extend(last(line.arguments(), "thinlto-distributor").map(|_| b"--thinlto-distributor=".to_vec()));
    let output = runner.run(&words).map_err(IoError::on("run the linker in", seen.root()))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let error = text.lines().find(|line| line.contains("error: ")).or(text.lines().last());
        let error = error.map_or_else(|| output.status.to_string(), str::to_owned);
        let help = match error.contains(OPTION) {
            true => "this linker does not know the option: link by lld 15 or later",
            false => "link again with inputs that stay; a driver removes the object of a source when it ends",
        };
        return Err(unable(format!("this link cannot be repeated: {error}"), help));
    }
    if text.len() > KEEP {
        let help = "ask about a smaller link of the same modules";
        return Err(unable(format!("LLVM's reasons take more than {} MiB", KEEP >> 20), help));
    }
    let about: Vec<(&str, &str)> =
        text.split(HEADING).skip(1).filter_map(|part| part.split_once('\n')).collect();
    let mut find = |number: usize| {
        let label = &seen.modules[number].label;
        about.iter().find(|(id, _)| files.label(id) == *label).ok_or_else(|| changed(label))
    };
    let [own, other] = [find(numbers[0])?, find(numbers[1])?];
    let places = [own, other].map(|(id, _)| format!("{shards}{id}.thinlto.bc").into());
    let pair = Pair::of(seen, numbers, places, |path, which| path == [own, other][which].0.as_bytes())?;
    Ok((pair, own.1.lines().filter_map(refused).collect()))
}

/// The linker of the link command, and its line.
fn linker(seen: &LinkDescription, runner: &ToolRunner<'_>) -> Result<(Vec<Word>, LinkLine), Report> {
    let words: Vec<Word> = seen.command.iter().map(|word| word.clone().into_bytes()).collect();
    if seen.is_record {
        let (linker, line) = words.split_at(linker_words(&words));
        let line = LinkLine::read(line.to_vec()).map_err(LinkCommandError::from);
        return Ok((linker.to_vec(), line.map_err(LinkError::from)?));
    }
    if !words.is_empty()
        && let Resolved::Link(link) =
            link_command::resolve(&GivenCommand::new(&words), runner).map_err(LinkError::from)?
    {
        return Ok((link.linker, link.line));
    }
    Err(unable(format!("{} holds no command of ld.lld", seen.named), "name the output of a link by distlto"))
}

/// Reads `GUID (NAME): Reason = TooLarge, Threshold = 70, Size = 96, ...`.
fn refused(line: &str) -> Option<Function> {
    let (head, facts) = line.rsplit_once(": Reason = ")?;
    let (guid, name) = head.split_once(' ').unwrap_or((head, ""));
    let guid = guid.parse().ok()?;
    let name = name.strip_prefix('(').and_then(|name| name.strip_suffix(')'));
    let mut facts = facts.split(", ");
    let reason = facts.next()?;
    let mut number = |key: &str| facts.next()?.strip_prefix(key)?.strip_prefix(" = ")?.parse::<i64>().ok();
    let (threshold, size) = (number("Threshold")?, number("Size")?);
    let why = match reason {
        "TooLarge" => &*format!("{size} instructions, and the limit for this call is {threshold}"),
        "NotLive" => "nothing that the link keeps needs it",
        "InterposableLinkage" => "another definition may take its place",
        "LocalLinkageNotInModule" => "several modules have a local function of this name and source",
        "NotEligible" => "its code cannot be moved to another module",
        "NoInline" => "it must not be inlined",
        "GlobalVar" => "it is a variable",
        _ => "LLVM gives no further reason",
    };
    Some(Function {
        name: name.map_or_else(|| format!("guid {guid}"), str::to_owned),
        guid,
        instructions: u64::try_from(size).unwrap_or_default(),
        imported: false,
        why_not: Some(format!("{reason}: {why}")),
    })
}

impl fmt::Display for Functions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { module, from, functions, others, note, .. } = self;
        let imported = functions.iter().filter(|function| function.imported).count();
        let all = functions.len() + others;
        writeln!(out, "{} imports {imported} of {all} functions of {}", printable(module), printable(from))?;
        for Function { name, instructions, why_not, .. } in functions {
            let why = why_not.as_deref().unwrap_or("imported");
            writeln!(out, "{instructions:>7}  {}: {why}", printable(&demangled(name)))?;
        }
        match note {
            Some(note) => writeln!(out, "{}", printable(note)),
            None if *others > 0 => {
                writeln!(out, "{others} more: no call leads to them, or another module has them too")
            }
            None => Ok(()),
        }
    }
}

/// A name of C++ or Rust as its source has it.
fn demangled(name: &str) -> String {
    // Any name of C is a type in C++'s grammar.
    let cpp = || cpp_demangle::Symbol::new(name.strip_prefix("_Z").and(Some(name))?).ok()?.demangle().ok();
    match rustc_demangle::try_demangle(name) {
        Ok(rust) => format!("{rust:#}"),
        Err(_) => cpp().unwrap_or_else(|| name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_reasons_are_none() {
        for damaged in [
            "",
            "7",
            "7 (f): Reason = ",
            "x (f): Reason = NoInline, Threshold = 1, Size = 2",
            "7 (f): Reason = TooLarge, Size = 1",
        ] {
            assert_eq!(refused(damaged), None, "{damaged}");
        }
    }
}
