//! Small files that prove themselves: a header line that names format and version, the body, and a digest (32 bytes) of
//! both.
//!
//! Does not depend on the content of the body. The format is distlto's own.

/// Bytes of the digest at the end.
pub const SEAL: usize = 32;

/// Makes the digest: the caller's, since some are read so often that a fast one is worth it.
pub type Seal = fn(&[u8]) -> [u8; SEAL];

/// A file's bytes. The header ends in a line feed.
pub fn encode(header: &str, body: &[u8], seal: Seal) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(header.len() + body.len() + SEAL);
    bytes.extend(header.as_bytes());
    bytes.extend(body);
    let check = seal(&bytes);
    bytes.extend(check);
    bytes
}

/// Returns the body, or the problem of the file.
pub fn decode<'a>(header: &str, bytes: &'a [u8], seal: Seal) -> Result<&'a [u8], String> {
    let body = bytes.strip_prefix(header.as_bytes()).ok_or_else(|| match bytes {
        [] => "it is empty".to_owned(),
        _ => format!("it does not begin with `{}`", header.trim_end()),
    })?;
    let (body, check) =
        body.split_last_chunk::<SEAL>().ok_or_else(|| format!("it ends at byte {}", bytes.len()))?;
    if seal(&bytes[..bytes.len() - SEAL]) != *check {
        return Err("its content is not what its digest says: it is truncated or damaged".to_owned());
    }
    Ok(body)
}
