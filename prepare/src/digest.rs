//! A content's digest as the Remote Execution API has it: SHA-256 and the size.
//!
//! Knows bytes only. The shape is that of `Digest` in `remote_execution.proto` (bazelbuild/remote-apis).

use std::fmt::{self, Write};

use sha2::{Digest as _, Sha256};

use crate::blobs;

/// The digest of some content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    /// SHA-256.
    pub hash: [u8; 32],
    /// In bytes.
    pub size: u64,
}

impl Digest {
    /// The digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self { hash: Sha256::digest(bytes).into(), size: bytes.len() as u64 }
    }

    /// The hash as 64 hexadecimal digits.
    pub fn hex(&self) -> String {
        blobs::hex(&self.hash)
    }

    /// The digest that [`Display`](fmt::Display) shows so.
    pub fn parse(text: &str) -> Option<Self> {
        let (hex, size) = text.split_once('/')?;
        let hash = blobs::from_hex(hex)?;
        // One content has one text.
        let plain = size == "0" || size.starts_with(|first: char| matches!(first, '1'..='9'));
        Some(Self { hash, size: size.parse().ok().filter(|_| plain)? })
    }
}

/// `HASH/SIZE`, as tools for the Remote Execution API show it.
impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.hex())?;
        out.write_char('/')?;
        self.size.fmt(out)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// Makes the digest of content that comes in pieces.
#[derive(Debug, Clone, Default)]
pub struct Hasher {
    hash: Sha256,
    size: u64,
}

impl Hasher {
    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
    }

    /// How many bytes it has taken.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The digest of all bytes so far.
    pub fn finish(self) -> Digest {
        Digest { hash: self.hash.finalize().into(), size: self.size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_digest_has_one_text() {
        let hex = Digest::of(b"").hex();
        for text in ["", "/", "00/0", &hex, &format!("{hex}/"), &format!("{hex}/+0"), &format!("{hex}/00")] {
            assert_eq!(Digest::parse(text), None, "{text}");
        }
        assert_eq!(Digest::parse(&format!("{}/0", hex.to_uppercase())), None);
        assert_eq!(Digest::parse(&format!("{hex}0/0")), None);
    }
}
