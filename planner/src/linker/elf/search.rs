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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link_line::parse;

    #[test]
    fn directories_come_before_suffixes() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (first, second) = (dir.path().join("1"), dir.path().join("2"));
        for (directory, file) in
            [(&first, "libx.a"), (&second, "libx.so"), (&second, "liby.so"), (&second, "liby.a")]
        {
            std::fs::create_dir_all(directory).expect("made");
            std::fs::write(directory.join(file), "").expect("written");
        }
        let line =
            [format!("-L{}", first.display()), format!("-L={}", second.display()), "--sysroot=".to_owned()];
        let search = Search::of(&parse(line.map(String::into_bytes)).expect("a link line"));
        let file = |name, only_static| search.library(name, only_static).file;
        assert_eq!(file("x", false), Some(first.join("libx.a")));
        assert_eq!(file("y", false), Some(second.join("liby.so")));
        assert_eq!(file("y", true), Some(second.join("liby.a")));
        assert_eq!(file(":liby.a", false), Some(second.join("liby.a")));
        let missing = search.library("z", true);
        assert_eq!(missing, Found { file: None, absent: vec![first.join("libz.a"), second.join("libz.a")] });
    }
}
