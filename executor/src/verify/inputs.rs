//! Checks before a backend runs: the shard is one, belongs to the module, and every module is the one that the thin
//! link read.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use distlto_planner::bitcode::ModuleHash;
use distlto_planner::contents::Contents;
use distlto_planner::shard::{self, Shard};
use distlto_planner::{contents, module};
use distlto_prepare::io_error::IoError;
use distlto_prepare::kind::{Kind, Native, classify};
use distlto_prepare::mutex::lock;
use distlto_prepare::regular;

use super::{Expectation, Refusal, Refused};

/// The name that stands for "no shard": clang compiles the module without importing.
pub(crate) const NO_SHARD: &str = "/dev/null";

/// One backend compilation's inputs, as the command names them.
#[derive(Debug, Clone)]
pub struct Backend {
    /// The module's path, which is its module id.
    pub module: String,
    /// Its index shard.
    pub shard: String,
    /// Other inputs: the modules it imports from, as far as the caller knows them, profiles and the like.
    pub others: Vec<String>,
}

/// Facts about the modules of one run. A module that hundreds of others import is read once.
///
/// A module is assumed not to change while the run lasts.
#[derive(Debug, Default)]
pub struct Modules {
    directory: Option<PathBuf>,
    known: Mutex<HashMap<String, Arc<ModuleFacts>>>,
    ignores_hashes: bool,
}

#[derive(Debug)]
struct ModuleFacts {
    hash: Option<ModuleHash>,
    native: Option<Native>,
    /// Of all its functions together.
    instructions: Option<u64>,
}

impl Modules {
    /// Paths are relative to `directory`, or to the current directory when `None`.
    pub fn new(directory: Option<&Path>) -> Self {
        Self { directory: directory.map(Path::to_owned), known: Mutex::default(), ignores_hashes: false }
    }

    /// Does not compare the hashes in shards with those of modules, for producers that give hashes another meaning.
    /// Everything else is checked.
    pub fn ignoring_hashes(self, ignores_hashes: bool) -> Self {
        Self { ignores_hashes, ..self }
    }

    /// Checks all inputs of a backend compilation. Returns the requirements on its object.
    pub fn check(&self, backend: &Backend) -> Result<Expectation, Refused> {
        self.check_all(backend).map_err(Refused::about(&backend.module))
    }

    fn check_all(&self, backend: &Backend) -> Result<Expectation, Refusal> {
        let Backend { module, shard: place, others } = backend;
        let own = self.module("the module", module)?;
        let shard = self.shard(place)?;
        if let Some((shard, _)) = &shard {
            if !self.ignores_hashes && lacks_own(shard, module, own.instructions) {
                return Err(Refusal::ImportersShard { shard: self.path(place) });
            }
            // A shard of another module names other imports, which may be missing: report the wrong module first.
            if names(shard, module) {
                self.check_imports(shard, module, own.hash)?;
            } else {
                shard::check_hashes(shard, module, |_| Ok(None))?;
            }
        }
        for other in others {
            let file = self.path(other);
            fs::metadata(&file).map_err(IoError::on("read the input", &file))?;
        }
        let contents = self.contents(module, shard.as_ref())?;
        Ok(Expectation { native: own.native, contents })
    }

    /// Returns the required contents of a module's object, as far as module and shard determine them. Reads the module
    /// again: most of the known modules are only imports, which do not need this.
    fn contents(&self, module: &str, shard: Option<&(Shard, Vec<u8>)>) -> Result<Option<Contents>, Refusal> {
        if shard.is_some_and(|(shard, _)| shard.is_stub()) {
            return Ok(None);
        }
        let file = self.path(module);
        let bytes = regular::read(&file).map_err(IoError::on("read the module", &file))?;
        let shard = shard.map(|(_, bytes)| bytes.as_slice());
        // A table that LLVM would make anew is no reason for a refusal: then less is known.
        Ok(contents::required(&bytes, shard, module).unwrap_or_default())
    }

    /// Every module that the shard names is bitcode, and the one that the thin link read.
    fn check_imports(&self, shard: &Shard, own: &str, own_hash: Option<ModuleHash>) -> Result<(), Refusal> {
        let mut hashes = HashMap::from([(own, own_hash)]);
        for import in shard.imported_from(own) {
            // A path that is not UTF-8 is refused below when it has a hash, and is left to the compiler otherwise.
            if let Ok(path) = std::str::from_utf8(&import.path) {
                hashes.insert(path, self.module("the import", path)?.hash);
            }
        }
        if self.ignores_hashes {
            return Ok(());
        }
        Ok(shard::check_hashes(shard, own, |path| Ok(hashes.get(path).copied().flatten()))?)
    }

    fn path(&self, path: &str) -> PathBuf {
        self.directory.as_deref().map_or_else(|| PathBuf::from(path), |directory| directory.join(path))
    }

    /// The shard, and its bytes.
    fn shard(&self, path: &str) -> Result<Option<(Shard, Vec<u8>)>, Refusal> {
        if path == NO_SHARD {
            return Ok(None);
        }
        let file = self.path(path);
        let bytes = regular::read(&file).map_err(IoError::on("read the index shard", &file))?;
        if bytes.is_empty() {
            return Err(Refusal::EmptyShard { shard: file });
        }
        match shard::read(&bytes) {
            Ok(shard) => Ok(Some((shard, bytes))),
            Err(source) => Err(Refusal::BadShard { shard: file, source }),
        }
    }

    fn module(&self, what: &'static str, path: &str) -> Result<Arc<ModuleFacts>, Refusal> {
        let lock = || lock(&self.known);
        if let Some(known) = lock().get(path) {
            return Ok(Arc::clone(known));
        }
        let file = self.path(path);
        let operation = if what == "the module" { "read the module" } else { "read the import" };
        let bytes = regular::read(&file).map_err(IoError::on(operation, &file))?;
        match classify(&bytes) {
            Kind::Bitcode { .. } => {}
            found => return Err(Refusal::NotBitcode { what, path: file, found }),
        }
        let module =
            module::read(&bytes).map_err(|source| Refusal::BadBitcode { what, path: file, source })?;
        let known = Arc::new(ModuleFacts {
            hash: module.hash,
            native: Native::of_triple(&module.triple),
            instructions: module.instructions,
        });
        lock().insert(path.to_owned(), Arc::clone(&known));
        Ok(known)
    }
}

/// Whether a shard names a module, but not all of its functions: it is that of a module that imports from this one. The
/// thin link gives each module summaries of all that it defines, and of others those that it imports.
fn lacks_own(shard: &Shard, module: &str, instructions: Option<u64>) -> bool {
    let named = shard.modules.iter().any(|named| named.path == module.as_bytes());
    let own = shard.cost(module).ok().map(|cost| cost.own_instructions);
    named && matches!((own, instructions), (Some(own), Some(all)) if own < all)
}

/// Whether a shard's path table names a module.
fn names(shard: &Shard, module: &str) -> bool {
    shard.is_stub() || shard.modules.iter().any(|named| named.path == module.as_bytes())
}
