//! Which functions of one module another one imports, and why not the others.
//!
//! The shard lists the imports by GUID. The summaries of the two modules give the names of GUIDs, the size of functions
//! and their flags. llvm-dis prints all three; it is looked for beside the compiler. LLVM decides
//! (`FunctionImport.cpp`) by: eligible, not interposable, not noinline, live, called, and small enough.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::fs;
use std::path::Path;

use camino::Utf8Path;
use distlto_executor::cancel::Cancel;
use distlto_executor::execute::spawn::LocalSpawner;
use distlto_executor::loaded;
use distlto_planner::module;
use distlto_planner::runner::Runner;
use distlto_planner::search_path::program_file;
use distlto_planner::words::{Word, lossy, word_of};
use distlto_prepare::input::Input;
use distlto_prepare::io_error::IoError;
use distlto_prepare::named_members::NamedMembers;
use distlto_prepare::text::printable;
use serde::Serialize;

use crate::link::identity;
use crate::seen::{ModuleFiles, Seen, SeenError};
use crate::tool::ToolRunner;

/// The most instructions of a function that is imported, unless `-import-instr-limit` says otherwise.
const LIMIT: u64 = 100;
/// Definitions of these linkages may be others when all is linked.
const INTERPOSABLE: [&str; 5] = ["weak", "linkonce", "common", "extern_weak", "appending"];

/// The functions of a module, as another one sees them.
#[derive(Debug, Serialize)]
pub(super) struct Functions {
    version: u32,
    module: String,
    from: String,
    /// The largest functions first.
    functions: Vec<Function>,
}

#[derive(Debug, Serialize)]
struct Function {
    name: String,
    guid: u64,
    instructions: u64,
    imported: bool,
    /// Why it is not imported, if the index has the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not: Option<String>,
}

/// One entry of a summary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Entry {
    name: Option<String>,
    guid: u64,
    /// Summaries of functions: the module's number, and the facts.
    functions: Vec<(String, Facts)>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Facts {
    linkage: String,
    not_eligible: bool,
    live: bool,
    is_declaration: bool,
    no_inline: bool,
    instructions: u64,
}

impl Functions {
    /// Of the modules with these numbers.
    pub(super) fn of(seen: &Seen, module: usize, from: usize, cancel: &Cancel) -> Result<Self, SeenError> {
        let unknown = || SeenError::Unreadable {
            what: format!("{} does not say where the files of its modules are", seen.named),
            help: "name the output, or the state directory of the link".to_owned(),
        };
        let files = |number| seen.files(number).ok_or_else(unknown);
        let (own, other) = (files(module)?, files(from)?);
        let tools = Disassembler::of(seen, &own, cancel)?;
        let shard = tools.entries(seen.place(&own.shard).as_std_path())?;
        let defined = tools.of_module(seen, &own)?;
        let offered = tools.of_module(seen, &other)?;
        let live: Option<HashSet<u64>> =
            tools.entries(seen.place(&other.shard).as_std_path()).ok().map(|(_, entries)| living(&entries));
        Ok(Self::compare(
            [own, other].map(|files| files.module.into_string()),
            &shard,
            &defined.1,
            &offered.1,
            live,
            seen.limit.unwrap_or(LIMIT),
        ))
    }

