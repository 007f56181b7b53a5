//! The entry of one run in the ledger: a file of [`SIZE`] bytes that holds a JSON object and blanks.
//!
//! The size is always the same, so that a full disk can refuse a run as it joins and not later. Damaged entries and
//! those of another version count for nothing: the runs of other versions of distlto are not counted.

use serde::{Deserialize, Serialize};

/// Bytes of a file. The longest object has about 330.
pub const SIZE: usize = 512;

const VERSION: u32 = 1;

/// A run's use and its next wish. Memory is in bytes, by estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holding {
    /// The version of this format.
    pub ledger: u32,
    /// The process of the run.
    pub process: u32,
    /// Number of actions that run here.
    pub slots: u64,
    /// Their memory.
    pub memory: u64,
    /// Memory of a linker that waits for their results.
    pub beside: u64,
    /// Memory limit for the actions of all runs together, as this run sees it; absent if there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u64>,
    /// The same limit as found by watching the available memory; absent if the user set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<u64>,
    /// The next action to start, if others left room for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Wish>,
}

/// An action that others leave no room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// Since when, in nanoseconds since 1970.
    pub since: u64,
    /// Slots that it takes: none under a jobserver.
    pub slots: u64,
    /// Memory that it takes.
    pub memory: u64,
}

impl Default for Holding {
    /// Nothing, held by this process.
    fn default() -> Self {
        Self {
            ledger: VERSION,
            process: std::process::id(),
            slots: 0,
            memory: 0,
            beside: 0,
            most: None,
            found: None,
            waits: None,
        }
    }
}

impl Holding {
    /// For its file.
    pub fn to_bytes(&self) -> [u8; SIZE] {
        let mut bytes = [b' '; SIZE];
        let text = serde_json::to_vec(self).expect("numbers serialise");
        // The size is longer than any object of numbers.
        bytes[..text.len()].copy_from_slice(&text);
        bytes[SIZE - 1] = b'\n';
        bytes
    }

    /// Parses a file.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let holding: Self = serde_json::from_slice(bytes).ok()?;
        (holding.ledger == VERSION).then_some(holding)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_fits_and_is_read_as_it_was_written() {
        let most = u64::MAX;
        let holding = Holding {
            ledger: VERSION,
            process: u32::MAX,
            slots: most,
            memory: most,
            beside: most,
            most: Some(most),
            found: Some(most),
            waits: Some(Wish { since: most, slots: most, memory: most }),
        };
        assert_eq!(Holding::parse(&holding.to_bytes()), Some(holding));
        assert!(serde_json::to_vec(&holding).expect("numbers").len() < SIZE - 100);
        assert_eq!(Holding::parse(&Holding::default().to_bytes()), Some(Holding::default()));
    }

    #[test]
    fn what_is_damaged_or_of_another_version_is_nothing() {
        let good = Holding::default().to_bytes();
        for damaged in [&good[..20], b"", b"\0\0\0\0", b"\xff\xfe", b"[]", b"{\"ledger\":1,\"process\":-1}"] {
            assert_eq!(Holding::parse(damaged), None, "{damaged:?}");
        }
        let later = Holding { ledger: VERSION + 1, ..Holding::default() };
        assert_eq!(Holding::parse(&later.to_bytes()), None);
    }
}
