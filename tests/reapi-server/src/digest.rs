//! Digests of blobs, the resource names of their streams, and the messages in which they are wrapped.
//!
//! Formats are those of `remote_execution.proto` (resource names) and `any.proto`. Knows nothing of where blobs lie.

use bazel_remote_apis::google::protobuf::{Any, Timestamp};
use prost::Message;
use sha2::{Digest as _, Sha256};
use tonic::Status;

pub use bazel_remote_apis::build::bazel::remote::execution::v2::Digest;

/// The digest of these bytes.
pub fn of(bytes: &[u8]) -> Digest {
    Digest { hash: hexadecimal(&Sha256::digest(bytes)), size_bytes: bytes.len() as i64 }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The digest if it is well formed: SHA-256 and a size.
pub fn checked(digest: Option<&Digest>) -> Result<Digest, Status> {
    let digest = digest.ok_or_else(|| Status::invalid_argument("a digest is missing"))?;
    let letters = digest.hash.len() == 64 && digest.hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    if letters && digest.size_bytes >= 0 {
        return Ok(digest.clone());
    }
    Err(Status::invalid_argument(format!("{}/{} is no SHA-256 digest", digest.hash, digest.size_bytes)))
}

/// What a resource name of the byte stream stands for.
#[derive(Debug, PartialEq)]
pub struct Resource {
    /// What stands before the name proper.
    pub instance: String,
    /// The blob's digest, of its uncompressed bytes.
    pub digest: Digest,
    /// Whether the stream is compressed by zstd.
    pub zstd: bool,
}

/// `[INSTANCE/][uploads/UUID/](blobs|compressed-blobs/zstd)/[sha256/]HASH/SIZE[/ANYTHING]`.
pub fn resource(name: &str) -> Result<Resource, Status> {
    let wrong = || Status::invalid_argument(format!("{name:?} is no resource name"));
    let words: Vec<&str> = name.split('/').collect();
    let found = words.iter().position(|&word| word == "blobs" || word == "compressed-blobs");
    let at = found.ok_or_else(wrong)?;
    let mut rest = words[at + 1..].iter().copied();
    let zstd = words[at] == "compressed-blobs";
    if zstd && rest.next() != Some("zstd") {
        return Err(Status::invalid_argument(format!("{name:?}: zstd is the only compressor here")));
    }
    let mut hash = rest.next().ok_or_else(wrong)?;
    if hash == "sha256" {
        hash = rest.next().ok_or_else(wrong)?;
    }
    let size_bytes = rest.next().and_then(|size| size.parse().ok()).ok_or_else(wrong)?;
    let digest = checked(Some(&Digest { hash: hash.to_owned(), size_bytes }))?;
    let upload = at >= 2 && words[at - 2] == "uploads";
    let instance = words[..if upload { at - 2 } else { at }].join("/");
    Ok(Resource { instance, digest, zstd })
}

/// A message of the API in an `Any`.
pub fn wrapped(name: &str, message: &impl Message) -> Any {
    Any { type_url: format!("type.googleapis.com/{name}"), value: message.encode_to_vec() }
}

/// This moment.
pub fn now() -> Option<Timestamp> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(Timestamp { seconds: since.as_secs() as i64, nanos: since.subsec_nanos() as i32 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_names_of_the_specification() {
        let digest = of(b"content");
        let tail = format!("{}/{}", digest.hash, digest.size_bytes);
        for (name, instance, zstd) in [
            (format!("blobs/{tail}"), "", false),
            (format!("a/b/blobs/{tail}"), "a/b", false),
            (format!("a/uploads/1-2/blobs/sha256/{tail}"), "a", false),
            (format!("uploads/1-2/compressed-blobs/zstd/{tail}/name.o"), "", true),
        ] {
            let expected = Resource { instance: instance.to_owned(), digest: digest.clone(), zstd };
            assert_eq!(resource(&name).ok(), Some(expected), "{name}");
        }
        for name in ["", "blobs", "blobs/00/1", "compressed-blobs/gzip/00/1", "blobs/zz"] {
            assert!(resource(name).is_err(), "{name}");
        }
    }
}
