//! A saved job: a job file with copies of all inputs of its jobs, to be run again anywhere.
//!
//! Two equal links give equal saved jobs: lld's process number is removed from file names and from the module ids in
//! index shards. Files from outside of the working directory get a place inside of the saved one. So do modules, since
//! their new ids are written into the shards. Runs no job.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};
use distlto_planner::bitcode::BitcodeError;
use distlto_planner::dtlto::identifier::climbs;
use distlto_planner::dtlto::{self, JobFile, write};
use distlto_planner::graph::ActionId;
use distlto_planner::shard;
use distlto_planner::words::{shell_line, shell_quote};
use distlto_prepare::io_error::IoError;
use distlto_prepare::names::escape_path;
use distlto_prepare::regular;
use distlto_prepare::write::{TEMPORARY_PREFIX, write_atomically};
use miette::Diagnostic;
use rayon::prelude::*;
use thiserror::Error;

use distlto_executor::cancel::Cancel;
use distlto_planner::dtlto::temporaries;

const JOB_FILE: &str = "job.json";
const SCRIPT: &str = "replay.sh";
const README: &str = "README.md";
/// Where files from outside of the working directory lie.
const OUTSIDE: &str = "outside";
/// The placeholder for the name of the linker's output in the name of a directory.
const OUTPUT: &str = "%o";

/// Why a job could not be saved.
#[derive(Debug, Error, Diagnostic)]
pub enum SaveError {
    /// A file cannot be read or written.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] IoError),
    /// A shard is damaged.
    #[error("cannot save the index shard {path}: {source}")]
    #[diagnostic(
        code(distlto::bad_input),
        help("link again; without --save-job the module's job says the same")
    )]
    Shard {
        /// The shard.
        path: Utf8PathBuf,
        /// The error in it.
        source: BitcodeError,
    },
    /// The directory holds something else.
    #[error("{} holds {what}", directory.display())]
    #[diagnostic(
        code(distlto::usage),
        help(
            "give --save-job a directory of its own for each link; %o in its name stands for the output's name"
        )
    )]
    Taken {
        /// The directory.
        directory: PathBuf,
        /// A description of its content.
        what: String,
    },
}

/// A job file to save, and the places of its files.
#[derive(Debug, Clone, Copy)]
pub struct SavedJobs<'a> {
    /// The jobs.
    pub file: &'a JobFile,
    /// lld's name of the job file.
    pub name: &'a Path,
    /// The base of other relative paths.
    pub base: &'a Path,
    /// The directory in which the jobs find their inputs.
    pub inputs: &'a Path,
}

/// A saved job.
#[derive(Debug)]
pub struct Saved {
    directory: PathBuf,
    jobs: JobFile,
}

impl Saved {
    /// Where it lies.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// A line for a shell that repeats one of the original's jobs.
    pub fn repeat(&self, job: ActionId) -> String {
        let (directory, command) = (self.directory.to_string_lossy(), self.jobs.graph.command(job));
        format!("cd {} && {}", shell_quote(&directory), shell_line(command))
    }
}

/// Saves a job in `directory`, in place of an earlier save of the same link. Returns `None` if it was cancelled.
pub fn save(job: SavedJobs<'_>, directory: &Path, cancel: &Cancel) -> Result<Option<Saved>, SaveError> {
    let directory = job.base.join(directory_for(directory, job.file));
    let renaming = Renaming::of(&job);
    let renamed = renaming.jobs(job.file);
    check_free(&directory, &renamed)?;
    let parent = directory.parent().unwrap_or(job.base);
    fs::create_dir_all(parent).map_err(IoError::on("create directory", parent))?;
    let new = tempfile::Builder::new()
        .prefix(TEMPORARY_PREFIX)
        .permissions(fs::Permissions::from_mode(0o777))
        .tempdir_in(parent)
        .map_err(IoError::on("write into", parent))?;
    let shards: BTreeSet<&Utf8Path> = job.file.jobs.iter().map(|&action| job.file.shard(action)).collect();
    let inputs: Vec<&Utf8Path> = job.file.graph.files().filter(|path| is_input(job.file, path)).collect();
    inputs.par_iter().try_for_each(|&input| {
        if cancel.is_cancelled() {
            return Ok(());
        }
        renaming.copy(&job, input, shards.contains(input), new.path())
    })?;
    if cancel.is_cancelled() {
        return Ok(None);
    }
    describe(&renamed, &renaming, new.path())?;
    replace(&directory, new)?;
    Ok(Some(Saved { directory, jobs: renamed }))
}

