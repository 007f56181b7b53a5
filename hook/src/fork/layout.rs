//! The position of a process's arguments and environment for the kernel, as `/proc/PID/cmdline` and `environ` show
//! them.
//!
//! prctl(2), `PR_SET_MM_MAP`: needs no privilege, but a kernel with `CONFIG_CHECKPOINT_RESTORE`; without it a child
//! shows its server's. Independent of jobs.

use std::fs;

/// `struct prctl_mm_map` of linux/prctl.h.
#[repr(C)]
#[derive(Clone, Copy)]
struct Map {
    start_code: u64,
    end_code: u64,
    start_data: u64,
    end_data: u64,
    start_brk: u64,
    brk: u64,
    start_stack: u64,
    arg_start: u64,
    arg_end: u64,
    env_start: u64,
    env_end: u64,
    auxv: *mut u64,
    auxv_size: u32,
    exe_fd: u32,
}

/// A process's layout; its children's is the same until they change it.
#[derive(Clone, Copy)]
pub struct MemoryLayout(Map);

impl MemoryLayout {
    /// Reads the layout of this process; `None` where the kernel does not show it.
    pub fn own() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        // The name before the last parenthesis may hold anything; field 3 of proc_pid_stat(5) follows it.
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let field =
            |number: usize| fields.get(number - 3)?.trim_end().parse::<u64>().ok().filter(|&at| at != 0);
        Some(Self(Map {
            start_code: field(26)?,
            end_code: field(27)?,
            start_stack: field(28)?,
            start_data: field(45)?,
            end_data: field(46)?,
            start_brk: field(47)?,
            brk: 0,
            arg_start: 0,
            arg_end: 0,
            env_start: 0,
            env_end: 0,
            auxv: std::ptr::null_mut(),
            auxv_size: 0,
            exe_fd: u32::MAX,
        }))
    }

    /// Makes these the calling process's arguments and environment. They must live as long as it does.
    pub fn show(mut self, arguments: &[u8], environment: &[u8]) {
        let ends = |bytes: &[u8]| {
            let range = bytes.as_ptr_range();
            (range.start.addr() as u64, range.end.addr() as u64)
        };
        (self.0.arg_start, self.0.arg_end) = ends(arguments);
        (self.0.env_start, self.0.env_end) = ends(environment);
        // SAFETY: sbrk(0) only returns the end of the heap, which the kernel sets to the same value. The structure
        // lives through the call and has the size that is passed; the process's memory does not change.
        unsafe {
            self.0.brk = libc::sbrk(0).addr() as u64;
            libc::prctl(libc::PR_SET_MM, libc::PR_SET_MM_MAP, &raw const self.0, size_of::<Map>(), 0);
        }
    }
}
