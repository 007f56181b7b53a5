//! What a build ran, from Bazel's execution log: one record for each action that was not up to date.
//!
//! Format: `SpawnExec` of Bazel's `src/main/protobuf/spawn.proto`, as JSON, one value after the other.

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Deserializer, Value};

/// One action, and where its outputs came from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Action {
    /// Its kind.
    pub mnemonic: String,
    /// Its first output, below the directory of outputs.
    pub output: String,
    /// Whether a cache had them.
    pub cached: bool,
    /// What ran it: a sandbox, a worker, the engine of remote execution.
    pub runner: String,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} {}{}", self.mnemonic, self.output, if self.cached { " (cached)" } else { "" })
    }
}

/// The actions of a build, sorted.
#[derive(Debug, Clone, Default)]
pub struct Actions(pub Vec<Action>);

impl Actions {
    /// Reads a log.
    pub fn read(log: &Path) -> Result<Self> {
        let text = fs::read_to_string(log).with_context(|| format!("cannot read {}", log.display()))?;
        let mut actions = Vec::new();
        for record in Deserializer::from_str(&text).into_iter::<Value>() {
            let record = record.with_context(|| format!("{} is no execution log", log.display()))?;
            actions.push(action(&record).with_context(|| format!("unexpected record {record:#}"))?);
        }
        actions.sort();
        Ok(Self(actions))
    }

    /// Outputs of the actions of a kind that ran.
    pub fn ran(&self, mnemonic: &str) -> Vec<&str> {
        self.of(mnemonic, false)
    }

    /// Outputs of the actions of a kind that a cache had.
    pub fn cached(&self, mnemonic: &str) -> Vec<&str> {
        self.of(mnemonic, true)
    }

    fn of(&self, mnemonic: &str, cached: bool) -> Vec<&str> {
        let of = self.0.iter().filter(|action| action.mnemonic == mnemonic && action.cached == cached);
        of.map(|action| action.output.as_str()).collect()
    }

    /// How many of such actions there are of each kind, as `DistltoIndex 1, DistltoOpt 3`.
    pub fn summary_of(&self, such: impl Fn(&Action) -> bool) -> String {
        let mut kinds: Vec<(&str, usize)> = Vec::new();
        for action in self.0.iter().filter(|action| such(action)) {
            match kinds.last_mut() {
                Some((kind, count)) if *kind == action.mnemonic => *count += 1,
                _ => kinds.push((&action.mnemonic, 1)),
            }
        }
        kinds.iter().map(|(kind, count)| format!("{kind} {count}")).collect::<Vec<_>>().join(", ")
    }

    /// How many actions of each kind ran, as `DistltoIndex 1, DistltoOpt 3`; with `+2 cached` where a cache had some.
    pub fn summary(&self) -> String {
        let mut kinds: Vec<&str> = self.0.iter().map(|action| action.mnemonic.as_str()).collect();
        kinds.dedup();
        let count = |kind: &&str| match (self.ran(kind).len(), self.cached(kind).len()) {
            (ran, 0) => format!("{kind} {ran}"),
            (ran, cached) => format!("{kind} {ran} + {cached} cached"),
        };
        if kinds.is_empty() {
            "nothing".to_owned()
        } else {
            kinds.iter().map(count).collect::<Vec<_>>().join(", ")
        }
    }
}

impl fmt::Display for Actions {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.iter().try_for_each(|action| writeln!(f, "{action}"))
    }
}

fn action(record: &Value) -> Option<Action> {
    let text = |name: &str| Some(record.get(name)?.as_str()?.to_owned());
    let output = record.get("listedOutputs")?.get(0)?.as_str()?;
    Some(Action {
        mnemonic: text("mnemonic")?,
        output: below(output).to_owned(),
        // Absent where it is false.
        cached: record.get("remoteCacheHit").and_then(Value::as_bool).unwrap_or(false)
            || record.get("cacheHit").and_then(Value::as_bool).unwrap_or(false),
        runner: text("runner")?,
    })
}

/// `bazel-out/CONFIGURATION/bin/PATH` without what depends on the configuration.
fn below(output: &str) -> &str {
    output.strip_prefix("bazel-out/").and_then(|rest| rest.splitn(3, '/').nth(2)).unwrap_or(output)
}
