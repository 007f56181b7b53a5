//! The command line of the one linker: the user's, and what makes our distributor the one that it calls.
//!
//! Words of the user are neither respelled nor moved. Ours come last, so that they win where lld takes the last of an
//! option, but for the distributor's first argument. Knows nothing of backends.

use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use camino::Utf8PathBuf;
use distlto_planner::alias::needs_alias;
use distlto_planner::backend_flags::BackendFiles;
use distlto_planner::dependency_file::DependencyFile;
use distlto_planner::index::{IndexError, Preview};
use distlto_planner::inputs::{Bitcode, InputError};
use distlto_planner::keep::ModulePlaces;
use distlto_planner::link_line::{Argument, LinkOption, last_value, options};
use distlto_planner::linker::options::{endings, last, of};
use distlto_planner::module::SummaryKind;
use distlto_planner::options::Files;
use distlto_planner::state::Place;
use distlto_planner::words::{Word, lossy, path_of};
use distlto_prepare::input::Input;
use distlto_prepare::io_error::IoError;
use distlto_prepare::regular;
use distlto_prepare::write::{TEMPORARY_PREFIX, move_into_place, remove, write_atomically};
use rayon::prelude::*;

use super::hand_over::HandOver;
use super::modules::CompileSettings;
use crate::link::file_state::Start;
use crate::link::final_link::place_beside;
use crate::link::{LinkError, Session, unchanged};

/// The line, and where its outputs go.
pub struct Line {
    /// The linker and its words.
    pub words: Vec<Word>,
    /// The program.
    pub output: PathBuf,
    /// What the linker is told in the program's place; the program itself where other outputs are named after it.
    pub staged: PathBuf,
    /// The linker's own list of what it has read.
    dependencies: PathBuf,
    /// Where the user wants that list.
    wanted_dependencies: Option<PathBuf>,
    /// What follows the program's name in the names of further outputs.
    endings: Vec<&'static str>,
    linker: String,
}

impl Line {
    /// The line of a link whose words are `words`.
    pub fn new(
        session: &Session<'_>,
        arguments: &[Argument],
        words: &[Word],
        compiler: &str,
        hand_over: &HandOver,
    ) -> Result<Self, LinkError> {
        let output = PathBuf::from(last_value(arguments, "output").unwrap_or("a.out"));
        let is_dry = session.options.dry_run;
        let beside = !is_dry && names_after_output(arguments);
        let staged = if beside { output.clone() } else { staged(&output) };
        let dependencies = Place::Dependencies.path(session.directory);
        let option = |name: &str, value: &[u8]| [format!("--{name}=").as_bytes(), value].concat();
        let mut line = session.link.linker.clone();
        line.push(option("thinlto-distributor-arg", hand_over.argument().as_bytes()));
        match is_dry {
            false => line.extend_from_slice(words),
            true => line.extend(without_further_outputs(arguments, words)),
        }
        line.push(option("thinlto-distributor", own_program()?.as_os_str().as_bytes()));
        line.push(option("thinlto-remote-compiler", compiler.as_bytes()));
        if last(arguments, "thinlto-cache-dir").is_some() {
            session.say_of_cache(arguments);
            // Its keys know neither the compiler nor our flags.
            line.push(option("thinlto-cache-dir", b""));
        }
        line.push(option("dependency-file", dependencies.as_os_str().as_bytes()));
        line.extend([b"-o".to_vec(), staged.as_os_str().as_bytes().to_vec()]);
        remove(&dependencies)?;
        Ok(Self {
            words: line,
            wanted_dependencies: last_value(arguments, "dependency-file").map(PathBuf::from),
            endings: endings(arguments),
            linker: lossy(&session.link.linker[0]),
            output,
            staged,
            dependencies,
        })
    }

    /// Puts what the linker wrote into place. A link with backends has written a program. One that compiled nothing may
    /// have made the program that is there, which then stays, as new as the build system expects it.
    pub fn commit(&self, has_backends: bool, compiled: bool) -> Result<(), LinkError> {
        let written = fs::metadata(&self.staged).is_ok_and(|found| found.len() > 0);
        if !written {
            let (linker, output) = (self.linker.clone(), self.output.clone());
            return if has_backends { Err(LinkError::NoProgram { linker, output }) } else { Ok(()) };
        }
        if let Some(wanted) = &self.wanted_dependencies {
            self.write_dependencies(wanted)?;
        }
        if self.staged != self.output {
            place_beside(&self.endings, &self.staged, &self.output)?;
            if !compiled && same_file(&self.staged, &self.output) {
                remove(&self.staged)?;
                return Ok(unchanged::touch(&self.output)?);
            }
            move_into_place(&self.staged, &self.output)?;
        }
        Ok(())
    }

    /// Removes what the linker wrote in a dry run: a link without backends has a program.
    pub fn drop_written(&self) -> Result<(), IoError> {
        remove(&self.staged)
    }

    /// The linker's own list of what it has read.
    pub fn read_dependencies(&self) -> Result<Vec<u8>, IoError> {
        regular::read(&self.dependencies).map_err(IoError::on("read", &self.dependencies))
    }

    /// The list as it would be if the linker knew the output by its name.
    fn write_dependencies(&self, wanted: &Path) -> Result<(), IoError> {
        let text = self.read_dependencies()?;
        let text = match DependencyFile::parse(&text) {
            Some(listed) if listed.target == self.staged.as_os_str().as_bytes() => {
                DependencyFile { target: self.output.as_os_str().as_bytes().to_vec(), ..listed }.to_bytes()
            }
            _ => text,
        };
        if wanted.metadata().is_ok_and(|found| !found.is_file()) {
            return fs::write(wanted, text).map_err(IoError::on("write", wanted));
        }
        write_atomically(wanted, &text)
    }
}

