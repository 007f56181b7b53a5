//! Programs that this process starts: a driver's linker, and a linker's distributor.
//!
//! A distributor starts after [`linker`] has handed over its jobs. [`driver`] notes the output of a linker. The program
//! and its arguments stay the same.

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::driver;
use crate::files::{Real, bytes, kept_errno};
use crate::linker;

type Strings = *const *const c_char;

/// Defines functions that look at the program, and then call the real one.
macro_rules! interpose {
    ($($name:ident($($argument:ident: $type:ty),*) of $argv:ident)*) => { $(
        /// # Safety
        ///
        /// As for the function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            static REAL: Real = Real::new(unsafe {
                // SAFETY: ends with NUL and has no other.
                CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes())
            });
            kept_errno(|| starts($argv));
            // SAFETY: a function of this name has this type, and the caller its contract.
            unsafe {
                let real = std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn($($type),*) -> c_int,
                >(REAL.find());
                real($($argument),*)
            }
        }
    )* };
}

interpose! {
    execv(path: *const c_char, argv: Strings) of argv
    execvp(path: *const c_char, argv: Strings) of argv
    execve(path: *const c_char, argv: Strings, environment: Strings) of argv
    execvpe(path: *const c_char, argv: Strings, environment: Strings) of argv
    posix_spawn(process: *mut c_int, path: *const c_char, actions: *const c_void, attributes: *const c_void, argv: Strings, environment: Strings) of argv
    posix_spawnp(process: *mut c_int, path: *const c_char, actions: *const c_void, attributes: *const c_void, argv: Strings, environment: Strings) of argv
}

fn starts(argv: Strings) {
    if argv.is_null() {
        return;
    }
    // SAFETY: a vector of C strings that ends with null, by the contract of exec(3).
    let words = (0..).map(|at| unsafe { *argv.add(at) }).take_while(|word| !word.is_null()).map(bytes);
    if let Some(word) = words.clone().last() {
        linker::hand_over(word);
    }
    driver::starts(words);
}
