//! Where the heap of a child begins: at a huge page that its server has not touched.
//!
//! What a child writes beyond the server's own heap is new memory, page by page up to the next huge page: for a small job
//! most of its page faults. So the server takes what is left before that page, and never touches it. Only the way in
//! which memory is handed out changes. Knows nothing of jobs.

use std::ffi::c_void;
use std::hint::black_box;
use std::ptr;

use crate::system::HUGE;

/// A page. Where pages are larger, the kernel refuses to take back what is not whole ones, and nothing is lost.
const BASE: usize = 4 << 10;

/// What is left to the server, whose requests must not come from the children's huge page.
const OWN: usize = 64 << 10;

/// What glibc's malloc keeps before each block: the size of the block before it, and of this one (malloc/malloc.c).
const HEADER: usize = 2 * size_of::<usize>();

/// Takes the heap's rest up to a huge page, where malloc's heap ends in memory of its own that reaches past one, as it
/// does with `glibc.malloc.hugetlb=1`.
pub fn begin_at_huge_page() {
    // SAFETY: plain calls; blocks are given back once. What is advised is memory of malloc's that nobody has been given,
    // or of a block that stays as it is for ever.
    unsafe {
        // Otherwise the compiler would leave out a block that nobody uses.
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

/// A block that ends where a huge page begins, behind all that has been taken from the system so far: what is taken for
/// it reaches to the end of that page. `None` where the heap is not as expected.
fn take_rest() -> Option<(*mut c_void, usize)> {
    let free = free_at_end()?;
    let end = end_of_heap();
    let (next, page) = (end.checked_sub(free)?.checked_add(HEADER)?, end.checked_next_multiple_of(HUGE)?);
    // The header of what follows lies before the page.
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

/// Bytes that are free at the heap's end; `None` with a libc that does not tell (`mallinfo2`, glibc 2.33).
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
    // SAFETY: asks where the break is, and leaves it there.
    unsafe { libc::sbrk(0) }.addr()
}
