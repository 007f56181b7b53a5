//! The notes of this process, in memory shared with distlto: files that it opens, misses, writes and renames, variables
//! that it reads, streams that it prints to, data that it reads from its standard input.
//!
//! distlto reads them after the end of the process, even after a crash. Without such memory nothing is noted. Layout:
//! the size of all notes (a `u64`), then the notes ([`Note`]). A note is complete once its kind is written. Does not
//! depend on the purpose of the files.

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use crate::protocol::{FIRST_NOTE, NOTE_HEAD, NOTES, Note, TRACE_SIZE};

/// The longest part of a text in one note: its length is a `u16`.
const LONGEST_TEXT: usize = 60_000;

static TRACE: OnceLock<Trace> = OnceLock::new();
/// Device and inode of standard output and standard error when the notes begin.
static STREAMS: OnceLock<[Option<(u64, u64)>; 2]> = OnceLock::new();
/// Whether it is noted that the process wrote to them.
static PRINTED: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];
/// Whether it is noted that it read from its standard input.
static HAS_INPUT: AtomicBool = AtomicBool::new(false);
/// The process that the notes begin in. A child that it forks has locks of threads that it does not have.
static OWN: AtomicI32 = AtomicI32::new(0);

thread_local! {
    /// The module that this thread compiles.
    static BACKEND: Cell<Option<Backend>> = const { Cell::new(None) };
}

/// A compilation in a linker.
#[derive(Clone, Copy)]
struct Backend {
    ticket: u32,
    is_noted: bool,
}

/// How many libraries are loaded when the notes begin.
static LIBRARIES: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    static stdout: *mut libc::FILE;
    static stderr: *mut libc::FILE;
    // glibc's own streams, which the variables may no longer name.
    #[link_name = "_IO_2_1_stdout_"]
    static FIRST_STDOUT: libc::FILE;
    #[link_name = "_IO_2_1_stderr_"]
    static FIRST_STDERR: libc::FILE;
    fn fwide(stream: *mut libc::FILE, mode: c_int) -> c_int;
}

struct Trace {
    start: *mut u8,
}

// SAFETY: the memory is mapped for the life of the process, and each note has bytes of its own.
unsafe impl Send for Trace {}
// SAFETY: as above.
unsafe impl Sync for Trace {}

/// Starts the notes of a process whose parent has named memory for them, as a compiler's is named.
pub fn inherit() {
    let number = std::env::var(NOTES).ok().and_then(|number| number.parse().ok());
    let Some(number) = number.filter(|&number: &RawFd| number >= 0) else { return };
    // SAFETY: plain system calls; the structure is plain data, and the call fills it.
    let is_memory = unsafe {
        let mut found: libc::stat = std::mem::zeroed();
        // Another file may have this number by now. Only memory has seals.
        libc::fcntl(number, libc::F_GET_SEALS) >= 0
            && libc::fstat(number, &raw mut found) == 0
            && usize::try_from(found.st_size) == Ok(TRACE_SIZE)
    };
    if is_memory {
        // SAFETY: the descriptor is open, and stays so for the children of this process.
        begin(unsafe { BorrowedFd::borrow_raw(number) });
    }
}

/// Starts the notes of this process and of the children that it forks.
pub fn begin(memory: BorrowedFd<'_>) {
    // SAFETY: a new mapping of a file that the service has made as large as that.
    let start = unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(ptr::null_mut(), TRACE_SIZE, protection, libc::MAP_SHARED, memory.as_raw_fd(), 0)
    };
    if start != libc::MAP_FAILED {
        // There is one, as a process asks once.
        let _ = TRACE.set(Trace { start: start.cast() });
        let _ = STREAMS.set([identity(1), identity(2)]);
        // SAFETY: a plain system call.
        OWN.store(unsafe { libc::getpid() }, Ordering::Relaxed);
        each_library(|_| LIBRARIES.store(LIBRARIES.load(Ordering::Relaxed) + 1, Ordering::Relaxed));
        // Registered before the program's own functions, so that it runs after them.
        // SAFETY: a function of this type.
        unsafe { libc::atexit(end) };
    }
}

/// Notes at the end of the process whether it has printed through the C library, since calls within that are not seen.
/// Also notes the libraries loaded meanwhile.
pub extern "C" fn end() {
    if !is_own() {
        return;
    }
    // SAFETY: the program may set the variables to anything, and is about to end.
    let streams = unsafe { [(1, stdout, &raw const FIRST_STDOUT), (2, stderr, &raw const FIRST_STDERR)] };
    for (descriptor, stream, first) in streams {
        // A stream has an orientation from its first use on. One that the program has replaced may be closed.
        // SAFETY: glibc's own streams; mode 0 changes nothing.
        if !ptr::eq(stream, first) || unsafe { fwide(stream, 0) } != 0 {
            printed(descriptor, b"");
        }
    }
    // New ones are last in the loader's list.
    let mut number = 0;
    each_library(|path| {
        number += 1;
        if number > LIBRARIES.load(Ordering::Relaxed) && path.starts_with(b"/") {
            note(Note::Read, path);
        }
    });
}

/// Whether this is the process that the notes are of, and no child of it.
pub fn is_own() -> bool {
    // SAFETY: a plain system call.
    is_on() && unsafe { libc::getpid() } == OWN.load(Ordering::Relaxed)
}

