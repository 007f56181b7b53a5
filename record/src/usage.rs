//! The use of links over time: backends that ran and objects that were found, for each link and in all.
//!
//! Plain values. Does not know where they are kept.

use std::collections::BTreeMap;
use std::iter::Sum;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::action::ActionStatus;
use crate::progress::text::{counted, human_us, size};
use crate::report::summary::Summary;
use crate::run::{EngineUse, Lookups, RunRecord};
use crate::why;

/// A server that costs this much more than it spares is not worth a sentence.
const TOLERATED_US: u64 = 1_000_000;

/// One link.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LinkUsage {
    /// When it began, in milliseconds since 1970.
    pub begun_ms: u64,
    /// Where the command ran.
    pub directory: String,
    /// The linked file, in that directory unless it is absolute.
    pub output: String,
    /// Its numbers.
    #[serde(flatten)]
    pub counts: UsageCounts,
    /// Whether it failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// Whether there was nothing to do, so that no tool ran.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unchanged: bool,
    /// Whether a cache had all of it, so that no linker ran.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// Whether it imports nothing since its modules are compiled with -O0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unoptimised: bool,
    /// Why the linker linked by itself although there was bitcode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_through: Option<String>,
    /// The traffic with servers, by their addresses.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub servers: BTreeMap<String, ServerUsage>,
}

/// The traffic with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ServerUsage {
    /// Bytes of blobs that were sent.
    pub bytes_up: u64,
    /// Bytes of blobs that were received.
    pub bytes_down: u64,
    /// How its cache served.
    #[serde(flatten)]
    pub lookups: Lookups,
}

/// Backends and times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UsageCounts {
    /// Backends that ran on this machine.
    pub ran: u64,
    /// Backends that ran on an engine.
    pub remote: u64,
    /// Objects found by their backends' inputs, in the store or at a server.
    pub cached: u64,
    /// Objects found by the linker's key, before there was anything to run.
    pub kept: u64,
    /// Backends that ran although only imports had changed.
    pub imports_only: u64,
    /// Time of the links, in microseconds.
    pub wall_us: u64,
    /// Time that the backends of the found objects took when they ran, in microseconds.
    pub spared_us: u64,
}

impl AddAssign for UsageCounts {
    fn add_assign(&mut self, other: Self) {
        self.ran += other.ran;
        self.remote += other.remote;
        self.cached += other.cached;
        self.kept += other.kept;
        self.imports_only += other.imports_only;
        self.wall_us += other.wall_us;
        self.spared_us += other.spared_us;
    }
}

impl LinkUsage {
    /// Of the record of a link that has ended.
    pub fn of(run: &RunRecord) -> Self {
        let results = [ActionStatus::Kept, ActionStatus::UpToDate, ActionStatus::SameImports];
        let kept = run.actions.iter().filter(|action| results.contains(&action.result));
        let summary = Summary::of(run, run.wall_us);
        let remote = summary.on_engine as u64;
        let linker = Path::new(run.linker_directory.as_deref().unwrap_or_default());
        let output = linker.join(run.output.as_deref().unwrap_or_default());
        let failed = run.exit_code != Some(0);
        let spared = run.actions.iter().filter_map(|action| action.took.spared_us);
        Self {
            begun_ms: run.begun_ms,
            directory: run.directory.clone(),
            output: output.display().to_string(),
            counts: UsageCounts {
                ran: (summary.ran as u64).saturating_sub(remote),
                remote,
                cached: summary.cached as u64,
                kept: kept.count() as u64,
                imports_only: summary.reasons.get(why::IMPORTS).copied().unwrap_or_default() as u64,
                wall_us: run.wall_us,
                spared_us: spared.fold(0, u64::saturating_add),
            },
            failed,
            unchanged: false,
            whole: false,
            unoptimised: false,
            passed_through: None,
            servers: servers(&run.engines),
        }
    }
}

/// The traffic with each of these servers, by its address.
pub fn servers(engines: &[EngineUse]) -> BTreeMap<String, ServerUsage> {
    engines.iter().map(|engine| (engine.server.clone(), ServerUsage::of(engine))).collect()
}

