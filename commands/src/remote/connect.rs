//! Converts settings for the executor, and connects to the servers that they name.
//!
//! A server that cannot be reached is an error only if this machine may not do the work. A server that did not answer
//! is left alone for a while, so that not every link of a build waits for it.

use std::sync::Arc;

use distlto_executor::cancel::Cancel;
use distlto_executor::execute::remote::engine::{Engine, EngineError, EngineSettings};
use distlto_executor::ledger::Ledger;
use distlto_executor::ledger::absence::Absence;
use distlto_prepare::message::note;
use distlto_prepare::warning::warn;
use miette::Diagnostic;
use thiserror::Error;

use super::args::RemoteArgs;
use crate::configuration::file::ConfigError;
use crate::store::is_first;

/// No engine can be used.
#[derive(Debug, Error, Diagnostic)]
pub enum RemoteError {
    /// The configuration is wrong.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Config(#[from] ConfigError),
    /// The server is.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Engine(#[from] EngineError),
}

impl RemoteArgs {
    /// Reads and checks the configuration. Contacts no server.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.settings()?.check()
    }

    /// How many jobs may be on their way to a server at once; none without a server.
    pub fn slots(&self) -> Result<usize, ConfigError> {
        let settings = self.settings()?;
        Ok(if settings.is_remote() { settings.engine.slots } else { 0 })
    }

    /// Connects to the configured engine, if there is one, for runs that `cancel` ends. Notes in the ledger a server
    /// that did not answer.
    pub fn connect(&self, cancel: &Cancel, ledger: Option<&Ledger>) -> Result<Option<Engine>, RemoteError> {
        let settings = self.settings()?;
        settings.check()?;
        settings.notices.iter().for_each(warn);
        if let Some(announcement) = settings.announcement.as_ref().filter(|text| is_first(text)) {
            note(format_args!("{announcement} (said once)"));
        }
        if !settings.is_remote() {
            return Ok(None);
        }
        let falls_back = settings.engine.falls_back;
        let servers: Vec<_> =
            settings.engine.servers().map(|server| server.endpoint.shown().clone()).collect();
        if let Some(absence) = ledger.filter(|_| falls_back).and_then(|ledger| absence(ledger, &servers)) {
            warn(absence);
            return Ok(None);
        }
        let what = if settings.engine.execution.is_some() { "engine" } else { "remote cache" };
        let engine = EngineSettings { ledger: ledger.cloned(), ..settings.engine };
        match Engine::connect(engine, cancel) {
            Ok(engine) => {
                servers
                    .iter()
                    .for_each(|server| ledger.into_iter().for_each(|ledger| ledger.record_answer(server)));
                Ok(Some(engine))
            }
            // Nothing starts any more.
            Err(_) if cancel.is_cancelled() => Ok(None),
            Err(error) => {
                if let (Some(ledger), EngineError::Server(error)) = (ledger, &error)
                    && let Some(server) = error.endpoint().filter(|_| error.is_silence())
                {
                    ledger.record_absence(server);
                }
                if !falls_back {
                    return Err(error.into());
                }
                warn(format_args!("no {what} is used: {error}; this machine does all of it"));
                Ok(None)
            }
        }
    }
}

/// That one of these servers is not to be asked yet.
fn absence(ledger: &Ledger, servers: &[Arc<str>]) -> Option<String> {
    servers.iter().find_map(|server| {
        let Absence { ago, left } = ledger.absence(server)?;
        Some(format!(
            "{server} did not answer {} s ago and is not asked for another {} s; this machine does all of it \
             (`distlto remote check` asks it at once)",
            ago.as_secs(),
            left.as_secs() + 1
        ))
    })
}
