//! Time and memory of a command with all its descendants, and medians.

use std::fs::{self, File};
use std::io::{Read, Seek};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use wait4::Wait4;

use crate::shell::shown;

/// How often memory is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// What a command cost.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cost {
    /// Seconds that passed.
    pub wall: f64,
    /// Seconds of user and system time of the command and of every descendant that was waited for.
    pub cpu: f64,
    /// The largest resident set of the command or of one of those descendants, in MiB.
    pub memory: f64,
}

impl Cost {
    /// Both after one another.
    pub fn plus(self, other: Self) -> Self {
        Self {
            wall: self.wall + other.wall,
            cpu: self.cpu + other.cpu,
            memory: self.memory.max(other.memory),
        }
    }

    /// Each part divided by another cost's.
    pub fn relative_to(self, other: Self) -> Self {
        Self { wall: self.wall / other.wall, cpu: self.cpu / other.cpu, memory: self.memory / other.memory }
    }
}

/// What a way is called, and for each run what it cost and how that relates to the first way of the run.
pub type Row<'a> = (&'a str, Vec<(Cost, Cost)>);

/// Prints the medians of some ways under a head.
pub fn print(head: &str, rows: &[Row<'_>]) {
    println!(
        "\n{head:44} {:>9} {:>9} {:>7} {:>8} {:>8} {:>8}",
        "wall s", "cpu s", "MiB", "wall x", "cpu x", "MiB x"
    );
    for (name, costs) in rows {
        let (costs, ratios): (Vec<_>, Vec<_>) = costs.iter().copied().unzip();
        let (cost, ratio) = (median(&costs), median(&ratios));
        println!(
            "{name:44} {:9.3} {:9.2} {:7.0} {:8.3} {:8.3} {:8.3}",
            cost.wall, cost.cpu, cost.memory, ratio.wall, ratio.cpu, ratio.memory
        );
    }
}

/// Runs a command that must succeed and measures it.
pub fn measure(command: &mut Command) -> Result<Cost> {
    let mut said = tempfile::tempfile()?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said.try_clone()?);
    let (status, cost) = cost(command)?;
    if !status.success() {
        bail!("{status} from {}\n{}", shown(command), text(&mut said)?);
    }
    Ok(cost)
}

/// Runs a command that must succeed, measures it, and gives what it prints.
pub fn measure_with_output(command: &mut Command) -> Result<(Cost, String)> {
    let (mut printed, mut said) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command.stdin(Stdio::null()).stdout(printed.try_clone()?).stderr(said.try_clone()?);
    let (status, cost) = cost(command)?;
    if !status.success() {
        bail!("{status} from {}\n{}", shown(command), text(&mut said)?);
    }
    Ok((cost, text(&mut printed)?))
}

/// Runs a command and measures it, however it ends.
pub fn cost(command: &mut Command) -> Result<(ExitStatus, Cost)> {
    let start = Instant::now();
    let child = command.spawn().with_context(|| format!("cannot start {}", shown(command)))?;
    let ended = child.wait4()?;
    let wall = start.elapsed().as_secs_f64();
    let used = ended.rusage;
    let cpu = (used.utime + used.stime).as_secs_f64();
    // Linux counts in KiB; the crate gives bytes.
    Ok((ended.status, Cost { wall, cpu, memory: used.maxrss as f64 / f64::from(1 << 20) }))
}

/// Runs a command that must succeed and tells the seconds of processor time of its process alone, and of all the descendants
/// that were waited for.
pub fn measure_own(command: &mut Command) -> Result<(f64, f64)> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let id = Pid::from_child(&child);
    // Not waited for yet, it keeps its counters (proc(5), `stat`).
    waitid(WaitId::Pid(id), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id()))?;
    let ended = child.wait4()?;
    ensure!(ended.status.success(), "{} from {}", ended.status, shown(command));
    // The command's name ends at the last parenthesis; user and system time are the fields 14 and 15, this one is the 3rd.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    let ticks: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
    ensure!(ticks.len() == 2, "/proc/PID/stat has no times: {stat}");
    let own = ticks.iter().sum::<u64>() as f64 / rustix::param::clock_ticks_per_second() as f64;
    let all = (ended.rusage.utime + ended.rusage.stime).as_secs_f64();
    Ok((own, (all - own).max(0.0)))
}

/// Runs a command that must succeed and tells the most memory that it and its descendants held together, in MiB, each
/// page that they share counted once.
pub fn measure_tree(command: &mut Command) -> Result<f64> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let mut peak: u64 = 0;
    let status = loop {
        peak = peak.max(held_by_tree(child.id()));
        match child.try_wait()? {
            Some(status) => break status,
            None => thread::sleep(LOOK),
        }
    };
    ensure!(status.success(), "{status} from {}", shown(command));
    Ok(peak as f64 / 1024.0)
}

/// KiB that a process and its descendants hold: their proportional set sizes (proc(5), `smaps_rollup`). A process that
/// ends meanwhile holds nothing.
fn held_by_tree(process: u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    let own =
        rollup.lines().find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix(" kB")?.parse().ok());
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let children = tasks.flat_map(|task| {
        let text = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        text.split_whitespace().filter_map(|child| child.parse().ok()).collect::<Vec<u32>>()
    });
    own.unwrap_or(0) + children.map(held_by_tree).sum::<u64>()
}

fn text(file: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The median of each part.
pub fn median(costs: &[Cost]) -> Cost {
    let part = |part: fn(&Cost) -> f64| middle(costs.iter().map(part).collect());
    Cost { wall: part(|cost| cost.wall), cpu: part(|cost| cost.cpu), memory: part(|cost| cost.memory) }
}

/// The median of some values; 0 of none.
pub fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.as_slice() {
        [] => 0.0,
        values if values.len() % 2 == 1 => values[half],
        values => (values[half - 1] + values[half]) / 2.0,
    }
}
