//! The name of a blob: its SHA-256 and its size, as `Digest` of `remote_execution.proto` has them.
//!
//! Knows nothing of where blobs are.

use std::fmt;
use std::str::FromStr;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::proto;

/// The name of a blob.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    /// SHA-256 of its bytes.
    pub hash: [u8; 32],
    /// How many bytes it has.
    pub size: u64,
}

impl Digest {
    /// The name of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self { hash: Sha256::digest(bytes).into(), size: bytes.len() as u64 }
    }

    /// The hash in lower-case hexadecimal.
    pub fn hex(&self) -> String {
        HEXLOWER.encode(&self.hash)
    }

    /// As the messages of the API have it.
    pub fn message(&self) -> proto::Digest {
        // No file is larger.
        proto::Digest { hash: self.hex(), size_bytes: i64::try_from(self.size).unwrap_or(i64::MAX) }
    }

    /// From a message; `None` for another hash function's or a negative size.
    pub fn from_message(message: &proto::Digest) -> Option<Self> {
        Some(Self { hash: hash(&message.hash)?, size: u64::try_from(message.size_bytes).ok()? })
    }
}

fn hash(hex: &str) -> Option<[u8; 32]> {
    HEXLOWER.decode(hex.as_bytes()).ok()?.try_into().ok()
}

/// `HASH/SIZE`, as resource names have it.
impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.hex(), self.size)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// That a text is not `HASH/SIZE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a digest: 64 digits of lower-case hexadecimal, a slash and a size are expected")]
pub struct NotADigest;

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let (hex, size) = text.split_once('/').ok_or(NotADigest)?;
        Ok(Self { hash: hash(hex).ok_or(NotADigest)?, size: size.parse().map_err(|_| NotADigest)? })
    }
}

/// Computes a digest piece by piece.
#[derive(Clone, Default)]
pub struct Hasher {
    state: Sha256,
    size: u64,
}

impl Hasher {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.state.update(bytes);
        self.size += bytes.len() as u64;
    }

    /// How many bytes were added.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The name of all bytes that were added.
    pub fn finish(self) -> Digest {
        Digest { hash: self.state.finalize().into(), size: self.size }
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Hasher").field("size", &self.size).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The output of `sha256sum` for nothing, and for "abc" (FIPS 180-2, B.1).
    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855/0";
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad/3";

    #[test]
    fn known_digests() {
        for (bytes, text) in [(&b""[..], EMPTY), (b"abc", ABC)] {
            let digest = Digest::of(bytes);
            assert_eq!(digest.to_string(), text);
            assert_eq!(text.parse(), Ok(digest));
            assert_eq!(Digest::from_message(&digest.message()), Some(digest));
            let mut hasher = Hasher::default();
            bytes.iter().for_each(|byte| hasher.update(&[*byte]));
            assert_eq!(hasher.finish(), digest);
        }
    }

    #[test]
    fn what_is_no_digest() {
        let upper = ABC.to_uppercase();
        for text in ["", "/", "abc/3", &ABC[1..], &ABC[..64], &upper, &format!("{}/-1", &ABC[..64])] {
            assert_eq!(text.parse::<Digest>(), Err(NotADigest), "{text}");
        }
    }
}
