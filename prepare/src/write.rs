//! The one way files are written: beside their place, then renamed; and only when the content differs.
//!
//! A killed run leaves the old file or the new one. A temporary's name begins with [`TEMPORARY_PREFIX`],
//! so the next run can recognise it and sweep it ([`crate::leftovers`]).

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, openat};

use crate::io_error::IoError;
use crate::regular;

/// How the name of every temporary file of distlto begins.
pub const TEMPORARY_PREFIX: &str = ".distlto-tmp-";

/// Writes `bytes` to `path` atomically, making its parent directories, unless it holds them already.
/// Returns whether the file was written.
pub fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<bool, IoError> {
    if holds(path, bytes)? {
        return Ok(false);
    }
    write_atomically(path, bytes)?;
    Ok(true)
}

/// The same for a file that may have to be executable, with a file mode (which the umask restricts).
pub fn write_if_changed_with_mode(path: &Path, bytes: &[u8], mode: u32) -> Result<bool, IoError> {
    const EXECUTABLE: u32 = 0o100;
    let as_executable = |found: fs::Metadata| (found.permissions().mode() ^ mode) & EXECUTABLE == 0;
    if path.metadata().is_ok_and(as_executable) && holds(path, bytes)? {
        return Ok(false);
    }
    regular::check_place(path).map_err(IoError::on("write", path))?;
    write_with_mode(path, bytes, mode)?;
    Ok(true)
}

/// Whether `path` is a regular file with exactly this content.
pub(crate) fn holds(path: &Path, bytes: &[u8]) -> Result<bool, IoError> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() && found.len() == bytes.len() as u64 => {
            Ok(fs::read(path).map_err(IoError::on("read", path))? == bytes)
        }
        _ => Ok(false),
    }
}

/// Writes `bytes` to a temporary beside `path` and renames it into place, making parent directories.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), IoError> {
    regular::check_place(path).map_err(IoError::on("write", path))?;
    write_with_mode(path, bytes, 0o666)
}

/// [`write_atomically`] with a file mode (which the umask restricts).
pub fn write_with_mode(path: &Path, bytes: &[u8], mode: u32) -> Result<(), IoError> {
    write_by_way_of(parent_of(path), path, bytes, mode)
}

/// Writes a file that is not there yet into an open directory, `at`, that has yet to be renamed into place: nobody
/// sees it half-written.
///
/// The name is looked up from the open directory, since the lookup of a long path costs as much as the writing.
pub(crate) fn write_unseen(directory: &fs::File, at: &Path, file: &str, bytes: &[u8]) -> Result<(), IoError> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    openat(directory, file, flags, Mode::from_raw_mode(0o666))
        .map_err(io::Error::from)
        .and_then(|open| fs::File::from(open).write_all(bytes))
        .map_err(|source| IoError::on("write", at.join(file))(source))
}

/// [`write_atomically`] with the temporary in `directory`, which must be on the file system of `path`, and with a file mode
/// (which the umask restricts).
pub(crate) fn write_by_way_of(directory: &Path, path: &Path, bytes: &[u8], mode: u32) -> Result<(), IoError> {
    make_parent(path)?;
    let mut file = tempfile::Builder::new()
        .prefix(TEMPORARY_PREFIX)
        .permissions(fs::Permissions::from_mode(mode))
        .tempfile_in(directory)
        .map_err(IoError::on("write", path))?;
    file.write_all(bytes).map_err(IoError::on("write", path))?;
    file.persist(path).map_err(|error| IoError::on("rename into place", path)(error.error))?;
    Ok(())
}

/// Lets `make` create a file under the temporary name it is given, beside `path`, and renames it into place.
pub fn place(path: &Path, make: impl FnMut(&Path) -> io::Result<()>) -> Result<(), IoError> {
    make_parent(path)?;
    let made = tempfile::Builder::new()
        .prefix(TEMPORARY_PREFIX)
        .make_in(parent_of(path), make)
        .map_err(IoError::on("write", path))?;
    made.persist(path).map_err(|error| IoError::on("rename into place", path)(error.error))?;
    Ok(())
}

/// Puts a finished file into place, from wherever it was made. On another file system it is copied beside its place
/// first, under a name that follows from the file's: the next run replaces the leftover of a killed run.
pub fn move_into_place(from: &Path, to: &Path) -> Result<(), IoError> {
    let failed = || IoError::on("rename into place", to);
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {}
        renamed => return renamed.map_err(failed()),
    }
    let own = crate::names::escape_path(to.file_name().unwrap_or_default().as_encoded_bytes());
    let temporary = parent_of(to).join(format!("{TEMPORARY_PREFIX}{own}"));
    remove(&temporary)?;
    let copied = fs::copy(from, &temporary).map_err(IoError::on("write", to));
    let placed = copied.and_then(|_| fs::rename(&temporary, to).map_err(failed()));
    placed.inspect_err(|_| drop(fs::remove_file(&temporary)))?;
    remove(from)
}

/// Writes to standard output. A reader that has gone away, as `head` does, is no error.
pub fn to_standard_output(bytes: &[u8]) -> Result<(), IoError> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(IoError::on("write", "standard output")(error))
        }
        _ => Ok(()),
    }
}

/// Removes a file; one that is already gone is no error.
pub fn remove(path: &Path) -> Result<(), IoError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(IoError::on("remove", path)(error)),
        _ => Ok(()),
    }
}

fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

pub(crate) fn make_parent(path: &Path) -> Result<(), IoError> {
    let parent = parent_of(path);
    // Nearly always it is there, and asking costs less than trying to make it.
    if parent.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(parent).map_err(IoError::on("create directory", parent))
}
