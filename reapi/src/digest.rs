//! Digests in the messages of the API: `Digest` of `remote_execution.proto`.

use distlto_prepare::blobs::from_hex;
pub use distlto_prepare::digest::{Digest, Hasher};

use crate::proto;

/// A digest as a message has it.
pub trait DigestMessage: Sized {
    /// As the messages of the API have it.
    fn message(&self) -> proto::Digest;

    /// From a message; `None` for another hash function's or a negative size.
    fn from_message(message: &proto::Digest) -> Option<Self>;
}

impl DigestMessage for Digest {
    fn message(&self) -> proto::Digest {
        // No file is larger.
        proto::Digest { hash: self.hex(), size_bytes: i64::try_from(self.size).unwrap_or(i64::MAX) }
    }

    fn from_message(message: &proto::Digest) -> Option<Self> {
        Some(Self { hash: from_hex(&message.hash)?, size: u64::try_from(message.size_bytes).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_the_same_digest() {
        let digest = Digest::of(b"abc");
        assert_eq!(Digest::from_message(&digest.message()), Some(digest));
        for (hash, size_bytes) in [(digest.hex(), -1), (digest.hex().to_uppercase(), 3), (String::new(), 0)] {
            assert_eq!(Digest::from_message(&proto::Digest { hash, size_bytes }), None);
        }
    }
}
