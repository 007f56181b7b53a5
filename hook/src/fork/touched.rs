//! Which huge pages of constants jobs read: the first ones to end tell it.
//!
//! Of a compiler's constants a job reads a few megabytes, and nearly always the same. What the kernel has mapped for a process is
//! in its own `/proc/self/pagemap` (Documentation/admin-guide/mm/pagemap.rst); a job leaves a mark for each huge page in memory
//! that it shares with its server. Knows nothing of what is done about it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::ptr;
use std::slice;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::system::HUGE;

/// How many jobs tell: what later ones read besides is little.
const TELLING: u8 = 8;
/// The bit of an entry that says that the page is there, and the size of an entry.
const PRESENT: u64 = 1 << 63;
const ENTRY: usize = size_of::<u64>();

/// A mark: somebody reads the page; the server knows.
const READ: u8 = 1;
const KNOWN: u8 = 2;

struct Touched {
    /// Where each huge page begins.
    pages: Vec<usize>,
    /// How many jobs are still to tell.
    left: &'static AtomicU8,
    /// The marks of the pages.
    marks: &'static [AtomicU8],
}

static TOUCHED: OnceLock<Touched> = OnceLock::new();

/// Has the jobs that are forked from here on tell which of these pages they read. Without memory for it they do not.
pub fn ask(pages: Vec<usize>) {
    if pages.is_empty() || TOUCHED.get().is_some() {
        return;
    }
    // SAFETY: a fresh mapping, zeroed, of one byte and one for each page, which is never unmapped.
    let shared: &'static [AtomicU8] = unsafe {
        let (size, access) = (1 + pages.len(), libc::PROT_READ | libc::PROT_WRITE);
        let fresh = libc::mmap(ptr::null_mut(), size, access, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, 0);
        if fresh == libc::MAP_FAILED {
            return;
        }
        slice::from_raw_parts(fresh.cast(), size)
    };
    if let [left, marks @ ..] = shared {
        left.store(TELLING, Ordering::Relaxed);
        // Nobody else sets it: a server has one thread.
        drop(TOUCHED.set(Touched { pages, left, marks }));
    }
}

/// At the end of a job: tells what it has read, if it is one of the first.
pub fn tell() {
    if let Some(touched) = TOUCHED.get() {
        let less = |left: u8| left.checked_sub(1);
        if touched.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok() {
            // A job that cannot tell is one that does not.
            drop(touched.tell());
        }
    }
}

/// What jobs have told since the last call: where huge pages begin.
pub fn told() -> Vec<usize> {
    let Some(touched) = TOUCHED.get() else { return Vec::new() };
    let is_new =
        |mark: &AtomicU8| mark.compare_exchange(READ, KNOWN, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    touched.pages.iter().zip(touched.marks).filter(|(_, mark)| is_new(mark)).map(|(&page, _)| page).collect()
}

impl Touched {
    fn tell(&self) -> io::Result<()> {
        // SAFETY: a plain call.
        let base = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).map_err(io::Error::other)?;
        let map = File::open("/proc/self/pagemap")?;
        let mut entries = vec![0; HUGE / base * ENTRY];
        for (page, mark) in self.pages.iter().zip(self.marks) {
            if mark.load(Ordering::Relaxed) != 0 {
                continue;
            }
            map.read_exact_at(&mut entries, (page / base * ENTRY) as u64)?;
            let (entries, _) = entries.as_chunks::<ENTRY>();
            if entries.iter().any(|&entry| u64::from_ne_bytes(entry) & PRESENT != 0) {
                mark.store(READ, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}