fn is_input(file: &JobFile, path: &Utf8Path) -> bool {
    file.graph.find_file(path).is_some_and(|id| file.graph.producer(id).is_none())
}

/// The directory that the user means for this link.
fn directory_for(directory: &Path, file: &JobFile) -> PathBuf {
    let Some(text) = directory.to_str().filter(|text| text.contains(OUTPUT)) else {
        return directory.to_owned();
    };
    let output = file.linker_output.as_deref().and_then(Utf8Path::file_name).unwrap_or("a.out");
    text.replace(OUTPUT, &escape_path(output.as_bytes())).into()
}

/// A directory may be missing, empty, or hold a saved job of the same link.
fn check_free(directory: &Path, new: &JobFile) -> Result<(), SaveError> {
    let taken = |what: String| SaveError::Taken { directory: directory.to_owned(), what };
    let mut entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(IoError::on("read directory", directory)(error).into()),
    };
    if entries.next().is_none() {
        return Ok(());
    }
    let other = || taken("files that are no saved job".to_owned());
    if !directory.join(SCRIPT).is_file() {
        return Err(other());
    }
    let bytes = regular::read(&directory.join(JOB_FILE)).map_err(|_| other())?;
    let old = dtlto::read(&bytes, JOB_FILE).map_err(|_| other())?;
    if old.linker_output != new.linker_output {
        let output = |file: &JobFile| file.linker_output.clone().unwrap_or_default();
        return Err(taken(format!("a saved job of {}, not of {}", output(&old), output(new))));
    }
    Ok(())
}

/// Puts a directory into the place of another one.
fn replace(directory: &Path, new: tempfile::TempDir) -> Result<(), IoError> {
    let io = |error| IoError::on("rename into place", directory)(error);
    if directory.exists() {
        let old = tempfile::Builder::new()
            .prefix(TEMPORARY_PREFIX)
            .tempdir_in(directory.parent().unwrap_or(Path::new(".")))
            .map_err(io)?;
        fs::rename(directory, old.path().join("old")).map_err(io)?;
    }
    fs::rename(new.path(), directory).map_err(io)?;
    // It is no temporary any more.
    let _ = new.keep();
    Ok(())
}

/// The new path of each file.
struct Renaming {
    paths: BTreeMap<Utf8PathBuf, Utf8PathBuf>,
    linker_output: Utf8PathBuf,
    process: Option<u32>,
}

impl Renaming {
    fn of(job: &SavedJobs<'_>) -> Self {
        let file = job.file;
        let first = file.jobs.first().and_then(|&first| file.object(first).file_name());
        let process = job
            .name
            .file_name()
            .and_then(|name| temporaries::process_of(name.to_str()?))
            .or_else(|| temporaries::process_of_object(first?));
        let mut taken: BTreeSet<Utf8PathBuf> = [JOB_FILE, SCRIPT, README].map(Utf8PathBuf::from).into();
        let mut paths = BTreeMap::new();
        // Names that stay come first, so that no other file is given one of them.
        let mut later = Vec::new();
        for path in file.graph.files() {
            if place(path, process) == path && taken.insert(path.to_owned()) {
                paths.insert(path.to_owned(), path.to_owned());
            } else {
                later.push(path);
            }
        }
        for path in later {
            let mut new = place(path, process);
            while !taken.insert(new.clone()) {
                new = Utf8Path::new(OUTSIDE).join(new);
            }
            paths.insert(path.to_owned(), new);
        }
        let output = file.linker_output.as_deref().unwrap_or(Utf8Path::new("a.out"));
        Self { paths, linker_output: place(output, None), process }
    }

    fn path<'a>(&'a self, path: &'a Utf8Path) -> &'a Utf8Path {
        self.paths.get(path).map_or(path, |new| new)
    }

