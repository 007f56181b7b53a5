//! The interposed functions that open, look up and rename files, read variables, print and end the process. The
//! linker's shards and objects go to [`linker`]. All other calls go to the system and are noted ([`trace`]).
//!
//! glibc's `open` is variadic: the mode is there if the flags create a file. Both supported ABIs pass it like a further
//! parameter, and all arguments are passed on unchanged. Calls within glibc do not come here.

use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::mode_t;

use crate::import;
use crate::linker;
use crate::protocol::Note;
use crate::trace;

/// A function that this library interposes: the next definition after this one, another preloaded library's or glibc's.
pub struct Real {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Real {
    /// The one of this name.
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, found: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Where it is.
    pub fn find(&self) -> *mut c_void {
        let known = self.found.load(Ordering::Relaxed);
        if !known.is_null() {
            return known;
        }
        // SAFETY: a C string.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        if found.is_null() {
            // Not reached: a program's libc has all functions that it calls.
            std::process::abort();
        }
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

/// Defines functions that call the real one, and then note `path` and the result.
macro_rules! interpose {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty { $path:ident, $after:expr })*) => { $(
        /// # Safety
        ///
        /// As for the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            static REAL: Real = Real::new(unsafe {
                // SAFETY: ends with NUL and has no other.
                CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes())
            });
            // SAFETY: a function of this name has this type, but for being variadic, and the caller its contract.
            let result = unsafe {
                let real = std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn($($type),*) -> $result,
                >(REAL.find());
                real($($argument),*)
            };
            if trace::is_on() && !$path.is_null() {
                note_of(bytes($path), result, $after);
            }
            result
        }
    )* };
}

interpose! {
    fopen(path: *const c_char, mode: *const c_char) -> *mut libc::FILE { path, |path, file| opened(path, flags_of(mode), !file.is_null()) }
    fopen64(path: *const c_char, mode: *const c_char) -> *mut libc::FILE { path, |path, file| opened(path, flags_of(mode), !file.is_null()) }
    freopen(path: *const c_char, mode: *const c_char, stream: *mut libc::FILE) -> *mut libc::FILE { path, |path, file| opened(path, flags_of(mode), !file.is_null()) }
    freopen64(path: *const c_char, mode: *const c_char, stream: *mut libc::FILE) -> *mut libc::FILE { path, |path, file| opened(path, flags_of(mode), !file.is_null()) }
    __open_2(path: *const c_char, flags: c_int) -> c_int { path, |path, file| opened(path, flags, file >= 0) }
    __open64_2(path: *const c_char, flags: c_int) -> c_int { path, |path, file| opened(path, flags, file >= 0) }
    __openat_2(directory: c_int, path: *const c_char, flags: c_int) -> c_int { path, |path, file| opened(&at(directory, path), flags, file >= 0) }
    __openat64_2(directory: c_int, path: *const c_char, flags: c_int) -> c_int { path, |path, file| opened(&at(directory, path), flags, file >= 0) }
    creat(path: *const c_char, mode: mode_t) -> c_int { path, |path, file| opened(path, libc::O_WRONLY, file >= 0) }
    creat64(path: *const c_char, mode: mode_t) -> c_int { path, |path, file| opened(path, libc::O_WRONLY, file >= 0) }
    opendir(path: *const c_char) -> *mut libc::DIR { path, |path, directory| found(path, !directory.is_null()) }
    access(path: *const c_char, mode: c_int) -> c_int { path, |path, result| absent(path, result == 0) }
    stat(path: *const c_char, status: *mut c_void) -> c_int { path, |path, result| looked(path, result == 0) }
    stat64(path: *const c_char, status: *mut c_void) -> c_int { path, |path, result| looked(path, result == 0) }
    lstat(path: *const c_char, status: *mut c_void) -> c_int { path, |path, result| absent(path, result == 0) }
    lstat64(path: *const c_char, status: *mut c_void) -> c_int { path, |path, result| absent(path, result == 0) }
    fstatat(directory: c_int, path: *const c_char, status: *mut c_void, flags: c_int) -> c_int { path, |path, result| absent(&at(directory, path), result == 0) }
    fstatat64(directory: c_int, path: *const c_char, status: *mut c_void, flags: c_int) -> c_int { path, |path, result| absent(&at(directory, path), result == 0) }
    // stat in programs that were built for a glibc before 2.33.
    __xstat(version: c_int, path: *const c_char, status: *mut c_void) -> c_int { path, |path, result| looked(path, result == 0) }
    __xstat64(version: c_int, path: *const c_char, status: *mut c_void) -> c_int { path, |path, result| looked(path, result == 0) }
    __lxstat(version: c_int, path: *const c_char, status: *mut c_void) -> c_int { path, |path, result| absent(path, result == 0) }
    __lxstat64(version: c_int, path: *const c_char, status: *mut c_void) -> c_int { path, |path, result| absent(path, result == 0) }
    __fxstatat(version: c_int, directory: c_int, path: *const c_char, status: *mut c_void, flags: c_int) -> c_int { path, |path, result| absent(&at(directory, path), result == 0) }
    __fxstatat64(version: c_int, directory: c_int, path: *const c_char, status: *mut c_void, flags: c_int) -> c_int { path, |path, result| absent(&at(directory, path), result == 0) }
    statx(directory: c_int, path: *const c_char, flags: c_int, mask: c_uint, status: *mut c_void) -> c_int { path, |path, result| absent(&at(directory, path), result == 0) }
    faccessat(directory: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int { path, |path, result| absent(&at(directory, path), result == 0) }
    readlink(path: *const c_char, target: *mut c_char, size: libc::size_t) -> libc::ssize_t { path, |path, result| absent(path, result >= 0) }
    getenv(name: *const c_char) -> *mut c_char { name, asked }
    secure_getenv(name: *const c_char) -> *mut c_char { name, asked }
    chdir(path: *const c_char) -> c_int { path, |path, result| if result == 0 { trace::note(Note::Directory, path) } }
}

/// Defines `open` and its like.
macro_rules! interpose_open {
    (@) => { libc::AT_FDCWD };
    (@ $directory:ident) => { $directory };
    ($($name:ident($($directory:ident: $type:ty)?))*) => { $(
        /// # Safety
        ///
        /// As for open(2).
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($directory: $type,)? path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
            static REAL: Real = Real::new(unsafe {
                // SAFETY: ends with NUL and has no other.
                CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes())
            });
            if let Some(file) = own(path, flags) {
                return file;
            }
            let is_noted = trace::is_on() && !path.is_null();
            // A process that is killed in the call does not note the new file after it.
            if is_noted && flags & libc::O_EXCL != 0 {
                trace::note(Note::Creating, &at(interpose_open!(@ $($directory)?), bytes(path)));
            }
            // SAFETY: a function of this name has this type, but for being variadic, and the caller its contract.
            let file = unsafe {
                let real = std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn($($type,)? *const c_char, c_int, mode_t) -> c_int,
                >(REAL.find());
                real($($directory,)? path, flags, mode)
            };
            if is_noted {
                kept_errno(|| opened(&at(interpose_open!(@ $($directory)?), bytes(path)), flags, file >= 0));
            }
            file
        }
    )* };
}

