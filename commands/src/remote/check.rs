//! `distlto remote check`: asks a server for its capabilities, tries them, and reports problems in sentences.
//!
//! A blob goes up and down, a result is kept and found, and a tiny backend is compiled here and there. Nothing is
//! retried for longer than a run would. Does not depend on schedules: problems are reported and not worked around.

mod backend;
mod server;

use std::io;
use std::time::Duration;

use clap::Args;
use distlto_executor::cancel::Cancel;
use distlto_executor::describe::Platform;
use distlto_executor::execute::remote::engine::EngineSettings;
use distlto_executor::execute::remote::stop::Stop;
use distlto_executor::ledger::Ledger;
use distlto_executor::runtime::runtime;
use distlto_prepare::exit;
use distlto_prepare::warning::warn;
use distlto_reapi::{self as reapi, Client};
use miette::{Diagnostic, Report};
use thiserror::Error;

use super::args::RemoteArgs;
use super::settings::Settings;
use super::values::{ChosenServer, UrlText};
use crate::report::CheckedSentences;

/// A user of this command does not want to wait as long as a link may.
const QUEUE_TIME: Duration = Duration::from_secs(20);
const RUN_TIME: Duration = Duration::from_secs(60);
/// Ask a server of the Remote Execution API what it can do, and say what is wrong
///
/// Blobs are uploaded and downloaded, and a backend compilation of some lines is run there and here: the objects have to be
/// equal. The exit code is 0 if everything can be used as it is configured, 1 if anything that is told is WRONG or the server
/// cannot be reached. What is a note is good to know. A job may wait for a worker for 20 seconds, unless
/// --remote-queue-time says otherwise.
#[derive(Debug, Clone, Args)]
#[command(after_help = exit::help())]
pub struct CheckArgs {
    /// The server, such as grpcs://HOST:PORT [default: what is configured]
    #[arg(value_name = "URL")]
    pub url: Option<UrlText>,
    /// Compile with this clang [default: the one beside ld.lld, or clang]
    #[arg(long, value_name = "CLANG")]
    pub compiler: Option<String>,
    /// How it is talked to.
    #[command(flatten)]
    pub remote: RemoteArgs,
}

/// Why nothing could be checked, besides errors of the configuration and of files.
#[derive(Debug, Error, Diagnostic)]
pub enum CheckError {
    /// No server is named anywhere.
    #[error("there is no server to check")]
    #[diagnostic(
        code(distlto::usage),
        help("name it: distlto remote check grpcs://HOST:PORT, or configure one (docs/remote.md)")
    )]
    Nothing,
    /// The server cannot be reached, or cannot be used at all.
    #[error("{0}")]
    #[diagnostic(
        code(distlto::failed),
        help("{}", .0.help().map_or_else(String::new, |help| help.to_string()))
    )]
    Server(#[from] reapi::Error),
    /// A compiler or linker of this machine failed.
    #[error("{what} fails on this machine: {why}")]
    #[diagnostic(code(distlto::tool), help("name a clang that has an lld with --compiler"))]
    Here {
        /// The step that failed.
        what: &'static str,
        /// The message of the failed program.
        why: String,
    },
    /// Threads or sockets of this machine.
    #[error("connections cannot be served: {0}")]
    #[diagnostic(code(distlto::io), help("raise the limits of this process"))]
    Runtime(#[source] io::Error),
    /// A signal ended it.
    #[error("interrupted")]
    #[diagnostic(code(distlto::interrupted))]
    Interrupted,
}

/// Checks the configured servers, or the given one.
pub fn run(args: &CheckArgs, cancel: &Cancel) -> Result<u8, Report> {
    let mut remote = args.remote.clone();
    if args.url.is_some() {
        let is_http = matches!(
            args.url.clone().map(ChosenServer::try_from),
            Some(Ok(ChosenServer::At(server))) if server.is_http()
        );
        let executes = if is_http { Some(UrlText::default()) } else { args.url.clone() };
        (remote.remote, remote.remote_cache) = (executes, args.url.clone());
    }
    remote.remote_queue_time.get_or_insert(QUEUE_TIME);
    let settings = remote.settings()?;
    settings.check()?;
    settings.notices.iter().for_each(warn);
    if !settings.is_remote() {
        return Err(CheckError::Nothing.into());
    }
    let mut report = CheckedSentences::default();
    let checked = runtime("check", 1).map_err(CheckError::Runtime)?.block_on(async {
        let stop = Stop::of(cancel)?;
        Ok(stop.unless(check(args, &settings, cancel, &mut report)).await)
    });
    checked.map_err(CheckError::Runtime)?.unwrap_or(Err(CheckError::Interrupted.into()))?;
    Ok(report.finish()?)
}

async fn check(
    args: &CheckArgs,
    settings: &Settings,
    cancel: &Cancel,
    report: &mut CheckedSentences,
) -> Result<(), Report> {
    let engine = &settings.engine;
    if let Some(execute) = &engine.execution {
        let client = connect(execute).await?;
        let cache = engine.cache.as_ref().filter(|_| engine.other_cache().is_none());
        server::check(&client, true, cache.map(|cache| cache.is_written), report).await;
        if client.capabilities().execution {
            let platform =
                Platform { properties: &engine.platform, lacks_compiler: engine.uploads_toolchain };
            let sample = backend::Sample::make(args.compiler.as_deref(), platform, cancel)?;
            sample.check(&client, engine, report).await;
        }
    }
    if let Some(cache) = engine.other_cache() {
        let client = connect(&cache.server).await?;
        server::check(&client, false, Some(cache.is_written), report).await;
    }
    Ok(())
}

/// Asks a server, whether or not it answered a short while ago; if it does, links ask it again.
async fn connect(server: &reapi::Options) -> Result<Client, CheckError> {
    let client = Client::connect(server.clone()).await?;
    if let Ok(Some(ledger)) = Ledger::of_environment() {
        ledger.record_answer(server.endpoint.shown());
    }
    Ok(client)
}

/// How long an action may run that takes no time.
fn run_time(settings: &EngineSettings) -> Duration {
    settings.run_time.unwrap_or(RUN_TIME)
}
