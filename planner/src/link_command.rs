//! The front end for link lines: from the command that a user wraps to one ld.lld link line.
//!
//! `-###` makes a driver print its commands, so the words that it adds are known and not guessed. Does not depend on
//! the link line's inputs.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use crate::clang::driver::find;
use crate::driver::{self, DriverJobs};
use crate::invocation::{ProgramKind, program};
use crate::link_line::{LinkLine, LinkLineError};
use crate::response::{self, ResponseError};
use crate::runner::{Runner, ToolError};
use crate::search_path::program_file;
use crate::words::{Word, lossy, path_of};

/// The kind of a wrapped command, with its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    /// A link by ld.lld.
    Link(LinkCommand),
    /// No link, or one by another linker: to be run as it is, after a look at its inputs.
    Other {
        /// The linker that a driver would run, if it would.
        linker: Option<String>,
        /// The words that may name inputs.
        words: Vec<Word>,
    },
}

/// A link by ld.lld.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkCommand {
    /// The linker and the words that select its flavour.
    pub linker: Vec<Word>,
    /// The link line after that.
    pub line: LinkLine,
    /// Compilations that the driver does first, for source files on its command line.
    pub compilations: Vec<Vec<Word>>,
    /// The clang to compile with, where the command names or implies one.
    pub compiler: Option<Word>,
    /// Where the compiler behind the command's name is installed, if the driver says so.
    pub installed: Option<PathBuf>,
}

/// Why a wrapped command could not be resolved.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum LinkCommandError {
    /// A response file.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Response(#[from] ResponseError),
    /// The link line.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Line(#[from] LinkLineError),
    /// A tool.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Tool(#[from] ToolError),
}

/// A command as a user wraps it.
#[derive(Debug)]
pub struct GivenCommand<'a> {
    /// Its words, at least one.
    pub words: &'a [Word],
    expanded: OnceCell<Vec<Word>>,
}

impl<'a> GivenCommand<'a> {
    /// `words` is not empty.
    pub fn new(words: &'a [Word]) -> Self {
        Self { words, expanded: OnceCell::new() }
    }

    /// The words with response files expanded, which are read once.
    pub fn expanded(&self) -> Result<&[Word], ResponseError> {
        if let Some(expanded) = self.expanded.get() {
            return Ok(expanded);
        }
        let expanded = response::expand(self.words.to_vec())?;
        Ok(self.expanded.get_or_init(|| expanded))
    }
}

/// Determines the kind of a command.
pub fn resolve(command: &GivenCommand<'_>, runner: &dyn Runner) -> Result<Resolved, LinkCommandError> {
    let name = lossy(&command.words[0]);
    match program(&name, command.words.get(1).map(Vec::as_slice)) {
        ProgramKind::Lld => {
            let words = command.expanded()?;
            let fixed = if words.get(1).is_some_and(|word| word == b"-flavor") { 3 } else { 1 };
            let (linker, words) = words.split_at(fixed.min(words.len()));
            Ok(Resolved::Link(LinkCommand {
                linker: linker.to_vec(),
                line: LinkLine::read(words.to_vec())?,
                compilations: Vec::new(),
                compiler: None,
                installed: None,
            }))
        }
        ProgramKind::OtherLinker => {
            let words = command.expanded()?[1..].to_vec();
            Ok(Resolved::Other { linker: Some(name), words })
        }
        kind @ (ProgramKind::Clang | ProgramKind::OtherDriver) => ask_driver(command.words, kind, runner),
    }
}

fn ask_driver(
    command: &[Word],
    kind: ProgramKind,
    runner: &dyn Runner,
) -> Result<Resolved, LinkCommandError> {
    let program = lossy(&command[0]);
    let not_a_link = || Resolved::Other { linker: None, words: Vec::new() };
    let mut question = command.to_vec();
    question.push(b"-###".to_vec());
    let answer = runner.run(&question);
    let answer = answer.map_err(|source| ToolError::Start { program: program.clone(), source })?;
    if !answer.status.success() {
        // The command itself will report its error in its own words.
        return Ok(not_a_link());
    }
    let jobs = driver::parse(&answer.stderr);
    let Some(link) = jobs.link() else {
        if jobs.jobs.is_empty() && kind == ProgramKind::Clang && !asks_for_information(command) {
            return Err(ToolError::NoCommands { program }.into());
        }
        return Ok(not_a_link());
    };
    let words = link[1..].to_vec();
    match linker_of(command, link, runner) {
        Some(linker) => {
            let words = words.into_iter().filter(|word| !word.starts_with(b"-fuse-ld="));
            Ok(Resolved::Link(LinkCommand {
                linker: vec![linker],
                line: LinkLine::read(response::expand(words)?)?,
                compilations: jobs.before_link().to_vec(),
                compiler: named_compiler(command, kind, &jobs),
                installed: jobs.installed_dir.clone(),
            }))
        }
        None => Ok(Resolved::Other { linker: Some(lossy(&link[0])), words: response::expand(words)? }),
    }
}

/// `clang --version` and the like print and compile nothing.
fn asks_for_information(command: &[Word]) -> bool {
    let whole = |word: &Word| find(word).is_some_and(|known| known.option.is_whole);
    command.len() == 1 || command.iter().any(whole)
}

/// The ld.lld that a driver's link runs. GCC's names collect2, which looks ld.lld up by itself.
fn linker_of(command: &[Word], link: &[Word], runner: &dyn Runner) -> Option<Word> {
    let name = lossy(&link[0]);
    if program(&name, None) == ProgramKind::Lld {
        return Some(link[0].clone());
    }
    let collect2 = name.rsplit('/').next() == Some("collect2");
    if !collect2 || !link.iter().any(|word| word == b"-fuse-ld=lld") {
        return None;
    }
    let question = vec![command[0].clone(), b"-print-prog-name=ld.lld".to_vec()];
    let answer = runner.run(&question).ok().filter(|answer| answer.status.success())?;
    let found = answer.stdout.trim_ascii().to_vec();
    (!found.is_empty()).then_some(found)
}

/// A clang that was named compiles too; behind another name the installation it reported is used.
fn named_compiler(command: &[Word], kind: ProgramKind, jobs: &DriverJobs) -> Option<Word> {
    match kind {
        ProgramKind::Clang => Some(command[0].clone()),
        _ => jobs.installed_dir.as_deref().and_then(clang_in),
    }
}

/// The clang of the same installation as a linker: beside the file that its name leads to.
pub fn clang_beside(linker: &Word) -> Option<Word> {
    let path = path_of(linker);
    let found = program_file(&path)?;
    let real = found.canonicalize().ok()?;
    clang_in(real.parent()?)
}

fn clang_in(directory: &Path) -> Option<Word> {
    let clang = directory.join("clang");
    clang.is_file().then(|| crate::words::word_of(clang.into_os_string()))
}
/// Returns the clang for the backends: the requested one, the one that the command names or implies, or the linker's
/// neighbour.
pub fn compiler_of(link: &LinkCommand, asked: Option<&str>) -> Result<String, ToolError> {
    let linker = &link.linker[0];
    asked
        .map(str::to_owned)
        .or_else(|| link.compiler.as_deref().map(lossy))
        .or_else(|| clang_beside(linker).as_deref().map(lossy))
        .or_else(|| program_file(Path::new("clang")).map(|_| "clang".to_owned()))
        .ok_or_else(|| ToolError::NoCompiler { linker: lossy(linker) })
}