/// Calls a function with the path of each library that is loaded.
fn each_library<F: FnMut(&[u8])>(mut each: F) {
    /// # Safety
    ///
    /// For `dl_iterate_phdr`, with a pointer to an `F`.
    unsafe extern "C" fn call<F: FnMut(&[u8])>(
        library: *mut libc::dl_phdr_info,
        _: libc::size_t,
        each: *mut c_void,
    ) -> c_int {
        // SAFETY: the structure and its C string live through the call, and so does the function.
        unsafe { (*each.cast::<F>())(CStr::from_ptr((*library).dlpi_name).to_bytes()) };
        0
    }
    // SAFETY: the function is called for each library, and not after that.
    unsafe { libc::dl_iterate_phdr(Some(call::<F>), (&raw mut each).cast()) };
}

/// Begins the notes of a compilation on this thread.
pub fn begin_backend(ticket: u32) {
    BACKEND.set(Some(Backend { ticket, is_noted: false }));
}

/// Ends them; whether there are any.
pub fn end_backend() -> bool {
    BACKEND.take().is_some_and(|backend| backend.is_noted)
}

fn note_backend(kind: Note, text: &[u8]) {
    let Some(backend) = BACKEND.get() else { return };
    BACKEND.set(Some(Backend { is_noted: true, ..backend }));
    for part in text.chunks(LONGEST_TEXT) {
        write_note(Note::Backend, &[&backend.ticket.to_le_bytes()[..], &[kind.to_byte()], part].concat());
    }
}

/// Notes, once, that the process writes to a descriptor, if that is one of the streams that it was started with. A
/// compilation notes the text.
pub fn printed(descriptor: c_int, text: &[u8]) {
    if !(1..=2).contains(&descriptor) || !is_on() {
        return;
    }
    if BACKEND.get().is_some() {
        // It belongs to the object.
        return note_backend(Note::Printed, text);
    }
    let is = identity(descriptor);
    let streams = STREAMS.get().into_iter().flatten();
    for ((stream, known), name) in streams.zip(&PRINTED).zip([b"1", b"2"]) {
        if *stream == is && !known.swap(true, Ordering::Relaxed) {
            note(Note::Printed, name);
        }
    }
}

/// Notes, once, that the process reads from its standard input.
pub fn has_input(descriptor: c_int) {
    if descriptor == 0 && is_on() && !HAS_INPUT.swap(true, Ordering::Relaxed) && !is_null(descriptor) {
        note(Note::Input, b"0");
    }
}

/// Whether a descriptor is that of /dev/null (null(4)), which never has data.
fn is_null(descriptor: c_int) -> bool {
    // SAFETY: the structure is plain data, and the system call fills it completely.
    unsafe {
        let mut found: libc::stat = std::mem::zeroed();
        let is_device = |mode| mode & libc::S_IFMT == libc::S_IFCHR;
        libc::fstat(descriptor, &raw mut found) == 0
            && is_device(found.st_mode)
            && found.st_rdev == libc::makedev(1, 3)
    }
}

/// Returns device and inode of a descriptor's file.
fn identity(descriptor: c_int) -> Option<(u64, u64)> {
    // SAFETY: the structure is plain data, and the system call fills it completely.
    unsafe {
        let mut found: libc::stat = std::mem::zeroed();
        (libc::fstat(descriptor, &raw mut found) == 0).then_some((found.st_dev, found.st_ino))
    }
}

/// Notes that an object of the last link was opened for a module; false if there is no room for the note.
pub fn kept(place: &[u8], module: &[u8]) -> bool {
    write_note(Note::Kept, &[place, module].concat())
}

/// Whether anything is noted.
pub fn is_on() -> bool {
    TRACE.get().is_some()
}

/// Notes something.
pub fn note(note: Note, path: &[u8]) {
    if matches!(note, Note::Read | Note::Absent | Note::Written) {
        note_backend(note, path);
    }
    write_note(note, path);
}

/// Notes something; false if there is no room.
fn write_note(note: Note, path: &[u8]) -> bool {
    let (Some(trace), Ok(length)) = (TRACE.get(), u16::try_from(path.len())) else { return false };
    let size = NOTE_HEAD + path.len();
    // SAFETY: the mapping begins with the size of all notes, aligned as a page is.
    let next = unsafe { AtomicU64::from_ptr(trace.start.cast()) };
    // A size past the end of the memory shows that notes are missing.
    let at = usize::try_from(next.fetch_add(size as u64, Ordering::Relaxed)).unwrap_or(usize::MAX);
    let at = at.saturating_add(FIRST_NOTE);
    if at.checked_add(size).is_none_or(|end| end > TRACE_SIZE) {
        return false;
    }
    // SAFETY: within the mapping, and nobody else has these bytes.
    unsafe {
        let place = trace.start.add(at);
        ptr::copy_nonoverlapping(length.to_le_bytes().as_ptr(), place.add(1), 2);
        ptr::copy_nonoverlapping(path.as_ptr(), place.add(NOTE_HEAD), path.len());
        AtomicU8::from_ptr(place).store(note.to_byte(), Ordering::Release);
    }
    true
}