    fn compare(
        [module, from]: [String; 2],
        (paths, shard): &(BTreeMap<String, String>, Vec<Entry>),
        defined: &[Entry],
        offered: &[Entry],
        live: Option<HashSet<u64>>,
        limit: u64,
    ) -> Self {
        let is_from = |number: &str| paths.get(number) == Some(&from);
        let imported: HashSet<u64> = shard
            .iter()
            .filter(|entry| {
                entry.functions.iter().any(|(number, facts)| is_from(number) && !facts.is_declaration)
            })
            .map(|entry| entry.guid)
            .collect();
        // A module knows the names that it calls or refers to, and those in its shard.
        let mut known: HashSet<u64> = defined.iter().map(|entry| entry.guid).collect();
        known.extend(shard.iter().map(|entry| entry.guid));
        let functions = offered.iter().filter_map(|entry| {
            let (_, facts) = entry.functions.first()?;
            let is_imported = imported.contains(&entry.guid);
            let why_not = || {
                if live.as_ref().is_some_and(|live| !live.contains(&entry.guid)) {
                    return "nothing that is kept needs it".to_owned();
                }
                why_not(facts, known.contains(&entry.guid), limit)
            };
            Some(Function {
                name: entry.name.clone().unwrap_or_else(|| format!("guid {}", entry.guid)),
                guid: entry.guid,
                instructions: facts.instructions,
                imported: is_imported,
                why_not: (!is_imported).then(why_not),
            })
        });
        let mut functions: Vec<Function> = functions.collect();
        functions.sort_by_key(|function| (!function.imported, std::cmp::Reverse(function.instructions)));
        Self { version: 1, module, from, functions }
    }

    /// The JSON.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings, numbers and lists serialise") + "\n"
    }
}

fn living(entries: &[Entry]) -> HashSet<u64> {
    let lives = |entry: &&Entry| entry.functions.iter().any(|(_, facts)| facts.live);
    entries.iter().filter(lives).map(|entry| entry.guid).collect()
}

fn why_not(facts: &Facts, is_known: bool, limit: u64) -> String {
    let Facts { linkage, not_eligible, no_inline, instructions, .. } = facts;
    if *not_eligible {
        "it is not eligible: it refers to what cannot be named from another module".to_owned()
    } else if INTERPOSABLE.contains(&linkage.as_str()) {
        format!("its linkage is {linkage}: another definition may take its place")
    } else if *no_inline {
        "it is noinline".to_owned()
    } else if !is_known {
        "the module does not call it, nor does what it imports".to_owned()
    } else if *instructions > limit {
        format!("it has {instructions} instructions, more than the limit of {limit}")
    } else {
        format!(
            "not known: the limit of {limit} shrinks along chains of calls and for calls that are seldom made, and a \
             reference that is no call imports nothing"
        )
    }
}

impl fmt::Display for Functions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let imported = self.functions.iter().filter(|function| function.imported).count();
        writeln!(
            out,
            "{} imports {imported} of {} functions of {}",
            printable(&self.module),
            self.functions.len(),
            printable(&self.from)
        )?;
        for Function { name, instructions, why_not, .. } in &self.functions {
            let name = demangled(name);
            let name = printable(&name);
            match why_not {
                None => writeln!(out, "{instructions:>7}  {name}: imported")?,
                Some(why) => writeln!(out, "{instructions:>7}  {name}: {why}")?,
            }
        }
        Ok(())
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

/// llvm-dis of the compiler's LLVM.
struct Disassembler<'a> {
    program: Word,
    runner: ToolRunner<'a>,
}

impl<'a> Disassembler<'a> {
    fn of(seen: &Seen, module: &ModuleFiles, cancel: &'a Cancel) -> Result<Self, SeenError> {
        let runner = ToolRunner { spawner: &LocalSpawner, cancel, directory: None };
        match seen.compiler() {
            Some(compiler) => Self::beside(compiler.to_owned(), runner),
            None => Ok(Self { program: named_by(seen.place(&module.module).as_std_path()), runner }),
        }
    }

    fn beside(compiler: String, runner: ToolRunner<'a>) -> Result<Self, SeenError> {
        // Debian's clang looks for it in /usr/bin, where another version's may be.
        if let Some(program) = identity::located(&compiler).and_then(|file| loaded::beside(&file, "llvm-dis"))
        {
            return Ok(Self { program: word_of(program.into_os_string()), runner });
        }
        let question = vec![compiler.clone().into_bytes(), b"-print-prog-name=llvm-dis".to_vec()];
        let answer = runner.run(&question).map_err(IoError::on("start", &compiler))?;
        let program: Word = answer.stdout.trim_ascii_end().to_vec();
        Ok(Self { program, runner })
    }

