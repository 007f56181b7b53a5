//! Programs that this process starts without this library: a service may have another command line for them.
//!
//! A static program, or one of another libc, does not load the library. If it is a linker, it can still get a
//! distributor's options. Any other program costs a look at its header. Names without a path are left to the system.
//! A linker's distributor starts after `linker` has handed over its jobs.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use crate::driver;
use crate::files::{Real, bytes, kept_errno};
use crate::linker;
use crate::service;
use crate::system::check;

type Strings = *const *const c_char;

/// A command line as exec(3) takes it.
struct Line {
    /// The strings of the vector.
    _words: Vec<CString>,
    vector: Vec<*const c_char>,
}

/// Defines functions that call the real one, with another command line where a service has one for the program.
macro_rules! interpose {
    ($($name:ident($($argument:ident: $type:ty),*) { $path:ident, $argv:ident })*) => { $(
        /// # Safety
        ///
        /// As for the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            static REAL: Real = Real::new(unsafe {
                // SAFETY: ends with NUL and has no other.
                CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes())
            });
            let line = line_of($path, $argv);
            let $argv = line.as_ref().map_or($argv, |line| line.vector.as_ptr());
            // SAFETY: a function of this name has this type, and the caller its contract. The vector lives through the
            // call.
            unsafe {
                let real = std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn($($type),*) -> c_int,
                >(REAL.find());
                real($($argument),*)
            }
        }
    )* };
}

interpose! {
    execv(path: *const c_char, argv: Strings) { path, argv }
    execvp(path: *const c_char, argv: Strings) { path, argv }
    execve(path: *const c_char, argv: Strings, environment: Strings) { path, argv }
    execvpe(path: *const c_char, argv: Strings, environment: Strings) { path, argv }
    posix_spawn(process: *mut c_int, path: *const c_char, actions: *const c_void, attributes: *const c_void, argv: Strings, environment: Strings) { path, argv }
    posix_spawnp(process: *mut c_int, path: *const c_char, actions: *const c_void, attributes: *const c_void, argv: Strings, environment: Strings) { path, argv }
}

/// Returns the replacement of a program's command line, if the service has one.
fn line_of(path: *const c_char, argv: Strings) -> Option<Line> {
    if path.is_null() || argv.is_null() {
        return None;
    }
    kept_errno(|| words(argv).last().map_or((), |word| linker::hand_over(bytes(word))));
    if !service::is_named() {
        return None;
    }
    driver::starts(bytes(path));
    let mut line = None;
    kept_errno(|| line = ask(path, argv));
    line
}

fn ask(path: *const c_char, argv: Strings) -> Option<Line> {
    let program = bytes(path);
    if !program.contains(&b'/') || loads_libraries(path).unwrap_or(true) {
        return None;
    }
    let mut strings = [program, &[0]].concat();
    for word in words(argv) {
        strings.extend_from_slice(bytes(word));
        strings.push(0);
    }
    let words = service::line_of(&strings)?;
    let vector = words.iter().map(|word| word.as_ptr()).chain([ptr::null()]).collect();
    Some(Line { _words: words, vector })
}

fn words(argv: Strings) -> impl Iterator<Item = *const c_char> {
    // SAFETY: a vector of C strings that ends with null, by the contract of exec(3).
    (0..).map(move |at| unsafe { *argv.add(at) }).take_while(|word| !word.is_null())
}

/// Returns whether glibc's loader starts a program, and so loads preloaded libraries. True for a file that is no 64-bit
/// program. Layout: elf(5).
fn loads_libraries(path: *const c_char) -> io::Result<bool> {
    const CLASS_64: u8 = 2;
    const INTERPRETER: u32 = 3;
    // SAFETY: a C string; the descriptor is ours.
    let file = unsafe { OwnedFd::from_raw_fd(check(libc::open(path, libc::O_RDONLY | libc::O_CLOEXEC))?) };
    let header: [u8; 64] = part(&file, 0)?;
    if !header.starts_with(b"\x7fELF") || header[4] != CLASS_64 {
        return Ok(true);
    }
    let (table, size, count) =
        (number::<8>(&header[32..]), number::<2>(&header[54..]), number::<2>(&header[56..]));
    for at in 0..count {
        let entry: [u8; 40] = part(&file, table.wrapping_add(at * size))?;
        if number::<4>(&entry) == u64::from(INTERPRETER) {
            let name: [u8; 64] = part(&file, number::<8>(&entry[8..]))?;
            let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
            let name = name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
            return Ok(name.starts_with(b"ld-linux"));
        }
    }
    Ok(false)
}

/// So many bytes of a file, zeroes behind its end.
fn part<const N: usize>(file: &OwnedFd, at: u64) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let at = libc::off_t::try_from(at).map_err(|_| io::ErrorKind::InvalidData)?;
    // SAFETY: the pointer and length are those of a live array.
    let read = unsafe { libc::pread(file.as_raw_fd(), bytes.as_mut_ptr().cast(), N, at) };
    if read < 0 { Err(io::Error::last_os_error()) } else { Ok(bytes) }
}

/// A little-endian number of `N` bytes.
fn number<const N: usize>(bytes: &[u8]) -> u64 {
    bytes.iter().take(N).rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
}
