//! The thin link: runs the linker over the modules' summaries in a directory of its own and reads what it wrote.
//!
//! The directory is made anew for each run, so no import list of an earlier one can survive. Formats: see
//! `docs/thin-link.md`. Knows nothing of the final link and of backends.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use distlto_prepare::io_error::IoError;
use miette::Diagnostic;
use rayon::prelude::*;
use thiserror::Error;

use crate::alias::climbs;
use crate::bitcode::BitcodeError;
use crate::buck2::places::archives;
use crate::fates::ThinLinkOutcome;
use crate::linker::{ELF, ThinLinkPlaces};
use crate::runner::{Runner, ToolError, ToolOutput};
use crate::scratch::Scratch;
use crate::shard;
use crate::words::{Word, lossy};

/// A directory name that no sane input has; as many of them as any input climbs keep `../x.o` inside.
const BELOW: &str = "%below/";

/// Why a thin link gave no index.
#[derive(Debug, Error, Diagnostic)]
pub enum ThinLinkError {
    /// The linker could not be run.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Tool(#[from] ToolError),
    /// A file could not be read or written.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Io(#[from] IoError),
    /// The linker failed; its own messages and exit code are the user's.
    #[error("the thin link failed: {linker} ended with {}", status)]
    #[diagnostic(
        code(distlto::failed),
        help("the linker's own messages above say why; no output was changed")
    )]
    Failed {
        /// The linker.
        linker: String,
        /// How it ended.
        status: std::process::ExitStatus,
        /// What it printed.
        output: Box<ToolOutput>,
    },
    /// The linker loaded bitcode that was not prepared for it.
    #[error("the linker loaded {id}, which the link line does not name")]
    #[diagnostic(
        code(distlto::bad_input),
        help(
            "it came from a linker script or a dependent-library note: name its archive or object on the link line"
        )
    )]
    Unprepared {
        /// The module id.
        id: String,
    },
    /// A file of the index that the linker should have written is missing or empty.
    #[error("the thin link wrote no {what} for {id}")]
    #[diagnostic(
        code(distlto::tool),
        help("the linker is too old or was changed; distlto is tested with ld.lld 14, 15, 16, 19 and 22")
    )]
    Missing {
        /// What is missing.
        what: &'static str,
        /// The module id.
        id: String,
    },
    /// A shard cannot be read.
    #[error("the index shard of {id}: {source}")]
    #[diagnostic(code(distlto::tool), help("run the link again; a full disk truncates files"))]
    Shard {
        /// The module id.
        id: String,
        /// What is wrong, and where.
        source: BitcodeError,
    },
}

/// A thin link to run.
#[derive(Debug, Clone)]
pub struct ThinLink {
    /// The linker and the words that select its flavour.
    pub linker: Vec<Word>,
    /// The link line, without an output.
    pub words: Vec<String>,
    /// The ids of all bitcode inputs.
    pub ids: Vec<String>,
    /// Whether some input may need regular LTO, whose code the linker is then asked to write.
    pub regular_lto: bool,
}

/// What a thin link left.
#[derive(Debug)]
pub struct ThinLinked {
    /// Which modules have shards, and which files were loaded.
    pub outcome: ThinLinkOutcome,
    /// One for each indexed module that was asked for, in link order.
    pub modules: Vec<IndexedModule>,
    /// The object with the code of regular LTO, if there is any.
    pub regular_object: Option<Vec<u8>>,
    /// What the linker printed, warnings mostly.
    pub stderr: Vec<u8>,
}

/// The index of one module.
#[derive(Debug, Clone)]
pub struct IndexedModule {
    /// The module id.
    pub id: String,
    /// The shard.
    pub shard: Vec<u8>,
    /// The modules it imports from, sorted.
    pub imports: Vec<String>,
    /// IR instructions of the module itself, and imported; `None` where the shard does not say.
    pub cost: Option<shard::Cost>,
}