    /// The modules' paths by number, and the entries of a file's index.
    fn entries(&self, file: &Path) -> Result<(BTreeMap<String, String>, Vec<Entry>), SeenError> {
        use std::os::unix::ffi::OsStrExt;
        if !file.exists() {
            return Err(SeenError::Unreadable {
                what: format!("{} is not there, which says what is imported", file.display()),
                help: "run the command where the link ran, or name its output; a build system may keep no shards"
                    .to_owned(),
            });
        }
        let command =
            vec![self.program.clone(), b"-o".to_vec(), b"-".to_vec(), file.as_os_str().as_bytes().to_vec()];
        let failed = |what: String| SeenError::Unreadable {
            what: format!("{} cannot read {}: {what}", lossy(&self.program), file.display()),
            help: "install the llvm tools of the compiler's version, and link again if the file has changed"
                .to_owned(),
        };
        let ended = self.runner.run(&command).map_err(|error| failed(error.to_string()))?;
        if !ended.status.success() {
            return Err(failed(String::from_utf8_lossy(&ended.stderr).trim().to_owned()));
        }
        Ok(read(&String::from_utf8_lossy(&ended.stdout)))
    }

    /// Those of a module, be it a member of an archive.
    fn of_module(
        &self,
        seen: &Seen,
        module: &ModuleFiles,
    ) -> Result<(BTreeMap<String, String>, Vec<Entry>), SeenError> {
        let file = seen.place(&module.module);
        let Some(archive) = module.archive.as_deref().filter(|_| !file.is_file()) else {
            return self.entries(file.as_std_path());
        };
        let archive = &seen.place(archive);
        let bytes = member(archive, module.module.as_str())?;
        let place = tempfile::NamedTempFile::new().map_err(IoError::on("create", archive))?;
        fs::write(place.path(), bytes).map_err(IoError::on("write", place.path()))?;
        self.entries(place.path())
    }
}

/// Returns llvm-dis of the LLVM that made a module (`LLVM22.1.8`), or else the one without a version in its name.
fn named_by(module: &Path) -> Word {
    let producer = Input::open(module).ok().and_then(|bytes| Some(module::read(&bytes).ok()?.producer));
    let major = producer.as_deref().and_then(|name| name.strip_prefix("LLVM")?.split('.').next());
    let versioned = major.map(|major| format!("llvm-dis-{major}"));
    let found = versioned.filter(|name| program_file(Path::new(name)).is_some());
    found.unwrap_or_else(|| "llvm-dis".to_owned()).into_bytes()
}

/// The content of `libx.a(m.o)`; with `#2` at its end, of the second member of that name.
fn member(archive: &Utf8Path, label: &str) -> Result<Vec<u8>, SeenError> {
    let missing = || SeenError::Unreadable {
        what: format!("{archive} holds no member for {label}"),
        help: "link again: the archive has changed since".to_owned(),
    };
    let (name, count) = label
        .rsplit_once(")#")
        .map_or((label.trim_end_matches(')'), 1), |(name, count)| (name, count.parse().unwrap_or(1)));
    let name = name.rsplit_once('(').map_or(name, |(_, name)| name);
    let members = NamedMembers::open(archive.as_std_path())?;
    let place = members.places(name.as_bytes()).get(usize::max(count, 1) - 1).ok_or_else(missing)?;
    Ok(members.member(*place)?)
}

/// Reads the lines of an index: `^1 = gv: (name: "f", summaries: (function: (module: ^0, ...))) ; guid = 7`.
fn read(text: &str) -> (BTreeMap<String, String>, Vec<Entry>) {
    let (mut paths, mut entries) = (BTreeMap::new(), Vec::new());
    for (number, what) in
        text.lines().filter(|line| line.starts_with('^')).filter_map(|line| line.split_once(" = "))
    {
        if let Some(path) = what.strip_prefix("module: (path: ") {
            paths.insert(number.to_owned(), quoted(path).unwrap_or_default());
        } else if let Some(entry) = what.strip_prefix("gv: (") {
            entries.extend(entry_of(entry));
        }
    }
    (paths, entries)
}

