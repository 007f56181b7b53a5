//! Detects linkers that can be made to ask, from the programs themselves.
//!
//! lld has the option [`OPTION`] since version 15, in every flavour but COFF's. A program without this string in its
//! file is no such linker. A program with it is run for its version, where the ELF flavour has a text of its own, and
//! the others for their help. Results are cached by the file's identity. Does not depend on links, but for MinGW's
//! linker, whose options for COFF's linker depend on the line.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use distlto_planner::backend_flags::stable_names::ARGUMENTS;
use distlto_planner::link_line::{LinkLine, LinkLineError};
use distlto_planner::linker::flavour::Flavour;
use distlto_planner::linker::help::Help;
use distlto_planner::words::{Word, path_of};
use distlto_prepare::json_lines::JsonLines;
use distlto_prepare::mutex::lock;
use serde::{Deserialize, Serialize};

use super::process::{FLAVOUR, Process, flavour};
use crate::store::own_cache;

/// The option that makes a linker write shards while it links.
const OPTION: &[u8] = ASKS.as_bytes();
const ASKS: &str = "--thinlto-emit-index-files";
/// An option that every lld with ThinLTO has.
const INDEXES: &[u8] = b"thinlto-index-only";
/// The option that makes a linker write its symbol resolution, with its value.
const RESOLVES: &[u8] = b"save-temps=";
/// The option that makes a linker call a distributor.
const DISTRIBUTOR: &[u8] = b"thinlto-distributor=";
/// Makes MinGW's linker print the help of COFF's, and the line that it would give to COFF's.
const COFF_HELP: &str = "-Xlink=/help";
const COFF_LINE: &str = "-###";
/// The beginning of that line.
const COFF: &str = "lld-link ";
/// In the version of the flavour for ELF.
const ELF: &str = "(compatible with GNU linkers)";
/// The help of every flavour.
const HELP: &str = "-help";
/// How much of a program is searched at once.
const PART: usize = 1 << 20;

/// The file's first line.
const HEADER: &str = "distlto linkers 4\n";
/// The file in the user's cache folder.
const REMEMBERED: &str = "linkers-v4";

/// The kind of a program, as a linker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LinkerKind {
    /// Not a linker that can ask.
    None,
    /// lld for ELF.
    Elf {
        /// Its version line.
        version: String,
        /// Whether it can write its symbol resolution.
        resolves: bool,
    },
    /// lld for another format that can ask, with its options.
    Flavoured(Flavour, Help),
    /// lld for another format, by its version.
    Other(String),
}

/// Whether a linker of this version line can name promoted locals after their sources: LLVM 16 and later.
pub fn has_stable_names(version: &str) -> bool {
    let number = version.split_once("LLD ").map_or("", |(_, rest)| rest).split('.').next();
    number.and_then(|number| number.parse::<u32>().ok()).is_some_and(|number| number >= 16)
}

