//! The ways of linking that `bench edits` compares, and what each did.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::bench::measure::measure;
use crate::bench::program::Program;
use crate::bench::remote::server::Server;
use crate::linked::{self, Linked, Objects, newest_record, objects, with_store};
use crate::project::Project;
use crate::shell;

/// A way of linking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The linker with its own cache.
    Lld,
    /// `distlto link --exact-names`: each backend runs if its shard or an import has changed.
    Exact,
    /// `distlto link`.
    Distlto,
    /// The same with a remote cache.
    Shared,
    /// The same in another checkout that has the same edits after the first one linked them.
    Second,
}

impl Way {
    /// In the order in which they are declared: the one that others are compared with first, the one that depends on
    /// another last.
    pub const ALL: [Self; 5] = [Self::Lld, Self::Exact, Self::Distlto, Self::Shared, Self::Second];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lld => "lld with its cache",
            Self::Exact => "distlto --exact-names",
            Self::Distlto => "distlto",
            Self::Shared => "the same with a remote cache",
            Self::Second => "the same in a second checkout",
        }
    }
}

/// One link.
#[derive(Debug, Default, Clone, Copy)]
pub struct Once {
    /// What ran and what it cost.
    pub linked: Linked,
    /// Objects that are others than before.
    pub others: usize,
    /// Bytes of blobs to the remote cache and from it, as they were sent.
    pub up: u64,
    pub down: u64,
}

/// The ways of one program.
pub struct Ways<'a> {
    pub project: &'a Project,
    pub program: Program,
    pub distlto: &'a Path,
    pub jobs: usize,
    /// The remote cache.
    pub server: Server,
}

impl Ways<'_> {
    /// Removes what all ways have kept.
    pub fn forget(&self) -> Result<()> {
        Way::ALL.iter().try_for_each(|&way| shell::remove(&self.kept(way)))?;
        shell::remove(&self.second())
    }

    /// Links.
    pub fn link(&self, way: Way) -> Result<Once> {
        match way {
            Way::Lld => self.link_by_lld(),
            _ => self.link_by_distlto(way),
        }
    }

    fn link_by_lld(&self) -> Result<Once> {
        let cache = self.kept(Way::Lld);
        let before = entries(&cache);
        let mut link = self.program.link(&self.program.words[0], &self.output(Way::Lld));
        link.arg(format!("-Wl,--thinlto-jobs={}", self.jobs));
        link.arg(format!("-Wl,--thinlto-cache-dir={}", cache.display()));
        let cost = measure(&mut link)?;
        let ran = entries(&cache) - before;
        Ok(Once { linked: Linked { ran, cost, ..Linked::default() }, others: 0, up: 0, down: 0 })
    }

    fn link_by_distlto(&self, way: Way) -> Result<Once> {
        let mut command = Command::new(self.distlto);
        command.args(["link", "--json", "-j", &self.jobs.to_string()]);
        with_store(&mut command, &self.kept(way));
        if way == Way::Exact {
            command.arg("--exact-names");
        }
        if matches!(way, Way::Shared | Way::Second) {
            command.arg(format!("--remote-cache={}", self.server.url)).arg("--remote-upload-time=10m");
        }
        let directory = if way == Way::Second { self.second() } else { self.program.dir.clone() };
        if way == Way::Second {
            self.project.copy_linked(&directory)?;
        }
        command.arg("--").args(&self.program.words).args(["-o", &self.output(way)]).current_dir(directory);
        let before = self.objects(way)?;
        let linked = linked::link(&mut command)?;
        let others =
            self.objects(way)?.iter().filter(|(name, bytes)| before.get(*name) != Some(bytes)).count();
        // A link with nothing to do leaves no record.
        let (mut up, mut down) = (0, 0);
        if linked.ran + linked.kept + linked.cached > 0 {
            let record = newest_record(&self.kept(way))?;
            let engines = record["engines"].as_array().cloned().unwrap_or_default();
            let sum = |member: &str| engines.iter().filter_map(|engine| engine[member].as_u64()).sum();
            (up, down) = (sum("wire_up"), sum("wire_down"));
        }
        Ok(Once { linked, others, up, down })
    }

    /// Each way has its own: what another wrote would not be up to date.
    fn output(&self, way: Way) -> String {
        format!("edits-{way:?}").to_lowercase()
    }

    fn objects(&self, way: Way) -> Result<Objects> {
        let cache = self.kept(way);
        if cache.exists() { objects(&cache) } else { Ok(Objects::new()) }
    }

    /// What a way keeps for its next link.
    fn kept(&self, way: Way) -> PathBuf {
        self.beside(&format!("kept-by-{way:?}").to_lowercase())
    }

    fn second(&self) -> PathBuf {
        self.beside("checkout")
    }

    /// A folder of the bench, beside the build directory.
    fn beside(&self, name: &str) -> PathBuf {
        self.program.dir.with_file_name(format!("edits-{name}"))
    }
}

/// How many results lld's cache holds.
fn entries(cache: &Path) -> usize {
    let found = fs::read_dir(cache).into_iter().flatten().flatten();
    found.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"llvmcache-")).count()
}
