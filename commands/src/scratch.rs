//! A directory of the system for what a command makes and nobody keeps.

use distlto_prepare::io_error::IoError;
use tempfile::TempDir;

/// One whose name says what it is for. It goes with the value.
pub fn scratch(what: &str) -> Result<TempDir, IoError> {
    let parent = std::env::temp_dir();
    let made = tempfile::Builder::new().prefix(&format!("distlto-{what}-")).tempdir_in(&parent);
    made.map_err(IoError::on("create directory", &parent))
}
