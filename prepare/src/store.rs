//! A content-addressed store of member files, so that an unmodified archive is never unpacked twice.
//!
//! Knows digests, bytes and manifests, nothing of archive formats. Layout: `v1/blobs/ab/cdef..` by blake3 of the
//! content, `v1/archives/ab/cdef..` a manifest by blake3 of an archive and the options, `v1/tmp`.
//!
//! Blobs are placed as reflinks where the file system has them, else as hard links, else as copies. Nothing in the
//! store is believed: a blob's content is hashed each time it is placed (on the very inode that is renamed into
//! place), since a hard link can be edited by root, and a power cut can leave a file of zeros. Blobs are read-only,
//! so others cannot edit a placed file without replacing it. A placed file's modification time is that of the
//! placing, so that make and ninja see the change; other hard links of the blob share that time.
//!
//! Every process may be killed at any time, and any file may vanish: a blob that is not there is written again from
//! the archive. So pruning needs no agreement with users of the store, and a store that cannot be written only
//! costs time; [`Store::trouble`] says so.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use blake3::Hash;
use rustix::fs::{
    AtFlags, CWD, FlockOperation, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, flock, utimensat,
};

use crate::error::Error;
use crate::input::Input;
use crate::manifest::Manifest;
use crate::names;
use crate::write::{self, IoError};

/// Changes when the layout, the manifests or the rule for file names do.
const LAYOUT: &str = "v1";

/// An open store, for any number of threads.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    /// Held shared: whoever gets it exclusively knows that every temporary is a dead process's.
    lock: File,
    reflinks: AtomicBool,
    trouble: Mutex<Option<String>>,
}

