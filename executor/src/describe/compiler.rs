//! The identity of a compiler: the content of its program, of every library that it loads, and of wrappers before it.
//!
//! The program is the one that the driver's `-###` names, resolved through wrappers and symbolic links; a wrapper's own
//! content counts too. The libraries are those that the system's loader would load (`INTERPRETER --list PROGRAM`), since
//! most of a compiler is in them, and LLVM folds constants with the system's mathematics. Their digests are remembered by
//! device, inode, size and times, so a compiler that is replaced by one of the same size and time is noticed by its inode
//! or its change time. Names do not count: a key hits where the same compiler lies elsewhere.

use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};
use distlto_planner::digests::{Digest, FileDigests};
use distlto_planner::search_path::program_file;
use distlto_prepare::blobs;
use distlto_prepare::damage::DamagedFile;
use distlto_prepare::io_error::IoError;
use distlto_prepare::private::{self, Reach};

use crate::program_files::libraries;
use distlto_prepare::frame::Framed;

/// Where the digests of compilers are remembered, beside the results.
const REMEMBERED: &str = "compilers-v1";

/// Knows compilers by their files.
#[derive(Debug)]
pub struct Compilers {
    digests: FileDigests,
    remembered: Option<PathBuf>,
}

impl Compilers {
    /// Loads the digests that earlier runs stored in a cache's directory, if there is one. Unusable digests only cost
    /// time. Those of another user are not used, even if the cache is shared.
    pub fn new(cache: Option<&Path>) -> Self {
        let remembered = cache.map(|cache| cache.join(REMEMBERED));
        let own = remembered.as_deref().filter(|file| private::check(file, Reach::Last).is_ok());
        let digests = own.map(|file| FileDigests::load(file, Path::new("")).0);
        Self { digests: digests.unwrap_or_else(|| FileDigests::new(Path::new(""))), remembered }
    }

    /// Forgets files of compilers that are gone or were replaced, and says how many.
    pub fn prune(cache: &Path) -> Result<usize, IoError> {
        FileDigests::prune(&cache.join(REMEMBERED), Path::new(""))
    }

    /// Returns the damage of the stored digests; a damaged file is removed unless `keep` is set.
    pub fn check(cache: &Path, keep: bool) -> Option<DamagedFile> {
        let path = cache.join(REMEMBERED);
        let (_, problem) = FileDigests::load(&path, Path::new(""));
        let problem = problem?;
        if !keep {
            // A damaged file that stays is never believed.
            let _ = blobs::remove(&path);
        }
        Some(DamagedFile { path, problem })
    }

    /// Remembers the digests for later runs.
    pub fn save(&self) -> Result<(), IoError> {
        self.remembered.as_deref().map_or(Ok(()), |file| self.digests.save(file))
    }

    /// Returns the digest of one file of a compiler.
    pub fn digest(&self, file: &Path) -> Result<Digest, String> {
        let path =
            Utf8Path::from_path(file).ok_or_else(|| format!("{}: the path is not UTF-8", file.display()))?;
        self.digests.digest(path).map_err(|error| error.to_string())
    }

    /// Returns the digest that stands for a compiler. `words` is the driver's command; all words before the first
    /// option are programs. `program` is the compiler that it runs in the end. The error is a sentence with the cause.
    pub fn identity(&self, words: &[String], program: &Path, directory: &Path) -> Result<Digest, String> {
        let mut files = vec![program.to_owned()];
        files.extend(libraries(program)?);
        let before = words.iter().take_while(|word| !word.starts_with('-'));
        let wrappers = before.filter_map(|word| place_of(word, directory)).filter(|place| place != program);
        files.extend(wrappers);
        self.identity_of(files)
    }

    /// Returns the digest that stands for a program with these files, which are itself and its libraries.
    pub fn identity_of(&self, files: Vec<PathBuf>) -> Result<Digest, String> {
        let files = files
            .into_iter()
            .map(Utf8PathBuf::try_from)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| format!("{}: the path is not UTF-8", error.as_path().display()))?;
        let mut framed = Framed::new("distlto compiler 1");
        for digest in self.digests.digest_all(&files) {
            framed.content("file", &digest.map_err(|error| error.to_string())?);
        }
        Ok(framed.finish())
    }
}

/// The file that runs for a word of a command; `None` for a word that names no file.
fn place_of(word: &str, directory: &Path) -> Option<PathBuf> {
    let place = directory.join(word);
    let found = if word.contains('/') || place.is_file() { place } else { program_file(Path::new(word))? };
    found.canonicalize().ok().filter(|found| found.is_file())
}
