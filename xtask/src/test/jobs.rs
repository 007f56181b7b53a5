//! Runs tests side by side: a job is one process that runs its tests one after the other.
//!
//! How long each test takes is seen from when its line is printed. A job that says nothing for long is ended, so that a
//! test that waits for ever is one failure and not the end of all. Knows nothing of the tests' subjects.

use std::cmp::Reverse;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use rustix::process::{Pid, Signal, kill_process_group};
use wait4::Wait4;

use super::programs::Program;

/// No test is silent for as long, on whatever machine.
const LONGEST: Duration = Duration::from_secs(20 * 60);

/// Tests of one program.
pub struct Job {
    /// The program.
    pub program: Arc<Program>,
    /// The LLVM that its environment names.
    pub llvm: u32,
    /// The tests' names.
    pub tests: Vec<String>,
}

/// How tests ended.
#[derive(Default)]
pub struct Outcome {
    /// Those that passed, with the time that each took.
    pub passed: Vec<(String, Duration)>,
    /// Those that did not.
    pub failed: Vec<String>,
}

impl Outcome {
    /// Takes what other jobs came to.
    pub fn add(&mut self, other: Self) {
        self.passed.extend(other.passed);
        self.failed.extend(other.failed);
    }

    /// The tests that took longest.
    pub fn slowest(&self, count: usize) -> Vec<(&str, Duration)> {
        let mut all: Vec<_> = self.passed.iter().map(|(name, took)| (name.as_str(), *took)).collect();
        all.sort_by_key(|&(_, took)| Reverse(took));
        all.truncate(count);
        all
    }
}

/// Runs jobs in their order, so many at a time, and prints a line as each ends.
pub fn run(jobs: Vec<Job>, slots: usize) -> Result<Outcome> {
    let waiting = Mutex::new(jobs.into_iter());
    let outcome = Mutex::new(Outcome::default());
    let work = || -> Result<()> {
        loop {
            let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(job) = next else { return Ok(()) };
            let (text, ended) = job.run()?;
            let mut outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner);
            println!("{text}");
            outcome.add(ended);
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..slots).map(|_| scope.spawn(work)).collect();
        let ends =
            workers.into_iter().map(|worker| worker.join().map_err(|_| anyhow!("a worker panicked"))?);
        ends.collect::<Result<Vec<()>>>()
    })?;
    Ok(outcome.into_inner().unwrap_or_else(PoisonError::into_inner))
}

impl Job {
    /// Runs its tests; gives one line for the terminal (wall time, processor time, name), followed by all that was printed where something failed.
    fn run(&self) -> Result<(String, Outcome)> {
        let (reader, writer) = std::io::pipe()?;
        let mut command = self.program.command(self.llvm)?;
        command.args(["--test-threads=1", "--exact"]).args(&self.tests);
        // Both streams in one pipe have their lines in the order in which they were written.
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).process_group(0);
        let start = Instant::now();
        let mut child = command.spawn().with_context(|| format!("cannot start {}", self.program.name))?;
        let group = child.id();
        // The command holds two ends of the pipe.
        drop(command);
        let (sender, lines) = mpsc::channel();
        // A test's output need not be UTF-8.
        thread::spawn(move || BufReader::new(reader).split(b'\n').try_for_each(|line| sender.send(line)));
        let mut said = String::new();
        let mut results = Results::default();
        loop {
            match lines.recv_timeout(LONGEST) {
                Ok(line) => {
                    let line = line?;
                    let line = String::from_utf8_lossy(&line);
                    said.push_str(&line);
                    said.push('\n');
                    results.read(&line);
                    // A process that a test has left behind may hold the pipe for ever.
                    if line.starts_with("test result: ") {
                        break;
                    }
                }
                Err(RecvTimeoutError::Timeout) if child.try_wait()?.is_none() => {
                    let minutes = LONGEST.as_secs() / 60;
                    said += &format!(
                        "no test has ended for {minutes} minutes; these processes run:\n{}",
                        processes()
                    );
                    end(group);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        let ended = child.wait4()?;
        let status = ended.status;
        end(group);
        let mut outcome = Outcome::default();
        for test in &self.tests {
            match results.passed.iter().find(|(name, _)| name == test) {
                Some(&(_, took)) => outcome.passed.push((self.name_of(test), took)),
                None => outcome.failed.push(self.name_of(test)),
            }
        }
        if !status.success() && outcome.failed.is_empty() {
            outcome.failed.push(format!("{} ended with {status}", self.name()));
        }
        let processor = (ended.rusage.utime + ended.rusage.stime).as_secs_f64();
        let line = format!("{:>7.1} s {processor:>7.1} s  {}", start.elapsed().as_secs_f64(), self.name());
        let failed = !outcome.failed.is_empty();
        Ok((if failed { format!("{line} FAILED\n{said}{status}") } else { line }, outcome))
    }

    fn name_of(&self, test: &str) -> String {
        let with = if self.program.are_cases() { format!(" with LLVM {}", self.llvm) } else { String::new() };
        format!("{} {test}{with}", self.program.name)
    }

    fn name(&self) -> String {
        match &self.tests[..] {
            [test] => self.name_of(test),
            tests => {
                let first = tests.first().and_then(|test| test.split_once("::"));
                let module = first.filter(|_| self.program.name.ends_with(" all"));
                format!(
                    "{} {}({} tests)",
                    self.program.name,
                    module.map_or_else(String::new, |(module, _)| format!("{module} ")),
                    tests.len()
                )
            }
        }
    }
}

/// What a program says of its tests: `test NAME ... ok`, with what processes of the test print in between.
struct Results {
    current: Option<String>,
    since: Instant,
    passed: Vec<(String, Duration)>,
}

impl Default for Results {
    fn default() -> Self {
        Self { current: None, since: Instant::now(), passed: Vec::new() }
    }
}

impl Results {
    fn read(&mut self, line: &str) {
        if let Some((name, _)) = line.strip_prefix("test ").and_then(|line| line.split_once(" ... ")) {
            self.current = Some(name.trim_end_matches(" - should panic").trim_end().to_owned());
        }
        if (line == "ok" || line.ends_with(" ok"))
            && let Some(name) = self.current.take()
        {
            self.passed.push((name, self.since.elapsed()));
        }
        if line.ends_with("FAILED") {
            self.current = None;
        }
        if self.current.is_none() {
            self.since = Instant::now();
        }
    }
}

/// Ends what is left of a job's process group.
fn end(group: u32) {
    let group = i32::try_from(group).ok().and_then(Pid::from_raw);
    // There is nothing left, as a rule.
    let _ = group.map(|group| kill_process_group(group, Signal::KILL));
}

/// The processes of this machine, to see which one waits for which.
fn processes() -> String {
    match Command::new("ps").args(["-e", "--forest", "-o", "pid,ppid,stat,wchan:24,etimes,args"]).output() {
        Ok(said) => String::from_utf8_lossy(&said.stdout).into_owned(),
        Err(error) => format!("cannot start ps, which Debian's procps has: {error}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_test_program() {
        let mut results = Results::default();
        for line in [
            "running 4 tests",
            "test a::one ... ok",
            "test a::two - should panic ... ok",
            "test a::three ... FAILED",
            "test a::four ... a process of the test prints this",
            "and this, too. ok",
            "test result: FAILED. 3 passed; 1 failed",
        ] {
            results.read(line);
        }
        let names: Vec<&str> = results.passed.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a::one", "a::two", "a::four"]);
    }
}
