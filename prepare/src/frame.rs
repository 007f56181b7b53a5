//! Bytes of several pieces, each after its length, so that no two lists of pieces are the same bytes.
//!
//! For input of digests. Does not depend on the digest, or on the pieces.

/// Returns the head of a piece: its length, eight bytes, little-endian.
pub fn head(piece: &[u8]) -> [u8; 8] {
    (piece.len() as u64).to_le_bytes()
}

/// Appends a piece.
pub fn push(bytes: &mut Vec<u8>, piece: impl AsRef<[u8]>) {
    bytes.extend(head(piece.as_ref()));
    bytes.extend_from_slice(piece.as_ref());
}
