//! The interposed `__libc_start_main`: runs the program, after it has asked a service.
//!
//! glibc has this function under two versions (2.2.5 and 2.34) with one signature and one implementation; an
//! unversioned definition in a preloaded library satisfies both (elf/dl-lookup.c, `check_match`).

use std::ffi::{c_char, c_int, c_void};
use std::process::abort;

use crate::driver;
use crate::files;
use crate::import;
use crate::program::{Hook, Main, Program, StartMain};
use crate::service;
use crate::trace;

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
    trace::inherit();
    import::begin();
    let main = service::main_of(main).unwrap_or(main);
    // SAFETY: the arguments are those of `_start`, except for a `main` that replaces the program's.
    unsafe { Program { main, ..program }.run(argc, argv) }
}
