//! The import step of a backend alone, performed by LLVM's own `opt`: the module with the functions that it imports, as text.
//!
//! The text holds all that the IR says, and nothing of how the bitcode that it came from is encoded: an edit that adds inline
//! assembly renumbers the metadata kinds of every importer's bitcode and changes none of its text. Its first line names the
//! file and is left out. `opt` is that of the compiler's LLVM build, or is not used.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use distlto_planner::digests::{Digest, Hasher};
use distlto_planner::search_path::program_file;
use distlto_planner::words::Word;
use distlto_prepare::io_error::IoError;
use distlto_prepare::mutex::lock;

use super::{PendingBackend, split_units};
use crate::cancel::Cancel;
use crate::execute::process::{self, Command, Spawner};
use crate::program_files::{beside, libraries};

/// The line that names the file.
const NAME: &[u8] = b"; ModuleID = ";
/// Options of a step. Verifying would change no text, and IR that is the same has the same object, valid or not.
const OPTIONS: [&str; 4] = ["-S", "-passes=function-import", "-import-all-index", "-disable-verify"];
/// Bytes of a text that are read at a time.
const CHUNK: usize = 1 << 20;

/// The means to perform import steps.
#[derive(Clone, Copy)]
pub struct ImportSteps<'a> {
    /// Starts `opt`.
    pub spawner: &'a dyn Spawner,
    /// Ends it early.
    pub cancel: &'a Cancel,
    /// How long a cancelled step may take to end.
    pub grace: Duration,
    /// Where it runs; the current directory when `None`.
    pub directory: Option<&'a Path>,
}

/// Returns the `opt` that performs a compiler's import steps, if it is installed.
pub fn program(compiler: &Path) -> Option<PathBuf> {
    beside(&program_file(compiler)?, "opt")
}

/// A step that was performed.
#[derive(Debug)]
pub struct ImportStep {
    /// The digest of the IR that the backend compiles.
    pub merged: Digest,
    /// Its processor time, or its wall time if the system does not report that.
    pub took: Duration,
}

/// `opt` of a compiler's LLVM.
#[derive(Debug)]
pub struct Importer {
    program: PathBuf,
}

impl Importer {
    /// Finds `opt` in the directory of the compiler's own program. The error is a sentence with the cause.
    pub fn beside(compiler: &Path) -> Result<Self, String> {
        let lack = |what: String| format!("precise keys are not used: {what}");
        let Some(program) = program(compiler) else {
            return Err(lack(format!(
                "there is no opt beside {}, which performs import steps",
                compiler.display()
            )));
        };
        match is_one_build(compiler, &program) {
            Ok(true) => Ok(Self { program }),
            Ok(false) => {
                Err(lack(format!("{} is of another LLVM than {}", program.display(), compiler.display())))
            }
            Err(what) => Err(lack(what)),
        }
    }

    /// Performs a backend's import step.
    pub fn run(&self, pending: &PendingBackend<'_>, steps: &ImportSteps<'_>) -> Result<ImportStep, String> {
        let PendingBackend { backend, scratch, .. } = pending;
        let directory = steps.directory.unwrap_or(Path::new(""));
        let folder = format!("{scratch}.parts");
        let inputs = split_units::inputs(backend.module, backend.shard, directory, &folder);
        let step = inputs.and_then(|inputs| {
            let own = inputs.as_ref().map(|own| (own.module.as_str(), own.shard.as_str()));
            self.run_on(own.unwrap_or((backend.module, backend.shard)), pending, steps)
        });
        // If it stays, it goes with the staging directory.
        let _ = fs::remove_dir_all(directory.join(folder));
        step
    }

