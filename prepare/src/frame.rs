//! Bytes of several pieces, each after its length, so that no two lists of pieces are the same bytes.
//!
//! For what a digest is made of. Knows nothing of digests, and of what the pieces are.

/// What comes before a piece: its length, eight bytes, little-endian.
pub fn head(piece: &[u8]) -> [u8; 8] {
    (piece.len() as u64).to_le_bytes()
}

/// Appends a piece.
pub fn push(bytes: &mut Vec<u8>, piece: impl AsRef<[u8]>) {
    bytes.extend(head(piece.as_ref()));
    bytes.extend_from_slice(piece.as_ref());
}
