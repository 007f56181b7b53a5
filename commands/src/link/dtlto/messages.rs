//! What the linker prints on standard error, held back until it is known that this link is the one that counts.
//!
//! lld 22 fails at some links when it has a distributor, and not without one, in words that no user can do anything with;
//! such a link is done in two steps. From the moment at which backends are run, everything is passed on as it comes.
//! Knows nothing of links.

use std::sync::{Mutex, MutexGuard};

use distlto_executor::execute::capture::Captured;
use distlto_prepare::message::show;
use distlto_prepare::mutex::lock;

/// What lld 22 says where its DTLTO is at fault, and what that is.
const DEFECTS: [(&[u8], &str); 2] = [
    (b"Failed to get file size from archive", "the linker loses archives that a linker script names"),
    // Members of thin archives are called by the object's path.
    (
        b"Expected at most one ThinLTO module per bitcode file",
        "the linker takes one object in two thin archives for one module",
    ),
];

/// The linker's standard error.
pub struct Messages(Mutex<State>);

struct State {
    /// `None` once everything is passed on.
    held: Option<Vec<u8>>,
    /// All of it, within bounds.
    said: Captured,
    defect: Option<&'static str>,
}

impl Messages {
    /// Holds back what comes.
    pub fn new() -> Self {
        Self(Mutex::new(State { held: Some(Vec::new()), said: Captured::default(), defect: None }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }

    /// Takes the next piece.
    pub fn take(&self, text: &[u8]) {
        let mut state = self.state();
        let State { held, said, defect } = &mut *state;
        said.push(text);
        let seen = match held {
            Some(held) => {
                held.extend_from_slice(text);
                &held[..]
            }
            None => {
                show(text);
                text
            }
        };
        *defect = defect.or_else(|| defect_in(seen));
    }

    /// Passes on what was held back, and everything from here on.
    pub fn release(&self) {
        if let Some(held) = self.state().held.take() {
            show(&held);
        }
    }

    /// What came so far.
    pub fn said(&self) -> String {
        self.state().said.text()
    }

    /// The defect of the linker's DTLTO that this link has met. The linker goes on after some of them.
    pub fn defect(&self) -> Option<&'static str> {
        self.state().defect
    }
}

fn defect_in(said: &[u8]) -> Option<&'static str> {
    let says = |text: &[u8]| said.windows(text.len()).any(|part| part == text);
    DEFECTS.iter().find(|(text, _)| says(text)).map(|(_, defect)| *defect)
}
