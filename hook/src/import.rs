//! The import step of a clang alone: it writes its module after the imports to a file that the environment names, and ends.
//!
//! A clang with `-save-temps=obj` writes its module after each step of a ThinLTO backend (`Config::addSaveTemps` in
//! `llvm/lib/LTO/LTOBackend.cpp`): before it, promoted, internalised, with its imports, and then through the optimiser. The
//! first three go nowhere. Nothing happens in a process without that variable.

use std::ffi::{CStr, CString, c_int};
use std::io;
use std::os::fd::RawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::protocol::{EARLIER_SUFFIXES, IMPORT, IMPORTED_SUFFIX};
use crate::system::check;

/// Where the module goes.
static PLACE: OnceLock<CString> = OnceLock::new();
/// The descriptor of that file, while it is written.
static FILE: AtomicI32 = AtomicI32::new(-1);

/// Reads the variable.
pub fn begin() {
    if let Some(place) = std::env::var_os(IMPORT)
        && let Ok(place) = CString::new(place.into_encoded_bytes())
    {
        // This is called once.
        let _ = PLACE.set(place);
    }
}

/// Opens one of these files in the place of the system. `None` for any other file.
pub fn open(path: &[u8], flags: c_int) -> Option<io::Result<RawFd>> {
    let place = PLACE.get().filter(|_| flags & libc::O_CREAT != 0)?;
    let create = |path: &CStr| {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC;
        // SAFETY: a C string.
        check(unsafe { libc::open(path.as_ptr(), flags, 0o600) })
    };
    if EARLIER_SUFFIXES.iter().any(|suffix| path.ends_with(suffix)) {
        return Some(create(c"/dev/null"));
    }
    if !path.ends_with(IMPORTED_SUFFIX) {
        return None;
    }
    let file = create(place);
    FILE.store(file.as_ref().copied().unwrap_or(-1), Ordering::Relaxed);
    Some(file)
}

/// Ends the process if this was the file.
pub fn closed(file: c_int) {
    if file >= 0 && FILE.load(Ordering::Relaxed) == file {
        // SAFETY: ends the process. What it was started for is done.
        unsafe { libc::_exit(0) }
    }
}
