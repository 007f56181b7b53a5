//! Directories of the system for files that are not kept.
//!
//! A directory that is not there or cannot be written is no reason to fail: the next one serves.

use std::ffi::OsStr;
use std::fs::{DirBuilder, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use distlto_executor::hook::can_be_preloaded;
use distlto_prepare::io_error::IoError;
use distlto_prepare::leftovers::{RunDirectory, sweep_killed_runs};
use distlto_prepare::private::{self, Reach};
use tempfile::TempDir;

use crate::store::own_cache;

/// The folder for runs within the user's own ones.
const RUNS: &str = "runs";
/// Names the folder of the user's session (XDG Base Directory Specification).
const SESSION: &str = "XDG_RUNTIME_DIR";

/// Makes a directory with its purpose in its name. Dropping the value removes it.
pub fn scratch(what: &str) -> Result<TempDir, IoError> {
    first([system, own], |parent| {
        let mut builder = tempfile::Builder::new();
        // Other users must neither read it nor connect to sockets in it.
        builder.permissions(Permissions::from_mode(0o700)).prefix("distlto-");
        let made = builder.suffix(&format!("-{what}")).tempdir_in(parent);
        made.map_err(IoError::on("create directory", parent))
    })
}

/// Makes a directory for the socket of a service, and perhaps its libraries. It lies where no other user can make one of
/// that name later, if there is such a place. That of a killed run goes with the next.
pub fn for_socket() -> Result<RunDirectory, IoError> {
    first([session, own, system], |parent| match can_be_preloaded(parent) {
        true => run_in(parent),
        false => Err(IoError::on("load libraries from", parent)(ErrorKind::InvalidFilename.into())),
    })
}

/// Makes a directory for the files of linkers, which may be large.
pub fn for_linkers() -> Result<RunDirectory, IoError> {
    first([own, system, session], run_in)
}

fn run_in(parent: &Path) -> Result<RunDirectory, IoError> {
    sweep_killed_runs(parent, |_| {});
    RunDirectory::make(parent)
}

/// The result in the first place where there is one, or the last place's error.
fn first<T, const N: usize>(
    places: [fn() -> Option<PathBuf>; N],
    make: impl Fn(&Path) -> Result<T, IoError>,
) -> Result<T, IoError> {
    let mut error = IoError::on("find", "a directory for temporary files")(ErrorKind::NotFound.into());
    for place in places.into_iter().filter_map(|place| place()).filter(|place| place.is_dir()) {
        match make(&place) {
            Ok(made) => return Ok(made),
            Err(failed) => error = failed,
        }
    }
    Err(error)
}

/// The folder that TMPDIR names.
fn system() -> Option<PathBuf> {
    Some(std::env::temp_dir())
}

/// The folder for runs in the store.
fn own() -> Option<PathBuf> {
    let runs = own_cache()?.join(RUNS);
    made(&runs).then_some(runs)
}

/// The folder for runs in the session's.
fn session() -> Option<PathBuf> {
    let session = std::env::var_os(SESSION).map(PathBuf::from).filter(|path| path.is_absolute())?;
    let runs = session.join(OsStr::new("distlto"));
    (private::check(&session, Reach::Whole).is_ok() && made(&runs)).then_some(runs)
}

/// Makes a folder of the user's alone unless it is there.
fn made(folder: &Path) -> bool {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.is_ok() && private::check(folder, Reach::Last).is_ok()
}