impl Store {
    /// Opens the store in `directory`, making it if missing, and sweeps what killed processes left.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        let root = directory.join(LAYOUT);
        let temporaries = root.join("tmp");
        fs::create_dir_all(&temporaries).map_err(IoError::on("create directory", &temporaries))?;
        let lock = File::open(&temporaries).map_err(IoError::on("open directory", &temporaries))?;
        let store = Self { root, lock, reflinks: AtomicBool::new(true), trouble: Mutex::new(None) };
        store.sweep()?;
        Ok(store)
    }

    /// The first thing that went wrong with the store itself. The results are right all the same.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Removes the temporaries of dead processes, if no other process has the store open; returns how many.
    pub(crate) fn sweep(&self) -> Result<usize, Error> {
        let alone = flock(&self.lock, FlockOperation::NonBlockingLockExclusive).is_ok();
        let swept = if alone { write::sweep(&self.temporaries())? } else { 0 };
        // Without locks on this file system nobody ever sweeps, and nobody is harmed.
        let _ = flock(&self.lock, FlockOperation::LockShared);
        Ok(swept)
    }

    /// The directory that the store was opened in.
    pub fn directory(&self) -> &Path {
        self.root.parent().unwrap_or(&self.root)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    fn temporaries(&self) -> PathBuf {
        self.root.join("tmp")
    }

    fn blob(&self, digest: &Hash) -> PathBuf {
        sharded(&self.root.join("blobs"), digest)
    }

    fn note(&self, what: String) {
        self.trouble.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert(what);
    }

    /// Makes `path` a file that holds `bytes`, whose digest the caller has computed, and keeps them.
    pub(crate) fn place(&self, digest: &Hash, bytes: &[u8], path: &Path) -> Result<(), IoError> {
        if write::holds(path, bytes)? || self.place_kept(digest, path)? {
            return Ok(());
        }
        let kept = write::write_by_way_of(&self.temporaries(), &self.blob(digest), bytes, 0o444);
        if let Err(error) = kept {
            self.note(format!("nothing more is kept in the store: {error}"));
        } else if self.place_kept(digest, path)? {
            return Ok(());
        }
        write::write_atomically(path, bytes)
    }

    /// Makes `path` a file with the content of this digest; `false` if the store does not have it whole.
    pub(crate) fn place_kept(&self, digest: &Hash, path: &Path) -> Result<bool, IoError> {
        let blob = self.blob(digest);
        if fs::symlink_metadata(&blob).is_err() {
            return Ok(false);
        }
        if self.reflinks.load(Ordering::Relaxed) {
            match place_by(digest, path, |temporary| reflink_copy::reflink(&blob, temporary)) {
                Err(error) if is_absent_or_damaged(&error) => return Ok(self.without(&blob, &error)),
                Err(_) => self.reflinks.store(false, Ordering::Relaxed),
                Ok(()) => {
                    used(&blob);
                    return Ok(true);
                }
            }
        }
        match place_by(digest, path, |temporary| fs::hard_link(&blob, temporary)) {
            Err(error) if is_absent_or_damaged(&error) => return Ok(self.without(&blob, &error)),
            // Another file system, too many links, or links forbidden: copy.
            Err(_) => {}
            Ok(()) => return Ok(true),
        }
        match Input::open_regular(&blob) {
            Ok(bytes) if blake3::hash(&bytes) == *digest => {
                used(&blob);
                write::write_atomically(path, &bytes)?;
                Ok(true)
            }
            Ok(_) => Ok(self.without(&blob, &IoError::on("read", &blob)(damaged()))),
            Err(error) => Ok(self.without(&blob, &IoError::on("read", &blob)(error))),
        }
    }

    /// Drops a damaged blob; `false`, for "not there".
    fn without(&self, blob: &Path, error: &IoError) -> bool {
        if error.source.kind() == io::ErrorKind::InvalidData {
            self.note(format!("{} was damaged and has been made again", blob.display()));
            if let Err(error) = write::remove(blob) {
                self.note(error.to_string());
            }
        }
        false
    }

    /// The manifest kept under a key, if its files' names can be trusted.
    pub(crate) fn manifest(&self, key: &Hash) -> Option<Manifest> {
        let path = sharded(&self.root.join("archives"), key);
        let manifest = Manifest::from_json(&path, &fs::read(&path).ok()?).ok()?;
        let mut seen = std::collections::HashSet::new();
        let safe = manifest.written().all(|(member, file)| {
            let digest = member.digest.as_deref().and_then(|hex| Hash::from_hex(hex).ok());
            names::is_member_file_name(file) && digest.is_some() && seen.insert(names::fold(file))
        });
        used(&path);
        safe.then_some(manifest)
    }

    /// Keeps a manifest.
    pub(crate) fn keep_manifest(&self, key: &Hash, manifest: &Manifest) {
        let path = sharded(&self.root.join("archives"), key);
        let kept = write::write_by_way_of(&self.temporaries(), &path, manifest.to_json().as_bytes(), 0o444);
        if let Err(error) = kept {
            self.note(format!("nothing more is kept in the store: {error}"));
        }
    }
}

/// 256 directories keep each of them small.
fn sharded(directory: &Path, digest: &Hash) -> PathBuf {
    let hex = digest.to_hex();
    directory.join(&hex[..2]).join(&hex[2..])
}

/// Lets `make` create a temporary from a blob, verifies what it holds, and renames it into place.
fn place_by(digest: &Hash, path: &Path, make: impl Fn(&Path) -> io::Result<()>) -> Result<(), IoError> {
    write::place(path, |temporary| {
        make(temporary)?;
        let checked = Input::open_regular(temporary).and_then(|input| {
            if blake3::hash(&input) == *digest { touch(temporary, UTIME_NOW) } else { Err(damaged()) }
        });
        if checked.is_err() {
            write::remove(temporary).map_err(|error| error.source)?;
        }
        checked
    })
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "its content is not what its name says")
}

fn is_absent_or_damaged(error: &IoError) -> bool {
    matches!(error.source.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData)
}

/// Notes for pruning that a file has been used, in its access time: mounts without `atime` keep explicit ones too.
fn used(path: &Path) {
    // Age alone depends on it.
    let _ = touch(path, UTIME_OMIT);
}

/// Sets the access time to the present, and the modification time as told.
fn touch(path: &Path, modification: i64) -> io::Result<()> {
    let time = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    let times = Timestamps { last_access: time(UTIME_NOW), last_modification: time(modification) };
    Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}
