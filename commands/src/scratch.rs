//! A directory of the system for a command's files that are not kept.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use distlto_prepare::io_error::IoError;
use tempfile::TempDir;

/// Makes a directory with its purpose in its name. Dropping the value removes it.
pub fn scratch(what: &str) -> Result<TempDir, IoError> {
    let parent = std::env::temp_dir();
    let mut builder = tempfile::Builder::new();
    // Other users must neither read it nor connect to sockets in it.
    builder.permissions(Permissions::from_mode(0o700)).prefix("distlto-");
    let made = builder.suffix(&format!("-{what}")).tempdir_in(&parent);
    made.map_err(IoError::on("create directory", &parent))
}
