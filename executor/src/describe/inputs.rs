//! Inputs of one backend compilation by content: its module, its shard, its imports and all others.
//!
//! Digests are those that the run remembers, so each file is read once, for freshness and for every key. Knows nothing
//! of commands.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use camino::Utf8Path;
use distlto_planner::digests::{Digest, FileDigests};
use distlto_planner::keep;
use distlto_planner::shard;

use crate::verify::{Backend, NO_SHARD};
use distlto_prepare::frame::Framed;

/// The name of a module that its shard does not name.
const MODULE: &str = "module.bc";

/// A backend compilation's inputs.
#[derive(Debug)]
pub struct Inputs<'a> {
    /// The module, as the command names it.
    pub module: (&'a str, Digest),
    /// Its name in the canonical shard.
    pub module_name: String,
    /// Its shard, if it has one.
    pub shard: Option<CanonicalShard<'a>>,
    /// Every other declared input, as it is named.
    pub others: Vec<(&'a str, Digest)>,
}

/// An index shard with the modules that it names.
#[derive(Debug)]
pub struct CanonicalShard<'a> {
    /// As the command names it.
    pub name: &'a str,
    /// Its canonical form.
    pub bytes: Vec<u8>,
    /// Of that.
    pub digest: Digest,
    /// The modules that it names, its own among them.
    pub modules: Vec<NamedModule<'a>>,
}

/// A module that a shard names.
#[derive(Debug)]
pub struct NamedModule<'a> {
    /// As the command's inputs have it.
    pub path: &'a str,
    /// As the canonical form has it.
    pub name: String,
    /// Its content.
    pub content: Digest,
}

impl CanonicalShard<'_> {
    /// Returns the digest of the thin link's decisions, which does not depend on the content of the modules.
    pub fn decisions(&self) -> Digest {
        // A shard without a table is a stub, which names no modules.
        shard::decisions(&self.bytes).map_or(self.digest, |decisions| Digest::of(&decisions))
    }
}

impl<'a> Inputs<'a> {
    /// Looks all of them up. An error says why a result of such inputs is not kept.
    pub fn of(backend: &'a Backend, directory: &Path, digests: &FileDigests) -> Result<Self, String> {
        let look = |name: &'a str| match digests.digest(Utf8Path::new(name)) {
            Ok(digest) => Ok((name, digest)),
            Err(error) => Err(error.to_string()),
        };
        // The compiler's own content is in every key. With the note of it, keys would differ between machines and
        // outputs.
        let read = backend.others.iter().filter(|name| !keep::is_toolchain(&directory.join(name)));
        let others = read.map(|name| look(name)).collect::<Result<Vec<_>, _>>()?;
        let mut inputs =
            Self { module: look(&backend.module)?, module_name: MODULE.to_owned(), shard: None, others };
        if backend.shard != NO_SHARD {
            let name = &backend.shard;
            let (bytes, _) = digests.read(Utf8Path::new(name)).map_err(|error| error.to_string())?;
            let shard = inputs.canonical_form(name, bytes)?;
            let own = shard.modules.iter().find(|module| module.path == backend.module);
            inputs.module_name = own.map_or(MODULE, |own| &own.name).to_owned();
            inputs.shard = Some(shard);
        }
        Ok(inputs)
    }

    fn canonical_form(&self, name: &'a str, bytes: Vec<u8>) -> Result<CanonicalShard<'a>, String> {
        let shard = |bytes: Vec<u8>, modules| {
            let digest = Digest::of(&bytes);
            CanonicalShard { name, bytes, digest, modules }
        };
        let Ok(canonical) = shard::canonical(&bytes) else {
            // A stub names no modules and has no table.
            return match shard::read(&bytes) {
                Ok(stub) if stub.modules.is_empty() => Ok(shard(bytes, Vec::new())),
                _ => Err(format!("{name} has a table of paths that is not known")),
            };
        };
        let all = [self.module].into_iter().chain(self.others.iter().copied());
        let known: HashMap<&[u8], _> =
            all.map(|(path, content)| (path.as_bytes(), (path, content))).collect();
        let mut modules = Vec::with_capacity(canonical.modules.len());
        for module in canonical.modules {
            // An undeclared file is not watched while the command runs, and no sandbox would have it.
            let Some(&(path, content)) = known.get(module.path.as_slice()) else {
                let import = String::from_utf8_lossy(&module.path).into_owned();
                return Err(format!("the import {import} is not among the action's inputs"));
            };
            modules.push(NamedModule { path, name: module.name, content });
        }
        Ok(shard(canonical.bytes, modules))
    }

    /// The inputs that the shard does not name.
    pub fn remaining(&self) -> impl Iterator<Item = (&'a str, Digest)> + '_ {
        let modules: HashSet<&str> =
            self.shard.iter().flat_map(|shard| &shard.modules).map(|module| module.path).collect();
        self.others.iter().copied().filter(move |(name, _)| !modules.contains(name))
    }

    /// Adds all inputs by purpose and content, without names that decide nothing.
    pub fn add_to(&self, framed: &mut Framed) {
        framed.content("module", &self.module.1);
        if let Some(shard) = &self.shard {
            framed.content("shard", &shard.digest);
            framed.add("own", &self.module_name);
            shard.modules.iter().for_each(|module| framed.content("content", &module.content));
        }
        let mut remaining: Vec<_> = self.remaining().collect();
        remaining.sort_unstable();
        remaining.dedup();
        for (name, content) in remaining {
            framed.add("input", name);
            framed.content("content", &content);
        }
    }
}
