//! A link line for a thin link alone (`--thinlto-index-only`), by a build system that compiles backends itself.
//!
//! lld writes every shard anew, so a build that goes by times compiles everything again. Here lld writes into a scratch
//! directory, and shards and import lists are put where the line wants them only if their content differs. The list of
//! modules is always written: rules go by its time. Knows nothing of who asked.

use std::collections::HashSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use distlto_prepare::io_error::IoError;
use distlto_prepare::regular;
use distlto_prepare::write::{write_atomically, write_if_changed};
use miette::Diagnostic;
use thiserror::Error;

use crate::keep;
use crate::link_line::{Argument, options};
use crate::linker::options::{is, value};
use crate::runner::{Runner, ToolError, ToolOutput};
use crate::scratch::Scratch;
use crate::words::{Word, lossy};

/// More directories than any module id climbs, so that `../x.o` stays in the scratch directory.
const CLIMBS: usize = 64;
/// One of these directories.
const BELOW: &str = "%below/";
const SHARD: &str = ".thinlto.bc";

/// Where a link line wants the results of its thin link.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexOnly {
    /// The list of the modules that have a shard.
    pub list: Option<PathBuf>,
    /// The replacement for the beginning of a module's path, for its shard and for the list.
    replaced: Option<Replaced>,
}

/// `--thinlto-prefix-replace=OLD;NEW[;OBJECTS]`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Replaced {
    old: String,
    new: String,
    objects: Option<String>,
}

/// Why a thin link left nothing.
#[derive(Debug, Error, Diagnostic)]
pub enum IndexOnlyError {
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
        /// Its output and exit status.
        output: Box<ToolOutput>,
    },
    /// A shard that the linker should have written is missing.
    #[error("the thin link wrote no index shard for {id}")]
    #[diagnostic(
        code(distlto::tool),
        help("the linker is too old or was changed; distlto is tested with ld.lld 16, 19, 22 and 23")
    )]
    Missing {
        /// The module id.
        id: String,
    },
}

/// Numbers of modules and shards of a thin link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Modules that the linker loaded.
    pub modules: usize,
    /// Shards with a changed content.
    pub changed: usize,
}

impl IndexOnly {
    /// Reads a line's options. Returns `None` for a link of another kind, for an archive that would hold our options too, for
    /// a list on standard output, or for an invalid value, which the linker reports.
    pub fn of(arguments: &[Argument]) -> Option<Self> {
        let of_name = |name| options(arguments).rev().filter(move |option| is(option, name));
        if of_name("reproduce").next().is_some() {
            return None;
        }
        of_name("thinlto-index-only").next()?;
        let list = of_name("thinlto-index-only").find_map(value);
        if list == Some("-") {
            return None;
        }
        let list = list.map(PathBuf::from);
        let replaced = of_name("thinlto-prefix-replace").next().and_then(value);
        let replaced = replaced.map(|value| Replaced::read(value).ok_or(())).transpose().ok()?;
        Some(Self { list, replaced })
    }

    /// Runs the thin link and puts the changed files into place; puts none if the linker failed.
    pub fn run(
        &self,
        linker: &[Word],
        words: &[Word],
        scratch: &Scratch,
        runner: &dyn Runner,
    ) -> Result<(ToolOutput, Written), IndexOnlyError> {
        let top = format!("{}/modules/", scratch.path());
        let prefix = format!("{top}{}", BELOW.repeat(CLIMBS));
        fs::create_dir_all(&prefix).map_err(IoError::on("create directory", &prefix))?;
        let list = format!("{}/index", scratch.path());
        let own = [format!("--thinlto-index-only={list}"), format!("--thinlto-prefix-replace=;{prefix}")];
        let command: Vec<Word> =
            linker.iter().chain(words).cloned().chain(own.map(String::into_bytes)).collect();
        let linker = lossy(&linker[0]);
        let output =
            runner.run(&command).map_err(|source| ToolError::Start { program: linker.clone(), source })?;
        if !output.status.success() {
            return Err(IndexOnlyError::Failed { linker, status: output.status, output: Box::new(output) });
        }
        // One that was asked for its version, for example, has made no thin link.
        let Some(text) = regular::read_if_there(Path::new(&list))? else {
            return Ok((output, Written::default()));
        };
        let text = lossy(&text);
        let ids = text.lines().map(|line| line.strip_prefix(prefix.as_str()).unwrap_or(line));
        let ids: Vec<&str> = ids.collect();
        let mut written = Written { modules: ids.len(), changed: 0 };
        let mut seen = HashSet::new();
        for id in ids.iter().filter(|id| seen.insert(**id)) {
            let from = format!("{prefix}{id}");
            if !Path::new(&format!("{from}{SHARD}")).is_file() {
                return Err(IndexOnlyError::Missing { id: (*id).to_owned() });
            }
            written.changed += usize::from(self.put(&from, &self.place(id))?);
        }
        // A file from which lld loaded nothing has an empty shard, so that build systems find one for each object.
        let depth = Path::new(&top).components().count();
        for from in unlisted(Path::new(&top))? {
            self.put(&from, &self.place(&id_of(Path::new(&from), depth)))?;
        }
        if let Some(place) = &self.list {
            let lines: String = ids.iter().map(|id| self.listed(id) + "\n").collect();
            write_atomically(place, lines.as_bytes())?;
        }
        Ok((output, written))
    }

