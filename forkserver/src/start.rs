//! The interposed `__libc_start_main`: decides between running the program and serving jobs.
//!
//! glibc has this function under two versions (2.2.5 and 2.34) with one signature and one implementation; an
//! unversioned definition in a preloaded library satisfies both (elf/dl-lookup.c, `check_match`).

use std::ffi::{CStr, c_char, c_int, c_void};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::process::abort;

use crate::protocol::{ARGUMENT, VARIABLE};
use crate::server;

type Main = unsafe extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;
type Hook = Option<unsafe extern "C" fn()>;
type Handler = unsafe extern "C" fn(*mut c_void, c_int);
type StartMain = unsafe extern "C" fn(Main, c_int, *mut *mut c_char, Hook, Hook, Hook, *mut c_void) -> c_int;

/// Everything `_start` passes on besides the arguments.
#[derive(Clone, Copy)]
pub struct Program {
    real: StartMain,
    main: Main,
    init: Hook,
    fini: Hook,
    rtld_fini: Hook,
    stack_end: *mut c_void,
}

impl Program {
    /// The program without the destructors of what its libraries made as they were loaded: for LLVM's they are a
    /// fifth of the work of a small job, and give back memory that ends with the process. What has been made since
    /// ends as it always does.
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

/// Called by `_start` of the executable in place of glibc's own.
///
/// # Safety
///
/// Only for `_start`, with its arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __libc_start_main(
    main: Main,
    argc: c_int,
    argv: *mut *mut c_char,
    init: Hook,
    fini: Hook,
    rtld_fini: Hook,
    stack_end: *mut c_void,
) -> c_int {
    // SAFETY: the name is a C string; RTLD_NEXT finds the definition after this library's, which is glibc's.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"__libc_start_main".as_ptr()) };
    if found.is_null() {
        abort();
    }
    // SAFETY: glibc's function has this type (csu/libc-start.c), and the pointer is not null.
    let real = unsafe { std::mem::transmute::<*mut c_void, StartMain>(found) };
    let program = Program { real, main, init, fini, rtld_fini, stack_end };
    if let Some(socket) = inherited_socket() {
        // A script's interpreter has more arguments. It must not run: nobody asked for the script yet.
        // SAFETY: `_start` passes `argc` pointers to C strings.
        let ours = argc == 2 && unsafe { CStr::from_ptr(*argv.add(1)) }.to_bytes() == ARGUMENT.as_bytes();
        if ours {
            server::serve(program, &socket);
        }
        // SAFETY: ends the process; nothing of the program has run that would want to be told.
        unsafe { libc::_exit(0) }
    }
    // SAFETY: exactly what `_start` passed.
    unsafe { program.run(argc, argv) }
}

fn inherited_socket() -> Option<OwnedFd> {
    let number: RawFd = std::env::var(VARIABLE).ok()?.parse().ok()?;
    // SAFETY: fcntl only reads the descriptor's flags. Whoever sets the variable gives the descriptor away.
    (number >= 0 && unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0)
        .then(|| unsafe { OwnedFd::from_raw_fd(number) })
}
