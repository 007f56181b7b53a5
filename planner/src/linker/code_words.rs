//! The options of a link line that may change the code of a module, for the key of its object.
//!
//! The linker's own key holds the modules and most of its settings, but no option of LLVM's and no file that an option
//! names. Here each option counts, but for those that only name files of the link or place and show its output. One that
//! is missing below costs a second compilation, and never a wrong object. Pure.

use crate::link_line::{Argument, options};

/// Options without an effect on code, by the names that all their spellings share.
const OTHERS: [&str; 65] = [
    "Bdynamic",
    "Bstatic",
    "L",
    "Map",
    "as-needed",
    "build-id",
    "cache_path_lto",
    "color-diagnostics",
    "cref",
    "demangle",
    "dependency-file",
    "dependency_info",
    "disable-new-dtags",
    "discard-all",
    "discard-locals",
    "dynamic-linker",
    "dynamic-list",
    "eh-frame-hdr",
    "enable-new-dtags",
    "end-group",
    "end-lib",
    "entry",
    "error-limit",
    "export-dynamic",
    "export-dynamic-symbol",
    "fatal-warnings",
    "gc-sections",
    "hash-style",
    "install_name",
    "l",
    "library-path",
    "map",
    "no-as-needed",
    "no-color-diagnostics",
    "no-demangle",
    "no-dynamic-linker",
    "no-fatal-warnings",
    "no-gc-sections",
    "no-undefined",
    "no-whole-archive",
    "o",
    "output",
    "pop-state",
    "print-map",
    "push-state",
    "rpath",
    "rpath-link",
    "soname",
    "start-group",
    "start-lib",
    "strip-all",
    "strip-debug",
    "syslibroot",
    "sysroot",
    "thinlto-cache-dir",
    "thinlto-cache-policy",
    "thinlto-jobs",
    "threads",
    "time-trace",
    "time-trace-granularity",
    "trace",
    "undefined",
    "verbose",
    "version-script",
    "whole-archive",
];

/// The words of the options that may change code, in their order.
pub fn code_words(arguments: &[Argument]) -> Vec<String> {
    let may_change_code = |name: &str| {
        let name = name.trim_start_matches('-');
        !OTHERS.contains(&name.split('=').next().unwrap_or(name))
    };
    let options = options(arguments).filter(|option| may_change_code(&option.name));
    options.flat_map(|option| option.words.iter().cloned()).collect()
}
