//! What the linker prints on standard error, held back until it is known that this link is the one that counts.
//!
//! lld 22 loses the path of an archive that a linker script names, and fails in words that no user can do anything with;
//! such a link is done in two steps. From the moment at which backends are asked for, everything is passed on as it
//! comes. Knows nothing of links.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::link::show;

/// What lld 22 says of an archive whose path it has lost.
const LOST_ARCHIVE: &[u8] = b"Failed to get file size from archive";

/// The linker's standard error.
pub struct Messages(Mutex<Option<Vec<u8>>>);

impl Messages {
    /// Holds back what comes.
    pub fn new() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }

    fn held(&self) -> MutexGuard<'_, Option<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the next piece.
    pub fn take(&self, text: &[u8]) {
        match &mut *self.held() {
            Some(held) => held.extend_from_slice(text),
            None => show(text),
        }
    }

    /// Passes on what was held back, and everything from here on.
    pub fn release(&self) {
        if let Some(held) = self.held().take() {
            show(&held);
        }
    }

    /// Whether the linker has failed since it lost the path of an archive.
    pub fn tell_of_a_defect(&self) -> bool {
        let held = self.held();
        held.as_deref().is_some_and(|held| held.windows(LOST_ARCHIVE.len()).any(|part| part == LOST_ARCHIVE))
    }
}
