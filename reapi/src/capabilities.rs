//! The capabilities of a server, and the limits that follow from them.
//!
//! A pure function of `ServerCapabilities`.

use std::sync::Arc;

use crate::error::Error;
use crate::options::{Compression, Options};
use crate::proto;
use crate::proto::{compressor, digest_function};

/// The usual limit of gRPC servers for one message, in bytes.
const MESSAGE: usize = 4 << 20;
/// The most bytes in a message to a server without a stated limit: some keep part of a message for themselves.
const UNSAID: usize = 3 << 20;
/// The most blobs in a message.
const COUNT: usize = 4000;
/// Bytes of a message around its blobs.
const SLACK: usize = 4 << 10;
/// Bytes of a message for one blob beside its content: its digest, a status and the heads of the fields.
const AROUND: usize = 120;
/// Smaller blobs are not worth a compressor.
const TINY: u64 = 4 << 10;

/// The capabilities of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// How many bytes one batch may have, marshalled.
    pub batch: usize,
    /// How many blobs one batch may have.
    pub count: usize,
    /// Whether it takes and gives streams compressed with zstd.
    pub zstd_streams: bool,
    /// Whether it takes batches compressed with zstd.
    pub zstd_updates: bool,
    /// Whether it executes actions with SHA-256.
    pub execution: bool,
    /// Whether this client may write the action cache.
    pub action_cache_updates: bool,
    /// The oldest version of the API that it speaks.
    pub low: Version,
    /// The newest one.
    pub high: Version,
}

/// A version of the API: major, minor, patch.
pub type Version = (i32, i32, i32);

const SHA256: i32 = digest_function::Value::Sha256 as i32;
const ZSTD: i32 = compressor::Value::Zstd as i32;

/// How much of a batch a blob of `size` bytes takes.
pub fn weight(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX).saturating_add(AROUND)
}

impl Capabilities {
    /// Whether a blob of `size` bytes goes in a batch.
    pub fn batches(&self, size: u64) -> bool {
        weight(size) <= self.batch
    }

    /// Reads the server's answer; an error if the client cannot work with it.
    pub fn from_message(message: &proto::ServerCapabilities, endpoint: &Arc<str>) -> Result<Self, Error> {
        let lacks = |what: String| Err(Error::Unsupported { endpoint: endpoint.clone(), what });
        let version = |version: Option<&bazel_remote_apis::build::bazel::semver::SemVer>, default| {
            version.map_or(default, |version| (version.major, version.minor, version.patch))
        };
        // One that names no versions is of the first minute of version 2.
        let low = version(message.low_api_version.as_ref(), (2, 0, 0));
        let high = version(message.high_api_version.as_ref(), (2, 0, 0));
        if low.0 > 2 || high.0 < 2 {
            return lacks(format!(
                "it speaks versions {}.{} to {}.{} of the Remote Execution API; version 2 is needed",
                low.0, low.1, high.0, high.1
            ));
        }
        let execution = message.execution_capabilities.as_ref().is_some_and(|execution| {
            // The list is newer than the single field.
            let sha256 = execution.digest_functions.contains(&SHA256) || execution.digest_function == SHA256;
            execution.exec_enabled && (sha256 || execution.digest_functions.is_empty())
        });
        let Some(cache) = &message.cache_capabilities else {
            return lacks("it has no content-addressable storage".to_owned());
        };
        if !cache.digest_functions.contains(&SHA256) {
            let names = cache.digest_functions.iter().filter_map(|&function| {
                digest_function::Value::try_from(function).ok().map(|function| function.as_str_name())
            });
            return lacks(format!(
                "it names blobs by {}; SHA256 is needed",
                names.collect::<Vec<_>>().join(", ")
            ));
        }
        let batch = usize::try_from(cache.max_batch_total_size_bytes).unwrap_or(0);
        let batch = if batch == 0 { UNSAID } else { batch };
        Ok(Self {
            batch: batch.min(MESSAGE - SLACK),
            count: COUNT,
            zstd_streams: cache.supported_compressors.contains(&ZSTD),
            zstd_updates: cache.supported_batch_update_compressors.contains(&ZSTD),
            execution,
            action_cache_updates: cache
                .action_cache_update_capabilities
                .as_ref()
                .is_some_and(|capabilities| capabilities.update_enabled),
            low,
            high,
        })
    }
}

/// Whether a blob of `size` bytes is to be compressed, for a server that can.
pub fn compresses(options: &Options, size: u64) -> bool {
    match options.compression {
        Compression::Off => false,
        Compression::Auto => !options.endpoint.is_local() && size >= TINY,
        Compression::On => size > 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(cache: proto::CacheCapabilities) -> Result<Capabilities, Error> {
        let message = proto::ServerCapabilities { cache_capabilities: Some(cache), ..Default::default() };
        Capabilities::from_message(&message, &"grpc://example.org:1".into())
    }

    #[test]
    fn limits_of_batches() {
        let batch = |advertised| {
            let cache = proto::CacheCapabilities {
                digest_functions: vec![SHA256],
                max_batch_total_size_bytes: advertised,
                ..Default::default()
            };
            server(cache).map(|capabilities| capabilities.batch).ok()
        };
        assert_eq!(batch(65536), Some(65536));
        assert_eq!(batch(0), Some(UNSAID));
        assert_eq!(batch(4_193_280), Some(MESSAGE - SLACK));
        assert_eq!(batch(i64::MAX), Some(MESSAGE - SLACK));
        assert_eq!(batch(-1), Some(UNSAID));
    }

    #[test]
    fn servers_that_are_refused() {
        let blake3 = vec![digest_function::Value::Blake3 as i32];
        let refused = server(proto::CacheCapabilities { digest_functions: blake3, ..Default::default() });
        assert!(refused.is_err_and(|error| error.to_string().contains("BLAKE3; SHA256 is needed")));
        let version =
            |major| Some(bazel_remote_apis::build::bazel::semver::SemVer { major, ..Default::default() });
        let message = proto::ServerCapabilities {
            low_api_version: version(3),
            high_api_version: version(3),
            ..Default::default()
        };
        let refused = Capabilities::from_message(&message, &"grpc://example.org:1".into());
        assert!(refused.is_err_and(|error| error.to_string().contains("version 2 is needed")));
    }
}
