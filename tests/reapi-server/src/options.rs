//! What is fixed while a server lives: its instance, port, workers and certificates.
//!
//! Also the flags of the program. Knows nothing of faults.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;

use crate::certificate::Certificates;

/// How a server is made.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Where it listens; port 0 takes a free one, and keeps it over a restart.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// The only instance that it knows.
    #[arg(long, value_name = "NAME", default_value = "")]
    pub instance: String,
    /// A worker, as `name=one,slots=2,delay=100,OSFamily=linux`; each word but a name may be missing, others are its
    /// platform. Without any, one worker of two slots.
    #[arg(long = "worker", value_name = "WORKER")]
    pub workers: Vec<Worker>,
    /// Where blobs and results lie; a temporary folder where absent.
    #[arg(long, value_name = "FOLDER")]
    pub state: Option<PathBuf>,
    /// TLS with these.
    #[arg(skip)]
    pub certificates: Option<Certificates>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            instance: String::new(),
            workers: Vec::new(),
            state: None,
            certificates: None,
        }
    }
}

/// One machine that runs actions.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Its name in results.
    pub name: String,
    /// How many actions it runs at a time.
    pub slots: usize,
    /// How much longer an action takes on it.
    pub delay: Duration,
    /// The platform properties that it has.
    pub platform: Vec<(String, String)>,
}

impl Worker {
    /// A worker without a platform.
    pub fn new(name: &str, slots: usize) -> Self {
        Self { name: name.to_owned(), slots, delay: Duration::ZERO, platform: Vec::new() }
    }
}

impl FromStr for Worker {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut worker = Self::new("", 1);
        for word in text.split(',') {
            let (key, value) = word.split_once('=').ok_or_else(|| format!("{word}: KEY=VALUE is wanted"))?;
            let number = || value.parse::<u32>().map_err(|_| format!("{word}: a number is wanted"));
            match key {
                "name" => worker.name = value.to_owned(),
                "slots" => worker.slots = number()? as usize,
                "delay" => worker.delay = Duration::from_millis(number()?.into()),
                _ => worker.platform.push((key.to_owned(), value.to_owned())),
            }
        }
        if worker.name.is_empty() { Err(format!("{text}: a worker has a name")) } else { Ok(worker) }
    }
}
