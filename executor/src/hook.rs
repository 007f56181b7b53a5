//! The library that is preloaded: where it lies, and the variable by which programs load it.
//!
//! Does not depend on what it does there.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
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

/// Whether `LD_PRELOAD` can name a file of this path: ld.so(8) separates paths by spaces and colons, and expands `$`.
pub fn can_be_preloaded(path: &Path) -> bool {
    !path.as_os_str().as_bytes().iter().any(|byte| b" :$".contains(byte))
}

/// Returns the value of `LD_PRELOAD`: these libraries, then the user's own entries. An entry of the user's that is one
/// of them is left out.
pub fn preload<'l>(libraries: impl IntoIterator<Item = &'l Path>) -> OsString {
    joined(libraries, &std::env::var_os("LD_PRELOAD").unwrap_or_default())
}

/// Returns advice if the library is neither beside this program nor in `../lib/distlto`; `None` if it is there or not
/// wanted.
pub fn lack_of_library() -> Option<String> {
    let wanted = cfg!(all(target_os = "linux", target_env = "gnu"))
        && std::env::var_os(VARIABLE).is_none_or(|value| value.is_empty());
    if !wanted || find_library().is_some() {
        return None;
    }
    match std::env::current_exe() {
        Err(error) => Some(format!("this program cannot find itself, as it does by /proc: {error}")),
        Ok(_) => Some(format!("{LIBRARY} is not installed ({INSTALL})")),
    }
}

fn joined<'l>(libraries: impl IntoIterator<Item = &'l Path>, rest: &OsStr) -> OsString {
    let mut entries: Vec<&OsStr> = libraries.into_iter().map(Path::as_os_str).collect();
    let rest = rest.as_bytes().split(|byte| b" :".contains(byte)).map(OsStr::from_bytes);
    for entry in rest.filter(|entry| !entry.is_empty()) {
        if !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    entries.join(OsStr::new(":"))
}
