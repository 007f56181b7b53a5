//! Test programs that say nothing for a long time: what they and everything else do is shown, and they are ended, so that
//! one test that waits for ever is one failure and not the end of all.

use std::fs;
use std::process::{Child, Command};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// No test is silent for as long, on whatever machine.
pub const LONGEST: Duration = Duration::from_secs(20 * 60);

/// Ends the test programs that a cargo runs; while it builds, there are none.
pub fn end(cargo: &Child) {
    let programs = programs(cargo.id());
    if programs.is_empty() {
        return;
    }
    println!("\nno test has ended for {} minutes; what runs on this machine:", LONGEST.as_secs() / 60);
    let mut shown = Command::new("ps");
    shown.args(["-e", "--forest", "-o", "pid,ppid,stat,wchan:24,etimes,args"]);
    // Without it they are ended all the same.
    match shown.output() {
        Ok(said) => println!("{}", String::from_utf8_lossy(&said.stdout)),
        Err(error) => println!("cannot start ps, which Debian's procps has: {error}"),
    }
    for program in programs {
        println!("process {program} is ended, whose tests count as failed");
        // It may have ended in between.
        let _ = kill_process(program, Signal::KILL);
    }
}

/// The children of a cargo that lie where it puts test programs.
fn programs(cargo: u32) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ours = processes.filter_map(|entry| {
        let id: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let parent: u32 = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        let program = fs::read_link(entry.path().join("exe")).ok()?;
        let is_test = program.parent()?.file_name()? == "deps";
        (parent == cargo && is_test).then(|| Pid::from_raw(id))?
    });
    ours.collect()
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, Result};

    use super::*;

    #[test]
    fn a_cargos_test_programs_are_found_and_nothing_else() -> Result<()> {
        let here = Pid::from_raw(std::process::id().cast_signed()).context("a process has a number")?;
        let parent = rustix::process::getppid().context("a test was started by something")?;
        assert!(programs(parent.as_raw_nonzero().get().cast_unsigned()).contains(&here));
        let mut other = Command::new("sleep").arg("1000").spawn()?;
        let found = programs(std::process::id());
        other.kill()?;
        other.wait()?;
        assert_eq!(found, []);
        Ok(())
    }
}
