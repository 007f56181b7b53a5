//! Puts the program's code on huge pages, so that a forked child shares it ready-mapped.
//!
//! Every child that touches a page of a mapped file maps it anew; it inherits an anonymous huge page. The bytes at
//! every address stay the same. Without transparent huge pages nothing is done. Independent of jobs: it goes on in
//! small steps between them.

use std::ffi::{c_int, c_void};
use std::{fs, io, ptr};

use crate::system::{HUGE, check};

/// Moved in one step: a few milliseconds.
const STEP: usize = 8 * HUGE;
/// Objects with less code are left alone: LLVM's libraries have more, others are not worth it. It also keeps
/// this library and libc, which run while memory is moved, where they are.
const LEAST: usize = 24 << 20;

/// Code of the process that is not yet moved. Its ends are multiples of [`HUGE`].
struct Segment {
    from: usize,
    to: usize,
}

/// The code still to be moved, and the number of bytes already moved.
#[derive(Default)]
pub struct Mover {
    segments: Vec<Segment>,
    /// Bytes on huge pages. A child's resident size counts them although it shares them.
    pub moved: usize,
}

impl Mover {
    /// Finds the code of every large loaded object.
    pub fn find() -> Self {
        let mut segments: Vec<Segment> = Vec::new();
        if enabled() {
            // SAFETY: the callback gets the vector's address back as `data` and runs only within this call.
            unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut segments).cast()) };
        }
        Self { segments, moved: 0 }
    }

    /// Whether nothing is left to do.
    pub fn is_done(&self) -> bool {
        self.segments.is_empty()
    }

    /// Moves the next few megabytes. After a failure nothing more is tried: the rest stays as it is.
    pub fn step(&mut self) {
        let Some(segment) = self.segments.last_mut() else { return };
        let to = segment.to.min(segment.from.saturating_add(STEP));
        let part = Segment { from: segment.from, to };
        segment.from = to;
        if segment.from == segment.to {
            self.segments.pop();
        }
        match relocate(&part) {
            Ok(()) => self.moved += part.to - part.from,
            Err(_) => self.segments.clear(),
        }
    }
}

/// Returns whether the system gives huge pages on request: `always [madvise] never`.
fn enabled() -> bool {
    // SAFETY: a plain system call that reads a flag of this process.
    let refused = unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) } > 0;
    !refused
        && fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
            .is_ok_and(|state| !state.contains("[never]"))
}

/// For `dl_iterate_phdr`: adds an object's code to the vector behind `data` if there is much of it.
unsafe extern "C" fn collect(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid description; `data` is the vector that `find` passed.
    let (info, segments) = unsafe { (&*info, &mut *data.cast::<Vec<Segment>>()) };
    // SAFETY: the loader's pointer and count of program headers belong together.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let is_code = |header: &&libc::Elf64_Phdr| {
        let access = header.p_flags & (libc::PF_R | libc::PF_W | libc::PF_X);
        header.p_type == libc::PT_LOAD && access == libc::PF_R | libc::PF_X
    };
    let code = headers.iter().filter(is_code);
    if !code.clone().any(|header| header.p_filesz as usize >= LEAST) {
        return 0;
    }
    for header in code {
        let start = (info.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
        let end = start.wrapping_add(header.p_filesz as usize);
        let (from, to) = (start.next_multiple_of(HUGE), end / HUGE * HUGE);
        if from < to {
            segments.push(Segment { from, to });
        }
    }
    0
}

/// Replaces memory by a copy on huge pages at the same address.
fn relocate(part: &Segment) -> io::Result<()> {
    let size = part.to - part.from;
    let room = size + HUGE;
    // SAFETY: a fresh private mapping is written within its bounds; the source is a mapped segment of a loaded object
    // that nobody writes. mremap replaces it in one system call by the same bytes with the same protection. The process
    // has one thread, and its running code is not in the segment (see LEAST).
    unsafe {
        let writable = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let fresh = libc::mmap(ptr::null_mut(), room, writable, flags, -1, 0);
        if fresh == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let copy = fresh.map_addr(|address| address.next_multiple_of(HUGE));
        let done = (|| {
            check(libc::madvise(copy, size, libc::MADV_HUGEPAGE))?;
            ptr::copy_nonoverlapping(ptr::with_exposed_provenance::<u8>(part.from), copy.cast(), size);
            check(libc::mprotect(copy, size, libc::PROT_READ | libc::PROT_EXEC))?;
            let target = ptr::with_exposed_provenance_mut::<c_void>(part.from);
            match libc::mremap(copy, size, size, libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED, target) {
                libc::MAP_FAILED => Err(io::Error::last_os_error()),
                _ => Ok(()),
            }
        })();
        // The rest of the room: its unaligned ends, or all of it. The moved middle is a hole, which is fine.
        libc::munmap(fresh, copy.addr() - fresh.addr());
        libc::munmap(copy.byte_add(size), room - size - (copy.addr() - fresh.addr()));
        if done.is_err() {
            libc::munmap(copy, size);
        }
        done
    }
}