impl ServerUsage {
    fn of(engine: &EngineUse) -> Self {
        Self { bytes_up: engine.bytes_up, bytes_down: engine.bytes_down, lookups: engine.lookups }
    }
}

impl AddAssign for ServerUsage {
    fn add_assign(&mut self, other: Self) {
        self.bytes_up += other.bytes_up;
        self.bytes_down += other.bytes_down;
        self.lookups += other.lookups;
    }
}

impl LinkUsage {
    /// The linked file from any directory.
    pub fn place(&self) -> PathBuf {
        Path::new(&self.directory).join(&self.output).components().collect()
    }
}

/// The sums of links.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct UsageTotals {
    /// Links.
    pub links: u64,
    /// Those with nothing to do.
    pub unchanged: u64,
    /// Those that a cache had.
    pub whole: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that import nothing since their modules are compiled with -O0.
    pub unoptimised: u64,
    /// Those with bitcode that the linker performed by itself, by reason.
    pub passed_through: BTreeMap<String, u64>,
    /// Time in which at least one of them ran, in microseconds.
    pub elapsed_us: u64,
    /// The traffic with servers, by their addresses.
    pub servers: BTreeMap<String, ServerUsage>,
    /// Sums of all.
    #[serde(flatten)]
    pub counts: UsageCounts,
}

impl<'a> Sum<&'a LinkUsage> for UsageTotals {
    fn sum<I: Iterator<Item = &'a LinkUsage>>(links: I) -> Self {
        let mut spans = Vec::new();
        let mut totals = links.fold(Self::default(), |mut totals, link| {
            let begun = link.begun_ms.saturating_mul(1000);
            spans.push((begun, begun.saturating_add(link.counts.wall_us)));
            totals.links += 1;
            totals.unchanged += u64::from(link.unchanged);
            totals.whole += u64::from(link.whole);
            totals.failed += u64::from(link.failed);
            totals.unoptimised += u64::from(link.unoptimised);
            if let Some(why) = &link.passed_through {
                *totals.passed_through.entry(why.clone()).or_default() += 1;
            }
            for (server, usage) in &link.servers {
                *totals.servers.entry(server.clone()).or_default() += *usage;
            }
            totals.counts += link.counts;
            totals
        });
        totals.elapsed_us = covered(spans);
        totals
    }
}

/// The time that spans cover, which may overlap.
fn covered(mut spans: Vec<(u64, u64)>) -> u64 {
    spans.sort_unstable();
    let (mut sum, mut reached) = (0, 0);
    for (begin, end) in spans {
        sum += end.saturating_sub(begin.max(reached));
        reached = reached.max(end);
    }
    sum
}

impl UsageTotals {
    /// One line on a build: `3 links in 4.1 s: 12 backends ran, 230 objects found (38.0 s spared)`.
    pub fn sentence(&self) -> String {
        let UsageCounts { ran, remote, cached, kept, imports_only, wall_us: _, spared_us } = self.counts;
        let passed =
            |(why, links): (&String, &u64)| format!("{} passed through: {why}", counted(*links, "link"));
        if self.links > 0 && self.passed_through.values().sum::<u64>() == self.links {
            return self.passed_through.iter().map(passed).collect::<Vec<_>>().join("; ");
        }
        let mut text = format!("{} in {}: ", counted(self.links, "link"), human_us(self.elapsed_us));
        text.push_str(&format!("{} ran", counted(ran + remote, "backend")));
        if remote > 0 {
            text.push_str(&format!(", {remote} of them on the engine"));
        }
        if cached + kept > 0 {
            text.push_str(&format!(", {} found", counted(cached + kept, "object")));
        }
        if spared_us > 0 {
            text.push_str(&format!(" ({} spared)", human_us(spared_us)));
        }
        if imports_only > 0 {
            text.push_str(&format!("; {imports_only} ran as imports changed"));
        }
        if self.whole > 0 {
            text.push_str(&format!("; {} found whole in a cache", counted(self.whole, "link")));
        }
        if self.failed > 0 {
            text.push_str(&format!("; {} failed", self.failed));
        }
        if self.unoptimised > 0 {
            text.push_str(&format!(
                "; {} of -O0 modules, which import nothing: compile with -O2",
                counted(self.unoptimised, "link")
            ));
        }
        for through in &self.passed_through {
            text.push_str(&format!("; {}", passed(through)));
        }
        let costly = |usage: &&ServerUsage| usage.lookups.waited_us > usage.lookups.spared_us + TOLERATED_US;
        for (server, ServerUsage { lookups, .. }) in self.servers.iter().filter(|(_, usage)| costly(usage)) {
            let [waited, spared] = [lookups.waited_us, lookups.spared_us].map(human_us);
            text.push_str(&format!("; {server} was waited for {waited} and spared {spared}"));
        }
        text
    }

