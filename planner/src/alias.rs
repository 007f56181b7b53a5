//! Names that every tool on the way can take: odd ones get a symbolic link with a plain name.
//!
//! A module id stands in import lists (one a line), in index shards (where LLVM writes only ASCII rightly) and on
//! command lines (`@`, `-`), and where LLVM puts a module's shard follows from the id. So an id must be ASCII, on
//! one line, no option, and lead to a place of its own. Knows nothing of links.

use std::collections::HashSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use distlto_prepare::io_error::IoError;
use distlto_prepare::names::escape_path;
use distlto_prepare::write::remove;

use crate::state::Place;

/// Whether a path cannot be a module id, or a word of a command in JSON.
pub fn needs_alias(path: &Path) -> bool {
    match path.to_str() {
        Some(text) => text.starts_with(['@', '-']) || !text.bytes().all(|byte| matches!(byte, b' '..=b'~')),
        None => true,
    }
}

/// How many directories a path climbs above where it starts, at most.
pub fn climbs(path: &str) -> usize {
    let (mut depth, mut deepest) = (0_isize, 0);
    for component in Path::new(path).components() {
        match component {
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => depth += 1,
            _ => {}
        }
        deepest = deepest.min(depth);
    }
    deepest.unsigned_abs()
}

/// Where LLVM puts the shard of a module, relative to the directory for shards: two ids of one place collide.
fn place(id: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let mut above = 0;
    for part in id.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => above += 1,
            ".." => {}
            part => parts.push(part),
        }
    }
    format!("{}{}", "../".repeat(above), parts.join("/"))
}

/// The names given out for one link.
#[derive(Debug)]
pub struct Aliases {
    directory: String,
    taken: HashSet<String>,
}

impl Aliases {
    /// Names under a link's state directory.
    pub fn new(state: &str) -> Self {
        Self { directory: Place::Inputs.of(state), taken: HashSet::new() }
    }

    /// The module id for an input: its path as it is, or an alias where that cannot be or leads to another
    /// module's place.
    pub fn name(&mut self, path: &Path) -> Result<String, IoError> {
        match path.to_str().filter(|_| !needs_alias(path)) {
            Some(text) if self.taken.insert(place(text)) => Ok(text.to_owned()),
            _ => self.link(path),
        }
    }

    /// Makes a symbolic link to an input and returns its path.
    pub fn link(&mut self, path: &Path) -> Result<String, IoError> {
        let alias = self.reserve(path);
        let target = path.canonicalize().map_err(IoError::on("find", path))?;
        symlink_if_changed(&target, Path::new(&alias))?;
        Ok(alias)
    }

    /// A free name for an input under the state directory, stable from run to run.
    pub fn reserve(&mut self, path: &Path) -> String {
        let escaped = escape_path(path.as_os_str().as_bytes());
        let mut alias = format!("{}/{escaped}", self.directory);
        let mut copy = 1;
        while !self.taken.insert(place(&alias)) {
            copy += 1;
            alias = format!("{}/%copy{copy}/{escaped}", self.directory);
        }
        alias
    }
}

fn symlink_if_changed(target: &Path, link: &Path) -> Result<(), IoError> {
    if fs::read_link(link).is_ok_and(|found| found == target) {
        return Ok(());
    }
    if let Some(parent) = link.parent() {
        fs::create_dir_all(parent).map_err(IoError::on("create directory", parent))?;
    }
    remove(link)?;
    std::os::unix::fs::symlink(target, link).map_err(IoError::on("create", link))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn ids_with_one_place_are_told_apart() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let file = dir.path().join("a.o");
        fs::write(&file, "").expect("written");
        let text = file.to_str().expect("UTF-8");
        let respelled = format!("{}/./a.o", dir.path().display());
        let mut aliases = Aliases::new(&format!("{}/state", dir.path().display()));
        assert_eq!(aliases.name(&file).expect("named"), text);
        let second = aliases.name(Path::new(&respelled)).expect("named");
        let third = aliases.name(&file).expect("named");
        assert_ne!(second, third);
        for alias in [second, third] {
            assert_eq!(fs::canonicalize(alias).expect("a link"), file.canonicalize().expect("a file"));
        }
    }

    #[test]
    fn odd_names_get_a_plain_one() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let file = dir.path().join(OsStr::from_bytes(b"a\xff\nb.o"));
        fs::write(&file, "x").expect("written");
        let mut aliases = Aliases::new(&format!("{}/state", dir.path().display()));
        let alias = aliases.name(&file).expect("named");
        assert!(alias.ends_with("a%FF%0Ab.o"), "{alias}");
        assert_eq!(fs::read(alias).expect("a link"), b"x");
        assert!(
            needs_alias(Path::new("-x.o"))
                && needs_alias(Path::new("@x.o"))
                && !needs_alias(Path::new("x;y z.o"))
        );
    }

    #[test]
    fn climbing_is_counted_along_the_way() {
        for (path, expected) in
            [("a.o", 0), ("../a.o", 1), ("a/../../../b.o", 2), ("../../x/../../y.o", 3), ("/../a", 1)]
        {
            assert_eq!(climbs(path), expected, "{path}");
        }
        assert_eq!(place("./a//b/../c.o"), "a/c.o");
        assert_eq!(place("../../a.o"), "../../a.o");
    }
}
