//! A server of the Remote Execution API v2 for tests: small, whole, and wrong where a test wants it to be.
//!
//! It runs real actions with real tools, on workers in its own process. A proxy can break a connection but cannot lie
//! about content; [`Faults`] can. Nothing is a sandbox, and nothing is meant for use outside of tests.

mod bytestream;
mod cas;
mod certificate;
mod connection;
mod counts;
mod digest;
mod execution;
mod faults;
mod gate;
mod lies;
mod missing;
mod newer;
mod operation;
mod options;
mod outputs;
pub mod plain;
pub mod program;
mod queue;
mod run;
mod server;
mod stage;
mod state;
mod store;
mod translator;

pub use certificate::{Authority, Certificates};
pub use counts::Counts;
pub use digest::{Digest, of as digest_of};
pub use faults::{Break, CommittedSize, Cut, Faults, Missing, Refusal};
pub use missing::{PreconditionFailure, Violation};
pub use options::{Options, Worker};
pub use server::Server;
pub use translator::Translator;