    /// A table for people.
    pub fn table(&self) -> String {
        let counts = self.counts;
        let passed: u64 = self.passed_through.values().sum();
        let mut rows = vec![
            ("links", self.links.to_string()),
            ("  nothing to do", self.unchanged.to_string()),
            ("  found whole in a cache", self.whole.to_string()),
            ("  failed", self.failed.to_string()),
            ("  of -O0 modules", self.unoptimised.to_string()),
            ("  passed through", passed.to_string()),
            ("backends that ran here", counts.ran.to_string()),
            ("backends that ran on an engine", counts.remote.to_string()),
            ("  as only imports had changed", counts.imports_only.to_string()),
            ("objects found by the linker's key", counts.kept.to_string()),
            ("objects found by content", counts.cached.to_string()),
            ("time of links, summed", human_us(counts.wall_us)),
            ("time with a link", human_us(self.elapsed_us)),
            ("time of backends spared", human_us(counts.spared_us)),
        ];
        let reasons: Vec<String> = self.passed_through.keys().map(|why| format!("  {why}")).collect();
        if !reasons.is_empty() {
            rows.push(("passed through, by reason", String::new()));
        }
        rows.extend(reasons.iter().map(String::as_str).zip(self.passed_through.values().map(u64::to_string)));
        let servers: Vec<_> = self
            .servers
            .iter()
            .flat_map(|(server, ServerUsage { bytes_up, bytes_down, lookups })| {
                [
                    (server.as_str(), String::new()),
                    ("  objects asked for", lookups.asked.to_string()),
                    ("  objects found", lookups.found.to_string()),
                    ("  received", size(*bytes_down)),
                    ("  sent", size(*bytes_up)),
                    ("  time waited", human_us(lookups.waited_us)),
                    ("  time of backends spared", human_us(lookups.spared_us)),
                ]
            })
            .collect();
        rows.extend(servers);
        let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
        rows.iter()
            .map(|(name, value)| format!("{name:width$}  {value}").trim_end().to_owned() + "\n")
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_add_up() {
        let counts =
            UsageCounts { ran: 2, kept: 3, wall_us: 500_000, spared_us: 1_500_000, ..UsageCounts::default() };
        let served = LinkUsage { counts, ..LinkUsage::default() };
        // Two links at once: the time in which both ran counts once.
        let later = LinkUsage { begun_ms: 300, ..served.clone() };
        let unchanged = LinkUsage { unchanged: true, ..LinkUsage::default() };
        let alone = LinkUsage { passed_through: Some("no ThinLTO".to_owned()), ..LinkUsage::default() };
        let totals: UsageTotals = [later, served, unchanged, alone].iter().sum();
        assert_eq!((totals.links, totals.unchanged, totals.counts.ran, totals.counts.kept), (4, 1, 4, 6));
        let expected = "4 links in 800 ms: 4 backends ran, 6 objects found (3.0 s spared); 1 link passed through: no ThinLTO";
        assert_eq!(totals.sentence(), expected);
        assert!(totals.table().contains("\n  passed through                   1\n"), "{}", totals.table());
        assert!(totals.table().ends_with("  no ThinLTO                       1\n"), "{}", totals.table());
    }
}
