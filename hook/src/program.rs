//! The program that this library is preloaded into. It runs once, as glibc would start it, in this process or in a
//! child.
//!
//! The types are those of glibc's csu/libc-start.c. Independent of jobs.

use std::ffi::{c_char, c_int, c_void};
use std::process::abort;

/// The program's own `main`.
pub type Main = unsafe extern "C-unwind" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;
/// A function that glibc calls before or after `main`.
pub type Hook = Option<unsafe extern "C" fn()>;
type Handler = unsafe extern "C" fn(*mut c_void, c_int);
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
    /// Returns the program without the destructors of objects made while its libraries were loaded. For LLVM's
    /// libraries they are a fifth of the work of a small job, and free memory that ends with the process. Later objects
    /// end as always.
    pub fn ending_early(self) -> Self {
        // SAFETY: glibc calls this function as it calls every handler of __cxa_atexit, with its argument and the
        // exit status (stdlib/exit.c); its type is wrong in __libc_start_main alone.
        let end = unsafe { std::mem::transmute::<Handler, unsafe extern "C" fn()>(end) };
        Self { rtld_fini: Some(end), ..self }
    }

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

/// Runs when every handler has that the program has registered, in the place of the loader's, which would go through
/// the libraries.
unsafe extern "C" fn end(_: *mut c_void, status: c_int) {
    // SAFETY: plain calls; null stands for every open stream.
    unsafe {
        libc::fflush(std::ptr::null_mut());
        libc::_exit(status)
    }
}
