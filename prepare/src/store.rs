//! A content-addressed store of member files, so that an unmodified archive is never unpacked twice.
//!
//! Knows digests, bytes and manifests, nothing of archive formats. Layout: `v2/blobs/ab/cdef..` by blake3 of the
//! content, `v2/archives/ab/cdef..` a manifest by blake3 of an archive and the options, `v2/tmp`; see
//! [`crate::blobs`] for how files are kept and placed.
//!
//! Pruning needs no agreement with users of the store, since a blob that is not there is written again from the
//! archive. A store that cannot be written only costs time; [`Store::trouble`] says so.

use crate::mutex::lock;
use std::path::Path;
use std::sync::Mutex;

use blake3::Hash;

use crate::blobs::{self, Blobs, Placed, Placing};
use crate::error::PrepareError;
use crate::io_error::IoError;
use crate::layout::Layout;
use crate::manifest::Manifest;
use crate::names;
use crate::private::{self, Reach};
use crate::warning::warn;
use crate::write;

/// Changes when the layout, the manifests or the rule for file names do.
const LAYOUT: Layout = Layout { prefix: "v", version: 2 };

/// Its directories: the manifests, which refer to blobs, then the blobs.
pub(crate) const PARTS: [&str; 2] = ["archives", "blobs"];

/// An open store, for any number of threads.
#[derive(Debug)]
pub struct Store {
    blobs: Blobs,
    trouble: Mutex<Option<String>>,
}

impl Store {
    /// Opens the store in `directory`, making it if missing, and sweeps leftovers of killed processes.
    pub fn open(directory: &Path) -> Result<Self, PrepareError> {
        let store = Self::at(&LAYOUT.make(directory)?);
        store.blobs.sweep()?;
        Ok(store)
    }

    /// Opens the store that a run was given, if it was. One that others could have prepared is warned of and not used: a
    /// manifest says which member has which content.
    pub fn of_run(directory: Option<&Path>) -> Result<Option<Self>, PrepareError> {
        let Some(directory) = directory else { return Ok(None) };
        if let Err(exposed) = private::claim(directory, Reach::Whole) {
            warn(format_args!(
                "the store {} is not used: {}; {}, or name another one",
                directory.display(),
                exposed.of(directory),
                exposed.remedy()
            ));
            return Ok(None);
        }
        Self::open(directory).map(Some)
    }

    /// Opens the store in `directory`, which must be one.
    pub fn open_existing(directory: &Path) -> Result<Self, PrepareError> {
        Ok(Self::at(&LAYOUT.existing(directory, "store of unpacked archive members")?))
    }

    fn at(root: &Path) -> Self {
        let blobs = Blobs::new(root, |bytes| *blake3::hash(bytes).as_bytes());
        Self { blobs, trouble: Mutex::new(None) }
    }

    /// The first thing that went wrong with the store itself. The results are right all the same.
    pub fn trouble(&self) -> Option<String> {
        lock(&self.trouble).clone()
    }

    /// The directory that the store was opened in.
    pub fn directory(&self) -> &Path {
        self.root().parent().unwrap_or(self.root())
    }

    fn root(&self) -> &Path {
        self.blobs.root()
    }

    pub(crate) fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    fn note(&self, what: String) {
        lock(&self.trouble).get_or_insert(what);
    }

    /// Makes `path` a file that holds `bytes`, and keeps them under `digest`, which the caller has computed.
    pub(crate) fn place(&self, digest: &Hash, bytes: &[u8], path: &Path) -> Result<(), IoError> {
        if write::holds(path, bytes)? || self.place_kept(digest, path)? {
            return Ok(());
        }
        if let Err(error) = self.blobs.keep(digest.as_bytes(), bytes) {
            self.note(format!("nothing more is kept in the store: {error}"));
        } else if self.place_kept(digest, path)? {
            return Ok(());
        }
        write::write_atomically(path, bytes)
    }

    /// Makes `path` a file with the content of this digest; `false` if the store does not have it whole.
    pub(crate) fn place_kept(&self, digest: &Hash, path: &Path) -> Result<bool, IoError> {
        match self.blobs.place(digest.as_bytes(), None, path, Placing::Shared)? {
            Placed::Yes => return Ok(true),
            Placed::Absent => {}
            Placed::Damaged(what) => self.note(format!("a damaged file has been made again: {what}")),
        }
        Ok(false)
    }

    /// The manifest kept under a key, if its files' names can be trusted.
    pub(crate) fn manifest(&self, key: &Hash) -> Option<Manifest> {
        let path = self.blobs.file("archives", key.as_bytes());
        let (json, found) = blobs::read(&path).ok()?;
        private::check_open(&path, &found).ok()?;
        let manifest = Manifest::from_json(&path, &json).ok()?;
        let mut seen = std::collections::HashSet::new();
        let safe = manifest.written().all(|(member, file)| {
            let digest = member.digest.as_deref().and_then(|hex| Hash::from_hex(hex).ok());
            names::is_member_file_name(file) && digest.is_some() && seen.insert(names::fold(file))
        });
        blobs::used(&path, &found);
        safe.then_some(manifest)
    }

    /// Keeps a manifest.
    pub(crate) fn keep_manifest(&self, key: &Hash, manifest: &Manifest) {
        let path = self.blobs.file("archives", key.as_bytes());
        if let Err(error) = self.blobs.write(&path, manifest.to_json().as_bytes()) {
            self.note(format!("nothing more is kept in the store: {error}"));
        }
    }
}
