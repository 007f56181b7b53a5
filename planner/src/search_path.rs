//! Programs by name: where a shell would find them.
//!
//! Does not depend on the purpose of the programs.

use std::collections::BTreeSet;
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

/// The program of this name in `PATH`, or the newest of those that say their version after it, as Debian names them
/// (`ld.lld-22`); the name itself where there is none.
pub fn this_or_newest(name: &str) -> String {
    if program_file(Path::new(name)).is_some() {
        return name.to_owned();
    }
    versions_of(name).next().map_or_else(|| name.to_owned(), |version| format!("{name}-{version}"))
}

/// The versions of this program that `PATH` has by Debian's names (`ld.lld-22`), the newest first.
pub fn versions_of(name: &str) -> impl Iterator<Item = u32> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // An unreadable directory holds no program.
    let entries =
        std::env::split_paths(&path).filter_map(|directory| directory.read_dir().ok()).flatten().flatten();
    let version = |file: &str| file.strip_prefix(name)?.strip_prefix('-')?.parse::<u32>().ok();
    let versions: BTreeSet<u32> = entries.filter_map(|entry| version(entry.file_name().to_str()?)).collect();
    versions.into_iter().rev()
}
