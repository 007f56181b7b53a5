//! Regular files, opened without ever waiting for a pipe or a device in their place.
//!
//! Opening a named pipe waits until somebody writes into it, and a device may do anything. State and caches lie where
//! others can write, so every file of them is opened here: anything but a regular file is an error that names its kind.
//! Does not depend on the content of the files.

use std::error::Error;
use std::fmt;
use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::io_error::IoError;

/// Whether a symbolic link in the place of a file is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// For files that people name, and that they may keep elsewhere.
    Follow,
    /// For files that are distlto's alone.
    Refuse,
}

/// Opens a regular file for reading.
pub fn open(path: &Path) -> io::Result<(File, Metadata)> {
    open_with(OpenOptions::new().read(true), Links::Follow, path)
}

/// Opens a regular file in any way; one that is created is regular.
pub fn open_with(options: &mut OpenOptions, links: Links, path: &Path) -> io::Result<(File, Metadata)> {
    let follow = if links == Links::Follow { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | follow;
    let file =
        options.custom_flags(flags.bits() as i32).open(path).map_err(|error| explain(error, links, path))?;
    let found = file.metadata()?;
    if found.is_file() { Ok((file, found)) } else { Err(NotRegular::of(found.file_type())) }
}

/// Names the kind of file there, where the system's own message would not.
fn explain(error: io::Error, links: Links, path: &Path) -> io::Error {
    // A pipe without a reader, a socket or a device without a driver; a link that is not followed; a directory.
    let telling = matches!(
        Errno::from_io_error(&error),
        Some(Errno::NXIO | Errno::NODEV | Errno::LOOP | Errno::ISDIR | Errno::OPNOTSUPP)
    );
    let found = if links == Links::Follow { path.metadata() } else { path.symlink_metadata() };
    match found {
        Ok(found) if telling && !found.is_file() => NotRegular::of(found.file_type()),
        _ => error,
    }
}

/// Reads a regular file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let (file, found) = open(path)?;
    contents(file, &found)
}

/// Reads a regular file; `None` where there is no file.
pub fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, IoError> {
    match read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(IoError::on("read", path)(error)),
    }
}

/// Reads an open file; `found` is its metadata of this moment. It takes as much memory.
pub(crate) fn contents(file: impl Read, found: &Metadata) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // A damaged file system may claim any size.
    bytes.try_reserve_exact(usize::try_from(found.len()).unwrap_or(usize::MAX)).map_err(io::Error::other)?;
    // Of a file alone, `read_to_end` asks for the size once more.
    file.take(u64::MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Refuses a place that holds something which is no regular file. A rename would replace it: a pipe that somebody
/// reads, or `/dev/null`.
pub fn check_place(path: &Path) -> io::Result<()> {
    match path.metadata() {
        Ok(found) if !found.is_file() => Err(NotRegular::of(found.file_type())),
        _ => Ok(()),
    }
}

/// The kind of a file in the place of a regular one; the cause of an [`io::Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotRegular(&'static str);

impl fmt::Display for NotRegular {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it is not a regular file but {}", self.0)
    }
}

impl Error for NotRegular {}

impl NotRegular {
    /// Whether an error is one of this kind.
    pub fn is_cause(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|cause| cause.is::<Self>())
    }

    pub(crate) fn of(kind: FileType) -> io::Error {
        let what = match kind {
            kind if kind.is_dir() => "a directory",
            kind if kind.is_fifo() => "a named pipe",
            kind if kind.is_socket() => "a socket",
            kind if kind.is_symlink() => "a symbolic link",
            _ => "a device",
        };
        // Callers that repair damage treat it as damage.
        io::Error::new(ErrorKind::InvalidData, Self(what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    #[test]
    fn what_is_no_regular_file_is_named_and_not_waited_for() {
        let place = tempfile::tempdir().expect("a directory");
        let at = |name: &str| place.path().join(name);
        std::fs::create_dir(at("directory")).expect("made");
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)
            .expect("made");
        let _listener = UnixListener::bind(at("socket")).expect("bound");
        std::fs::write(at("file"), "text").expect("written");
        symlink("file", at("link")).expect("made");
        symlink("/dev/null", at("null")).expect("made");
        for (name, what) in [
            ("directory", "a directory"),
            ("pipe", "a named pipe"),
            ("socket", "a socket"),
            ("null", "a device"),
        ] {
            let mut ways = vec![
                read(&at(name)).map(drop),
                open_with(OpenOptions::new().append(true), Links::Follow, &at(name)).map(drop),
                check_place(&at(name)),
            ];
            if name != "null" {
                let options = &mut OpenOptions::new();
                ways.push(
                    open_with(options.read(true).write(true).create(true), Links::Refuse, &at(name))
                        .map(drop),
                );
            }
            for way in ways {
                let error = way.expect_err(name);
                assert!(NotRegular::is_cause(&error), "{name}: {error}");
                assert_eq!(error.to_string(), format!("it is not a regular file but {what}"));
            }
        }
        assert_eq!(read(&at("link")).expect("followed"), b"text");
        let refused = open_with(OpenOptions::new().read(true), Links::Refuse, &at("link"));
        assert!(refused.is_err_and(|error| error.to_string().ends_with("a symbolic link")));
        assert_eq!(read_if_there(&at("nothing")).expect("no error"), None);
    }
}