/// Whether two files have one content and one mode.
fn same_file(one: &Path, other: &Path) -> bool {
    let kind = |path: &Path| fs::symlink_metadata(path).ok().map(|found| (found.len(), found.mode()));
    let content = |path: &Path| Input::open(path).ok();
    match (kind(one), kind(other)) {
        (Some(first), Some(second)) if first == second => {
            matches!((content(one), content(other)), (Some(first), Some(second)) if *first == *second)
        }
        _ => false,
    }
}

/// The output's name while it is written: in the same directory, as names of files there stand in module ids.
pub fn staged(output: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(TEMPORARY_PREFIX);
    name.push(output.file_name().unwrap_or(output.as_os_str()));
    output.with_file_name(name)
}

/// Whether the linker is asked for files that it names after the program, or that hold its name.
fn names_after_output(arguments: &[Argument]) -> bool {
    options(arguments).any(asks_for_temporaries)
}

fn asks_for_temporaries(option: &LinkOption) -> bool {
    of(option).is_some_and(|known| known.files == Files::Temporaries) || option.name == "reproduce"
}

fn writes(option: &LinkOption) -> bool {
    of(option).is_some_and(|known| matches!(known.files, Files::Written | Files::Beside(_)))
}

/// The words of a line that asks for a program alone.
pub fn without_further_outputs(arguments: &[Argument], words: &[Word]) -> Vec<Word> {
    let asking: Vec<Vec<&[u8]>> = options(arguments)
        .filter(|option| asks_for_temporaries(option) || writes(option))
        .map(|option| option.words.iter().map(|word| word.as_bytes()).collect())
        .collect();
    let mut left = words;
    let mut kept = Vec::new();
    while let [first, rest @ ..] = left {
        let begins = |option: &&Vec<&[u8]>| {
            option.len() <= left.len() && left.iter().zip(option.iter()).all(|(word, own)| word == own)
        };
        match asking.iter().find(begins) {
            Some(option) => left = &left[option.len()..],
            None => {
                kept.push(first.clone());
                left = rest;
            }
        }
    }
    kept
}

/// This program, which the linker is to start.
pub fn own_program() -> Result<PathBuf, LinkError> {
    let path = std::env::current_exe().map_err(IoError::on("find", "this program"))?;
    if path.is_file() { Ok(path) } else { Err(LinkError::NoDistributor { path }) }
}

/// What the line has lld tell every compiler.
pub fn compiler_arguments(arguments: &[Argument]) -> Vec<String> {
    let values = |name: &'static str| {
        let named = options(arguments).filter(move |option| option.name == name);
        named.filter_map(|option| option.value.clone())
    };
    values("thinlto-remote-compiler-prepend-arg").chain(values("thinlto-remote-compiler-arg")).collect()
}

/// An input whose name lld cannot tell a distributor, nor write into a shard.
pub fn odd_name(arguments: &[Argument]) -> Option<String> {
    arguments.iter().find_map(|argument| match argument {
        Argument::Input(word) if needs_alias(&path_of(word)) && path_of(word).exists() => Some(lossy(word)),
        _ => None,
    })
}

/// The files that the line names, with what the system says of them.
pub fn inputs(arguments: &[Argument]) -> Vec<(PathBuf, Metadata)> {
    let inputs: Vec<PathBuf> = arguments
        .iter()
        .filter_map(|argument| match argument {
            Argument::Input(word) => Some(path_of(word)),
            _ => None,
        })
        .collect();
    let look = |path: PathBuf| fs::metadata(&path).ok().map(|found| (path, found));
    inputs.into_par_iter().with_min_len(64).filter_map(look).collect()
}

/// Refuses an object without content, which lld would take for a linker script that says nothing.
pub fn check_inputs(inputs: &[(PathBuf, Metadata)]) -> Result<(), IndexError> {
    let is_object = |path: &Path| path.extension().is_some_and(|extension| extension == "o");
    let empty = |(path, found): &&(PathBuf, Metadata)| is_object(path) && found.is_file() && found.len() == 0;
    match inputs.iter().find(empty) {
        Some((path, _)) => Err(InputError::EmptyObject { path: path.clone() }.into()),
        None => Ok(()),
    }
}

/// The start of a link of the inputs.
pub fn start(inputs: &[(PathBuf, Metadata)]) -> Start {
    let changed = |found: &Metadata| found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    Start::with(inputs.iter().map(|(path, found)| (path.as_path(), found.len(), changed(found))))
}

/// A backend as the linker will want it, but for what its thin link says.
pub fn first_backend(state: &str, compilation: &CompileSettings, bitcode: &Bitcode) -> Option<Preview> {
    let of_thin_lto = || bitcode.objects.iter().filter(|(_, module)| module.summary == SummaryKind::ThinLto);
    let (path, module) = of_thin_lto().next()?;
    let path = path.to_str()?;
    let places = ModulePlaces::of(state, path);
    let dwo: Option<Utf8PathBuf> = compilation.flags.dwo(path);
    let names = BackendFiles {
        module: path,
        shard: &places.shard,
        object: &places.object,
        dwo: dwo.as_ref().map(|dwo| dwo.as_str()),
    };
    let mut command = compilation.flags.shared_words(&compilation.compiler);
    command.extend(names.args(&module.triple));
    // An archive is taken to hold many.
    let modules = if bitcode.archives > 0 { usize::MAX } else { of_thin_lto().count() };
    Some(Preview { command, module: path.to_owned(), shard: places.shard, object: places.object, modules })
}
