//! The directory of the ledger: one that only its user can write to.
//!
//! `DISTLTO_LEDGER` names one, or is `off`. Else it is in the user's runtime directory (the XDG Base Directory
//! Specification's `XDG_RUNTIME_DIR`), or in `/tmp`: not in TMPDIR, which differs from build to build. Independent of
//! the directory's contents.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use distlto_prepare::io_error::IoError;
use distlto_prepare::private::{self, Exposed, Reach};
use rustix::process::geteuid;

use super::LedgerError;

/// The variable that names another directory, or is `off`.
pub const VARIABLE: &str = "DISTLTO_LEDGER";

/// The name of the directory. Another layout gets another one.
const NAME: &str = "distlto-ledger-v1";

/// Where files of short life are kept on every system.
const TEMPORARY: &str = "/tmp";

/// Network file systems; other machines may see their locks (statfs(2)): NFS, SMB, CIFS, SMB2, Ceph, AFS.
const NETWORK: [u64; 6] = [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x00c3_6400, 0x5346_414f];

/// Returns the directory that the environment names, or the user's own; `None` where it is switched off.
pub fn of_environment() -> Result<Option<PathBuf>, LedgerError> {
    match std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from) {
        Some(value) if value == Path::new("off") => Ok(None),
        Some(path) if path.is_absolute() => Ok(Some(path)),
        Some(path) => Err(LedgerError::Relative { path }),
        None => Ok(Some(of_user())),
    }
}

fn of_user() -> PathBuf {
    let user = geteuid().as_raw();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    // After a change of user the variable may still be set.
    let own = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| found.is_dir() && found.uid() == user);
    match runtime.filter(own) {
        Some(runtime) => runtime.join(NAME),
        None => Path::new(TEMPORARY).join(format!("{NAME}-{user}")),
    }
}

/// Makes the directory unless it is there, and checks its owner.
pub fn make(path: &Path) -> Result<(), LedgerError> {
    let made = DirBuilder::new().mode(0o700).create(path);
    match made {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
            made.map_err(IoError::on("create directory", path))?;
        }
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(IoError::on("create directory", path)(error).into());
        }
        _ => {}
    }
    check(path)
}

/// Checks whether an existing directory can be used.
pub fn check(path: &Path) -> Result<(), LedgerError> {
    let owned = || path.to_owned();
    let found = fs::symlink_metadata(path).map_err(IoError::on("read", path))?;
    if !found.is_dir() {
        return Err(LedgerError::NoDirectory { path: owned() });
    }
    private::check(path, Reach::Whole)?;
    // Root's are believed, and nobody else can write to them.
    if found.uid() != geteuid().as_raw() {
        return Err(Exposed::Foreign { path: owned(), owner: found.uid() }.into());
    }
    if is_on_network(path) {
        return Err(LedgerError::Network { path: owned() });
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn is_on_network(path: &Path) -> bool {
    // The kernel's field is a signed word; these are its low bits.
    rustix::fs::statfs(path)
        .is_ok_and(|found| NETWORK.contains(&((found.f_type as u64) & u64::from(u32::MAX))))
}

#[cfg(not(target_os = "linux"))]
fn is_on_network(_: &Path) -> bool {
    false
}
