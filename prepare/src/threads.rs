//! Threads, as far as the system has them for this process: without one, work is done by the thread that asks for it.
//!
//! The one place that starts threads, those of rayon's pool too: [`std::thread::spawn`] and rayon's own start panic where none
//! can be had. Knows nothing of the work.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, Builder, JoinHandle, Scope, ScopedJoinHandle};

use rayon::{ThreadBuilder, ThreadPoolBuilder};

use crate::limits::SystemLimit;
use crate::mutex::lock;

/// Threads and processes that rayon's pool leaves to other work.
const BESIDE: usize = 8;

/// Whether the calling thread of [`begin`] is rayon's pool. Work from another thread would wait for ever.
static ALONE: AtomicBool = AtomicBool::new(false);

fn builder(name: &str) -> io::Result<Builder> {
    if ALONE.load(Ordering::Relaxed) {
        return Err(SystemLimit::Processes.into());
    }
    Ok(Builder::new().name(name.to_owned()))
}

/// Starts a thread, if the system has one.
pub fn start<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    builder(name)?.spawn(body).map_err(SystemLimit::on_start)
}

/// Starts a thread that ends before its scope does, if the system has one.
pub fn start_in<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    body: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    builder(name)?.spawn_scoped(scope, body).map_err(SystemLimit::on_start)
}

/// Does one thing here and another on a thread of its own, or one after the other.
pub fn both<A, B: Send>(here: impl FnOnce() -> A, beside: impl FnOnce() -> B + Send) -> (A, B) {
    let beside = Mutex::new(Some(beside));
    let run = || {
        let taken = lock(&beside).take();
        taken.map(|work| work())
    };
    thread::scope(|scope| {
        let other = start_in(scope, "beside", run);
        let one = here();
        let other = match other {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => run(),
        };
        (one, other.expect("the work is taken once, here or there"))
    })
}

/// Makes rayon's pool, of as many threads as the system has and nothing else needs. To be called early in `main`.
pub fn begin() {
    let wanted = thread::available_parallelism().map_or(1, usize::from);
    let mut waiting: Vec<_> =
        std::iter::repeat_with(Waiting::start).take(wanted + BESIDE).map_while(Result::ok).collect();
    let found = waiting.len();
    let kept = if found < wanted + BESIDE { wanted.min(found / 4) } else { wanted };
    waiting.drain(kept..).for_each(Waiting::end);
    let pool = ThreadPoolBuilder::new().num_threads(kept.max(1));
    let made = if kept == 0 {
        ALONE.store(true, Ordering::Relaxed);
        pool.use_current_thread().build_global()
    } else {
        pool.spawn_handler(|thread| {
            waiting.pop().map_or(Err(SystemLimit::Processes.into()), |one| one.become_of(thread))
        })
        .build_global()
    };
    // Only a pool that is there already is an error.
    debug_assert!(made.is_ok(), "{made:?}");
}

/// A thread that reserves a place for the pool, so that rayon is asked only for threads that the system has.
struct Waiting {
    work: Sender<ThreadBuilder>,
    thread: JoinHandle<()>,
}

impl Waiting {
    fn start() -> io::Result<Self> {
        let (work, given) = mpsc::channel::<ThreadBuilder>();
        let thread = start("pool", move || _ = given.recv().map(ThreadBuilder::run))?;
        Ok(Self { work, thread })
    }

    fn become_of(self, pool: ThreadBuilder) -> io::Result<()> {
        self.work.send(pool).map_err(|_| SystemLimit::Processes.into())
    }

    /// Waits until it has ended, so that somebody else can have it.
    fn end(self) {
        drop(self.work);
        // It does nothing that could panic.
        let _ = self.thread.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_done_with_a_thread_and_without() {
        assert_eq!(both(|| 1, || 2), (1, 2));
        let panic = std::panic::catch_unwind(|| both(|| 1, || -> u8 { panic!("as it is to be") }));
        assert!(panic.is_err());
    }
}
