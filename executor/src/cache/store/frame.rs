//! Small files that prove themselves: a header line that names format and version, the body, and the SHA-256 digest
//! (32 bytes) of both.
//!
//! Knows nothing of what the body holds. The format is distlto's own.

use super::sha256;

/// Bytes of the digest at the end.
const CHECK: usize = 32;

/// A file's bytes. The header ends in a line feed.
pub fn encode(header: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(header.len() + body.len() + CHECK);
    bytes.extend(header.as_bytes());
    bytes.extend(body);
    let check = sha256(&bytes);
    bytes.extend(check);
    bytes
}

/// The body, or what is wrong with the file.
pub fn decode<'a>(header: &str, bytes: &'a [u8]) -> Result<&'a [u8], String> {
    let body = bytes.strip_prefix(header.as_bytes()).ok_or_else(|| match bytes {
        [] => "it is empty".to_owned(),
        _ => format!("it does not begin with `{}`", header.trim_end()),
    })?;
    let (body, check) =
        body.split_last_chunk::<CHECK>().ok_or_else(|| format!("it ends at byte {}", bytes.len()))?;
    if sha256(&bytes[..bytes.len() - CHECK]) != *check {
        return Err("its content is not what its digest says: it is truncated or damaged".to_owned());
    }
    Ok(body)
}
