//! Puts plans and shards into place, with as few calls to the kernel as it takes.
//!
//! Buck2 removes a declared output before it runs an action and takes none of an action that failed, so a plan that is
//! not there is created where it belongs: a rename would cost more than the plan. The lists that name the plans are
//! removed before the first plan is written, and appear whole after the last. A file that is there already is replaced
//! as a whole, if its content differs.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use distlto_prepare::io_error::IoError;
use distlto_prepare::write::{remove, write_if_changed};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// Writes a plan unless it holds this content already, making its directory where there is none.
pub fn write(path: &str, bytes: &[u8]) -> Result<(), IoError> {
    // `write_if_changed` handles an existing file or a missing directory, and reports any other error.
    let Ok(mut file) = OpenOptions::new().write(true).create_new(true).open(path) else {
        return write_if_changed(Path::new(path), bytes).map(drop);
    };
    file.write_all(bytes).map_err(|source| {
        let _ = remove(Path::new(path));
        IoError::on("write", path)(source)
    })
}

/// Moves a file, unless the target has its content already. `false` where there is no such file.
pub fn transfer(from: &str, to: &str) -> Result<bool, IoError> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => return Ok(true),
        Err(Errno::NOENT) => {
            if !Path::new(from).exists() {
                return Ok(false);
            }
            make_parent(to)?;
        }
        Err(Errno::EXIST) => {
            if same(from, to) {
                remove(Path::new(from))?;
                return Ok(true);
            }
        }
        // Another file system, or one that cannot promise to replace nothing.
        Err(_) => {}
    }
    match fs::rename(from, to) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            copy(from, to)?;
            remove(Path::new(from))?;
            Ok(true)
        }
        Err(error) => Err(IoError::on("rename into place", to)(error)),
    }
}

/// Copies a file, unless the target has its content already.
pub fn copy(from: &str, to: &str) -> Result<(), IoError> {
    let bytes = fs::read(from).map_err(IoError::on("read", from))?;
    write_if_changed(Path::new(to), &bytes).map(drop)
}

/// Makes a directory and those above it.
pub fn make_directory(path: &str) -> Result<(), IoError> {
    let path = if path.is_empty() { "." } else { path };
    fs::create_dir_all(path).map_err(IoError::on("create directory", path))
}

/// Removes plans after an error, since any of them may be wrong.
pub fn withdraw<'p>(plans: impl Iterator<Item = &'p str>) {
    for plan in plans {
        // The caller reports the earlier error, so this one is ignored.
        let _ = remove(Path::new(plan));
    }
}

fn make_parent(path: &str) -> Result<(), IoError> {
    make_directory(
        path.rsplit_once('/').map_or("", |(parent, _)| if parent.is_empty() { "/" } else { parent }),
    )
}

fn same(one: &str, other: &str) -> bool {
    let length = |path| fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|found| found.len());
    length(one).is_some_and(|one| Some(one) == length(other))
        && matches!((fs::read(one), fs::read(other)), (Ok(one), Ok(other)) if one == other)
}
