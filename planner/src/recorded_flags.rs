//! The flags of an object's compilation, as a build has recorded them: Kbuild's `.X.o.cmd`, or `compile_commands.json`.
//!
//! A backend takes the flags that affect code made of bitcode, and none for sources, diagnostics and outputs. The
//! driver's table marks words that take another word, and words for sources alone. Does not depend on links. Formats:
//! `scripts/Kbuild.include` and `scripts/Makefile.build` of Linux,
//! <https://clang.llvm.org/docs/JSONCompilationDatabase.html>.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};
use miette::Diagnostic;
use serde::Deserialize;
use thiserror::Error;

use crate::clang::driver::find;
use crate::options::Code;

/// A compilation's words, by their use in a backend.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordedFlags {
    /// Those that it takes.
    pub kept: Vec<String>,
    /// The others.
    pub dropped: Vec<String>,
}

/// Where a build keeps its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlagsSource {
    /// Beside each object, as Kbuild does.
    Kbuild,
    /// In a file: `compile_commands.json`, or one of Kbuild's.
    File(Utf8PathBuf),
}

/// Why there are no flags.
#[derive(Debug, Error, Diagnostic)]
pub enum RecordError {
    /// A record cannot be read.
    #[error("cannot read {file}, where the flags of {object} should be: {source}")]
    #[diagnostic(
        code(distlto::bad_input),
        help(
            "Kbuild writes .X.o.cmd beside X.o, and CMake compile_commands.json with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON"
        )
    )]
    Unread {
        /// The record.
        file: Utf8PathBuf,
        /// The object.
        object: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// Nothing about this object.
    #[error("{file} has no flags of {object}")]
    #[diagnostic(
        code(distlto::bad_input),
        help("it was not compiled by the build that wrote the file: compile it again by that build")
    )]
    Absent {
        /// The record.
        file: Utf8PathBuf,
        /// The object.
        object: String,
    },
    /// A command that no shell would split.
    #[error("{file}: the command of {object} has a quotation mark that is never closed")]
    #[diagnostic(code(distlto::bad_input), help("compile it again: the record was cut"))]
    Unclosed {
        /// The record.
        file: Utf8PathBuf,
        /// The object.
        object: String,
    },
    /// Not a list of commands.
    #[error("{file}: {source}")]
    #[diagnostic(
        code(distlto::bad_input),
        help("a compile_commands.json is a list of objects with directory, file, and command or arguments")
    )]
    Json {
        /// The record.
        file: Utf8PathBuf,
        /// The JSON error, with its place.
        source: serde_json::Error,
    },
}

/// One entry of `compile_commands.json`.
#[derive(Debug, Deserialize)]
struct Entry {
    directory: PathBuf,
    #[serde(default)]
    command: String,
    #[serde(default)]
    arguments: Vec<String>,
    output: Option<PathBuf>,
}

/// A compilation of a database.
#[derive(Debug)]
struct Compilation {
    output: PathBuf,
    words: Vec<String>,
}

/// The records of a build.
#[derive(Debug)]
pub struct FlagRecords {
    source: FlagsSource,
    database: Vec<Compilation>,
}

impl Display for FlagsSource {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kbuild => formatter.write_str("kbuild"),
            Self::File(file) => Display::fmt(file, formatter),
        }
    }
}

impl From<&str> for FlagsSource {
    fn from(text: &str) -> Self {
        if text == "kbuild" { Self::Kbuild } else { Self::File(text.into()) }
    }
}

impl FlagRecords {
    /// Reads the file with the records of all objects, if the source is such a file.
    pub fn open(source: &FlagsSource) -> Result<Self, RecordError> {
        let database = match source {
            FlagsSource::File(file) if is_database(file) => database(file)?,
            _ => Vec::new(),
        };
        Ok(Self { source: source.clone(), database })
    }

    /// The file that holds the flags of an object.
    pub fn file_of(&self, object: &Utf8Path) -> Utf8PathBuf {
        match &self.source {
            FlagsSource::File(file) => file.clone(),
            FlagsSource::Kbuild => {
                let name = object.file_name().unwrap_or_default();
                object.with_file_name(format!(".{name}.cmd"))
            }
        }
    }

    /// Returns the flags of an object's compilation. `archive` holds the object, if it has no file of its own. Such an
    /// object is found by its name alone, which must be that of one compilation.
    pub fn flags_of(&self, object: &Utf8Path, archive: Option<&str>) -> Result<RecordedFlags, RecordError> {
        let file = self.file_of(object);
        let said = || archive.map_or_else(|| object.to_string(), |archive| format!("{archive}({object})"));
        let absent = || RecordError::Absent { file: file.clone(), object: said() };
        if !self.database.is_empty() || is_database(&file) {
            let found = self.compilation(object, archive.is_some()).ok_or_else(absent)?;
            return Ok(sort(found.words.clone()));
        }
        let text = fs::read_to_string(&file).map_err(|source| RecordError::Unread {
            file: file.clone(),
            object: said(),
            source,
        })?;
        let command = of_kbuild(&text, object).ok_or_else(absent)?;
        let words = shlex::split(&command)
            .ok_or_else(|| RecordError::Unclosed { file: file.clone(), object: said() })?;
        Ok(sort(words))
    }

