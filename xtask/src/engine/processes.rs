//! The processes of an engine: started with their output in files, waited for until they listen, and stopped.
//!
//! The file `processes` beside the state lists what runs: number, time of its start, so that another process that has
//! the same number later is left alone, and name.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// How long something may take to listen, on a machine that is busy with other things.
const START: Duration = Duration::from_secs(120);
/// How long a process may take to end by itself.
const END: Duration = Duration::from_secs(10);
/// How often it is looked whether it does.
const LOOK: Duration = Duration::from_millis(20);

/// How long processes live.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// Until they are stopped.
    Long,
    /// No longer than this process.
    Ours,
}

/// The processes of one engine.
pub struct Processes {
    state: PathBuf,
    life: Life,
    children: Vec<(String, Child)>,
}

impl Processes {
    /// None yet, whose output and list will lie in `state`.
    pub fn new(state: &Path, life: Life) -> Self {
        Self { state: state.to_owned(), life, children: Vec::new() }
    }

    /// Those that were started in this state, by whomever.
    pub fn of(state: &Path) -> Self {
        Self::new(state, Life::Long)
    }

    /// Starts a command with the given environment and no other, in a session of its own.
    pub fn start(
        &mut self,
        name: &str,
        command: &[impl AsRef<OsStr>],
        environment: &[(&str, &OsStr)],
    ) -> Result<()> {
        let log = File::create(self.log(name))?;
        let mut started = Command::new("setsid");
        if self.life == Life::Ours {
            started.args(["setpriv", "--pdeathsig", "KILL", "--"]);
        }
        started.args(command).current_dir(&self.state).env_clear().envs(environment.iter().copied());
        started.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = started.spawn().with_context(|| format!("cannot start {name}"))?;
        let began = began(child.id()).unwrap_or_default();
        let mut list = OpenOptions::new().create(true).append(true).open(self.list())?;
        writeln!(list, "{} {began} {name}", child.id())?;
        self.children.push((name.to_owned(), child));
        Ok(())
    }

    /// Waits until something listens on a port, and fails with what the processes said when one of them ends.
    pub fn until_listening(&mut self, port: u16) -> Result<()> {
        let start = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            self.all_alive()?;
            if start.elapsed() > START {
                bail!("nothing listens on port {port} after {} s{}", START.as_secs(), self.said());
            }
            sleep(LOOK);
        }
        self.all_alive()
    }

    /// Fails with what it said when one has ended.
    pub fn all_alive(&mut self) -> Result<()> {
        for (name, child) in &mut self.children {
            if let Some(status) = child.try_wait()? {
                let said = fs::read_to_string(self.state.join(format!("{name}.log"))).unwrap_or_default();
                bail!("{name} ended with {status}:\n{said}");
            }
        }
        Ok(())
    }

    /// Where what it says is written.
    pub fn log(&self, name: &str) -> PathBuf {
        self.state.join(format!("{name}.log"))
    }

    fn said(&self) -> String {
        let of = |(name, _): &(String, Child)| {
            format!("\n{name}:\n{}", fs::read_to_string(self.log(name)).unwrap_or_default())
        };
        self.children.iter().map(of).collect()
    }

    /// Whether any of them runs.
    pub fn any_alive(&self) -> bool {
        !self.alive().is_empty()
    }

    /// Ends all, the last one first, with what they started.
    pub fn stop(&self) -> Result<()> {
        for process in self.alive().into_iter().rev() {
            let id = process.as_raw_nonzero().get();
            let was = began(id.cast_unsigned());
            let ended = || was.is_none() || began(id.cast_unsigned()) != was;
            // SIGINT is PostgreSQL's fast way to end; the others take it as a wish to end, too.
            let mut signal = Signal::INT;
            let start = Instant::now();
            while !ended() {
                // It may end in between.
                let _ = kill_process(process, signal);
                if start.elapsed() > END {
                    signal = Signal::KILL;
                }
                let look = Instant::now();
                while !ended() && look.elapsed() < Duration::from_secs(1) {
                    sleep(LOOK);
                }
            }
            let _ = kill_process_group(process, Signal::KILL);
        }
        Ok(())
    }

    fn alive(&self) -> Vec<Pid> {
        let list = fs::read_to_string(self.list()).unwrap_or_default();
        let alive = list.lines().filter_map(|line| {
            let mut words = line.split(' ');
            let id: u32 = words.next()?.parse().ok()?;
            (began(id)? == words.next()?).then(|| Pid::from_raw(id.cast_signed())).flatten()
        });
        alive.collect()
    }

    fn list(&self) -> PathBuf {
        self.state.join("processes")
    }
}

/// When a process that has not ended was started, in the kernel's ticks.
fn began(id: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name, in brackets, may hold anything.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    (fields.first() != Some(&"Z")).then(|| fields.get(19).map(|&time| time.to_owned())).flatten()
}
