//! Moves the start of a child's heap to a huge page that its server has not touched.
//!
//! A child's writes beyond the server's heap take new memory, page by page up to the next huge page. For a small job
//! these are most of its page faults. So the server allocates the rest before that page, and never touches it. Only the
//! placement of allocations changes. Independent of jobs.

use std::ffi::c_void;
use std::hint::black_box;
use std::ptr;

use crate::system::HUGE;

/// A page. Where pages are larger, the kernel rejects a range of partial pages, and nothing is lost.
const BASE: usize = 4 << 10;

/// The server's reserve: its own requests must not come from the children's huge page.
const OWN: usize = 64 << 10;

/// The header of a malloc block: the sizes of the block before it and of the block itself (malloc/malloc.c).
const HEADER: usize = 2 * size_of::<usize>();

/// Allocates the heap's rest up to a huge page. This applies where malloc's heap ends in memory of its own that reaches
/// past such a page, as with `glibc.malloc.hugetlb=1`.
pub fn begin_at_huge_page() {
    // SAFETY: plain calls; blocks are freed once. The advised memory is unallocated memory of malloc's, or belongs to a
    // block that is never written.
    unsafe {
        // Otherwise the compiler would leave out an unused block.
        let own = black_box(libc::malloc(OWN));
        if let Some((rest, page)) = take_rest() {
            let touched = (rest.addr() + BASE).next_multiple_of(BASE);
            let untouched = page.saturating_sub(BASE + touched);
            libc::madvise(ptr::with_exposed_provenance_mut(touched), untouched, libc::MADV_DONTNEED);
            if end_of_heap() >= page + HUGE {
                libc::madvise(ptr::with_exposed_provenance_mut(page), HUGE, libc::MADV_HUGEPAGE);
            }
        }
        libc::free(own);
    }
}

/// Allocates a block that ends where a huge page begins, behind all memory taken from the system so far. Memory taken
/// for it reaches to the end of that page. `None` where the heap is not as expected.
fn take_rest() -> Option<(*mut c_void, usize)> {
    let free = free_at_end()?;
    let end = end_of_heap();
    let (next, page) = (end.checked_sub(free)?.checked_add(HEADER)?, end.checked_next_multiple_of(HUGE)?);
    // The header of the next block lies before the page.
    let size = page.checked_sub(next + size_of::<usize>())?;
    // SAFETY: plain calls; a block that is not where it was expected is given back.
    unsafe {
        let rest = libc::malloc(size);
        if rest.addr() == next {
            return Some((rest, page));
        }
        libc::free(rest);
    }
    None
}

/// Returns the free bytes at the heap's end; `None` with a libc without `mallinfo2` (glibc 2.33).
fn free_at_end() -> Option<usize> {
    // SAFETY: a C string; the function, where there is one, has this type (malloc.h).
    unsafe {
        let function = libc::dlsym(libc::RTLD_DEFAULT, c"mallinfo2".as_ptr());
        let told = (!function.is_null()).then(|| {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> libc::mallinfo2>(function)()
        })?;
        Some(told.keepcost)
    }
}

fn end_of_heap() -> usize {
    // SAFETY: reads the position of the break, and leaves it there.
    unsafe { libc::sbrk(0) }.addr()
}
