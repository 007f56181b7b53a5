//! A runtime for connections, as large as the system lets it be.
//!
//! tokio panics where it cannot start a thread, so this module first tries to start as many threads as tokio will need.
//! Independent of connections.

use std::io;
use std::ops::Deref;
use std::sync::mpsc;
use std::time::Duration;

use distlto_prepare::threads;
use tokio::runtime::{Builder, Runtime};

/// Keep-alive of the thread for blocking tasks: a replacement might not start.
const FOR_EVER: Duration = Duration::from_secs(1 << 24);

/// A runtime that ends without waiting for pending results of the system, such as the address of a name.
#[derive(Debug)]
pub struct Connections(Option<Runtime>);

impl Deref for Connections {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Returns a runtime with `workers` threads for connections, and one for blocking tasks. Where the system has no more
/// threads, the threads that wait for its tasks run them instead. An error means that not even one thread can start.
pub fn runtime(name: &str, workers: usize) -> io::Result<Connections> {
    let mut builder = if are_there(workers + 1).is_ok() {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(workers);
        builder
    } else {
        are_there(1)?;
        Builder::new_current_thread()
    };
    let runtime = builder.thread_name(name).thread_keep_alive(FOR_EVER).enable_all().build()?;
    drop(runtime.spawn_blocking(|| ()));
    Ok(Connections(Some(runtime)))
}

/// Tries whether so many threads can run at once.
fn are_there(count: usize) -> io::Result<()> {
    let (mut ends, mut found) = (Vec::new(), Vec::new());
    let mut start = || {
        let (end, waits) = mpsc::channel::<()>();
        ends.push(end);
        found.push(threads::start("trial", move || _ = waits.recv())?);
        Ok(())
    };
    let started = (0..count).try_for_each(|_| start());
    drop(ends);
    // They have nothing to do that could panic.
    found.into_iter().for_each(|thread| drop(thread.join()));
    started
}