    /// The jobs with new names.
    fn jobs(&self, old: &JobFile) -> JobFile {
        JobFile { linker_output: Some(self.linker_output.clone()), ..old.with_paths(&self.paths) }
    }

    fn copy(
        &self,
        job: &SavedJobs<'_>,
        input: &Utf8Path,
        is_shard: bool,
        to: &Path,
    ) -> Result<(), SaveError> {
        let copy = to.join(self.path(input));
        let original = job.inputs.join(input);
        let parent = copy.parent().unwrap_or(to);
        fs::create_dir_all(parent).map_err(IoError::on("create directory", parent))?;
        if !is_shard {
            fs::copy(&original, &copy).map_err(IoError::on("copy", &original))?;
            return Ok(());
        }
        let bytes = fs::read(&original).map_err(IoError::on("read the index shard", &original))?;
        let path = |old: &[u8]| {
            let new = self.paths.get(Utf8Path::new(std::str::from_utf8(old).ok()?))?;
            Some(new.as_str().as_bytes().to_vec())
        };
        let bytes = shard::rename(&bytes, path)
            .map_err(|source| SaveError::Shard { path: input.to_owned(), source })?;
        Ok(write_atomically(&copy, &bytes)?)
    }
}

/// Where a file of the jobs goes: to where it is, inside of the working directory, without the process number.
fn place(path: &Utf8Path, process: Option<u32>) -> Utf8PathBuf {
    let name = path.file_name().and_then(|name| temporaries::without_process(name, process?));
    let path = name.map_or_else(|| path.to_owned(), |name| path.with_file_name(name));
    let odd = path.is_absolute() || climbs(path.as_str()) > 0 || path.starts_with(OUTSIDE);
    if odd { Utf8Path::new(OUTSIDE).join(escape_path(path.as_str().as_bytes())) } else { path }
}

/// Writes the job file, the script and a readme.
fn describe(file: &JobFile, renaming: &Renaming, directory: &Path) -> Result<(), IoError> {
    let mut text = Vec::new();
    let io = |error| IoError::on("write", directory.join(JOB_FILE))(error);
    write::current(file, &mut text).map_err(io)?;
    text.push(b'\n');
    write_atomically(&directory.join(JOB_FILE), &text)?;
    let script = directory.join(SCRIPT);
    write_atomically(&script, SCRIPT_TEXT.as_bytes())?;
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&script, executable).map_err(IoError::on("make executable", &script))?;
    write_atomically(&directory.join(README), readme(file, renaming).as_bytes())
}

const SCRIPT_TEXT: &str = r#"#!/bin/sh
# Runs the saved backend compilations again. Takes options of distlto-distribute, such as -v, -j 1 or --keep-going;
# DISTLTO_DISTRIBUTE names another program to run them.
cd "$(dirname "$0")" || exit
exec "${DISTLTO_DISTRIBUTE:-distlto-distribute}" "$@" job.json
"#;

fn readme(file: &JobFile, renaming: &Renaming) -> String {
    let mut text = format!(
        "The {} backend compilations of one link, of {}, with every file that they read.\n\n\
         - `./replay.sh` runs them: the objects go to where `job.json` says. `distlto-distribute -n job.json` prints the\n  \
           commands instead.\n\
         - The compiler is `{}`. On another machine the same version has to be there; otherwise\n  \
           change the first word of `args` in `job.json`.\n",
        file.jobs.len(),
        shell_quote(renaming.linker_output.as_str()),
        file.compiler(),
    );
    if renaming.process.is_some() {
        text.push_str(
            "- File names are lld's, without the number of its process; index shards name modules accordingly.\n",
        );
    }
    if renaming.paths.values().any(|path| path.starts_with(OUTSIDE)) {
        text.push_str(
            "- `outside/` holds what lay outside of the link's working directory; `%2F` at a name's beginning stands for `/`.\n  \
             Index shards name these modules so too.\n",
        );
    }
    text.push_str(
        "- Objects are those of the link, byte for byte: names of modules and shards are not in them.\n\
         - Other paths in the compiler's arguments, as of `-fdebug-prefix-map=`, are as they were.\n",
    );
    text
}
