//! The index directory: paths of the modules' shards and import lists, and module paths in listings.
//!
//! `--thinlto-prefix-replace=;DIR/` puts `DIR/` before each path. Does not depend on the content of the files.

use std::borrow::Cow;

/// Suffix of a shard, after the path of its module.
pub const SHARD: &str = ".thinlto.bc";
/// Suffix of an import list, after the path of its module.
pub const IMPORTS: &str = ".imports";

/// An index directory.
#[derive(Debug, Clone)]
pub struct IndexDirectory {
    /// Without slashes at its end; empty for the root.
    path: String,
}

impl IndexDirectory {
    /// For the directory as the command names it.
    pub fn new(path: &str) -> Self {
        Self { path: path.trim_end_matches('/').to_owned() }
    }

    /// The directory.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// A file of the directory's own.
    pub fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// Puts the name of a module's file into a buffer, as plans name it.
    pub fn module_file<'b>(&self, buffer: &'b mut String, module: &str, suffix: &str) -> &'b str {
        buffer.clear();
        for part in [&self.path, "/", module, suffix] {
            buffer.push_str(part);
        }
        buffer
    }

    /// Returns the path to which the linker writes a module's file: the linker resolves `.` and `..` in it.
    pub fn written(file: &str) -> Cow<'_, str> {
        if is_plain(file) { Cow::Borrowed(file) } else { Cow::Owned(clean(file)) }
    }

    /// Returns the module on a line of a listing: the part after the directory's name. `None` for a line that does not
    /// begin with that name.
    pub fn module_of<'l>(&self, line: &'l [u8]) -> Option<&'l [u8]> {
        line.strip_prefix(self.path.as_bytes())?.strip_prefix(b"/")
    }
}

/// Whether every component is one of its own.
fn is_plain(path: &str) -> bool {
    !path.contains("/.") && !path.contains("//") && !path.starts_with("./") && !path.starts_with("../")
}

/// Drops empty components and `.`, and each `..` together with the component before it.
pub fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|&last| last != "..") => {
                parts.pop();
            }
            ".." if path.starts_with('/') => {}
            part => parts.push(part),
        }
    }
    match (path.starts_with('/'), parts.is_empty()) {
        (true, _) => format!("/{}", parts.join("/")),
        (false, true) => ".".to_owned(),
        (false, false) => parts.join("/"),
    }
}

/// A path as seen from a directory, both relative to one place or both absolute. Where only one is absolute, the path
/// stays as it is.
pub fn relative<'p>(path: &'p str, directory: &str) -> Cow<'p, str> {
    if is_plain(path)
        && let Some(below) = path.strip_prefix(directory).and_then(|rest| rest.strip_prefix('/'))
    {
        return Cow::Borrowed(below);
    }
    if path.starts_with('/') != directory.starts_with('/') {
        return Cow::Borrowed(path);
    }
    let (path, directory) = (clean(path), clean(directory));
    let parts = |path: &str| -> Vec<String> {
        path.split('/').filter(|&part| !matches!(part, "" | ".")).map(str::to_owned).collect()
    };
    let (path, directory) = (parts(&path), parts(&directory));
    let common = path.iter().zip(&directory).take_while(|(a, b)| a == b).count();
    let mut seen = vec!["..".to_owned(); directory.len() - common];
    seen.extend_from_slice(&path[common..]);
    Cow::Owned(if seen.is_empty() { ".".to_owned() } else { seen.join("/") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_seen_from_a_directory() {
        for (path, directory, expected) in [
            ("a/b/c.o", "a", "b/c.o"),
            ("a/b/c.o", "a/x", "../b/c.o"),
            ("a/./b/../c.o", "a", "c.o"),
            ("c.o", "", "c.o"),
            ("c.o", "a/b", "../../c.o"),
            ("/x/c.o", "/x/y", "../c.o"),
            ("ab/c.o", "a", "../ab/c.o"),
            ("a", "a", "."),
            ("/x/c.o", "a", "/x/c.o"),
        ] {
            assert_eq!(relative(path, directory), expected, "{path} from {directory}");
        }
    }
}
