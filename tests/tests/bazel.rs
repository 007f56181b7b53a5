//! The rules of `rules/bazel` in real Bazel, of two versions: what is built, what runs again, what caches have.
//!
//! Each version has one workspace and one server, as a server takes long to start: its test is a sequence of builds.
//! What ran is Bazel's own account.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use distlto_reapi_server::{Faults, Options, Server};
use distlto_tests::bazel::same::as_one_lld;
use distlto_tests::bazel::table::{CHANGED, Row, Table};
use distlto_tests::bazel::workspace::Workspace;
use distlto_tests::bazel::{Version, mistakes, native, program};

#[test]
fn the_older_version() -> Result<()> {
    check(&program::create(Version::Four, "table")?)
}

#[test]
fn the_newer_version() -> Result<()> {
    let workspace = program::create(Version::Seven, "table")?;
    check(&workspace)?;
    natively(&workspace)
}

fn check(workspace: &Workspace) -> Result<()> {
    let mut table = Table::new(workspace);
    // buildbox-casd wants version 2.1 of the API, and these speak 2.0.
    let server = Server::start(Options::default(), Faults::default())?;
    table.all(&server.url())?;
    assert_eq!(table.rows[0].said, program::SAID);
    let changed = table.rows.iter().find(|row| row.change == "a flag of the link").context("a row of it")?;
    assert_eq!(changed.said, CHANGED);
    assert_eq!(table.rows.len(), EXPECTED.len());
    for (row, expected) in table.rows.iter().zip(EXPECTED) {
        println!("{}: {}", row.change, row.actions.summary());
        expected.check(row).with_context(|| format!("{}:\n{}", row.change, row.actions))?;
    }
    let remote = &table.rows[table.rows.len() - 1].actions.0;
    assert!(remote.iter().all(|action| action.runner == "remote"), "{remote:?}");
    for mistake in &mistakes::MISTAKES {
        println!("with {}:\n{}", mistake.name, mistake.tried(workspace)?);
    }
    println!("without the library:\n{}", mistakes::without_library(workspace)?);
    workspace.build(&["//app"])?;
    let same = as_one_lld(workspace, "//app", &[])?;
    ensure!(same.identical, "{same}");
    mistakes::no_mistakes(workspace)
}

/// What a build is to run.
struct Expected {
    /// How many sources are compiled, objects of the directory made, thin links and final links.
    others: [usize; 4],
    /// The backends of sources and objects by name; those of archives and directories are where the slices say.
    backends: &'static [&'static str],
    /// Whether a cache has all else.
    cached: bool,
}

const fn runs(others: [usize; 4], backends: &'static [&'static str]) -> Expected {
    Expected { others, backends, cached: false }
}

const fn hits(others: [usize; 4], backends: &'static [&'static str]) -> Expected {
    Expected { others, backends, cached: true }
}

/// main.c imports from all but leaf.c, and middle.c from wide.c.
const EXPECTED: [Expected; 15] = [
    runs([4, 1, 1, 1], &["leaf", "main", "middle", "object", "wide"]),
    runs([0, 0, 0, 0], &[]),
    runs([1, 0, 0, 0], &[]),
    runs([1, 0, 1, 1], &["leaf"]),
    runs([1, 0, 1, 1], &["main", "middle", "wide"]),
    runs([0, 0, 1, 1], &["main"]),
    runs([0, 0, 1, 1], &[]),
    runs([0, 0, 1, 1], &["main", "object"]),
    runs([0, 0, 1, 1], &["main"]),
    runs([0, 1, 1, 1], &["main"]),
    runs([0, 0, 1, 1], &[]),
    hits([1, 0, 1, 1], &["main", "middle", "wide"]),
    hits([1, 0, 1, 1], &["leaf"]),
    hits([1, 0, 1, 1], &["main", "middle", "wide"]),
    runs([4, 1, 1, 1], &["leaf", "main", "middle", "object", "wide"]),
];

impl Expected {
    fn check(&self, row: &Row) -> Result<()> {
        let mnemonics = ["DistltoCompile", "BitcodeTree", "DistltoIndex", "DistltoLink"];
        let ran = mnemonics.map(|mnemonic| row.actions.ran(mnemonic).len());
        ensure!(ran == self.others, "{mnemonics:?} ran {ran:?} times and not {:?}", self.others);
        let backends = row.backends();
        ensure!(backends == row.had_to, "these slices differ: {:?}", row.had_to);
        let named: BTreeSet<&str> = backends.iter().filter_map(|path| name(path)).collect();
        let expected = self.backends.iter().copied().collect();
        ensure!(named == expected, "these backends are expected: {expected:?}");
        let cached = mnemonics
            .into_iter()
            .chain(["DistltoOpt"])
            .map(|kind| row.actions.cached(kind).len())
            .sum::<usize>();
        // All of a cold build: compilations, the directory, both links, and backends of five objects and three parts.
        let all = if self.cached { 4 + 1 + 1 + 1 + 5 + 3 } else { 0 };
        let rest = if self.cached { all - ran.iter().sum::<usize>() - backends.len() } else { 0 };
        ensure!(cached == rest, "{cached} come from a cache and not {rest}");
        Ok(())
    }
}

/// The source or object of a backend: `.../objects/lib/_distlto/lib/wide.c.o.o`.
fn name(backend: &str) -> Option<&str> {
    if !backend.contains("/objects/") {
        return None;
    }
    backend.rsplit('/').next()?.split('.').next()
}

/// What the rules take, Bazel's own feature refuses.
fn natively(workspace: &Workspace) -> Result<()> {
    for kind in native::KINDS {
        let outcome = native::outcome(workspace, kind)?;
        let with = outcome.with.with_context(|| format!("thin_lto takes this: {kind}"))?;
        println!("{kind}: {with}");
        // A directory of objects is no source of a cc_library at all.
        if kind != "tree" {
            ensure!(outcome.without.is_none(), "{kind} without thin_lto: {:?}", outcome.without);
        }
    }
    Ok(())
}
