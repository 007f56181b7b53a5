//! The make jobserver: how many jobs all programs of one build run at once.
//!
//! The protocol is GNU make's (`MAKEFLAGS`, "Job Slots" in its manual). Every program may run one job without asking,
//! and takes a token for each further one. Without a jobserver, or with a broken one, no token is requested.

use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::Sender;

use jobserver::{Acquired, Client, FromEnvErrorKind, HelperThread};

/// The variable with cargo's jobserver for build scripts and compilers.
const CARGO: &str = "CARGO_MAKEFLAGS";

/// A jobserver that the environment names and that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable} names a jobserver that cannot be used: {why}")]
pub struct Unusable {
    /// The variable that names it.
    pub variable: &'static str,
    /// Why it cannot be used.
    pub why: String,
    /// Whether make has one but withholds it, because it does not take the recipe line for a make.
    pub is_withheld: bool,
}

/// The remedy that has make pass its jobserver on.
pub const REMEDY: &str = "put + before the recipe line that links";

/// Returns the jobserver of `MAKEFLAGS`. The first call must come before any file is opened. make closes the named
/// descriptors where it does not pass them on (a recipe line without `+`), and the next opened file gets their numbers.
/// A pipe of our own would be taken for the jobserver, and never have a token.
///
/// `None` when there is none. One that make did not pass on is an error.
pub fn jobserver_of_make() -> Result<Option<Client>, Unusable> {
    static FOUND: OnceLock<Result<Option<Client>, Unusable>> = OnceLock::new();
    FOUND.get_or_init(find).clone()
}

fn find() -> Result<Option<Client>, Unusable> {
    use FromEnvErrorKind::{CannotOpenFd, NegativeFd, NoEnvVar, NoJobserver, NotAPipe};
    // SAFETY: the descriptors that MAKEFLAGS names are checked to be pipes. Every program that runs jobs first calls
    // `cancel_on_signals`, which makes sure that nothing else took their numbers.
    let found = unsafe { Client::from_env_ext(true) };
    match (found.client, found.var) {
        (Ok(client), _) => Ok(Some(client)),
        (Err(error), Some((variable, _))) if !matches!(error.kind(), NoEnvVar | NoJobserver) => {
            let is_closed = matches!(error.kind(), CannotOpenFd | NegativeFd | NotAPipe);
            Err(Unusable { variable, why: error.to_string(), is_withheld: is_closed && variable != CARGO })
        }
        _ => Ok(None),
    }
}

/// Like [`jobserver_of_make`], but without an error: `None` for a jobserver that cannot be used.
pub fn jobserver_from_env() -> Option<Client> {
    jobserver_of_make().ok().flatten()
}

/// The tokens of one run.
pub struct Tokens {
    helper: Option<HelperThread>,
    held: Vec<Acquired>,
    asked: bool,
    broken: bool,
}

impl Tokens {
    /// Sends the jobserver's answers to `deliver`, as messages made by `wrap`.
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

    /// Returns how many jobs may run at once at the moment.
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

    /// Whether a token that was asked for has not come.
    pub fn is_waiting(&self) -> bool {
        self.asked
    }

    /// Takes the jobserver's answer. After an error the run goes on with its tokens, at least one job.
    pub fn take(&mut self, answer: io::Result<Acquired>) {
        self.asked = false;
        match answer {
            Ok(token) => self.held.push(token),
            Err(_) => self.broken = true,
        }
    }

    /// Gives back the tokens that `running` jobs do not need.
    pub fn give_back(&mut self, running: usize) {
        self.held.truncate(running.saturating_sub(1));
    }
}
