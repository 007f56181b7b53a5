//! The files that a command's processes load and start: both libraries, and the program for linkers that load none.
//!
//! They lie in one folder, whose path `LD_PRELOAD` can name. It outlives the command, since daemons may still name it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use distlto_exec::LIBRARY;
use distlto_exec::environment::{HOOK, LIBRARY_NAME, STATIC_LINKER};
use distlto_executor::hook::{can_be_preloaded, preload};
use distlto_planner::digests::Digest;
use distlto_prepare::io_error::IoError;
use distlto_prepare::private::{self, Exposed, Reach};
use distlto_prepare::write::{place, write_if_changed};
use rustix::fs::{StatVfsMountFlags, statvfs};

use crate::store::own_cache;

/// The folder in the user's cache folder.
const PRELOAD: &str = "preload-v1";
/// Characters of a digest that distinguish installations.
const DIGITS: usize = 16;

/// A folder with the libraries.
pub struct Libraries {
    folder: PathBuf,
}

impl Libraries {
    /// Finds or makes the folder for this program and this hook. `otherwise` is the place for it where the user's cache
    /// folder does not serve.
    pub fn place(hook: &Path, otherwise: &Path) -> Result<Self, IoError> {
        let program = std::env::current_exe().map_err(IoError::on("find", "this program"))?;
        let hook = std::path::absolute(hook).map_err(IoError::on("find", hook))?;
        let paths = [program.as_path(), &hook].map(|path| path.as_os_str().as_bytes());
        let digest = Digest::of(&[LIBRARY, &[0], paths[0], &[0], paths[1]].concat()).hex();
        let name = &digest[..DIGITS.min(digest.len())];
        let cache = own_cache().map(|cache| cache.join(PRELOAD).join(name));
        let mut error = None;
        for folder in cache.into_iter().chain([otherwise.join(PRELOAD)]) {
            match fill(&folder, &program, &hook) {
                Ok(()) => return Ok(Self { folder }),
                Err(failed) => error = Some(failed),
            }
        }
        Err(error.unwrap_or_else(|| IoError::on("find", PRELOAD)(io::ErrorKind::NotFound.into())))
    }

    /// Where they lie.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the value of `LD_PRELOAD` for a command: the inherited library, then the user's own entries. If all
    /// processes are observed, the hook comes first.
    pub fn preload(&self, is_observed: bool) -> OsString {
        let own = [HOOK, LIBRARY_NAME].map(|name| self.folder.join(name));
        let first = usize::from(!is_observed);
        preload(own[first..].iter().map(PathBuf::as_path))
    }
}

fn fill(folder: &Path, program: &Path, hook: &Path) -> Result<(), IoError> {
    let failed = |reason: &str| Err(IoError::on("load libraries from", folder)(io::Error::other(reason)));
    if !can_be_preloaded(folder) {
        return failed("LD_PRELOAD takes no space, colon or $ in its path");
    }
    if !folder.exists() {
        folder.parent().into_iter().for_each(sweep);
    }
    private::claim(folder, Reach::Last).map_err(|exposed| match exposed {
        Exposed::Unknown(error) => error,
        exposed => IoError::on("load libraries from", folder)(io::Error::other(exposed)),
    })?;
    let mount = statvfs(folder).map_err(|error| IoError::on("look at", folder)(error.into()))?;
    if mount.f_flag.contains(StatVfsMountFlags::from_bits_retain(NOEXEC)) {
        return failed("its file system is mounted with noexec");
    }
    write_if_changed(&folder.join(LIBRARY_NAME), LIBRARY)?;
    for (name, target) in [(HOOK, hook), (STATIC_LINKER, program)] {
        let link = folder.join(name);
        if fs::read_link(&link).ok().as_deref() != Some(target) {
            place(&link, |link| symlink(target, link))?;
        }
    }
    Ok(())
}

/// Removes the folders of installations that are gone.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let hook = entry.path().join(HOOK);
        if hook.is_symlink() && !hook.exists() {
            // One that stays is in nobody's way.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Programs and libraries of the file system do not run (statvfs(3), `ST_NOEXEC`).
const NOEXEC: u64 = 8;
