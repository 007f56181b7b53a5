//! Blobs and action results as files in one folder, so that a server that starts again on it has them.
//!
//! Knows nothing of calls. A blob is written beside its place and renamed; its bytes are checked against its digest.

use std::collections::HashSet;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use bazel_remote_apis::build::bazel::remote::execution::v2::ActionResult;
use prost::Message;
use tonic::Status;

use crate::digest::{self, Digest};
use crate::state::locked;

/// The contents of a server.
pub struct Store {
    blobs: PathBuf,
    results: PathBuf,
    scratch: PathBuf,
    /// Where blobs lie that the server itself has put there, and no client since. Held while one is put there.
    own: Mutex<HashSet<PathBuf>>,
}

impl Store {
    /// A store in this folder, which is made.
    pub fn new(folder: &Path) -> std::io::Result<Self> {
        let of = |name| folder.join(name);
        let (blobs, results, scratch) = (of("blobs"), of("results"), of("scratch"));
        let store = Self { blobs, results, scratch, own: Mutex::default() };
        for part in [&store.blobs, &store.results, &store.scratch] {
            fs::create_dir_all(part)?;
        }
        Ok(store)
    }

    /// Where actions may be staged, on the file system of the blobs.
    pub fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// Where a blob lies, if it is there.
    pub fn path(&self, digest: &Digest) -> PathBuf {
        self.blobs.join(format!("{}-{}", digest.hash, digest.size_bytes))
    }

    /// Whether the blob is there; the empty one always is.
    pub fn has(&self, digest: &Digest) -> bool {
        digest.size_bytes == 0 || self.path(digest).is_file()
    }

    /// A blob's bytes.
    pub fn read(&self, digest: &Digest) -> Result<Option<Vec<u8>>, Status> {
        if digest.size_bytes == 0 {
            return Ok(Some(Vec::new()));
        }
        match fs::read(self.path(digest)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("read a blob", &error)),
        }
    }

    /// A message that is a blob.
    pub fn message<M: Message + Default>(&self, digest: &Digest) -> Result<Option<M>, Status> {
        let Some(bytes) = self.read(digest)? else { return Ok(None) };
        let wrong = |error| Status::invalid_argument(format!("blob {} is no message: {error}", digest.hash));
        M::decode(bytes.as_slice()).map(Some).map_err(wrong)
    }

    /// Keeps a client's blob, whose bytes must be those of its digest. Says whether it was there already, other than by
    /// the server's own doing: what a worker makes after the client has asked, the client cannot know of.
    pub fn upload(&self, digest: &Digest, bytes: &[u8]) -> Result<bool, Status> {
        let found = digest::of(bytes);
        if found != *digest {
            let text = format!(
                "{}/{} is the digest of these bytes, not {}",
                found.hash, found.size_bytes, digest.hash
            );
            return Err(Status::invalid_argument(text));
        }
        let path = self.path(digest);
        let mut own = locked(&self.own);
        let was_there = !self.add(&path, bytes)?;
        let was_own = own.remove(&path);
        Ok(was_there && !was_own)
    }

    /// Keeps what the server itself makes, under its digest.
    pub fn keep(&self, bytes: &[u8]) -> Result<Digest, Status> {
        let digest = digest::of(bytes);
        let path = self.path(&digest);
        let mut own = locked(&self.own);
        if self.add(&path, bytes)? {
            own.insert(path);
        }
        Ok(digest)
    }

    /// Writes a blob unless it is there; says whether it did.
    fn add(&self, path: &Path, bytes: &[u8]) -> Result<bool, Status> {
        let is_fresh = !path.exists();
        if is_fresh {
            self.write(path, bytes)?;
        }
        Ok(is_fresh)
    }

    /// Forgets a blob.
    pub fn evict(&self, digest: &Digest) {
        // Gone already is as good.
        let _ = fs::remove_file(self.path(digest));
    }

    /// Forgets every blob.
    pub fn evict_all(&self) {
        for entry in fs::read_dir(&self.blobs).into_iter().flatten().flatten() {
            let _ = fs::remove_file(entry.path());
        }
    }

    /// What the action cache has for an action.
    pub fn result(&self, action: &Digest) -> Option<ActionResult> {
        let bytes = fs::read(self.results.join(&action.hash)).ok()?;
        ActionResult::decode(bytes.as_slice()).ok()
    }

    /// Puts a result into the action cache.
    pub fn set_result(&self, action: &Digest, result: &ActionResult) -> Result<(), Status> {
        self.write(&self.results.join(&action.hash), &result.encode_to_vec())
    }

    /// Forgets a result.
    pub fn forget_result(&self, action: &Digest) {
        let _ = fs::remove_file(self.results.join(&action.hash));
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), Status> {
        let write = || {
            let mut file = tempfile::NamedTempFile::new_in(&self.scratch)?;
            file.write_all(bytes)?;
            file.persist(path)?;
            Ok::<_, std::io::Error>(())
        };
        write().map_err(|error| failed("write a blob", &error))
    }
}

/// The server's own trouble.
pub fn failed(what: &str, error: &std::io::Error) -> Status {
    Status::internal(format!("cannot {what}: {error}"))
}
