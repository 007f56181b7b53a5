//! The program that this library is preloaded into. It runs once, as glibc would start it.
//!
//! The types are those of glibc's csu/libc-start.c. Independent of jobs.

use std::ffi::{c_char, c_int, c_void};
use std::process::abort;

/// The program's own `main`.
pub type Main = unsafe extern "C-unwind" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;
/// A function that glibc calls before or after `main`.
pub type Hook = Option<unsafe extern "C" fn()>;
/// glibc's `__libc_start_main`.
pub type StartMain =
    unsafe extern "C-unwind" fn(Main, c_int, *mut *mut c_char, Hook, Hook, Hook, *mut c_void) -> c_int;

/// Everything `_start` passes on besides the arguments.
#[derive(Clone, Copy)]
pub struct Program {
    /// glibc's function.
    pub real: StartMain,
    /// The program's `main`.
    pub main: Main,
    /// Runs its constructors; none in a program that was linked with glibc 2.34 or later.
    pub init: Hook,
    /// Runs its destructors; likewise.
    pub fini: Hook,
    /// Runs those of its libraries.
    pub rtld_fini: Hook,
    /// Where the stack begins.
    pub stack_end: *mut c_void,
}

impl Program {
    /// Runs the program with these arguments; never returns, as `main` is followed by `exit`.
    ///
    /// # Safety
    ///
    /// To be called once per process, where `_start` would; `argv` is as `execve` lays it out: `argc` strings,
    /// NULL, the environment, NULL, and lives for ever.
    pub unsafe fn run(self, argc: c_int, argv: *mut *mut c_char) -> ! {
        // SAFETY: the caller's contract is that of the real function; the other values are `_start`'s own.
        unsafe {
            (self.real)(self.main, argc, argv, self.init, self.fini, self.rtld_fini, self.stack_end);
        }
        // The real function ends in exit().
        abort()
    }
}
