//! What this process opens, looks for in vain, writes and renames, noted in memory that the service shares.
//!
//! The service reads it when the process has ended, however that was. Without such memory nothing is noted. Layout: the
//! size of all notes (a `u64`), then the notes ([`Note`]). A note is whole once its kind is there. Knows nothing of what
//! files are for.

use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::protocol::{FIRST_NOTE, NOTE_HEAD, Note, TRACE_SIZE};

static TRACE: OnceLock<Trace> = OnceLock::new();

struct Trace {
    start: *mut u8,
}

// SAFETY: the memory is mapped for the life of the process, and each note has bytes of its own.
unsafe impl Send for Trace {}
// SAFETY: as above.
unsafe impl Sync for Trace {}

/// Has this process and the children that it forks note what they do.
pub fn begin(memory: &OwnedFd) {
    // SAFETY: a new mapping of a file that the service has made as large as that.
    let start = unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(ptr::null_mut(), TRACE_SIZE, protection, libc::MAP_SHARED, memory.as_raw_fd(), 0)
    };
    if start != libc::MAP_FAILED {
        // There is one, as a process asks once.
        let _ = TRACE.set(Trace { start: start.cast() });
    }
}

/// Whether anything is noted.
pub fn is_on() -> bool {
    TRACE.get().is_some()
}

/// Notes something.
pub fn note(note: Note, path: &[u8]) {
    let (Some(trace), Ok(length)) = (TRACE.get(), u16::try_from(path.len())) else { return };
    let size = NOTE_HEAD + path.len();
    // SAFETY: the mapping begins with the size of all notes, aligned as a page is.
    let next = unsafe { AtomicU64::from_ptr(trace.start.cast()) };
    // Past the end it says that something is missing.
    let at = usize::try_from(next.fetch_add(size as u64, Ordering::Relaxed)).unwrap_or(usize::MAX);
    let at = at.saturating_add(FIRST_NOTE);
    if at.checked_add(size).is_none_or(|end| end > TRACE_SIZE) {
        return;
    }
    // SAFETY: within the mapping, and nobody else has these bytes.
    unsafe {
        let place = trace.start.add(at);
        ptr::copy_nonoverlapping(length.to_le_bytes().as_ptr(), place.add(1), 2);
        ptr::copy_nonoverlapping(path.as_ptr(), place.add(NOTE_HEAD), path.len());
        AtomicU8::from_ptr(place).store(note.to_byte(), Ordering::Release);
    }
}
