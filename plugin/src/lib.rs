//! The DTLTO plugin: the one C function by which a linker hands over its backend compilations, over the executor.
//!
//! A guest in the linker's process: it changes no state of the process, prints nothing unless asked to, leaves no
//! child, thread, descriptor or temporary behind, and never unwinds. The interface is that of `dtlto_plugin.h`.

#![cfg(unix)]
#![cfg_attr(
    not(test),
    expect(non_snake_case, reason = "the linker derives the library's name from the plugin's")
)]

mod call;
mod compiler;
mod diagnostics;
mod host;
mod interface;
mod listener;
mod nodes;
mod options;
mod panics;
mod perform;
mod temporaries;

use std::ffi::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use diagnostics::Diagnostics;

/// What the linker is told with its callbacks is told; 0 is success.
const FAILURE: c_int = 1;

/// Compiles every node. Returns 0 when all objects are in place, and tells `EmitError` why where not.
///
/// May be called any number of times, from several threads at once.
///
/// # Safety
///
/// The arguments are what `dtlto_plugin.h` says, and do not change during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtltoPerformCodegen(
    config: *const interface::Config,
    nodes_num: usize,
    nodes: *const *const interface::Node,
    argc: usize,
    argv: *const *const c_char,
) -> c_int {
    // Without a configuration there is nobody to tell.
    if config.is_null() || !config.is_aligned() {
        return FAILURE;
    }
    // SAFETY: neither null nor misaligned; the caller promises a configuration.
    let config = unsafe { &*config };
    let told = catch_unwind(AssertUnwindSafe(|| {
        panics::keep_quiet();
        // SAFETY: the caller's promise.
        match unsafe { call::read(config, (nodes_num, nodes), (argc, argv)) } {
            Ok(call) => on_own_thread(&call),
            Err(error) => {
                let mut told = Diagnostics::default();
                told.fail(&error);
                told
            }
        }
    }));
    let told = told.unwrap_or_else(|_| mistake());
    // SAFETY: the caller promises callbacks of the interface's types.
    unsafe { told.emit(config) };
    if told.has_errors() { FAILURE } else { 0 }
}

/// The linker's thread may have a small stack, and keeps nothing that a thread's end frees; so it only waits.
fn on_own_thread(call: &call::Call) -> Diagnostics {
    thread::scope(|scope| {
        match thread::Builder::new().name("distlto".to_owned()).spawn_scoped(scope, || perform::perform(call))
        {
            Ok(thread) => thread.join().unwrap_or_else(|_| mistake()),
            Err(error) => {
                let mut told = Diagnostics::default();
                told.error(format!(
                    "distlto: cannot start a thread: {error}\n  help: raise the limit of processes (ulimit -u)"
                ));
                told
            }
        }
    })
}

/// A panic of ours, as an error of the link.
fn mistake() -> Diagnostics {
    let mut told = Diagnostics::default();
    let text = panics::last().unwrap_or_else(|| "a panic without a message".to_owned());
    told.error(format!(
        "distlto failed inside: {text}\n  help: this is a mistake in distlto: please report it"
    ));
    told
}
