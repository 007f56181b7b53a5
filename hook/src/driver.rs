//! Keeps the earlier program when a driver removes the output of a linker that has failed.
//!
//! clang removes the program after its linker has failed. distlto puts back the program of a linker that it
//! knows. It does not know one that ends before its greeting, and distlto may end first itself. An output of the linker
//! that is older than the driver is not the linker's. Does not depend on the service's answers.

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use crate::files::{Real, bytes, kept_errno};

type Time = (libc::time_t, libc::c_long);

/// The start of this process by the clock of file systems.
static START: OnceLock<Time> = OnceLock::new();
/// The output of the linker that this process has started.
static OUTPUT: OnceLock<Vec<u8>> = OnceLock::new();
/// The option before it, and how COFF's linker has it in one word, after a dash or a slash.
const OUTPUT_OPTION: &[u8] = b"-o";
const COFF_OPTION: &[u8] = b"out:";

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

/// Notes that this process starts a program with these words. Linkers have names such as `ld.lld-22` and
/// `x86_64-linux-gnu-ld`, and an output.
pub fn starts<'a>(mut words: impl Iterator<Item = &'a [u8]>) {
    let name = words.next().and_then(|name| name.rsplit(|&byte| byte == b'/').next()).unwrap_or_default();
    let mut parts = name.split(|byte| !byte.is_ascii_alphanumeric());
    if parts.any(|part| matches!(part, b"ld" | b"lld"))
        && let Some(output) = output_of(words)
    {
        // A driver starts one linker.
        let _ = OUTPUT.set(output.to_owned());
    }
}

fn output_of<'a>(mut words: impl Iterator<Item = &'a [u8]>) -> Option<&'a [u8]> {
    while let Some(word) = words.next() {
        if word == OUTPUT_OPTION {
            return words.next();
        }
        if let Some((name, output)) = word.get(1..).and_then(|word| word.split_at_checked(COFF_OPTION.len()))
            && name.eq_ignore_ascii_case(COFF_OPTION)
        {
            return Some(output);
        }
    }
    None
}

/// Whether a file that this process removes is the program of an earlier link.
fn is_earlier(path: *const c_char) -> bool {
    let is_output = OUTPUT.get().is_some_and(|output| output == bytes(path));
    let Some(&start) = START.get().filter(|_| is_output) else { return false };
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
    if OUTPUT.get().is_some() && !path.is_null() {
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
