//! Settings as what the executor takes, and a connection to whom they name.
//!
//! A server that cannot be reached is an error only where this machine is not to do the work.

use distlto_executor::cancel::Cancel;
use distlto_executor::execute::remote::engine::{Engine, EngineError};
use distlto_executor::execute::remote::setup::{ActionCache, Setup};
use distlto_prepare::message::note;
use distlto_prepare::warning::warn;
use miette::Diagnostic;
use thiserror::Error;

use super::args::RemoteArgs;
use super::config::ConfigError;
use super::settings::Settings;
use super::values::{CacheMode, Fallback, ToolchainPlace};
use crate::own_cache::is_first;

/// How many actions are at an engine at once, unless said otherwise.
const SLOTS: usize = 64;

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
    /// Connects to the engine that there is to use, if there is one, for runs that `cancel` ends.
    pub fn connect(&self, cancel: &Cancel) -> Result<Option<Engine>, RemoteError> {
        let settings = self.settings()?;
        settings.notices.iter().for_each(warn);
        if let Some(announcement) = settings.announcement.as_ref().filter(|text| is_first(text)) {
            note(format_args!("{announcement} (said once)"));
        }
        if !settings.is_remote() {
            return Ok(None);
        }
        let falls_back = settings.fallback == Fallback::Local;
        match Engine::connect(setup(settings), cancel) {
            Ok(engine) => Ok(Some(engine)),
            // Nothing starts any more.
            Err(_) if cancel.is_cancelled() => Ok(None),
            Err(error) if falls_back => {
                warn(format_args!("no engine is used: {error}; this machine does all of it"));
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn setup(settings: Settings) -> Setup {
    let Settings {
        cache,
        execute,
        platform,
        jobs,
        toolchain,
        fallback,
        queue_time,
        run_time,
        notices: _,
        announcement: _,
    } = settings;
    let action_cache = |(server, mode)| ActionCache { server, is_written: mode == CacheMode::ReadWrite };
    Setup {
        execution: execute,
        cache: cache.map(action_cache),
        slots: jobs.unwrap_or(SLOTS),
        platform,
        queue_time,
        run_time,
        falls_back: fallback == Fallback::Local,
        uploads_toolchain: toolchain == ToolchainPlace::Upload,
    }
}
