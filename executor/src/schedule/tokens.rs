//! The make jobserver: how many jobs all programs of one build run at once.
//!
//! The protocol is GNU make's (`MAKEFLAGS`, "Job Slots" in its manual): every program may run one job without
//! asking, and takes a token for each one beyond. Without a jobserver, or with a broken one, nothing is asked.

use std::io;
use std::sync::mpsc::Sender;

use jobserver::{Acquired, Client, HelperThread};

/// Finds the jobserver that `MAKEFLAGS` names. To be called once, early in `main`, before files are opened.
///
/// `None` when there is none, or when make did not pass it on (a recipe line without `+`).
pub fn jobserver_from_env() -> Option<Client> {
    // SAFETY: the descriptors that MAKEFLAGS names are checked to be pipes; that nothing else took their
    // numbers is what calling this early makes sure of.
    unsafe { Client::from_env_ext(true) }.client.ok()
}

/// The tokens of one run.
pub struct Tokens {
    helper: Option<HelperThread>,
    held: Vec<Acquired>,
    asked: bool,
    broken: bool,
}

impl Tokens {
    /// `deliver` is given what the jobserver answers, as a message made by `wrap`.
    pub fn new<M: Send + 'static>(
        client: Option<&Client>,
        deliver: Sender<M>,
        wrap: fn(io::Result<Acquired>) -> M,
    ) -> Self {
        let helper = client.map(|client| {
            client.clone().into_helper_thread(move |token| {
                // A run that has ended no longer listens; the token goes back as it is dropped.
                let _ = deliver.send(wrap(token));
            })
        });
        let broken = matches!(helper, Some(Err(_)));
        Self { helper: helper.and_then(Result::ok), held: Vec::new(), asked: false, broken }
    }

    /// How many jobs may run at once at the moment.
    pub fn allowed(&self) -> usize {
        if self.helper.is_none() && !self.broken { usize::MAX } else { 1 + self.held.len() }
    }

    /// Asks for one more token, unless one is on its way.
    pub fn ask(&mut self) {
        if let Some(helper) = self.helper.as_ref().filter(|_| !self.asked && !self.broken) {
            helper.request_token();
            self.asked = true;
        }
    }

    /// Takes the jobserver's answer. After an error the run goes on with what it has, at least one job.
    pub fn take(&mut self, answer: io::Result<Acquired>) {
        self.asked = false;
        match answer {
            Ok(token) => self.held.push(token),
            Err(_) => self.broken = true,
        }
    }

    /// Gives back what `running` jobs do not need.
    pub fn give_back(&mut self, running: usize) {
        self.held.truncate(running.saturating_sub(1));
    }
}
