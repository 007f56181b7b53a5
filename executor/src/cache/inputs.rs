//! What one backend compilation reads, by content: its module, its shard, what it imports from, and what else there is.
//!
//! Digests are those that the run remembers, so each file is read once, for freshness and for every key. Knows nothing
//! of commands.

use std::collections::HashSet;

use camino::Utf8Path;
use distlto_planner::digests::{Digest, FileDigests};
use distlto_planner::keep;
use distlto_planner::shard::{self, Entry};
use std::path::Path;

use crate::verify::{Backend, NO_SHARD};

/// A backend compilation's inputs.
#[derive(Debug)]
pub struct Inputs<'a> {
    /// The module, as the command names it.
    pub module: (&'a str, Digest),
    /// Its shard, if it has one.
    pub shard: Option<Shard<'a>>,
    /// Every other declared input, as it is named.
    pub others: Vec<(&'a str, Digest)>,
}

/// An index shard with the modules that it names.
#[derive(Debug)]
pub struct Shard<'a> {
    /// As the command names it.
    pub name: &'a str,
    /// Of its bytes.
    pub digest: Digest,
    /// Of all but its table of paths and what follows from that alone.
    pub rest: Digest,
    /// Its table of paths, in its order, each module with its content.
    pub table: Vec<(Entry, Digest)>,
}

impl<'a> Inputs<'a> {
    /// Looks all of them up. An error says why a result of such inputs is not kept.
    pub fn of(backend: Backend<'a>, directory: &Path, digests: &FileDigests) -> Result<Self, String> {
        let look = |name: &'a str| match digests.digest(Utf8Path::new(name)) {
            Ok(digest) => Ok((name, digest)),
            Err(error) => Err(error.to_string()),
        };
        // The compiler's own content is in every key, and the note of it would tell machines and outputs apart.
        let read = backend.others.iter().filter(|name| !keep::is_toolchain(&directory.join(name)));
        let others = read.map(|&name| look(name)).collect::<Result<Vec<_>, _>>()?;
        let mut inputs = Self { module: look(backend.module)?, shard: None, others };
        if backend.shard != NO_SHARD {
            let name = backend.shard;
            let (bytes, digest) = digests.read(Utf8Path::new(name)).map_err(|error| error.to_string())?;
            inputs.shard = Some(inputs.canonical_form(name, digest, &bytes)?);
        }
        Ok(inputs)
    }

    /// Every input, as the command names it.
    pub fn all(&self) -> impl Iterator<Item = (&'a str, Digest)> + '_ {
        let shard = self.shard.iter().map(|shard| (shard.name, shard.digest));
        [self.module].into_iter().chain(shard).chain(self.others.iter().copied())
    }

    fn canonical_form(&self, name: &'a str, digest: Digest, bytes: &[u8]) -> Result<Shard<'a>, String> {
        let Ok(canonical) = shard::canonical(bytes) else {
            // A stub names no modules and has no table.
            return match shard::read(bytes) {
                Ok(shard) if shard.modules.is_empty() => {
                    Ok(Shard { name, digest, rest: digest, table: Vec::new() })
                }
                _ => Err(format!("{name} has a table of paths that is not known")),
            };
        };
        let mut rest = super::framed::Framed::new("distlto shard 1");
        canonical.rest.iter().for_each(|part| rest.add("part", part));
        rest.add("summaries", &canonical.summaries);
        let known: std::collections::HashMap<_, _> =
            [self.module].into_iter().chain(self.others.iter().copied()).collect();
        let mut table = Vec::with_capacity(canonical.table.len());
        for entry in canonical.table {
            // What is not declared is not watched while the command runs, and no sandbox would have it.
            let content = std::str::from_utf8(&entry.path).ok().and_then(|path| known.get(path).copied());
            let Some(content) = content else {
                let import = String::from_utf8_lossy(&entry.path).into_owned();
                return Err(format!("the import {import} is not among the action's inputs"));
            };
            table.push((entry, content));
        }
        Ok(Shard { name, digest, rest: rest.finish(), table })
    }

    /// The inputs that no other field of a key stands for: neither modules nor files that words name.
    pub fn remaining<'s>(
        &'s self,
        named: &'s std::collections::BTreeSet<String>,
    ) -> impl Iterator<Item = (&'a str, Digest)> + 's {
        let table = self.shard.iter().flat_map(|shard| &shard.table);
        let modules: HashSet<&[u8]> = table.map(|(entry, _)| entry.path.as_slice()).collect();
        self.others
            .iter()
            .copied()
            .filter(move |(name, _)| !modules.contains(name.as_bytes()) && !named.contains(*name))
    }
}
