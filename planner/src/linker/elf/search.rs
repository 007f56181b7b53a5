//! Where ld.lld finds a library: the order of directories and suffixes of `searchLibrary` in `lld/ELF`.
//!
//! Asks only whether files exist. The places looked at in vain are kept, since a file that appears there later
//! changes the link.

use std::path::{Path, PathBuf};

use crate::link_line::{Argument, last_value, options};

/// The library search of one link.
#[derive(Debug, Clone, Default)]
pub struct Search {
    directories: Vec<PathBuf>,
}

/// The result of a search, with the places that it tried before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The library's file; `None` when there is none.
    pub file: Option<PathBuf>,
    /// Places that come first and hold nothing.
    pub absent: Vec<PathBuf>,
}

impl Search {
    /// The search that a link line describes: every `-L` counts for every library, wherever it stands.
    pub fn of(arguments: &[Argument]) -> Self {
        let sysroot = last_value(arguments, "sysroot").unwrap_or_default().to_owned();
        let directories = options(arguments)
            .filter(|option| option.name == "library-path")
            .filter_map(|option| option.value.as_deref())
            .map(|directory| match directory.strip_prefix('=') {
                Some(below) => PathBuf::from(format!("{sysroot}{below}")),
                None => PathBuf::from(directory),
            })
            .collect();
        Self { directories }
    }

    /// Looks for `-lNAME` or `-l:FILE`; shared libraries count unless `only_static`.
    pub fn library(&self, name: &str, only_static: bool) -> Found {
        let names = match name.strip_prefix(':') {
            Some(file) => vec![file.to_owned()],
            None if only_static => vec![format!("lib{name}.a")],
            None => vec![format!("lib{name}.so"), format!("lib{name}.a")],
        };
        let mut found = Found::default();
        for directory in &self.directories {
            for name in &names {
                let candidate = directory.join(name);
                if exists(&candidate) {
                    found.file = Some(candidate);
                    return found;
                }
                found.absent.push(candidate);
            }
        }
        found
    }

    /// Where a file would have been found instead of `path`, which may have come from this search: under its name in
    /// earlier directories, and as the library that a name without prefix and suffix stands for.
    pub fn before(&self, path: &Path) -> Vec<PathBuf> {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
        let stem = name.strip_suffix(".a").unwrap_or(name);
        let names = [name.to_owned(), format!("{stem}.so"), format!("lib{name}.so"), format!("lib{name}.a")];
        // A name without directories is looked for as it is, first or last.
        let mut places = vec![PathBuf::from(name)];
        for directory in &self.directories {
            places.extend(names.iter().map(|name| directory.join(name)));
            if path.parent() == Some(directory) {
                return places;
            }
        }
        Vec::new()
    }
}

fn exists(path: &Path) -> bool {
    path.exists()
}
