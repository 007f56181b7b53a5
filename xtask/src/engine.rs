//! `cargo xtask engine`: real engines of the Remote Execution API on loopback, for tests and for trying distlto.
//!
//! Everything lies below `target/engines`: `downloads` as it came, what was unpacked of it by engine, and the state of
//! those that run. Removing that folder removes all of it, once `down` has stopped what runs.

pub mod buildgrid;
pub mod casd;
mod processes;
pub mod python;

use std::io::{Write, stdin, stdout};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::{Context, Result, bail};
use clap::{Subcommand, ValueEnum};

use crate::engine::processes::{Life, Processes};
use crate::shell::{remove, target};

/// The engines.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Name {
    /// buildbox-casd: cache and execution in one process.
    Casd,
    /// BuildGrid with PostgreSQL and two workers.
    Buildgrid,
}

/// What is done.
#[derive(Subcommand)]
pub enum What {
    /// Starts it, after installing it, and prints its URL as the last line.
    Up {
        /// Where it listens; a free port where absent.
        #[arg(long)]
        port: Option<u16>,
    },
    /// Stops it and removes its state.
    Down,
    /// Starts another one, prints its URL, and stops it when standard input ends: for a test process.
    Run,
}

/// Does it.
pub fn engine(name: Name, what: &What) -> Result<()> {
    match what {
        What::Up { port } => {
            install(name)?;
            let state = running(name, "");
            if Processes::of(&state).any_alive() {
                bail!("{} runs; stop it with `cargo xtask engine {} down`", word(name), word(name));
            }
            println!("{}", up(name, &state, *port, Life::Long)?);
            Ok(())
        }
        What::Down => down(&running(name, "")),
        What::Run => {
            let own = Own::start(name)?;
            println!("{}", own.url);
            stdout().flush()?;
            std::io::copy(&mut stdin().lock(), &mut std::io::sink())?;
            down(&own.state)
        }
    }
}

/// An engine that ends with this value, and with this process at the latest.
pub struct Own {
    state: PathBuf,
    /// Where it listens.
    pub url: String,
    /// What its workers are, for one that asks: properties as `NAME=VALUE`.
    pub platform: &'static [&'static str],
}

impl Own {
    /// Starts one, after installing it.
    pub fn start(name: Name) -> Result<Self> {
        install(name)?;
        sweep(name)?;
        let state = running(name, &format!("-{}", std::process::id()));
        let url = up(name, &state, None, Life::Ours)?;
        let platform: &[&str] = match name {
            Name::Casd => &[],
            Name::Buildgrid => &buildgrid::PLATFORM,
        };
        Ok(Self { state, url, platform })
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // What is left is swept by the next one.
        let _ = down(&self.state);
    }
}

fn install(name: Name) -> Result<()> {
    match name {
        Name::Casd => casd::install().map(|_| ()),
        Name::Buildgrid => buildgrid::install().map(|_| ()),
    }
}

/// Starts an engine that is installed, or leaves nothing of it.
fn up(name: Name, state: &Path, port: Option<u16>, life: Life) -> Result<String> {
    down(state)?;
    std::fs::create_dir_all(state)?;
    let port = port.map_or_else(free_port, Ok)?;
    let mut processes = Processes::new(state, life);
    let started = match name {
        Name::Casd => casd::start(&mut processes, state, port),
        Name::Buildgrid => buildgrid::start(&mut processes, state, port),
    };
    if let Err(error) = started {
        let _ = down(state);
        return Err(error);
    }
    Ok(format!("grpc://127.0.0.1:{port}"))
}

/// Removes what is left of those that were started for a process that was killed.
fn sweep(name: Name) -> Result<()> {
    let states = std::fs::read_dir(folder().join("run")).into_iter().flatten().flatten();
    for state in states.map(|entry| entry.path()) {
        let file = state.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(id) = file.strip_prefix(&format!("{}-", word(name))) else { continue };
        if !Path::new("/proc").join(id).exists() {
            down(&state)?;
        }
    }
    Ok(())
}

fn down(state: &Path) -> Result<()> {
    Processes::of(state).stop()?;
    remove(state)
}

/// Where engines lie.
fn folder() -> PathBuf {
    target().join("engines")
}

/// Where one that runs has its state. Absolute: some programs look for it from other folders.
fn running(name: Name, suffix: &str) -> PathBuf {
    folder().join("run").join(format!("{}{suffix}", word(name)))
}

fn word(name: Name) -> &'static str {
    match name {
        Name::Casd => "casd",
        Name::Buildgrid => "buildgrid",
    }
}

/// A port that nobody listens on at this moment, and that the kernel gives to no connection until the engine takes it: it is
/// below the range of those. Each call gives another one.
fn free_port() -> Result<u16> {
    const PORTS: u32 = 12_000;
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id().wrapping_mul(31).wrapping_add(CALLS.fetch_add(1, Relaxed));
    let mut ports = (0..PORTS).map(|step| 20_000 + (first.wrapping_add(step) % PORTS) as u16);
    let free = ports.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
    free.context("no port between 20000 and 32000 is free on this machine: end what listens there")
}