fn entry_of(text: &str) -> Option<Entry> {
    let name = text.strip_prefix("name: ").and_then(quoted);
    let guid = match text.strip_prefix("guid: ") {
        Some(rest) => number(rest),
        None => number(text.rsplit_once("; guid = ")?.1),
    };
    let functions = text.split("function: (module: ").skip(1).map(|summary| {
        let module = summary.split([',', ')']).next().unwrap_or_default().to_owned();
        let after = |key: &str| summary.split_once(key).map_or("", |(_, rest)| rest);
        let facts = Facts {
            linkage: after("linkage: ").split([',', ')']).next().unwrap_or_default().to_owned(),
            not_eligible: after("notEligibleToImport: ").starts_with('1'),
            live: after("live: ").starts_with('1'),
            is_declaration: after("importType: ").starts_with("declaration"),
            no_inline: after("noInline: ").starts_with('1'),
            instructions: number(after("insts: ")),
        };
        (module, facts)
    });
    Some(Entry { name, guid, functions: functions.collect() })
}

/// The number that a text begins with; 0 where there is none.
fn number(text: &str) -> u64 {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().unwrap_or(0)
}

/// The string that a text begins with, in which `\xx` is a byte.
fn quoted(text: &str) -> Option<String> {
    let inner = text.strip_prefix('"')?;
    let inner = &inner[..inner.find('"')?];
    let mut bytes = Vec::new();
    let mut rest = inner.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped =
            after.get(..2).filter(|_| *first == b'\\').and_then(|hex| std::str::from_utf8(hex).ok());
        match escaped.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARD: &str = "^0 = module: (path: \"a.o\", hash: (1, 2, 3, 4, 5))\n^1 = module: (path: \"d/b \\22.o\", hash: (0))\n\
        ^2 = gv: (guid: 7, summaries: (function: (module: ^1, flags: (linkage: external, notEligibleToImport: 0, live: 1, \
        importType: definition), insts: 3, funcFlags: (noInline: 0))))\n\
        ^3 = gv: (guid: 8, summaries: (function: (module: ^1, flags: (live: 1, importType: declaration), insts: 90)))\n";
    const OFFERED: &str = "^1 = gv: (name: \"f\", summaries: (function: (module: ^0, flags: (linkage: external, \
        notEligibleToImport: 0, live: 0), insts: 3, funcFlags: (noInline: 0)))) ; guid = 7\n\
        ^2 = gv: (name: \"_Z1gi\", summaries: (function: (module: ^0, flags: (linkage: weak, notEligibleToImport: 0), \
        insts: 90))) ; guid = 8\n\
        ^3 = gv: (name: \"h\", summaries: (function: (module: ^0, flags: (linkage: external), insts: 200))) ; guid = 9\n\
        ^4 = gv: (name: \"v\", summaries: (variable: (module: ^0, flags: (linkage: external)))) ; guid = 10\n";

    #[test]
    fn what_is_imported_and_why_the_rest_is_not() {
        let names = ["a.o", "d/b \".o"].map(str::to_owned);
        let found = Functions::compare(names, &read(SHARD), &[], &read(OFFERED).1, None, LIMIT).to_string();
        assert_eq!(
            found,
            "a.o imports 1 of 3 functions of d/b \".o\n      3  f: imported\n    200  h: the module does not call it, nor does \
             what it imports\n     90  g(int): its linkage is weak: another definition may take its place\n"
        );
    }

    #[test]
    fn damaged_text_is_no_panic() {
        for text in ["^", "^1 = gv: (", "^1 = gv: (name: \"", "^1 = module: (path: \"\\", "^1 = gv: (guid: x"]
        {
            let _ = read(text);
        }
        assert_eq!(quoted("\"\\2\""), Some("\\2".to_owned()));
    }
}
