//! A line now and then on how a long run stands, for logs: a thread of its own, since one action may take minutes.
//!
//! A run that ends before the first line is due says nothing.

use std::io::Write;
use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use distlto_prepare::mutex::lock;
use distlto_prepare::threads;

use super::recorded::SharedRecord;
use super::{line, put};

/// The thread; ends on [`Ticker::stop`] or when dropped.
#[derive(Debug)]
pub(super) struct Ticker {
    thread: Mutex<Option<(Sender<()>, JoinHandle<()>)>>,
}

impl Ticker {
    /// Lines begin with the program's name. At the system's limit of threads there are none.
    pub(super) fn new(
        recorded: SharedRecord,
        program: &'static str,
        period: Duration,
        mut out: impl Write + Send + 'static,
    ) -> Self {
        Self::every(period, move || {
            let text = line::of_log(&lock(&recorded), Instant::now());
            if let Some(text) = text {
                put(&mut out, &format!("{program}: {text}\n"));
            }
        })
    }

    /// Does something again and again; never where the system has no thread for it.
    pub(super) fn every(period: Duration, mut tick: impl FnMut() + Send + 'static) -> Self {
        let (stop, stopped) = mpsc::channel();
        let run = move || {
            while stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                tick();
            }
        };
        let thread = threads::start("ticker", run).ok();
        Self { thread: Mutex::new(thread.map(|thread| (stop, thread))) }
    }

    /// Returns when nothing more is written.
    pub(super) fn stop(&self) {
        let thread = lock(&self.thread).take();
        if let Some((stop, thread)) = thread {
            drop(stop);
            // It does not panic; if it did, its lines are all that is lost.
            let _ = thread.join();
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use distlto_planner::graph::ActionKind;

    use super::*;
    use crate::progress::recorded::Recorded;
    use crate::progress::{Plan, ProgressEvent, ProgressStep};

    #[derive(Clone, Default)]
    struct Out(Arc<Mutex<Vec<u8>>>);

    impl Write for Out {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("no panic").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_long_run_is_told_of_while_it_lasts() {
        let (out, begun) = (Out::default(), Instant::now());
        let recorded = Recorded::new(begun).shared();
        let ticker = Ticker::new(recorded.clone(), "distlto", Duration::from_millis(5), out.clone());
        thread::sleep(Duration::from_millis(40));
        assert_eq!(out.0.lock().expect("no panic").as_slice(), b"", "nothing runs");
        let plan = Plan { actions: 2, cost: 2, jobs: 1 };
        lock(&recorded).report(ProgressEvent::Planned(plan), begun);
        let step = ProgressStep { id: 0, kind: ActionKind::Opt, label: "a.o", cost: 1, lane: 0, command: "" };
        lock(&recorded).report(ProgressEvent::Started(step), begun);
        let mut lines = String::new();
        while lines.lines().count() < 3 {
            assert!(begun.elapsed() < Duration::from_secs(60), "no lines");
            thread::sleep(Duration::from_millis(5));
            lines = String::from_utf8(out.0.lock().expect("no panic").clone()).expect("text");
        }
        ticker.stop();
        let said = out.0.lock().expect("no panic").len();
        thread::sleep(Duration::from_millis(30));
        assert_eq!(out.0.lock().expect("no panic").len(), said, "it has ended");
        assert!(lines.starts_with("distlto: 0/2 done after 1 s; 1 running, longest a.o ("), "{lines}");
    }
}
