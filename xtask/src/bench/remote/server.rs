//! The server of `tests/reapi-server` as a process of its own, with what it counted when it ended.
//!
//! Its processor time is none of a link's. Knows nothing of what is asked of it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::shell;

/// A server that runs; it ends with this value.
pub struct Server {
    child: Child,
    /// Where it is.
    pub url: String,
}

/// Its counters by name.
pub struct Counts(BTreeMap<String, u64>);

impl Server {
    /// Starts one with these workers, as its option `--worker` has them.
    pub fn start(workers: &[String]) -> Result<Self> {
        let package = ["build", "--quiet", "--release", "--package", "distlto-reapi-server"];
        shell::quietly(shell::cargo().args(package))?;
        let mut command = Command::new(shell::target().join("release/reapi-server"));
        command.args(workers.iter().map(|worker| format!("--worker={worker}")));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut url = String::new();
        BufReader::new(child.stdout.take().context("its output is piped")?).read_line(&mut url)?;
        Ok(Self { child, url: url.trim().to_owned() })
    }

    /// Keeps it, and all that it starts, to one processor.
    pub fn keep_to_processor(&self, processor: usize) -> Result<()> {
        let id = self.child.id().to_string();
        let mut command = Command::new("taskset");
        command.args(["--all-tasks", "--cpu-list", "--pid", &processor.to_string(), &id]);
        shell::output(&mut command).map(drop)
    }

    /// Ends it and gives what it counted.
    pub fn end(mut self) -> Result<Counts> {
        let id = Pid::from_raw(i32::try_from(self.child.id())?).context("a process has a number")?;
        kill_process(id, Signal::TERM)?;
        let mut said = String::new();
        self.child.stderr.take().context("its errors are piped")?.read_to_string(&mut said)?;
        let pair = |line: &str| {
            let (name, number) = line.trim().trim_end_matches(',').split_once(": ")?;
            Some((name.trim_matches('"').to_owned(), number.parse().ok()?))
        };
        Ok(Counts(said.lines().filter_map(pair).collect()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Counts {
    /// One of them; 0 if it is not told.
    pub fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Calls of every method, whose names begin with a capital.
    pub fn calls(&self) -> u64 {
        self.0.iter().filter(|(name, _)| name.starts_with(char::is_uppercase)).map(|(_, count)| count).sum()
    }

    /// The methods that were called, and how often.
    pub fn methods(&self) -> String {
        let methods = self.0.iter().filter(|(name, _)| name.starts_with(char::is_uppercase));
        methods.map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
    }
}
