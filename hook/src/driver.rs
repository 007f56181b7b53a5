//! Keeps the earlier program when a driver removes the output of a linker that has failed.
//!
//! clang removes the program after its linker has failed. distlto puts back the program of a linker that it
//! knows. It does not know one that ends before its greeting, and distlto may end first itself. A file older than the
//! driver is not the linker's. Temporary files are younger. Does not depend on the service's answers.

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::files::{Real, kept_errno};

type Time = (libc::time_t, libc::c_long);

/// The start of this process by the clock of file systems.
static START: OnceLock<Time> = OnceLock::new();
static HAS_LINKER: AtomicBool = AtomicBool::new(false);

/// Notes the start of this process.
pub fn begin() {
    // SAFETY: plain data, all zeros being a value of it; the system call fills it.
    let mut now: libc::timespec = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: a pointer to a live structure.
    if unsafe { libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &raw mut now) } == 0 {
        // Set once, before `main`.
        let _ = START.set((now.tv_sec, now.tv_nsec));
    }
}

/// Notes that this process starts a program. Linkers have names such as `ld.lld-22` and `x86_64-linux-gnu-ld`.
pub fn starts(program: &[u8]) {
    let name = program.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let mut words = name.split(|byte| !byte.is_ascii_alphanumeric());
    if words.any(|word| matches!(word, b"ld" | b"lld")) {
        HAS_LINKER.store(true, Ordering::Relaxed);
    }
}

/// Whether a file that this process removes is the program of an earlier link.
fn is_earlier(path: *const c_char) -> bool {
    let Some(&start) = START.get() else { return false };
    // SAFETY: plain data, all zeros being a value of it.
    let mut found: libc::stat = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: the caller's C string, and a live structure.
    let is_there = unsafe { libc::lstat(path, &raw mut found) } == 0;
    is_there && found.st_mode & libc::S_IFMT == libc::S_IFREG && (found.st_mtime, found.st_mtime_nsec) < start
}

/// # Safety
///
/// As for remove(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remove(path: *const c_char) -> c_int {
    static REAL: Real = Real::new(c"remove");
    let mut is_kept = false;
    if HAS_LINKER.load(Ordering::Relaxed) && !path.is_null() {
        kept_errno(|| is_kept = is_earlier(path));
    }
    if is_kept {
        return 0;
    }
    // SAFETY: the function of this name has this type, and the caller its contract.
    unsafe {
        let real =
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const c_char) -> c_int>(REAL.find());
        real(path)
    }
}
