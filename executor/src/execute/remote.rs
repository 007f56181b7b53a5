//! Executes actions on an engine of the Remote Execution API, and on this machine what the schedule wants here.
//!
//! An engine that is a cache alone executes nothing: what is placed there has been looked up by then, many at once, since that
//! is waiting for a network. What an engine turns out not to execute comes back as [`Cause::NotThere`], and runs here. Blobs
//! that an engine lost are uploaded again. At the end of a run, when slots of this machine are idle, an action that is late
//! there is raced here, and the first result counts. Knows nothing of schedules, and nothing of what a result has to be.

pub mod engine;
mod gone;
mod keep;
mod pace;
pub mod setup;
pub mod stop;
mod transfer;
mod uploads;

use std::path::Path;
use std::pin::pin;
use std::thread;
use std::time::Duration;

use distlto_prepare::threads;
use distlto_reapi::{Client, Error};
use tokio::sync::oneshot;

use self::engine::Engine;
use super::local::Local;
use super::{Execute, Executed, ExecutionRequest};
use crate::cancel::Cancel;
use crate::cause::Cause;
use crate::describe::Described;
use crate::schedule::Site;

/// How often an action that is under way is looked at, while slots of this machine are idle.
const LOOK: Duration = Duration::from_millis(100);

/// An engine, and this machine.
pub struct Remote<'a> {
    /// The engine.
    pub engine: &'a Engine,
    /// This machine.
    pub local: Local<'a>,
}

impl Execute for Remote<'_> {
    fn execute(&self, request: &ExecutionRequest<'_>) -> Result<Executed, Cause> {
        if let Some(cause) = self.engine.ended(request.job.label) {
            return Err(cause);
        }
        if request.site == Site::Here {
            return self.local.execute(request);
        }
        let not_there =
            |reason: &str| Cause::NotThere { label: request.job.label.to_owned(), reason: reason.to_owned() };
        let Some(client) = self.engine.execution() else {
            let is_gone = self.engine.executes();
            return Err(not_there(if is_gone { "the engine is gone" } else { "its cache has no result" }));
        };
        let described = request.described.ok_or_else(|| not_there("not all that it depends on is known"))?;
        if let Some(reason) = &described.bound {
            self.engine.note(format!("{} runs on this machine: {reason}", request.job.label));
            return Err(not_there(reason));
        }
        self.race(request, &Action { client, described, request, directory: self.local.directory })
    }
}

/// An action under way on an engine.
struct Action<'a> {
    client: &'a Client,
    described: &'a Described<'a>,
    request: &'a ExecutionRequest<'a>,
    directory: Option<&'a Path>,
}

/// The same on this machine, begun when it was late.
struct Rival {
    ended: oneshot::Receiver<Result<Executed, Cause>>,
    cancel: Cancel,
}

impl Rival {
    /// Ends it: what it would write is there.
    async fn end(self) {
        self.cancel.cancel(None);
        self.cancel.cancel(None);
        // Nobody waits for what it did.
        let _ = self.ended.await;
    }
}

impl Remote<'_> {
    /// Has the engine execute an action, and this machine too if that is late and there is room.
    fn race(&self, request: &ExecutionRequest<'_>, action: &Action<'_>) -> Result<Executed, Cause> {
        let engine = self.engine;
        let flight = engine.pace.begin(request.estimate);
        thread::scope(|scope| {
            engine.runtime.block_on(async {
                let mut there = pin!(engine.execute(action, &flight));
                let mut rival: Option<Rival> = None;
                let mut stop = pin!(engine.stop.asked());
                let mut gone = pin!(engine.gone.happened());
                let mut idle = engine.pace.idle_slots();
                loop {
                    let here = async {
                        match &mut rival {
                            Some(rival) => (&mut rival.ended).await,
                            None => std::future::pending().await,
                        }
                    };
                    tokio::select! {
                        done = &mut there => {
                            return self.settle(request, done, rival).await;
                        }
                        // Nothing comes of what is there any more.
                        error = &mut gone => {
                            return self.settle(request, Err(error), rival).await;
                        }
                        ended = here => {
                            rival = None;
                            // What fails here may not fail there.
                            if let Ok(Ok(executed)) = ended && executed.status.success() {
                                return Ok(executed);
                            }
                        }
                        Ok(()) = idle.changed() => {}
                        () = tokio::time::sleep(LOOK), if engine.pace.is_any_idle() => {}
                        () = &mut stop => {
                            if let Some(rival) = rival {
                                rival.end().await;
                            }
                            return Err(Cause::Interrupted { label: request.job.label.to_owned() });
                        }
                    }
                    if rival.is_none() && engine.pace.may_race(&flight) {
                        rival = self.rival(scope, request);
                        if rival.is_none() {
                            engine.pace.ended_here();
                        }
                    }
                }
            })
        })
    }

    /// What counts once the engine has answered.
    async fn settle(
        &self,
        request: &ExecutionRequest<'_>,
        done: Result<Executed, Error>,
        rival: Option<Rival>,
    ) -> Result<Executed, Cause> {
        match (done, rival) {
            // This machine has begun, and ends what it has begun.
            (Err(error), Some(rival)) => {
                let judged = self.engine.judge(request, error);
                rival.ended.await.unwrap_or(Err(judged))
            }
            (Err(error), None) => Err(self.engine.judge(request, error)),
            // It may lack a file that nobody knows of, such as one that the assembler includes.
            (Ok(executed), None) if !executed.status.success() && self.engine.falls_back() => {
                let reason = format!("the compiler fails there: {}", executed.stderr.text().trim());
                Err(Cause::NotThere { label: request.job.label.to_owned(), reason })
            }
            (Ok(executed), rival) => {
                if let Some(rival) = rival {
                    rival.end().await;
                }
                let io = |source| Cause::Io { label: request.job.label.to_owned(), source };
                transfer::put_in_place(request.outputs).map_err(io)?;
                Ok(executed)
            }
        }
    }

    /// Begins an action here too.
    fn rival<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        request: &'scope ExecutionRequest<'_>,
    ) -> Option<Rival> {
        let cancel = Cancel::new().ok()?;
        let (told, ended) = oneshot::channel();
        let own = cancel.clone();
        let run = move || {
            let local = Local { cancel: &own, ..self.local };
            // Whoever waited may have its result from the engine.
            let _ = told.send(local.execute(request));
            self.engine.pace.ended_here();
        };
        threads::start_in(scope, "rival", run).ok()?;
        Some(Rival { ended, cancel })
    }
}