    fn compilation(&self, object: &Utf8Path, by_name: bool) -> Option<&Compilation> {
        if by_name {
            let mut named = self.database.iter().filter(|known| known.output.ends_with(object));
            return named.next().filter(|_| named.next().is_none());
        }
        let wanted = clean(&std::path::absolute(object).unwrap_or_else(|_| object.into()));
        self.database.iter().find(|known| known.output == wanted)
    }
}

fn is_database(file: &Utf8Path) -> bool {
    file.extension() == Some("json")
}

/// The compilations of a database, by the objects that they write.
fn database(file: &Utf8Path) -> Result<Vec<Compilation>, RecordError> {
    let text = fs::read_to_string(file).map_err(|source| RecordError::Unread {
        file: file.to_owned(),
        object: "all objects".to_owned(),
        source,
    })?;
    let entries: Vec<Entry> =
        serde_json::from_str(&text).map_err(|source| RecordError::Json { file: file.to_owned(), source })?;
    let mut found = Vec::with_capacity(entries.len());
    for entry in entries {
        let unclosed = || RecordError::Unclosed {
            file: file.to_owned(),
            object: entry
                .output
                .as_ref()
                .map_or_else(|| entry.command.clone(), |path| path.display().to_string()),
        };
        let words = match entry.arguments.is_empty() {
            true => shlex::split(&entry.command).ok_or_else(unclosed)?,
            false => entry.arguments,
        };
        // A compilation that names no object is none that a link could ask for.
        if let Some(output) = entry.output.or_else(|| output_of(&words).map(PathBuf::from)) {
            found.push(Compilation { output: clean(&entry.directory.join(output)), words });
        }
    }
    Ok(found)
}

/// Returns the flags, or the whole command, that Kbuild has recorded of one object. Any spelling of the object's
/// folder matches. The words after the compilation are another program's.
fn of_kbuild(text: &str, object: &Utf8Path) -> Option<String> {
    let name = object.file_name()?;
    let value = |kind: &str| {
        let entries = text.lines().filter_map(|line| line.strip_prefix(kind)?.split_once(" := "));
        let mut named = entries.filter(|(known, _)| known.rsplit('/').next() == Some(name));
        named.next().map(|(_, value)| value)
    };
    if let Some(flags) = value("saved_c_flags_") {
        return Some(flags.to_owned());
    }
    let command = value("savedcmd_").or_else(|| value("cmd_"))?;
    Some(command.replace("$(pound)", "#").replace("$$", "$"))
}

/// Returns the output of a command.
fn output_of(words: &[String]) -> Option<&str> {
    (0..words.len()).rev().find_map(|at| {
        let known = find(words[at].as_bytes()).filter(|known| known.option.canonical == "output")?;
        match known.takes_next {
            true => words.get(at + 1).map(String::as_str),
            false => std::str::from_utf8(known.value).ok(),
        }
    })
}

/// A path without `.` and `a/..`, as one command says it and another does not.
fn clean(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if clean.file_name().is_some() => drop(clean.pop()),
            part => clean.push(part),
        }
    }
    clean
}

/// Sorts the words of a compilation; those after a `;` are of another program.
fn sort(words: Vec<String>) -> RecordedFlags {
    let mut sorted = RecordedFlags::default();
    let mut words = words.into_iter().take_while(|word| word != ";").peekable();
    while let Some(word) = words.next() {
        let known = find(word.as_bytes());
        let takes_next = known.is_some_and(|known| known.takes_next);
        let list = if is_for_backend(&word) { &mut sorted.kept } else { &mut sorted.dropped };
        list.push(word);
        if takes_next {
            list.extend(words.next());
        }
    }
    sorted
}

/// Words for preprocessing, diagnostics and outputs that the table does not know.
const DROPPED: &[&str] = &[
    "-W",
    "-w",
    "-std",
    "-nostd",
    "-M",
    "-pedantic",
    "-save-temps",
    "-dumpdir",
    "--std",
    "-no-canonical-prefixes",
];
const DROPPED_WHOLE: &[&str] = &["-c", "-E", "-S", "-P", "-ansi", "-pipe", "-undef", "-trigraphs", "-"];
/// Words of the table that change a backend, though a link passes them on to none.
const KEPT: &[&str] =
    &["target", "Xclang", "Xclangas", "Xassembler", "arch", "meabi", "mthread-model", "G", "Xarch_"];