    fn run_on(
        &self,
        (module, shard): (&str, &str),
        pending: &PendingBackend<'_>,
        steps: &ImportSteps<'_>,
    ) -> Result<ImportStep, String> {
        let PendingBackend { basis, scratch, .. } = pending;
        let mut words: Vec<Word> = vec![self.program.as_os_str().as_encoded_bytes().to_vec()];
        words.extend(OPTIONS.map(|option| option.as_bytes().to_vec()));
        words.push(format!("-summary-file={shard}").into_bytes());
        words.extend(basis.options.iter().map(|option| option.clone().into_bytes()));
        words.extend(["-o", scratch, "--", module].map(|word| word.as_bytes().to_vec()));
        let command = Command::of_words(&words, steps.directory).ok_or("no command")?;
        let program = self.program.display();
        let ended = process::run(&command, steps.spawner, steps.cancel, steps.grace);
        let ended = ended.map_err(|error| format!("{program}: {error}"))?;
        let place = steps.directory.unwrap_or(Path::new("")).join(scratch);
        let digest = canonical(&place);
        // The staging directory goes in any case.
        let _ = fs::remove_file(&place);
        // An import that fails is an error on standard error, and no exit code.
        if !ended.ended.status.success() || !ended.stderr.is_empty() {
            let said = ended.stderr.text();
            return Err(format!(
                "{program}: {}: {}",
                ended.ended.status,
                said.lines().next().unwrap_or_default()
            ));
        }
        // On a busy machine the wall says little, and estimates of backends are processor time as well.
        let took = ended.ended.cpu.unwrap_or(ended.wall);
        digest.map(|merged| ImportStep { merged, took }).map_err(|error| error.to_string())
    }
}

/// The digest of a module's text without the line that names its file.
fn canonical(place: &Path) -> Result<Digest, IoError> {
    let mut file = File::open(place).map_err(IoError::on("read", place))?;
    let mut hasher = Hasher::default();
    let mut chunk = vec![0; CHUNK];
    let mut in_name = false;
    let mut is_first = true;
    loop {
        let length = file.read(&mut chunk).map_err(IoError::on("read", place))?;
        let mut text = &chunk[..length];
        if text.is_empty() {
            return Ok(hasher.finish());
        }
        // A read of a regular file is not shorter than its first line's beginning.
        in_name |= is_first && text.starts_with(NAME);
        is_first = false;
        if in_name {
            let end = text.iter().position(|&byte| byte == b'\n');
            in_name = end.is_none();
            text = &text[end.unwrap_or(length)..];
        }
        hasher.update(text);
    }
}

/// Whether two programs are of one build of LLVM: they load one file that it is in, or say the same version.
fn is_one_build(compiler: &Path, opt: &Path) -> Result<bool, String> {
    let of = |program: &Path| -> Result<BTreeSet<PathBuf>, String> {
        let is_llvm = |file: &PathBuf| {
            file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"libLLVM"))
        };
        Ok(libraries(program)?
            .into_iter()
            .filter(is_llvm)
            .filter_map(|file| file.canonicalize().ok())
            .collect())
    };
    let (ours, theirs) = (of(compiler)?, of(opt)?);
    if !ours.is_empty() || !theirs.is_empty() {
        return Ok(ours == theirs);
    }
    let version = |program: &Path| -> Result<Option<String>, String> {
        let said = std::process::Command::new(program).arg("--version").output();
        let said = said.map_err(|error| format!("{} --version: {error}", program.display()))?;
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        Ok(said.split_once("version ").and_then(|(_, rest)| Some(rest.lines().next()?.trim().to_owned())))
    };
    let (ours, theirs) = (version(compiler)?, version(opt)?);
    Ok(ours.is_some() && ours == theirs)
}

/// Lets as many steps run as there are processors, for backends that have no slot here.
#[derive(Debug, Default)]
pub struct StepSlots {
    inside: Mutex<usize>,
    left: Condvar,
}

/// One that is inside.
#[derive(Debug)]
pub struct StepSlot<'a>(&'a StepSlots);

impl StepSlots {
    /// Waits until there is room.
    pub fn enter(&self) -> StepSlot<'_> {
        let most = std::thread::available_parallelism().map_or(1, usize::from);
        let inside = lock(&self.inside);
        let inside = self.left.wait_while(inside, |inside| *inside >= most);
        *inside.unwrap_or_else(PoisonError::into_inner) += 1;
        StepSlot(self)
    }
}

impl Drop for StepSlot<'_> {
    fn drop(&mut self) {
        *lock(&self.0.inside) -= 1;
        self.0.left.notify_one();
    }
}
