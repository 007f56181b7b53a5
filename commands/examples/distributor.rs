//! A distributor of one's own for lld's DTLTO: every compiler is started through a launcher, such as `nice` or `ssh HOST`.
//!
//! `clang++ ... -fthinlto-distributor=PATH/distributor -Xthinlto-distributor=8,nice,-n19`: the number of jobs, then the
//! launcher's words; lld adds the job file. Reading, scheduling, checking and cleaning up is the library's. The one part
//! that differs is how a process is started.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::time::Instant;

use distlto_commands::distribute::linker::ParentLinker;
use distlto_executor::cancel::cancel_on_signals;
use distlto_executor::execute::process::{Child, Command, Spawner};
use distlto_executor::execute::spawn::PLAIN;
use distlto_executor::run::{self, NoHooks};
use distlto_planner::dtlto::{self, cost};
use distlto_record::progress::recorded::Recorded;
use distlto_record::progress::{Style, TextProgress};

/// Starts commands through other ones.
struct Launcher {
    words: VecDeque<OsString>,
}

impl Spawner for Launcher {
    fn spawn(&self, command: &Command, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<Box<dyn Child>> {
        let mut words = self.words.clone();
        words.push_back(command.program.clone());
        words.extend(command.args.iter().cloned());
        let program = words.pop_front().unwrap_or_default();
        let launched = Command { program, args: words.into(), ..command.clone() };
        PLAIN.spawn(&launched, stdout, stderr)
    }
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut words: VecDeque<OsString> = std::env::args_os().skip(1).collect();
    let job_file = words.pop_back().ok_or("usage: distributor [JOBS [LAUNCHER...]] JOBFILE")?;
    let jobs = words.pop_front().and_then(|jobs| jobs.to_str()?.parse().ok()).unwrap_or(1);
    let launcher = Launcher { words };

    // lld does not end its distributor when it is killed, so the distributor has to look.
    let cancel = cancel_on_signals()?;
    if let Some(linker) = ParentLinker::of_job_file(job_file.as_ref()) {
        linker.watch(&cancel);
    }
    let name = job_file.to_string_lossy();
    let mut file = dtlto::read(&std::fs::read(&job_file)?, &name)?;
    // The costliest job begins first; without costs they run in the order of the link line.
    cost::set_costs(&mut file, None);

    let recorded = Recorded::new(Instant::now()).shared();
    let progress = TextProgress::log(recorded, Style::default(), io::stderr());
    let mut options = run::RunOptions::new(&launcher, &cancel, &progress);
    options.jobs = jobs;
    let report = run::run(&file.graph, &file.jobs, &options, &NoHooks);
    Ok(ExitCode::from(report.exit_code()))
}
