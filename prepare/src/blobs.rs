//! Files named by the digest of their content, and placed elsewhere only with exactly that content.
//!
//! Knows digests and bytes alone; the owner chooses the digest, and the purpose of the files. Layout: `blobs/ab/cdef..`
//! and `tmp` below its owner's root.
//!
//! Damage is found: content is hashed each time it is placed, since files can be edited by root, and a power
//! cut can leave zeros. So nothing is ever flushed to disk with `fsync`. Every process may be killed at any time, and
//! any file may vanish: then it is absent, and its maker makes it again.

use std::fs::{self, File, Metadata};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use data_encoding::HEXLOWER;
use rustix::fs::{
    AtFlags, CWD, MemfdFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, memfd_create, utimensat,
};
use rustix::io::Errno;

use crate::io_error::IoError;
use crate::leftovers::SharedTemporaries;
use crate::private;
use crate::regular::{self, Links, NotRegular};
use crate::write;

/// A digest of 256 bits.
pub type BlobDigest = [u8; 32];

/// When a file was last used or written, the later of the two: seconds and nanoseconds since 1970.
pub type Used = (i64, i64);

/// The result of a placing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placed {
    /// The file is there with the blob's content.
    Yes,
    /// There is no such blob.
    Absent,
    /// There was one, with other content or not readable; it has been removed. Holds the problem.
    Damaged(String),
}

/// A directory of blobs, for any number of threads and processes.
#[derive(Debug)]
pub struct Blobs {
    root: PathBuf,
    hash: fn(&[u8]) -> BlobDigest,
    temporaries: SharedTemporaries,
    reflinks: AtomicBool,
}

impl Blobs {
    /// The blobs below `root`, by this hash function. Touches nothing.
    pub fn new(root: &Path, hash: fn(&[u8]) -> BlobDigest) -> Self {
        let temporaries = SharedTemporaries::new(root.join("tmp"));
        Self { root: root.to_owned(), hash, temporaries, reflinks: AtomicBool::new(true) }
    }

    /// The owner's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The digest of some bytes.
    pub fn hash(&self, bytes: &[u8]) -> BlobDigest {
        (self.hash)(bytes)
    }

    /// Removes the temporaries of dead processes; returns how many files.
    pub fn sweep(&self) -> Result<usize, IoError> {
        self.temporaries.sweep()
    }

    /// Where the file of a digest is, in one of the owner's directories: 256 subdirectories keep each of them small.
    pub fn file(&self, part: &str, digest: &BlobDigest) -> PathBuf {
        let mut path = self.root.join(part);
        let hex = hex(digest);
        path.push(&hex[..2]);
        path.push(&hex[2..]);
        path
    }

    /// Writes one of the owner's files: whole or not at all.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), IoError> {
        clear(path)?;
        self.temporaries.write(path, bytes, 0o444)
    }

    /// Keeps `bytes` under `digest`, which the caller has computed. Returns whether they were not there yet.
    pub fn keep(&self, digest: &BlobDigest, bytes: &[u8]) -> Result<bool, IoError> {
        let blob = self.file("blobs", digest);
        // The content there may have been damaged since.
        if fs::symlink_metadata(&blob).is_ok_and(|found| found.len() == bytes.len() as u64)
            && read(&blob).is_ok_and(|(kept, _)| kept == bytes)
        {
            return Ok(false);
        }
        self.write(&blob, bytes)?;
        Ok(true)
    }

    /// Makes `path` a file with the content of this digest, and of this size if that is known: a reflink, else a copy,
    /// with ordinary permissions, which its owner may edit. An error is one of `path`.
    pub fn place(
        &self,
        digest: &BlobDigest,
        size: Option<u64>,
        path: &Path,
        executable: bool,
    ) -> Result<Placed, IoError> {
        let blob = self.file("blobs", digest);
        let found = match fs::symlink_metadata(&blob) {
            Ok(found) => found,
            Err(error) if is_nothing(&error) => return Ok(Placed::Absent),
            Err(error) => return Ok(discard(&blob, &error)),
        };
        if !found.is_file() {
            return Ok(discard(&blob, &NotRegular::of(found.file_type())));
        }
        if size.is_some_and(|size| size != found.len()) {
            return Ok(discard(&blob, &damaged()));
        }
        if self.reflinks.load(Ordering::Relaxed) {
            match self.place_by(digest, path, |to| reflink(&blob, to, executable)) {
                Ok(()) => {
                    used(&blob, &found);
                    return Ok(Placed::Yes);
                }
                Err(error) if is_nothing(&error.source) => return Ok(Placed::Absent),
                Err(error) if is_damage(&error) => return Ok(discard(&blob, &error.source)),
                // Most file systems have none.
                Err(_) => self.reflinks.store(false, Ordering::Relaxed),
            }
        }
        match read(&blob) {
            Ok((bytes, _)) if (self.hash)(&bytes) == *digest => {
                used(&blob, &found);
                write::write_with_mode(path, &bytes, mode(executable))?;
                Ok(Placed::Yes)
            }
            Ok(_) => Ok(discard(&blob, &damaged())),
            Err(error) if is_nothing(&error) => Ok(Placed::Absent),
            Err(error) => Ok(discard(&blob, &error)),
        }
    }

    /// Opens the blob of this digest, with verified content. An error is never [`Placed::Yes`].
    pub fn open(&self, digest: &BlobDigest) -> Result<File, Placed> {
        let blob = self.file("blobs", digest);
        let lost = |error: io::Error| {
            if is_nothing(&error) { Placed::Absent } else { discard(&blob, &error) }
        };
        let (mut file, found) =
            regular::open_with(File::options().read(true), Links::Refuse, &blob).map_err(lost)?;
        let bytes = regular::contents(&file, &found).map_err(lost)?;
        if (self.hash)(&bytes) != *digest {
            return Err(discard(&blob, &damaged()));
        }
        used(&blob, &found);
        // Another user could go on writing to it.
        if private::check_open(&blob, &found).is_err() {
            file = memory(&bytes).map_err(lost)?;
        }
        file.rewind().map_err(lost)?;
        Ok(file)
    }

    /// Lets `make` create a temporary from a blob, verifies its content, and renames it into place.
    fn place_by(
        &self,
        digest: &BlobDigest,
        path: &Path,
        make: impl Fn(&Path) -> io::Result<()>,
    ) -> Result<(), IoError> {
        write::place(path, |temporary| {
            make(temporary)?;
            let checked = read(temporary).and_then(|(bytes, _)| {
                if (self.hash)(&bytes) == *digest { touch(temporary, UTIME_NOW) } else { Err(damaged()) }
            });
            if checked.is_err() {
                write::remove(temporary).map_err(|error| error.source)?;
            }
            checked
        })
    }
}

