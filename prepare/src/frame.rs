//! Bytes for a digest, each piece after a tag and its length, so that no two lists of pieces are the same bytes.
//!
//! Does not depend on the meaning of the pieces.

use crate::digest::{Digest, Hasher};

/// Returns the head of a piece: its length, eight bytes, little-endian.
pub fn head(piece: &[u8]) -> [u8; 8] {
    (piece.len() as u64).to_le_bytes()
}

/// Collects pieces.
#[derive(Debug, Clone, Default)]
pub struct Framed(Hasher);

impl Framed {
    /// Begins with the digest's subject and version.
    pub fn new(what: &str) -> Self {
        let mut framed = Self::default();
        framed.add("what", what);
        framed
    }

    /// The next piece.
    pub fn add(&mut self, tag: &str, piece: impl AsRef<[u8]>) {
        for part in [tag.as_bytes(), piece.as_ref()] {
            self.0.update(&head(part));
            self.0.update(part);
        }
    }

    /// The next piece: content, by its digest.
    pub fn content(&mut self, tag: &str, digest: &Digest) {
        self.add(tag, digest.hash);
        self.0.update(&digest.size.to_le_bytes());
    }

    /// The digest of all pieces.
    pub fn finish(self) -> Digest {
        self.0.finish()
    }
}
