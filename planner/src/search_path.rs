//! Programs by name: where a shell would find them.
//!
//! Knows nothing of what the programs are.

use std::path::{Path, PathBuf};

/// The file of a program: a name with a slash is one, any other is looked up in `PATH`.
pub fn program_file(program: &Path) -> Option<PathBuf> {
    if program.as_os_str().as_encoded_bytes().contains(&b'/') {
        return Some(program.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    let mut places = std::env::split_paths(&path).map(|directory| directory.join(program));
    places.find(|place| place.is_file())
}
