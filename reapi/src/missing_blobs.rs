//! Which blobs a server lacks: FindMissingBlobs, for many tasks at once.

use std::collections::HashSet;
use std::sync::Arc;

use crate::batching::{BatchCall, BatchLimits};
use crate::call::{Attempt, Calls, stub};
use crate::digest::{Digest, DigestMessage};
use crate::error::Error;
use crate::method::Method;
use crate::proto;

/// How many digests one call holds: as reclient. One takes less than 80 bytes, so that is well below gRPC's limit.
const DIGESTS: usize = 10_000;
const CALLS: usize = 4;

/// Whether a server lacks a blob.
pub struct MissingBlobs {
    pub calls: Arc<Calls>,
}

impl MissingBlobs {
    /// Returns the limits of one call.
    pub fn limits() -> BatchLimits {
        BatchLimits { weight: DIGESTS, count: DIGESTS, calls: CALLS }
    }

    async fn missing(&self, digests: &[Digest]) -> Result<HashSet<Digest>, Error> {
        // Two tasks may ask for one blob.
        let unique: HashSet<_> = digests.iter().copied().collect();
        if self.calls.http().is_some() {
            // To ask takes as many requests as to send, so that all are sent, as Bazel does. nginx refuses an empty body, which no
            // client asks for.
            return Ok(unique.into_iter().filter(|digest| digest.size > 0).collect());
        }
        let request = proto::FindMissingBlobsRequest {
            instance_name: self.calls.options.instance.clone(),
            blob_digests: unique.iter().map(Digest::message).collect(),
            digest_function: 0,
        };
        let find = |attempt: Arc<Attempt>| {
            let request = attempt.request(request.clone());
            let mut stub = stub!(attempt, cas, ContentAddressableStorageClient);
            async move { Ok(stub.find_missing_blobs(request).await?.into_inner()) }
        };
        let answer = self.calls.unary(Method::FindMissingBlobs, find).await?;
        let missing = answer.missing_blob_digests.iter().map(Digest::from_message);
        missing.collect::<Option<_>>().ok_or_else(|| {
            self.calls.protocol(Method::FindMissingBlobs, "the answer holds something that is no digest")
        })
    }
}

impl BatchCall for MissingBlobs {
    type Request = Digest;
    type Answer = Result<bool, Error>;

    fn weight(&self, _digest: &Digest) -> usize {
        1
    }

    async fn send(&self, digests: Vec<Digest>) -> Vec<Result<bool, Error>> {
        match self.missing(&digests).await {
            Ok(missing) => digests.iter().map(|digest| Ok(missing.contains(digest))).collect(),
            Err(error) => digests.iter().map(|_| Err(error.clone())).collect(),
        }
    }
}
