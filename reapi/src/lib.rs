//! A client of the [Remote Execution API v2](https://github.com/bazelbuild/remote-apis): content-addressable storage,
//! action cache and execution on any server that speaks it.
//!
//! A [`Client`] is cheap to clone and is used by any number of tasks of one tokio runtime. It uploads each blob once and only
//! where the server lacks it, merges requests of many tasks, checks every download by its digest, survives servers and
//! networks that fail for a while, and returns an [`Error`] of its own type for each problem that the caller must mend.
//! Does not depend on the purpose of the actions.
//!
//! ```no_run
//! use distlto_reapi::{Client, Error, Options, action::Action, blob::Blob, execute::ExecuteOptions, merkle::Tree};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect(Options::new("grpc://127.0.0.1:8980")?).await?;
//! let input = Blob::new("content");
//! let mut tree = Tree::new();
//! tree.add_file("folder/in", input.digest(), false)?;
//! let tree = tree.build();
//! let mut action = Action::new(vec!["/bin/cp".into(), "folder/in".into(), "out".into()], tree.digest());
//! action.output_paths = vec!["out".into()];
//! let encoded = action.encode();
//! let mut blobs = tree.blobs();
//! blobs.extend([input, encoded.action.clone(), encoded.command.clone()]);
//! client.upload(blobs.iter().cloned()).await?;
//! match client.execute(encoded.digest(), &ExecuteOptions::default(), |_stage| ()).await {
//!     Ok(executed) => println!("exit code {}", executed.result.exit_code),
//!     // The server lost something: once more, with everything uploaded again.
//!     Err(Error::Lost { .. }) => client.forget(blobs.iter().map(Blob::digest)),
//!     Err(error) => return Err(error.into()),
//! }
//! # Ok(())
//! # }
//! ```

pub mod action;
mod action_cache;
mod batches;
mod batching;
pub mod blob;
mod call;
pub mod capabilities;
mod channel;
pub mod client;
mod credentials;
pub mod digest;
mod download;
pub mod error;
pub mod execute;
mod execution_status;
mod http;
pub mod merkle;
pub mod method;
mod missing_blobs;
pub mod options;
mod retry;
pub mod s3;
mod silence;
pub mod statistics;
mod stream_read;
mod stream_slots;
mod stream_write;
mod upload;
mod zstd_stream;

pub use client::Client;
pub use digest::{Digest, DigestMessage};
pub use error::Error;
pub use options::Options;
pub use tonic::Code;

/// The messages of the API, from `bazel-remote-apis`.
pub mod proto {
    pub(crate) use action_cache_client as action_cache;
    pub use bazel_remote_apis::build::bazel::remote::execution::v2::*;
    pub(crate) use bazel_remote_apis::google::bytestream::byte_stream_client as bytestream;
    pub(crate) use bazel_remote_apis::google::longrunning::operations_client as operations;
    pub(crate) use capabilities_client as capabilities;
    pub(crate) use content_addressable_storage_client as cas;
    pub(crate) use execution_client as execution;
}