interpose_open! { open() open64() openat(directory: c_int) openat64(directory: c_int) }

/// Opens the linker's own files in place of the system's; a negative result comes with its errno.
fn own(path: *const c_char, flags: c_int) -> Option<c_int> {
    if path.is_null() {
        return None;
    }
    let path = bytes(path);
    linker::open(path, flags).or_else(|| import::open(path, flags))?.map_err(set_errno).map_or(Some(-1), Some)
}

/// # Safety
///
/// As for rename(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rename(old: *const c_char, path: *const c_char) -> c_int {
    static REAL: Real = Real::new(c"rename");
    if !path.is_null() && linker::keep(bytes(path)) {
        return 0;
    }
    // SAFETY: the function of this name has this type, and the caller its contract.
    let result = unsafe {
        let real = std::mem::transmute::<
            *mut c_void,
            unsafe extern "C" fn(*const c_char, *const c_char) -> c_int,
        >(REAL.find());
        real(old, path)
    };
    if result == 0 && trace::is_on() && !path.is_null() {
        kept_errno(|| trace::note(Note::Written, bytes(path)));
    }
    result
}

static READ: Real = Real::new(c"read");
static WRITE: Real = Real::new(c"write");
static CLOSE: Real = Real::new(c"close");
static EXIT: Real = Real::new(c"_exit");

/// Resolves the functions that a program may call where lookups are impossible: in a signal handler, and after fork(2)
/// in a program with threads.
pub fn prepare() {
    READ.find();
    WRITE.find();
    CLOSE.find();
    EXIT.find();
}

