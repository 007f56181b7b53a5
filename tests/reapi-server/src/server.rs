//! A server in this process, on threads of its own, and the handle by which a test changes it.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tempfile::TempDir;
use tokio::net::TcpSocket;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::connection;
use crate::counts::Counts;
use crate::digest::Digest;
use crate::faults::Faults;
use crate::options::{Options, Worker};
use crate::queue::{Queue, work};
use crate::state::{State, locked};
use crate::store::Store;

/// For how long an address may be in use after a server ended.
const BUSY: Duration = Duration::from_secs(60);

/// A server, which ends with this value.
pub struct Server {
    options: Options,
    address: SocketAddr,
    /// Bound to that address for as long as this value lives, and never listening: while the server is stopped, connections
    /// are refused and nobody else on this machine is given the port.
    _port: TcpSocket,
    folder: PathBuf,
    /// Removed at the end.
    _temporary: Option<TempDir>,
    faults: Arc<Mutex<Faults>>,
    counts: Arc<Mutex<Counts>>,
    inputs: Arc<Mutex<HashSet<String>>>,
    running: Option<Running>,
}

struct Running {
    runtime: Runtime,
    state: Arc<State>,
    accept: JoinHandle<()>,
}

impl Server {
    /// Starts one; it answers when this returns.
    pub fn start(mut options: Options, faults: Faults) -> Result<Self> {
        let (folder, temporary) = match &options.state {
            Some(folder) => (std::path::absolute(folder)?, None),
            None => {
                let temporary = tempfile::tempdir()?;
                (temporary.path().to_owned(), Some(temporary))
            }
        };
        if options.workers.is_empty() {
            options.workers.push(Worker::new("worker", 2));
        }
        let port = bound(options.listen)?;
        let mut server = Self {
            address: port.local_addr()?,
            _port: port,
            options,
            folder,
            _temporary: temporary,
            faults: Arc::new(Mutex::new(faults)),
            counts: Arc::default(),
            inputs: Arc::default(),
            running: None,
        };
        server.resume()?;
        Ok(server)
    }

    /// `grpc://ADDRESS:PORT`, or `grpcs` with TLS.
    pub fn url(&self) -> String {
        let scheme = if self.options.certificates.is_some() { "grpcs" } else { "grpc" };
        format!("{scheme}://{}", self.address)
    }

    /// Changes the switches. What is counted begins from what is set here.
    pub fn change(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut locked(&self.faults));
        if let Some(running) = &self.running {
            running.state.queue.wake();
        }
    }

    /// The switches, with what is left of those that count.
    pub fn faults(&self) -> Faults {
        locked(&self.faults).clone()
    }

    /// The counters.
    pub fn counts(&self) -> Counts {
        locked(&self.counts).clone()
    }

    /// Ends a worker for good: what it runs goes back to the queue.
    pub fn lose_worker(&self, name: &str) {
        if let Some(running) = &self.running {
            running.state.queue.lose(name);
        }
    }

    /// Stops it as if it were killed: connections break, actions end, operations are forgotten.
    pub fn stop(&mut self) {
        if let Some(Running { runtime, state, accept }) = self.running.take() {
            state.queue.abandon();
            // The listener is closed when the task has ended, which a busy machine may not see within the time limit below.
            accept.abort();
            let _ = runtime.block_on(accept);
            runtime.shutdown_timeout(Duration::from_secs(5));
        }
    }

    /// Starts it if it is stopped.
    pub fn revive(&mut self) -> Result<()> {
        if self.running.is_some() { Ok(()) } else { self.resume() }
    }

    /// Starts it again on the same port, with what it had.
    pub fn resume(&mut self) -> Result<()> {
        self.stop();
        let certificates = self.options.certificates.as_ref();
        let tls = certificates.map(|certificates| certificates.acceptor()).transpose()?;
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let socket = bound_again(self.address)?;
        let listener = runtime.block_on(async { socket.listen(1024) });
        let listener = listener.with_context(|| format!("cannot listen on {}", self.address))?;
        let state = Arc::new(State {
            options: self.options.clone(),
            store: Arc::new(Store::new(&self.folder)?),
            counts: self.counts.clone(),
            inputs: self.inputs.clone(),
            faults: self.faults.clone(),
            queue: Queue::default(),
            streams: AtomicUsize::new(0),
            partial: Mutex::default(),
        });
        for worker in &self.options.workers {
            for _ in 0..worker.slots {
                runtime.spawn(work(state.clone(), worker.clone()));
            }
        }
        let accept = runtime.spawn(connection::accept(state.clone(), listener, tls));
        self.running = Some(Running { runtime, state, accept });
        Ok(())
    }

    /// Stops it if it runs, and starts it again without blobs and results.
    pub fn resume_empty(&mut self) -> Result<()> {
        self.stop();
        for part in ["blobs", "results"] {
            std::fs::remove_dir_all(self.folder.join(part))?;
        }
        self.resume()
    }

    /// Forgets a blob.
    pub fn evict(&self, digest: &Digest) -> Result<()> {
        Store::new(&self.folder)?.evict(digest);
        Ok(())
    }

    /// Forgets every blob, and keeps results.
    pub fn evict_all(&self) -> Result<()> {
        Store::new(&self.folder)?.evict_all();
        Ok(())
    }

    /// Forgets what the action cache has for an action.
    pub fn forget_result(&self, action: &Digest) -> Result<()> {
        Store::new(&self.folder)?.forget_result(action);
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The same for an address that was listened on: a child of this process that has not begun its own program yet still holds the
/// socket.
fn bound_again(address: SocketAddr) -> Result<TcpSocket> {
    let begun = Instant::now();
    loop {
        match bound(address) {
            Err(_) if begun.elapsed() < BUSY => std::thread::sleep(Duration::from_millis(10)),
            bound => return bound,
        }
    }
}

/// A socket with that address, which it may share with others that do not listen.
fn bound(address: SocketAddr) -> Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address).with_context(|| format!("cannot bind to {address}"))?;
    Ok(socket)
}
