//! What a hostile server says of results: sizes that nothing has, blobs that never end, words that a terminal would obey.
//!
//! What it keeps is right: the next client may get the truth.

use bazel_remote_apis::build::bazel::remote::execution::v2::ActionResult;
use tonic::Status;

use crate::digest::Digest;
use crate::faults::take;
use crate::state::State;

/// A result as it is told to a client.
pub fn told(state: &State, mut result: ActionResult) -> Result<ActionResult, Status> {
    let mut faults = state.faults();
    if take(&mut faults.false_outputs) {
        let claim = |digest: Option<Digest>| digest.map(|digest| larger(digest, faults.false_size));
        for file in &mut result.output_files {
            file.digest = claim(file.digest.take());
        }
    }
    if take(&mut faults.false_stderr) {
        result.stderr_digest = result.stderr_digest.map(|digest| larger(digest, faults.false_size));
        result.stderr_digest.get_or_insert_with(|| larger(crate::digest::of(b"said"), faults.false_size));
        result.stderr_raw.clear();
    }
    if !faults.stderr.is_empty() {
        result.stderr_digest = Some(state.store.keep(faults.stderr.as_bytes())?);
        result.stderr_raw.clear();
    }
    Ok(result)
}

fn larger(digest: Digest, size: u64) -> Digest {
    Digest { size_bytes: i64::try_from(size).unwrap_or(i64::MAX), ..digest }
}

/// Whether a blob is one that only a lie names.
pub fn is_false(state: &State, digest: &Digest) -> bool {
    u64::try_from(digest.size_bytes) == Ok(state.faults().false_size) && !state.store.has(digest)
}