/// # Safety
///
/// As for read(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(descriptor: c_int, to: *mut c_void, size: libc::size_t) -> libc::ssize_t {
    // SAFETY: the function of this name has this type, and the caller its contract.
    let read = unsafe {
        let real = std::mem::transmute::<
            *mut c_void,
            unsafe extern "C" fn(c_int, *mut c_void, libc::size_t) -> libc::ssize_t,
        >(READ.find());
        real(descriptor, to, size)
    };
    if read >= 0 {
        trace::has_input(descriptor);
    }
    read
}

/// # Safety
///
/// As for write(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(descriptor: c_int, from: *const c_void, size: libc::size_t) -> libc::ssize_t {
    if (1..=2).contains(&descriptor) && !from.is_null() {
        // SAFETY: by the contract of write(2).
        kept_errno(|| trace::printed(descriptor, unsafe { std::slice::from_raw_parts(from.cast(), size) }));
    }
    // SAFETY: the function of this name has this type, and the caller its contract.
    unsafe {
        let real = std::mem::transmute::<
            *mut c_void,
            unsafe extern "C" fn(c_int, *const c_void, libc::size_t) -> libc::ssize_t,
        >(WRITE.find());
        real(descriptor, from, size)
    }
}

/// # Safety
///
/// As for close(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(descriptor: c_int) -> c_int {
    // SAFETY: the function of this name has this type, and the caller its contract.
    let result = unsafe {
        let real = std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_int) -> c_int>(CLOSE.find());
        real(descriptor)
    };
    import::closed(descriptor);
    result
}

/// # Safety
///
/// As for _exit(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _exit(status: c_int) -> ! {
    trace::end();
    linker::end(status);
    // SAFETY: the function of this name has this type.
    unsafe {
        let real = std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_int) -> !>(EXIT.find());
        real(status)
    }
}

/// # Safety
///
/// As for `_exit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Exit(status: c_int) -> ! {
    // SAFETY: the same function.
    unsafe { _exit(status) }
}

/// A path that is relative to an open directory, if that is not the working directory.
fn at(directory: c_int, path: &[u8]) -> Cow<'_, [u8]> {
    if directory == libc::AT_FDCWD || path.starts_with(b"/") {
        return path.into();
    }
    match std::fs::read_link(format!("/proc/self/fd/{directory}")) {
        Ok(directory) => [directory.as_os_str().as_bytes(), b"/", path].concat().into(),
        Err(_) => path.into(),
    }
}

fn asked(name: &[u8], value: *mut c_char) {
    match value.is_null() {
        true => trace::note(Note::Variable, name),
        false => trace::note(Note::Variable, &[name, b"=", bytes(value)].concat()),
    }
}

fn opened(path: &[u8], flags: c_int, is_open: bool) {
    if flags & libc::O_ACCMODE == libc::O_RDONLY {
        found(path, is_open);
    } else if is_open {
        trace::note(Note::Written, path);
    }
}

fn found(path: &[u8], is_open: bool) {
    if is_open {
        trace::note(Note::Read, path);
    } else {
        absent(path, false);
    }
}

fn looked(path: &[u8], is_there: bool) {
    absent(path, is_there);
    linker::has_all_objects(path);
}

fn absent(path: &[u8], is_there: bool) {
    let error = io::Error::last_os_error().raw_os_error();
    if !is_there && matches!(error, Some(libc::ENOENT | libc::ENOTDIR)) {
        trace::note(Note::Absent, path);
    }
}

/// The caller's string, which is not null.
pub fn bytes<'a>(path: *const c_char) -> &'a [u8] {
    // SAFETY: the caller of the interposed function passes a C string, which lives through the call.
    unsafe { CStr::from_ptr(path) }.to_bytes()
}

/// As fopen(3) has a file opened.
fn flags_of(mode: *const c_char) -> c_int {
    match bytes(mode) {
        [b'r', rest @ ..] if !rest.contains(&b'+') => libc::O_RDONLY,
        _ => libc::O_RDWR,
    }
}

/// Notes a call's path and result.
fn note_of<T>(path: &[u8], result: T, note: impl FnOnce(&[u8], T)) {
    kept_errno(|| note(path, result));
}

/// Runs `body`, and restores errno.
pub fn kept_errno(body: impl FnOnce()) {
    // SAFETY: the address of this thread's errno.
    let errno = unsafe { *libc::__errno_location() };
    body();
    set_errno(io::Error::from_raw_os_error(errno));
}

fn set_errno(error: io::Error) {
    // SAFETY: the address of this thread's errno.
    unsafe { *libc::__errno_location() = error.raw_os_error().unwrap_or(libc::EIO) };
}
