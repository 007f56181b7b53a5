//! What the linker prints on standard error, held back until it is known that this link is the one that counts.
//!
//! lld 22 fails at some links when it has a distributor, and not without one, in words that no user can do anything with;
//! such a link is done in two steps. From the moment at which backends are asked for, everything is passed on as it
//! comes. Knows nothing of links.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::link::show;

/// What lld 22 says where its DTLTO is at fault, and what that is.
const DEFECTS: [(&[u8], &str); 2] = [
    (b"Failed to get file size from archive", "the linker loses archives that a linker script names"),
    // Members of a thin archive are called by the object's path.
    (
        b"Expected at most one ThinLTO module per bitcode file",
        "the linker cannot tell two members of thin archives apart that are one file",
    ),
];

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

    /// Why the linker has failed, if that is a defect of its DTLTO.
    pub fn defect(&self) -> Option<&'static str> {
        let held = self.held();
        let said = |text: &[u8]| {
            held.as_deref().is_some_and(|held| held.windows(text.len()).any(|part| part == text))
        };
        DEFECTS.iter().find(|(text, _)| said(text)).map(|(_, defect)| *defect)
    }
}
