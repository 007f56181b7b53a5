//! The DTLTO plugin: the one C function by which a linker hands over its backend compilations to `distlto-distribute`.
//!
//! A guest in the linker's process: it changes no state of the process, prints nothing unless asked to, leaves no
//! child, thread, descriptor or temporary behind, and never unwinds. The interface is that of `dtlto_plugin.h`.

#![cfg(unix)]
#![cfg_attr(
    not(test),
    expect(non_snake_case, reason = "the linker derives the library's name from the plugin's")
)]

mod call;
mod job;
mod options;
mod run;

use std::ffi::{CString, c_char, c_int, c_void};
use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// A callback of the linker. A C++ exception out of it ends the process instead of being undefined.
type Emit = unsafe extern "C-unwind" fn(context: *const c_void, text: *const c_char);

/// `DtltoConfig` of the header, which describes the fields.
#[repr(C)]
#[expect(non_snake_case, reason = "the interface's own names")]
pub struct Config {
    DbsName: *const c_char,
    DiagContext: *const c_void,
    EmitError: Option<Emit>,
    EmitWarn: Option<Emit>,
}

/// `DtltoNode` of the header.
#[repr(C)]
#[expect(non_snake_case, reason = "the interface's own names")]
pub struct Node {
    ModuleId: *const c_char,
    ModulePath: *const c_char,
    ModuleSize: usize,
    SummaryIndexPath: *const c_char,
    NativeObjectPath: *const c_char,
    ImportsListSize: usize,
    ImportsList: *const *const c_char,
    TargetTriple: *const c_char,
    TaskNumber: usize,
}

/// Compiles every node. Returns 0 when all objects are in place; otherwise `EmitError` gets the reasons.
///
/// A linker may call it any number of times, from several threads at once.
///
/// # Safety
///
/// The arguments are as `dtlto_plugin.h` describes them, and do not change during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dtltoPerformCodegen(
    config: *const Config,
    nodes_num: usize,
    nodes: *const *const Node,
    argc: usize,
    argv: *const *const c_char,
) -> c_int {
    // A panic becomes an error of the link. This hook belongs to the library's own copy of Rust's runtime.
    static QUIET: Once = Once::new();
    QUIET.call_once(|| panic::set_hook(Box::new(|_| {})));
    // Without a configuration there is no callback.
    if config.is_null() || !config.is_aligned() {
        return 1;
    }
    // SAFETY: neither null nor misaligned; the caller promises a configuration.
    let config = unsafe { &*config };
    let result = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the caller's promise.
        let call = unsafe { call::read(config, (nodes_num, nodes), (argc, argv)) }?;
        run::run(&call)
    }));
    let result = result.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        Err(format!(
            "the plugin failed inside: {text}\n  help: this is a mistake in distlto: please report it"
        ))
    });
    // A linker may end the process in a callback, so this comes last: the child has ended, the temporaries are gone.
    let (emit, word, text) = match &result {
        Ok(warnings) => (config.EmitWarn, "warning", warnings),
        Err(text) => (config.EmitError, "error", text),
    };
    match emit {
        _ if text.is_empty() => {}
        Some(emit) => {
            // Compilers may print the byte that ends text in C.
            let text = CString::new(format!("distlto: {text}").replace('\0', "\u{fffd}")).unwrap_or_default();
            // SAFETY: the caller promises callbacks of the interface's types; the text lives until the call returns.
            unsafe { emit(config.DiagContext, text.as_ptr()) };
        }
        // A linker that takes no messages leaves standard error.
        None => drop(writeln!(io::stderr(), "{word}: distlto: {text}")),
    }
    result.is_err().into()
}