/// A file in memory with these bytes.
fn memory(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("distlto-object", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    Ok(file)
}

/// The digest in hexadecimal.
pub fn hex(digest: &BlobDigest) -> String {
    HEXLOWER.encode(digest)
}

/// The digest that 64 lower-case hexadecimal digits stand for.
pub fn from_hex(text: &str) -> Option<BlobDigest> {
    HEXLOWER.decode(text.as_bytes()).ok()?.try_into().ok()
}

/// Reads a regular file that is no symbolic link. Anything else, such as a pipe, is an error at once. A whole file of
/// any size takes as much memory: [`read_at_most`] bounds that.
pub fn read(path: &Path) -> io::Result<(Vec<u8>, Metadata)> {
    read_at_most(path, u64::MAX)
}

/// The same, of a file that has at most so many bytes unless it is damaged.
pub fn read_at_most(path: &Path, most: u64) -> io::Result<(Vec<u8>, Metadata)> {
    let (file, found) = regular::open_with(File::options().read(true), Links::Refuse, path)?;
    if found.len() > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("it has {} bytes", found.len())));
    }
    Ok((regular::contents(file, &found)?, found))
}

/// When a file was last used.
pub fn last_used(found: &Metadata) -> Used {
    (found.atime(), found.atime_nsec()).max((found.mtime(), found.mtime_nsec()))
}

/// A use within this time after the last one is not noted, since each note is a write.
pub const USE_GRAIN: Duration = Duration::from_secs(60);

/// Notes for pruning that a file has been used, in its access time: mounts without `atime` keep explicit ones too.
pub fn used(path: &Path, found: &Metadata) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    if last_used(found).0.saturating_add(USE_GRAIN.as_secs().cast_signed()) <= now.as_secs().cast_signed() {
        // Age alone depends on it.
        let _ = touch(path, UTIME_OMIT);
    }
}

/// Notes the use at the present moment.
pub fn used_now(path: &Path) {
    let _ = touch(path, UTIME_OMIT);
}

/// Notes a use at another time, in seconds since 1970.
pub fn used_at(path: &Path, seconds: u64) {
    let time = Timespec { tv_sec: i64::try_from(seconds).unwrap_or(0), tv_nsec: 0 };
    let times = Timestamps { last_access: time, last_modification: time };
    // Age alone depends on it.
    let _ = utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW);
}

/// Removes an owner's file, or anything else in its place.
pub fn remove(path: &Path) -> Result<(), IoError> {
    clear(path)?;
    write::remove(path)
}

/// Removes a directory from the place of a file, since no rename replaces one.
fn clear(path: &Path) -> Result<(), IoError> {
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
        fs::remove_dir_all(path).map_err(IoError::on("remove", path))?;
    }
    Ok(())
}

/// Drops a damaged blob. One that cannot be removed is damaged all the same.
fn discard(blob: &Path, why: &io::Error) -> Placed {
    let stays = remove(blob).err().map_or_else(String::new, |error| format!(" ({error})"));
    Placed::Damaged(format!("{}: {why}{stays}", blob.display()))
}

/// The problem of a blob that holds anything else.
pub(crate) const NOT_ITS_NAME: &str = "its content does not match its name";

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, NOT_ITS_NAME)
}

/// Whether there is no such file, or this process cannot look at any at the moment: no fault of the file.
pub fn is_nothing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::OutOfMemory
            | io::ErrorKind::StaleNetworkFileHandle
    ) || matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

fn is_damage(error: &IoError) -> bool {
    error.source.kind() == io::ErrorKind::InvalidData
}

/// The mode of a copy, which the umask restricts.
fn mode(executable: bool) -> u32 {
    if executable { 0o777 } else { 0o666 }
}

fn reflink(blob: &Path, to: &Path, executable: bool) -> io::Result<()> {
    // With a mode that the umask has restricted, which only opening does.
    let own = File::options().write(true).create_new(true).mode(mode(executable)).open(to)?;
    reflink_copy::reflink_file(&regular::open(blob)?.0, &own).inspect_err(|_| {
        let _ = fs::remove_file(to);
    })
}

/// Sets the access time to the present, and the modification time by `UTIME_NOW` or `UTIME_OMIT`.
fn touch(path: &Path, modification: i64) -> io::Result<()> {
    let time = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
    let times = Timestamps { last_access: time(UTIME_NOW), last_modification: time(modification) };
    Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}
