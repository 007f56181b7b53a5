//! A directory of the system for what a command makes and nobody keeps.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use distlto_prepare::io_error::IoError;
use tempfile::TempDir;

/// One whose name says what it is for. It goes with the value.
pub fn scratch(what: &str) -> Result<TempDir, IoError> {
    let parent = std::env::temp_dir();
    let mut builder = tempfile::Builder::new();
    // Nobody else is to look, and to call.
    builder.permissions(Permissions::from_mode(0o700)).prefix("distlto-");
    let made = builder.suffix(&format!("-{what}")).tempdir_in(&parent);
    made.map_err(IoError::on("create directory", &parent))
}
