//! The system's data on processes: `/proc/PID/stat` and `/proc/PID/status` (proc(5)).
//!
//! Without such files nothing is known. Does not depend on the purpose of the processes.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use rustix::process::getppid;

/// The system's data on one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Whether it has ended: a zombie has.
    pub ended: bool,
    /// Whether it was stopped, by Ctrl-Z or a debugger.
    pub is_stopped: bool,
    /// The number of the process that started it, or that has taken its place.
    pub parent: u32,
    /// When it started, in the system's ticks.
    pub started: u64,
}

/// Reads the data on the process with this number.
pub fn stat(process: u32) -> Option<Stat> {
    let path: PathBuf = ["/proc", &process.to_string(), "stat"].iter().collect();
    let text = fs::read(path).ok()?;
    // The program's name, in parentheses, may hold anything.
    let after = text.iter().rposition(|&byte| byte == b')')? + 1;
    let text = std::str::from_utf8(&text[after..]).ok()?;
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let state = *fields.first()?;
    Some(Stat {
        ended: matches!(state, "Z" | "X" | "x"),
        is_stopped: matches!(state, "T" | "t"),
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

/// The value of a variable of the environment that a process was started with.
pub fn variable(process: u32, name: &str) -> io::Result<Option<OsString>> {
    let variables = fs::read(format!("/proc/{process}/environ"))?;
    let value =
        |variable: &[u8]| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"=").map(<[u8]>::to_vec);
    Ok(variables.split(|&byte| byte == 0).find_map(value).map(OsString::from_vec))
}

/// Whether there is a process of this number, be it another one by now.
pub fn is_running(process: u32) -> bool {
    stat(process).is_some_and(|found| !found.ended)
}

/// The processes above this one, at most so many.
pub fn above(generations: usize) -> BTreeSet<u32> {
    let parent = getppid().map(|parent| parent.as_raw_pid().unsigned_abs());
    let next = |&process: &u32| stat(process).map(|found| found.parent).filter(|&parent| parent != 0);
    std::iter::successors(parent, next).take(generations).collect()
}

/// The memory that a process holds, in bytes.
pub fn resident(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
