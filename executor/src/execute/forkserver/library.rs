//! The library that is preloaded: where it lies, and the variable by which programs load it.
//!
//! Knows nothing of servers.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The variable that names the library, or is `off`.
pub const VARIABLE: &str = "DISTLTO_HOOK";
/// The library's file name.
pub const LIBRARY: &str = "libdistlto_hook.so";
/// How a complete set is installed, for people who lack a part of it.
pub const INSTALL: &str = "`cargo xtask install --prefix DIR` installs all of distlto";

/// Where the library is: named by [`VARIABLE`], beside this program, or in `../lib/distlto` from there.
pub fn find_library() -> Option<PathBuf> {
    match std::env::var_os(VARIABLE) {
        Some(value) if value == "off" => return None,
        Some(value) if !value.is_empty() => return Some(value.into()),
        _ => {}
    }
    let program = std::env::current_exe().ok()?;
    let directory = program.parent()?;
    [directory.join(LIBRARY), directory.join("../lib/distlto").join(LIBRARY)]
        .into_iter()
        .find(|path| path.is_file())
}

/// Returns the value of `LD_PRELOAD`: the library, then the user's own entries.
pub fn preload(library: &Path) -> OsString {
    joined(library.as_os_str(), std::env::var_os("LD_PRELOAD"))
}

/// Returns advice if the library is neither beside this program nor in `../lib/distlto`; `None` if it is there or not
/// wanted.
pub fn lack_of_library() -> Option<String> {
    let wanted = cfg!(all(target_os = "linux", target_env = "gnu"))
        && std::env::var_os(VARIABLE).is_none_or(|value| value.is_empty());
    (wanted && find_library().is_none()).then(|| format!("{LIBRARY} is not installed ({INSTALL})"))
}

/// Joins `first` and the user's own entries with a colon.
fn joined(first: &OsStr, rest: Option<OsString>) -> OsString {
    let mut list = first.to_owned();
    if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
        list.push(":");
        list.push(rest);
    }
    list
}
