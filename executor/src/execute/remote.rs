//! Executes actions on an engine of the Remote Execution API, or on this machine if the schedule places them here.
//!
//! An engine that is only a cache executes nothing: its actions have been looked up by then, many at once, since
//! lookups wait for the network. An action that the engine does not execute comes back as [`Cause::NotOnEngine`] and runs
//! here. Blobs that an engine lost are uploaded again. At the end of a run idle slots of this machine race late
//! actions, and the first result counts. Knows nothing of schedules and of checks of results.

mod action_cache;
pub mod engine;
pub mod link_list;
mod link_objects;
mod loss;
mod pace;
mod silence;
pub mod stop;
mod transfer;
mod under_way;
mod uploads;
pub mod whole_links;

use std::path::Path;
use std::pin::pin;
use std::thread;

use distlto_prepare::threads;
use distlto_reapi::Error;
use tokio::sync::oneshot;

use self::engine::Engine;
use self::under_way::{Action, LOOK};
use super::{Execute, Executed, ExecutionRequest};
use crate::cancel::Cancel;
use crate::cause::Cause;
use crate::schedule::Site;

/// An engine, and this machine.
pub struct Remote<'a> {
    /// The engine.
    pub engine: &'a Engine,
    /// This machine.
    pub here: &'a dyn Execute,
    /// Where commands run; the current directory when `None`.
    pub directory: Option<&'a Path>,
}

impl Execute for Remote<'_> {
    fn execute(&self, request: &ExecutionRequest<'_>) -> Result<Executed, Cause> {
        if let Some(cause) = self.engine.ended(&request.job.label) {
            return Err(cause);
        }
        if request.site == Site::Here {
            return self.here.execute(request);
        }
        let not_there =
            |reason: &str| Cause::NotOnEngine { label: request.job.label.clone(), reason: reason.to_owned() };
        let Some(client) = self.engine.execution() else {
            let is_gone = self.engine.executes();
            return Err(not_there(if is_gone { "the engine is gone" } else { "no cache gave a result" }));
        };
        if self.engine.does_not_answer(client) {
            return Err(not_there("the engine does not answer"));
        }
        let described = request.described.ok_or_else(|| not_there("not all that it depends on is known"))?;
        if let Some(reason) = &described.local_only {
            self.engine.note(format!("{} runs on this machine: {reason}", request.job.label));
            return Err(not_there(reason));
        }
        self.race(request, &Action { client, described, request, directory: self.directory })
    }
}

/// The same action on this machine, begun because the engine is late.
struct Rival {
    ended: oneshot::Receiver<Result<Executed, Cause>>,
    cancel: Cancel,
}

impl Rival {
    /// Ends it, since its outputs are not needed any more.
    async fn end(self) {
        self.cancel.cancel(None);
        self.cancel.cancel(None);
        // Its outcome does not matter.
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
                let mut gone = pin!(engine.loss.wait());
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
                        // The engine is gone, so its answer will not come.
                        error = &mut gone => {
                            return self.settle(request, Err(error), rival).await;
                        }
                        ended = here => {
                            rival = None;
                            // An action that fails here may still succeed on the engine.
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
                            return Err(Cause::Interrupted { label: request.job.label.clone() });
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

    /// Picks the result once the engine has answered.
    async fn settle(
        &self,
        request: &ExecutionRequest<'_>,
        done: Result<Executed, Error>,
        rival: Option<Rival>,
    ) -> Result<Executed, Cause> {
        match (done, rival) {
            // The action has begun here too, so this machine finishes it.
            (Err(error), Some(rival)) => {
                let judged = self.engine.judge(request, error);
                rival.ended.await.unwrap_or(Err(judged))
            }
            (Err(error), None) => Err(self.engine.judge(request, error)),
            // It may lack a file that nobody knows of, such as one that the assembler includes.
            (Ok(executed), rival) if !executed.status.success() && self.engine.falls_back() => {
                let reason = format!("the compiler fails there: {}", executed.stderr.text().trim());
                let not_there = Err(Cause::NotOnEngine { label: request.job.label.clone(), reason });
                match rival {
                    // The action has begun here too, so this machine finishes it.
                    Some(rival) => rival.ended.await.unwrap_or(not_there),
                    None => not_there,
                }
            }
            (Ok(executed), rival) => {
                if let Some(rival) = rival {
                    rival.end().await;
                }
                let io = |source| Cause::Io { label: request.job.label.clone(), source };
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
        let (sender, ended) = oneshot::channel();
        let own = cancel.clone();
        let run = move || {
            // The receiver is gone if the engine's result came first.
            let _ = sender.send(self.here.execute(&ExecutionRequest { cancel: &own, ..*request }));
            self.engine.pace.ended_here();
        };
        threads::start_in(scope, "rival", run).ok()?;
        Some(Rival { ended, cancel })
    }
}
