//! The interposed `__libc_start_main`: decides between running the program, serving jobs, and asking a service.
//!
//! glibc has this function under two versions (2.2.5 and 2.34) with one signature and one implementation; an
//! unversioned definition in a preloaded library satisfies both (elf/dl-lookup.c, `check_match`).

use std::ffi::{CStr, c_char, c_int, c_void};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::process::abort;

use crate::driver;
use crate::files;
use crate::fork::server;
use crate::program::{Hook, Main, Program, StartMain};
use crate::protocol::{ARGUMENT, VARIABLE};
use crate::service;

/// Called by `_start` of the executable in place of glibc's own function. Uncaught exceptions of the program pass
/// through.
///
/// # Safety
///
/// Only for `_start`, with its arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __libc_start_main(
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
    files::prepare();
    driver::begin();
    let program = Program { real, main, init, fini, rtld_fini, stack_end };
    if let Some(socket) = inherited_socket() {
        // A script's interpreter has more arguments. It must not run: nobody asked for the script yet.
        // SAFETY: `_start` passes `argc` pointers to C strings.
        let ours = argc == 2 && unsafe { CStr::from_ptr(*argv.add(1)) }.to_bytes() == ARGUMENT.as_bytes();
        if ours {
            server::serve(program, &socket);
        }
        // SAFETY: ends the process; no part of the program has run that would need to clean up.
        unsafe { libc::_exit(0) }
    }
    let main = service::main_of(main).unwrap_or(main);
    // SAFETY: the arguments are those of `_start`, except for a `main` that replaces the program's.
    unsafe { Program { main, ..program }.run(argc, argv) }
}

fn inherited_socket() -> Option<OwnedFd> {
    let number: RawFd = std::env::var(VARIABLE).ok()?.parse().ok()?;
    // SAFETY: fcntl only reads the descriptor's flags. The process that sets the variable gives the descriptor away.
    (number >= 0 && unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0)
        .then(|| unsafe { OwnedFd::from_raw_fd(number) })
}