/// Whether a compiler can.
pub fn compiler_has_stable_names(compiler: &str) -> bool {
    let mut command = Command::new(compiler);
    command.args(ARGUMENTS).args(["-fsyntax-only", "-x", "c", "/dev/null"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // A compiler that cannot be started fails its backends.
    command.status().map_or(true, |status| status.success())
}

/// The kinds of programs, as far as they are known.
#[derive(Debug, Default)]
pub struct Linkers {
    known: Mutex<Option<HashMap<String, LinkerKind>>>,
}

#[derive(Serialize, Deserialize)]
struct Remembered {
    program: String,
    linker: LinkerKind,
}

impl Linkers {
    /// Returns the kind of a process's program.
    pub fn linker_of(&self, process: &Process) -> io::Result<LinkerKind> {
        let found = fs::metadata(&process.file)?;
        let flavour = flavour(&process.words);
        let name = path_of(&process.words[0]);
        let name = name.file_name().unwrap_or_default().to_string_lossy();
        let identity = format!(
            "{} {} {} {} {}.{} {name} {flavour:?}",
            process.program.display(),
            found.dev(),
            found.ino(),
            found.len(),
            found.mtime(),
            found.mtime_nsec()
        );
        let mut known = lock(&self.known);
        let known = known.get_or_insert_with(remembered);
        if let Some(linker) = known.get(&identity) {
            return Ok(linker.clone());
        }
        let linker = ask(process, flavour)?;
        // For other programs, a new search takes less time than a record.
        if linker != LinkerKind::None
            && let Some(cache) = own_cache()
        {
            let record = Remembered { program: identity.clone(), linker: linker.clone() };
            // If the write fails, the next run asks the program again.
            let _ = JsonLines::new(&cache.join(REMEMBERED), HEADER).append(&record);
        }
        known.insert(identity, linker.clone());
        Ok(linker)
    }
}

/// Whether a program that is lld can be made to ask.
pub fn can_ask(program: &Path) -> io::Result<bool> {
    holds(File::open(program)?, OPTION)
}

/// Whether a program by the name of lld is one of any version, and not a program that starts it, such as rustc's.
pub fn is_lld(program: &Path) -> io::Result<bool> {
    holds(File::open(program)?, INDEXES)
}

/// Whether this lld can call a distributor for its objects (DTLTO).
pub fn can_distribute(program: &Path) -> io::Result<bool> {
    holds(File::open(program)?, DISTRIBUTOR)
}

/// The line that MinGW's linker gives to COFF's, by which that one links. `None` if COFF's has no DTLTO, or the line is
/// wrong, which the linker reports.
pub fn coff_line(process: &Process) -> io::Result<Option<Result<LinkLine, LinkLineError>>> {
    let ask = |option: &str| {
        let words = process.words.iter().skip(1).map(|word| path_of(word));
        let mut command = Command::new(&process.program);
        command.arg0(path_of(&process.words[0])).args(words).arg(option);
        command.current_dir(&process.directory).stdin(Stdio::null()).output()
    };
    let help = Help::read(&String::from_utf8_lossy(&ask(COFF_HELP)?.stdout));
    if Flavour::of_help(&help) != Some(Flavour::Coff) {
        return Ok(None);
    }
    let said = ask(COFF_LINE)?.stderr;
    let line = said.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(COFF.as_bytes()));
    // A space in a name parts it, which no option on code has.
    let words = line.map(|line| line.split(|&byte| byte == b' ').map(<[u8]>::to_vec).collect());
    Ok(words.map(|words| Flavour::MinGw.read(words, &help)))
}

/// Whether a linker for ELF takes these options. It reads them before it prints its version.
pub fn accepts<'w>(process: &Process, options: impl Iterator<Item = &'w String>) -> io::Result<bool> {
    let mut command = asking(process, flavour(&process.words));
    command.args(options).arg("--version").current_dir(&process.directory);
    Ok(command.output()?.status.success())
}

fn remembered() -> HashMap<String, LinkerKind> {
    let Some(cache) = own_cache() else { return HashMap::new() };
    let lines = JsonLines::new(&cache.join(REMEMBERED), HEADER).read::<Remembered>();
    lines.into_iter().map(|line| (line.program, line.linker)).collect()
}

/// A process's program, for a question.
fn asking(process: &Process, flavour: Option<&Word>) -> Command {
    let mut command = Command::new(&process.program);
    command.arg0(path_of(&process.words[0])).stdin(Stdio::null());
    if let Some(flavour) = flavour {
        command.args([path_of(FLAVOUR), path_of(flavour)]);
    }
    command
}

fn ask(process: &Process, flavour: Option<&Word>) -> io::Result<LinkerKind> {
    if !can_ask(&process.file)? {
        return Ok(LinkerKind::None);
    }
    let answer = |question: &[&str]| {
        let answer = asking(process, flavour).args(question).output()?;
        let text = String::from_utf8_lossy(&answer.stdout).trim_end().to_owned();
        Ok::<_, io::Error>((answer.status.success(), text))
    };
    let version = answer(&["--version"])?.1.trim().to_owned();
    if version.contains(ELF) {
        return Ok(LinkerKind::Elf { version, resolves: holds(File::open(&process.file)?, RESOLVES)? });
    }
    if !version.contains("LLD") {
        return Ok(LinkerKind::None);
    }
    // wasm-ld 19 has the string in its file and not the option.
    if !answer(&[ASKS, "--version"])?.0 {
        return Ok(LinkerKind::Other(version));
    }
    match Flavour::of_help(&Help::read(&answer(&[HELP])?.1)) {
        Some(flavour) if flavour.names_members(&version) => {
            Ok(LinkerKind::Flavoured(flavour, Help::read(&answer(&[flavour.whole_help()])?.1)))
        }
        _ => Ok(LinkerKind::Other(version)),
    }
}

/// Whether a file has these bytes somewhere.
fn holds(mut file: File, bytes: &[u8]) -> io::Result<bool> {
    let mut part = Vec::with_capacity(PART + bytes.len());
    loop {
        let read = file.by_ref().take(PART as u64).read_to_end(&mut part)?;
        if memchr::memmem::find(&part, bytes).is_some() {
            return Ok(true);
        }
        if read == 0 {
            return Ok(false);
        }
        // A match may lie across two parts.
        part.drain(..part.len().saturating_sub(bytes.len()));
    }
}
