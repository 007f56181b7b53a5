//! What has to be asked of the process that this library is loaded into. Changes nothing of it.
//!
//! Signals are the host's: threads of ours inherit the mask of the calling thread, and compilers inherit it from them,
//! as they would from the host itself.

use std::ffi::{CStr, OsStr};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use distlto_executor::execute::forkserver::library;

/// Whether the system forgets children of this process as they end, so that nobody learns how they ended.
pub fn ignores_children() -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: with no new action this only writes the present one; all zeroes is a value of the type.
    let action = unsafe {
        libc::sigaction(libc::SIGCHLD, std::ptr::null(), action.as_mut_ptr());
        action.assume_init()
    };
    action.sa_sigaction == libc::SIG_IGN || action.sa_flags & libc::SA_NOCLDWAIT != 0
}

/// The fork server's library: where a program would look for it, or beside this library.
pub fn fork_server_library() -> Option<PathBuf> {
    if std::env::var_os(library::VARIABLE).is_some_and(|value| value == "off") {
        return None;
    }
    library::find_library().or_else(|| {
        let directory = own_file()?.parent()?.to_owned();
        let places = [directory.join(library::LIBRARY), directory.join("distlto").join(library::LIBRARY)];
        places.into_iter().find(|path| path.is_file())
    })
}

/// The file that this library was loaded from.
fn own_file() -> Option<PathBuf> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    let address: fn() -> Option<PathBuf> = own_file;
    // SAFETY: dladdr takes any address and writes the structure, for which all zeroes is a value.
    let (found, info) = unsafe {
        let found = libc::dladdr(address as *const libc::c_void, info.as_mut_ptr());
        (found, info.assume_init())
    };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the name is text that the dynamic linker keeps for as long as the library is loaded.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    std::path::absolute(Path::new(OsStr::from_bytes(name.to_bytes()))).ok()
}
