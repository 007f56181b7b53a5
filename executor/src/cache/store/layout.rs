//! The files of a store: their folders, their limits, and their digests.

use distlto_prepare::blobs::BlobDigest;
use distlto_prepare::layout::Layout;

/// Changes when the layout or the format of the records do.
pub const LAYOUT: Layout = Layout { prefix: "results-v", version: 1 };
pub const RECORDS: &str = "records";
pub const BLOBS: &str = "blobs";
/// The directories: records refer to blobs, and go before them.
pub const PARTS: [&str; 2] = [RECORDS, BLOBS];

/// Standard error is kept within bounds, so that no record comes near this. Bytes.
pub const LARGEST_RECORD: u64 = 64 << 20;

/// The SHA-256 digest of some bytes.
pub fn sha256(bytes: &[u8]) -> BlobDigest {
    distlto_planner::digests::Digest::of(bytes).hash
}
