//! Servers that did not answer, so that not every link of a build waits for the same one.
//!
//! The ledger's directory has one file for each, which holds its URL and is as old as the last try. A failed read or
//! write does no harm here: a link waits once more, or does without a server that is back. Independent of calls.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use distlto_planner::digests::Digest;
use distlto_prepare::write::write_atomically;

use super::Ledger;

/// For how long a server is not asked again.
pub const PAUSE: Duration = Duration::from_secs(60);

/// A server that did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Absence {
    /// How long ago it was asked.
    pub ago: Duration,
    /// For how long it is not asked yet.
    pub left: Duration,
}

impl Ledger {
    /// Returns the absence of a server that did not answer a short while ago, and so is not asked.
    pub fn absence(&self, server: &str) -> Option<Absence> {
        let found = fs::symlink_metadata(self.absent(server)).ok()?;
        // A file of the future proves nothing.
        let ago = SystemTime::now().duration_since(found.modified().ok()?).ok()?;
        let left = PAUSE.checked_sub(ago)?;
        found.is_file().then_some(Absence { ago, left })
    }

    /// A server did not answer.
    pub fn record_absence(&self, server: &str) {
        // The next link asks it, and waits.
        let _ = write_atomically(&self.absent(server), server.as_bytes());
    }

    /// A server has answered.
    pub fn record_answer(&self, server: &str) {
        // Mostly there is none; one that stays is too old soon.
        let _ = fs::remove_file(self.absent(server));
    }

    fn absent(&self, server: &str) -> PathBuf {
        self.place.join(format!("absent-{}", &Digest::of(server.as_bytes()).hex()[..32]))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_server_is_left_alone_for_a_while() {
        let folder = tempfile::tempdir().expect("a folder");
        let ledger = Ledger::open(folder.path().join("ledger")).expect("a ledger");
        assert_eq!(ledger.absence("grpc://a:1"), None);
        ledger.record_absence("grpc://a:1");
        let absence = ledger.absence("grpc://a:1").expect("it did not answer");
        assert!(absence.ago + absence.left == PAUSE && absence.left > Duration::ZERO, "{absence:?}");
        assert_eq!(ledger.absence("grpc://a:2"), None, "another one");
        assert!(ledger.holdings().is_ok_and(|runs| runs.is_empty()), "it is no run");
        let file = File::options().write(true).open(ledger.absent("grpc://a:1")).expect("there");
        for (time, what) in [(SystemTime::now() - PAUSE, "too old"), (SystemTime::now() + PAUSE, "later")] {
            file.set_modified(time).expect("set");
            assert_eq!(ledger.absence("grpc://a:1"), None, "{what}");
        }
        file.set_modified(SystemTime::now()).expect("set");
        assert!(ledger.absence("grpc://a:1").is_some());
        ledger.record_answer("grpc://a:1");
        assert_eq!(ledger.absence("grpc://a:1"), None);
    }
}