fn is_for_backend(word: &str) -> bool {
    if !word.starts_with('-') || DROPPED_WHOLE.contains(&word) {
        return false;
    }
    let Some(known) = find(word.as_bytes()) else {
        return word.starts_with("-Wa,") || !DROPPED.iter().any(|prefix| word.starts_with(prefix));
    };
    match known.option.code {
        Code::Same => KEPT.contains(&known.option.canonical),
        Code::OfSources | Code::OfLinker | Code::Linked(_) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flags of `object` by a file of this name and content.
    fn flags(name: &str, text: &str, object: &str) -> Result<RecordedFlags, RecordError> {
        let directory = tempfile::tempdir().expect("a directory");
        let file = Utf8PathBuf::from_path_buf(directory.path().join(name)).expect("UTF-8");
        fs::write(&file, text).expect("written");
        FlagRecords::open(&FlagsSource::File(file))?.flags_of(Utf8Path::new(object), None)
    }

    fn kept(name: &str, text: &str, object: &str) -> String {
        flags(name, text, object).expect("flags").kept.join(" ")
    }

    #[test]
    fn kbuild_records_flags_or_a_command() {
        let command = "savedcmd_a/b.o := clang-22 -Wp,-MMD,a/.b.o.d -nostdinc -I./include -D'f(x)=$$x $(pound)' \
                       -include ./x.h -O2 -mcmodel=kernel -mno-red-zone -Wall -mllvm -x -flto=thin \
                       -fsplit-lto-unit -std=gnu11 -fno-PIE --target=x86_64-linux-gnu -Wa,-mrelax -c -o a/b.o a/b.c ; \
                       ./objtool --hacks a/b.o\n\nsource_a/b.o := a/b.c\n";
        let expected =
            "-O2 -mcmodel=kernel -mno-red-zone -mllvm -x -fno-PIE --target=x86_64-linux-gnu -Wa,-mrelax";
        assert_eq!(kept(".b.o.cmd", command, "a/b.o"), expected);
        let saved = format!("{command}saved_c_flags_a/b.o := -O3 -DX='a b'\n");
        assert_eq!(kept(".b.o.cmd", &saved, "a/b.o"), "-O3");
        assert_eq!(kept(".b.o.cmd", &command.replace("savedcmd", "cmd"), "c/../a/b.o"), expected);
        let dropped = flags(".b.o.cmd", command, "a/b.o").expect("flags").dropped;
        assert!(dropped.contains(&"-Df(x)=$x #".to_owned()), "{dropped:?}");
        let records = FlagRecords::open(&FlagsSource::Kbuild).expect("nothing to read");
        assert_eq!(records.file_of(Utf8Path::new("a/b.o")), "a/.b.o.cmd");
    }

    #[test]
    fn a_database_is_asked_for_the_object() {
        let directory = std::env::current_dir().expect("a directory");
        let text = serde_json::json!([
            { "directory": "/else", "file": "a.c", "command": "cc -O1 -o a.o -c a.c" },
            { "directory": directory, "file": "../a.c", "command": "cc -O2 '-DX=a b' -o ./d/../a.o -c a.c" },
            { "directory": directory, "file": "b.c", "arguments": ["cc", "-O3", "-c", "b.c"], "output": "d/b.o" },
        ])
        .to_string();
        assert_eq!(kept("compile_commands.json", &text, "a.o"), "-O2");
        assert_eq!(kept("compile_commands.json", &text, "d/b.o"), "-O3");
        let folder = tempfile::tempdir().expect("a directory");
        let file = Utf8PathBuf::from_path_buf(folder.path().join("c.json")).expect("UTF-8");
        fs::write(&file, &text).expect("written");
        let records = FlagRecords::open(&FlagsSource::File(file)).expect("a database");
        let member = |name: &str| records.flags_of(Utf8Path::new(name), Some("lib.a"));
        assert_eq!(member("b.o").expect("the only one of its name").kept, ["-O3"]);
        let error = member("a.o").expect_err("two of one name").to_string();
        assert!(error.ends_with("c.json has no flags of lib.a(a.o)"), "{error}");
    }

    #[test]
    fn what_is_not_there_is_said() {
        for (file, text, object, said) in [
            (".a.o.cmd", "savedcmd_b.o := cc -c b.c\n", "a.o", ".a.o.cmd has no flags of a.o"),
            (".a.o.cmd", "savedcmd_a.o := cc -D'x\n", "a.o", "never closed"),
            ("c.json", "[]", "a.o", "c.json has no flags of a.o"),
            ("c.json", "{}", "a.o", "c.json: invalid type: map"),
        ] {
            let error = flags(file, text, object).expect_err(text).to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