    /// Puts a module's shard and import list into place where they differ; says whether the shard did.
    fn put(&self, from: &str, to: &str) -> Result<bool, IoError> {
        if let Some(parent) = Path::new(to).parent() {
            fs::create_dir_all(parent).map_err(IoError::on("create directory", parent))?;
        }
        let imports = format!("{from}.imports");
        if let Some(list) = regular::read_if_there(Path::new(&imports))? {
            write_if_changed(Path::new(&format!("{to}.imports")), &list)?;
            fs::remove_file(&imports).map_err(IoError::on("remove", &imports))?;
        }
        let shard = format!("{from}{SHARD}");
        let bytes = fs::read(&shard).map_err(IoError::on("read", &shard))?;
        fs::remove_file(&shard).map_err(IoError::on("remove", &shard))?;
        keep::shard_at(Path::new(&format!("{to}{SHARD}")), &bytes)
    }

    /// Returns the path of a module's files, without their suffixes.
    fn place(&self, id: &str) -> String {
        self.replaced.as_ref().map_or_else(|| id.to_owned(), |replaced| replaced.apply(id, &replaced.new))
    }

    /// Returns a module's name in the list.
    fn listed(&self, id: &str) -> String {
        let Some(replaced) = &self.replaced else { return id.to_owned() };
        replaced.apply(id, replaced.objects.as_ref().unwrap_or(&replaced.new))
    }
}

impl Replaced {
    /// Reads a value. A value without a semicolon is a user's error, which the linker reports.
    fn read(value: &str) -> Option<Self> {
        let (old, rest) = value.split_once(';')?;
        let (new, objects) = match rest.split_once(';') {
            Some((new, objects)) => (new, (!objects.is_empty()).then(|| objects.to_owned())),
            None => (rest, None),
        };
        Some(Self { old: old.to_owned(), new: new.to_owned(), objects })
    }

    fn apply(&self, id: &str, new: &str) -> String {
        id.strip_prefix(self.old.as_str()).map_or_else(|| id.to_owned(), |rest| format!("{new}{rest}"))
    }
}

/// The shards below a directory, without their suffix.
fn unlisted(directory: &Path) -> Result<Vec<String>, IoError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(IoError::on("list", directory))? {
        let path = entry.map_err(IoError::on("list", directory))?.path();
        if path.is_dir() {
            found.extend(unlisted(&path)?);
        } else if let Some(module) = path.to_str().and_then(|path| path.strip_suffix(SHARD)) {
            found.push(module.to_owned());
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the module with files at `place` in the scratch directory; `above` components stand before the climbed
/// ones. An absolute path and a relative one share a place: the existing file decides.
fn id_of(place: &Path, above: usize) -> String {
    let below = Component::Normal(BELOW.trim_end_matches('/').as_ref());
    let rest = || place.components().skip(above);
    let climbed = CLIMBS - rest().take(CLIMBS).take_while(|part| *part == below).count();
    let relative: PathBuf =
        std::iter::repeat_n(Component::ParentDir, climbed).chain(rest().skip(CLIMBS - climbed)).collect();
    let absolute = Path::new("/").join(&relative);
    let is_absolute = climbed == 0 && !is_there(&relative) && is_there(&absolute);
    let id = if is_absolute { absolute } else { relative };
    id.to_string_lossy().into_owned()
}

/// Whether a module is there: a file, or a member `(m.o at 120)` of an archive.
fn is_there(module: &Path) -> bool {
    let text = module.to_string_lossy();
    module.is_file() || text.rsplit_once('(').is_some_and(|(archive, _)| Path::new(archive).is_file())
}
