//! The server of this crate as a program, which prints its URL and runs until it is told to end.
//!
//! A function, so that other crates have the program too, for their own tests.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::{Certificates, Faults, Options, Server};

/// A server of the Remote Execution API for tests, with faults as switches.
#[derive(Parser)]
#[command(name = "reapi-server")]
struct Arguments {
    #[command(flatten)]
    options: Options,
    /// TLS with this certificate, in PEM,
    #[arg(long, value_name = "FILE", requires = "key")]
    certificate: Option<PathBuf>,
    /// and its key.
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
    /// Clients must show a certificate of one of these roots.
    #[arg(long, value_name = "FILE", requires = "certificate")]
    client_roots: Option<PathBuf>,
    #[command(flatten)]
    faults: Faults,
}

/// Serves, by the words of the command line, until it is told to end; says then what it was asked for.
pub fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let read = |path: &PathBuf| {
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
    };
    let mut options = arguments.options;
    if let (Some(certificate), Some(key)) = (&arguments.certificate, &arguments.key) {
        let client_roots = arguments.client_roots.as_ref().map(read).transpose()?;
        let certificates = Certificates { certificate: read(certificate)?, key: read(key)?, client_roots };
        options.certificates = Some(certificates);
    }
    let server = Server::start(options, arguments.faults)?;
    println!("{}", server.url());
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        anyhow::Ok(())
    })?;
    eprintln!("{:#?}", server.counts());
    Ok(())
}
