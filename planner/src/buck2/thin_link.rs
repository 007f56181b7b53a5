//! The thin link of a Buck2 rule: the rule's own command, run so that `index` and `index.full` are written.
//!
//! The linker is asked whether it has `--thinlto-full-index`. If not, its command loses the option and gains a trace of
//! the loaded files. Independent of plans.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::fs;

use distlto_prepare::io_error::IoError;
use distlto_prepare::write::write_atomically;

use super::error::{ARGUMENT_FILE, Buck2PlanError};
use super::full_index::{IndexReader, is_known_to, scratch, without};
use super::index_directory::{IndexDirectory, clean};
use super::places::{LinePlaces, linker_words};
use super::trace::Trace;
use crate::link_command::{GivenCommand, LinkCommandError, Resolved, resolve};
use crate::response;
use crate::runner::{Runner, ToolError, ToolOutput};
use crate::words::{Word, lossy, path_of};

/// A thin link to run.
#[derive(Debug)]
pub struct RuleThinLink<'a> {
    command: &'a [Word],
    /// The content of the link's argument file; empty where the command names none.
    pub arguments: Vec<u8>,
    has_argument_file: bool,
    linker: Option<Linker>,
}

/// The linker that a command resolves to.
#[derive(Debug)]
struct Linker {
    /// The link line, response files expanded.
    line: Vec<Word>,
    has_full_index: bool,
}

impl<'a> RuleThinLink<'a> {
    /// Reads the argument file of a command and asks its driver for the link line. `command` is not empty.
    pub fn new(command: &'a [Word], runner: &dyn Runner) -> Result<Self, Buck2PlanError> {
        let arguments = argument_file(command)?;
        Ok(Self {
            command,
            has_argument_file: arguments.is_some(),
            arguments: arguments.unwrap_or_default(),
            linker: ask(command, runner)?,
        })
    }

    /// Returns the first of some paths that is missing from the linker's line. A driver compiles files named like
    /// sources, bitcode named `m.bc` among them, and passes another file to the linker.
    pub fn kept_from_linker<'p>(&self, mut paths: impl Iterator<Item = &'p str>) -> Option<&'p str> {
        let line: HashSet<&[u8]> = self.linker.as_ref()?.line.iter().map(Vec::as_slice).collect();
        // Darwin's linker can be given its inputs in a file.
        if line.contains(&b"-filelist"[..]) {
            return None;
        }
        let cleaned = OnceCell::new();
        let clean_line = || line.iter().map(|word| clean(&lossy(word))).collect::<HashSet<_>>();
        paths.find(|path| {
            !line.contains(path.as_bytes()) && !cleaned.get_or_init(clean_line).contains(&clean(path))
        })
    }

    /// Whether the linker is known to be a stock one: it lacks `--thinlto-full-index`.
    pub fn is_stock(&self) -> bool {
        self.linker.as_ref().is_some_and(|linker| !linker.has_full_index)
    }

    /// Runs the link. Where it succeeds, `index.full` is in the directory, if there is a way to get it. Standard output lacks the
    /// trace, unless the command itself asks for one.
    pub fn run(
        &self,
        directory: &IndexDirectory,
        more: &[Word],
        runner: &dyn Runner,
    ) -> Result<ToolOutput, Buck2PlanError> {
        let path = directory.path();
        fs::create_dir_all(path).map_err(IoError::on("create directory", path))?;
        let scratch = scratch()?;
        let mut command = self.command.to_vec();
        let mut traced = None;
        if let Some(linker) = &self.linker {
            let reader = IndexReader::of(self.command);
            let stock = without(self.command, reader, scratch.path())?;
            if !(linker.has_full_index && stock.is_some()) {
                command = stock.unwrap_or(command);
                command.push(reader.trace());
                traced = Some(linker);
            }
        }
        command.extend_from_slice(more);
        let program = lossy(&command[0]);
        let start = |source| LinkCommandError::from(ToolError::Start { program, source });
        let mut output = runner.run(&command).map_err(start)?;
        if let Some(linker) = traced {
            let given = self.given()?;
            let known = LinePlaces::of(&linker.line, &given, &|_| false)?;
            let trace = Trace::read(&output.stdout, &|name| known.has(name));
            if output.status.success() {
                let places = LinePlaces::of(&linker.line, &given, &trace.may_be_script())?;
                let index = directory.file("index");
                let index = fs::read(&index).map_err(IoError::on("read", index))?;
                let full = directory.file("index.full");
                write_atomically(full.as_ref(), &trace.full_index(&places, &index, directory))?;
            }
            if !asks_for_trace(&linker.line) {
                output.stdout = trace.messages;
            }
        }
        Ok(output)
    }

    /// Returns a test for files that the final link's command itself brings. These are driver additions, files outside
    /// the argument file, and files named by a flag.
    pub fn brings<'f>(&'f self, flags: impl IntoIterator<Item = &'f str>) -> impl Fn(&[u8]) -> bool + 'f {
        let flags = linker_words(flags.into_iter().map(|flag| flag.as_bytes().to_vec()));
        // Most links have no such file, and looking for libraries takes time.
        let places = OnceCell::new();
        move |file| match &self.linker {
            Some(linker) => {
                let find = || {
                    let given = self.given()?;
                    LinePlaces::of(&linker.line, &given, &|name| !name.ends_with(b".o"))
                };
                places.get_or_init(|| find().unwrap_or_default()).brings(file, &flags)
            }
            None => flags.contains(file),
        }
    }

    /// The words of the argument file, or of the whole command where it has none.
    fn given(&self) -> Result<HashSet<Word>, LinkCommandError> {
        let words = if self.has_argument_file {
            response::tokenize(&self.arguments)
        } else {
            self.command[1..].to_vec()
        };
        Ok(linker_words(response::expand(words)?))
    }
}

/// The content of the argument file that a command names.
fn argument_file(command: &[Word]) -> Result<Option<Vec<u8>>, Buck2PlanError> {
    let mut named = command.iter().filter(|word| word.ends_with(ARGUMENT_FILE.as_bytes()));
    let Some(word) = named.next() else { return Ok(None) };
    if let Some(other) = named.next() {
        return Err(Buck2PlanError::ArgumentFiles { one: lossy(word), other: lossy(other) });
    }
    let file = path_of(word.strip_prefix(b"@").unwrap_or(word));
    fs::read(&file).map(Some).map_err(|source| Buck2PlanError::ArgumentFile { file, source })
}

/// Resolves a command to its linker. Returns `None` if the command does not reveal its linker; it then runs unchanged.
fn ask(command: &[Word], runner: &dyn Runner) -> Result<Option<Linker>, LinkCommandError> {
    let (linker, line) = match resolve(&GivenCommand::new(command), runner) {
        Ok(Resolved::Link(link)) => (link.linker, link.line.words().to_vec()),
        Ok(Resolved::Other { linker: Some(linker), words }) => (vec![linker.into_bytes()], words),
        Ok(Resolved::Other { linker: None, .. })
        | Err(LinkCommandError::Tool(ToolError::NoCommands { .. })) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let has_full_index = is_known_to(&linker, runner)?;
    Ok(Some(Linker { line, has_full_index }))
}

/// Whether the user wants the trace.
fn asks_for_trace(line: &[Word]) -> bool {
    line.iter().any(|word| [&b"-t"[..], b"-trace", b"--trace"].contains(&word.as_slice()))
}