impl ThinLink {
    /// Runs the thin link in `scratch`.
    pub fn run(&self, scratch: &Scratch, runner: &dyn Runner) -> Result<ThinLinked, ThinLinkError> {
        let places = ScratchPlaces::new(scratch.path(), &self.ids);
        fs::create_dir_all(&places.prefix).map_err(IoError::on("create directory", &places.prefix))?;
        let mut command = self.linker.clone();
        let own = (ELF.thin_link)(&ThinLinkPlaces {
            index: &places.index,
            prefix: &places.prefix,
            output: &places.output,
            regular: self.regular_lto.then_some(&places.regular),
        });
        command.extend(self.words.iter().chain(&own).map(|word| word.clone().into_bytes()));
        let linker = lossy(&self.linker[0]);
        let output =
            runner.run(&command).map_err(|source| ToolError::Start { program: linker.clone(), source })?;
        if !output.status.success() {
            return Err(ThinLinkError::Failed { linker, status: output.status, output: Box::new(output) });
        }
        self.collect(&places, output)
    }

    fn collect(&self, places: &ScratchPlaces, output: ToolOutput) -> Result<ThinLinked, ThinLinkError> {
        let index = fs::read(&places.index).map_err(IoError::on("read", &places.index))?;
        let prefix = &places.prefix;
        let indexed: Vec<String> = lines(&index)
            .map(|line| line.strip_prefix(prefix.as_str()).map_or_else(|| line.clone(), str::to_owned))
            .collect();
        let loaded = lines(&output.stdout).collect();
        let known: HashSet<&str> = self.ids.iter().map(String::as_str).collect();
        let read = indexed.par_iter().filter(|id| known.contains(id.as_str()));
        let modules = read.map(|id| read_module(prefix, id)).collect::<Result<Vec<_>, _>>()?;
        let regular_object = match fs::read(&places.regular) {
            Ok(object) if !object.is_empty() => Some(object),
            _ => None,
        };
        Ok(ThinLinked {
            outcome: ThinLinkOutcome { indexed, loaded },
            modules,
            regular_object,
            stderr: output.stderr,
        })
    }
}

fn read_module(prefix: &str, id: &str) -> Result<IndexedModule, ThinLinkError> {
    let shard = read_written(format!("{prefix}{id}.thinlto.bc"), "index shard", id)?;
    if shard.is_empty() {
        return Err(ThinLinkError::Missing { what: "index shard", id: id.to_owned() });
    }
    let imports = read_written(format!("{prefix}{id}.imports"), "import list", id)?;
    let read = shard::read(&shard).map_err(|source| ThinLinkError::Shard { id: id.to_owned(), source })?;
    let cost = read.cost(id).ok();
    Ok(IndexedModule { id: id.to_owned(), shard, imports: lines(&imports).collect(), cost })
}

fn read_written(path: String, what: &'static str, id: &str) -> Result<Vec<u8>, ThinLinkError> {
    match fs::read(&path) {
        Ok(bytes) => Ok(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(ThinLinkError::Missing { what, id: id.to_owned() })
        }
        Err(error) => Err(IoError::on("read", path)(error).into()),
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = String> {
    text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(lossy)
}

/// Where the linker is told to write.
struct ScratchPlaces {
    index: String,
    output: String,
    regular: String,
    /// What is put before a module id; ends in a slash.
    prefix: String,
}

impl ScratchPlaces {
    fn new(scratch: &str, ids: &[String]) -> Self {
        let deepest = ids.iter().map(|id| climbs(id)).max().unwrap_or(0);
        Self {
            index: format!("{scratch}/index"),
            output: format!("{scratch}/output"),
            regular: format!("{scratch}/regular-lto.o"),
            prefix: format!("{scratch}/modules/{}", BELOW.repeat(deepest)),
        }
    }
}

/// The archive and the member that a line of the linker's `--trace` names; `None` for a file of its own.
pub fn traced_member(line: &str) -> Option<(&str, &str)> {
    if Path::new(line).exists() {
        return None;
    }
    let mut candidates = archives(line.as_bytes()).filter_map(|archive| line.split_at_checked(archive.len()));
    let (archive, member) = candidates.find(|(archive, _)| Path::new(archive).is_file())?;
    Some((archive, member.strip_prefix('(')?.strip_suffix(')')?))
}

/// The file that a line of the linker's `--trace` names: an archive member's archive.
pub fn traced_file(line: &str) -> PathBuf {
    PathBuf::from(traced_member(line).map_or(line, |(archive, _)| archive))
}
