//! The bytes of the digest cache.
//!
//! A header line; then for each file its path's length (u32), path, size, modification and change time, inode, device
//! (u64 each), SHA-256 (32 bytes), length of the hashed content (u64) and age (1 byte), little-endian; then the BLAKE3
//! hash of all before it. Reads no files.

use camino::Utf8PathBuf;
use distlto_prepare::file_status::FileStatus;
use distlto_prepare::sealed;

use super::{Digest, Remembered};

const HEADER: &str = "distlto digests 2\n";

/// Bytes of an entry beside its path.
const FIXED: usize = 4 + 6 * 8 + 32 + 1;

/// The bytes of the entries that have a status; the others are left out.
pub fn encode(entries: &[(Utf8PathBuf, Remembered)]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entries.iter().map(|(path, _)| path.as_str().len() + FIXED).sum());
    for (path, entry) in entries {
        let (Some(status), Ok(length)) = (entry.status, u32::try_from(path.as_str().len())) else { continue };
        bytes.extend(length.to_le_bytes());
        bytes.extend(path.as_str().as_bytes());
        bytes.extend(status.size.to_le_bytes());
        bytes.extend(status.modified.to_le_bytes());
        bytes.extend(status.changed.to_le_bytes());
        bytes.extend(status.inode.to_le_bytes());
        bytes.extend(status.device.to_le_bytes());
        bytes.extend(entry.digest.hash);
        bytes.extend(entry.digest.size.to_le_bytes());
        bytes.push(entry.unused);
    }
    sealed::encode(HEADER, &bytes, seal)
}

/// The entries of a cache, or why it cannot be used.
pub fn decode(bytes: &[u8]) -> Result<Vec<(Utf8PathBuf, Remembered)>, String> {
    let mut body = sealed::decode(HEADER, bytes, seal)?;
    let damaged = || "it is damaged".to_owned();
    let mut entries = Vec::new();
    while !body.is_empty() {
        entries.push(entry(&mut body).ok_or_else(damaged)?);
    }
    Ok(entries)
}

/// One that is fast: the cache of a large program has megabytes.
fn seal(bytes: &[u8]) -> [u8; sealed::SEAL] {
    blake3::hash(bytes).into()
}

fn entry(bytes: &mut &[u8]) -> Option<(Utf8PathBuf, Remembered)> {
    let length = u32::from_le_bytes(take(bytes)?) as usize;
    let (path, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    let status = FileStatus {
        size: u64::from_le_bytes(take(bytes)?),
        modified: i64::from_le_bytes(take(bytes)?),
        changed: i64::from_le_bytes(take(bytes)?),
        inode: u64::from_le_bytes(take(bytes)?),
        device: u64::from_le_bytes(take(bytes)?),
    };
    let digest = Digest { hash: take(bytes)?, size: u64::from_le_bytes(take(bytes)?) };
    let [unused] = take(bytes)?;
    let path = Utf8PathBuf::from(std::str::from_utf8(path).ok()?);
    Some((path, Remembered { status: Some(status), digest, unused }))
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (chunk, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*chunk)
}
