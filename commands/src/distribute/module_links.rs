//! Modules under their identifiers, in a private directory that the compilations run in.
//!
//! An index shard names modules by identifier, and a compiler opens exactly that path. An identifier that names no
//! file, such as `lib.a(m.o at 78)`, gets a symbolic link of that name to the file with its content. Other relative
//! paths in the commands get a link too. Does not depend on job files and plugins. Writes nowhere else.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Component, Path, PathBuf};

use distlto_planner::dtlto::identifier::climbs;
use distlto_planner::words::shell_quote;
use distlto_prepare::io_error::IoError;
use distlto_prepare::write::TEMPORARY_PREFIX;
use miette::Diagnostic;
use tempfile::TempDir;
use thiserror::Error;

/// How deep below the directory's top the commands run for each directory that a name climbs.
const STEP: &str = ".distlto-below";

/// A module that cannot be put at its identifier.
#[derive(Debug, Error, Diagnostic)]
pub enum PlaceError {
    /// An absolute identifier without its file: the place would be in the user's tree.
    #[error("the module {identifier:?} has an absolute identifier, which is not its file {}", file.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help(
            "name the archive or object on the link line by a relative path, or put the module at its identifier"
        )
    )]
    Absolute {
        /// The identifier.
        identifier: String,
        /// The file with the content.
        file: PathBuf,
    },
    /// An identifier that no file can have.
    #[error("the module identifier {identifier:?} can be no file's name")]
    #[diagnostic(code(distlto::bad_input), help("an identifier is a path that ends in a file's name"))]
    NoName {
        /// The identifier.
        identifier: String,
    },
    /// One place for two files.
    #[error("the identifier {identifier:?} stands for both {} and {}", first.display(), second.display())]
    #[diagnostic(
        code(distlto::bad_input),
        help("every module needs an identifier of its own, and none can be a directory of another one")
    )]
    Taken {
        /// The later identifier.
        identifier: String,
        /// The file that is at its place already.
        first: PathBuf,
        /// The file that should be there.
        second: PathBuf,
    },
    /// The file with a module's content cannot be read, or its link not be made.
    #[error("the module {identifier:?}: {source}")]
    #[diagnostic(
        code(distlto::io),
        help("check that the file exists and can be read, and TMPDIR can be written")
    )]
    Io {
        /// The identifier.
        identifier: String,
        /// The error.
        source: IoError,
    },
    /// The private directory cannot be made.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Directory(#[from] IoError),
}

/// Whether a module has to be put at its identifier: the two paths lead to different files.
pub fn is_misplaced(base: &Path, identifier: &str, file: &Path) -> bool {
    if Path::new(identifier) == file {
        return false;
    }
    let (found, wanted) = (fs::metadata(base.join(identifier)), fs::metadata(base.join(file)));
    !matches!((found, wanted), (Ok(a), Ok(b)) if (a.dev(), a.ino()) == (b.dev(), b.ino()))
}

/// Returns the parts of a command's words that may be relative paths: a whole word, and the part after its first `=`.
pub fn paths_in(words: &[String]) -> impl Iterator<Item = &str> {
    words
        .iter()
        .flat_map(|word| [Some(word.as_str()), word.split_once('=').map(|(_, value)| value)])
        .flatten()
}

/// The private directory. Dropping it removes it with all links, and nothing that they lead to.
#[derive(Debug)]
pub struct ModuleLinks {
    base: PathBuf,
    top: TempDir,
    depth: usize,
    // By place relative to the top; the file that each link leads to.
    links: BTreeMap<PathBuf, PathBuf>,
}

impl ModuleLinks {
    /// Makes the directory in `parent`, and all links. Relative paths start at `base`. `placed` has the identifiers that
    /// are not their module's path, and the files with the modules' content; `present` the other paths that commands read
    /// as they are spelled, such as modules at their identifiers and profiles. Those that are absolute, or that do not
    /// exist, are left alone.
    pub fn new(
        base: &Path,
        placed: &[(&str, PathBuf)],
        present: &[&str],
        parent: &Path,
    ) -> Result<Self, PlaceError> {
        let base = std::path::absolute(base).map_err(IoError::on("find", base))?;
        let parent = std::path::absolute(parent).map_err(IoError::on("find", parent))?;
        let top = tempfile::Builder::new()
            .prefix(TEMPORARY_PREFIX)
            .tempdir_in(&parent)
            .map_err(IoError::on("make a directory in", &parent))?;
        let relative = |path: &&str| Path::new(path).is_relative();
        let spelled = placed.iter().map(|&(identifier, _)| identifier).chain(present.iter().copied());
        let depth = spelled.filter(relative).map(climbs).max().unwrap_or(0);
        let mut links = Self { base, top, depth, links: BTreeMap::new() };
        let directory = links.directory();
        fs::create_dir_all(&directory).map_err(IoError::on("make", &directory))?;
        for (identifier, file) in placed {
            links.place(identifier, file)?;
        }
        // Directories come last: nothing may be made through a link that leads out of here.
        let mut directories = Vec::new();
        for &path in present.iter().filter(|path| relative(path)) {
            match fs::metadata(links.base.join(path)) {
                Ok(found) if found.is_dir() => directories.push(path),
                Ok(_) => {
                    // A module that was put here takes precedence over a file of that name.
                    let place = links.place_of(path).filter(|place| !links.links.contains_key(place));
                    if let Some(place) = place {
                        links.link(path, place, links.base.join(path))?;
                    }
                }
                Err(_) => {}
            }
        }
        for path in directories {
            links.mirror_directory(path);
        }
        Ok(links)
    }

    /// Where the commands have to run.
    pub fn directory(&self) -> PathBuf {
        let mut directory = self.top.path().to_owned();
        directory.extend((0..self.depth).map(|_| STEP));
        directory
    }

    /// Shell commands that make another such directory for these names and enter it, so that a person can repeat a
    /// compilation after this one is gone.
    pub fn shell_commands<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> String {
        let mut commands = String::from("cd \"$(mktemp -d)\"");
        let step = format!(" && mkdir {STEP} && cd {STEP}");
        commands.push_str(&step.repeat(self.depth));
        for name in names {
            let Some(target) = self.place_of(name).and_then(|place| self.links.get(&place)) else { continue };
            // Exact if the base is UTF-8, since names come from the graph.
            let (target, link) = (target.to_string_lossy(), shell_quote(name));
            if let Some(parent) = Path::new(name).parent().and_then(Path::to_str).filter(|p| !p.is_empty()) {
                commands.push_str(&format!(" && mkdir -p -- {}", shell_quote(parent)));
            }
            commands.push_str(&format!(" && ln -s -- {} {link}", shell_quote(&target)));
        }
        commands
    }

    fn place(&mut self, identifier: &str, file: &Path) -> Result<(), PlaceError> {
        let target = self.base.join(file);
        let io = |operation, path: &Path| {
            let (identifier, path) = (identifier.to_owned(), path.to_owned());
            move |source| PlaceError::Io { identifier, source: IoError::on(operation, path)(source) }
        };
        fs::File::open(&target).map_err(io("read", &target))?;
        if Path::new(identifier).is_absolute() {
            return Err(PlaceError::Absolute { identifier: identifier.to_owned(), file: file.to_owned() });
        }
        let place = self
            .place_of(identifier)
            .ok_or_else(|| PlaceError::NoName { identifier: identifier.to_owned() })?;
        self.link(identifier, place, target)
    }

    fn mirror_directory(&mut self, path: &str) {
        let Some(place) = self.place_of(path) else { return };
        let link = self.top.path().join(&place);
        // One that modules lie in cannot be the user's own; a command that needs its other files says so.
        if fs::symlink_metadata(&link).is_err()
            && let Some(parent) = link.parent()
            && fs::create_dir_all(parent).is_ok()
            && symlink(self.base.join(path), &link).is_ok()
        {
            self.links.insert(place, self.base.join(path));
        }
    }

    fn link(&mut self, name: &str, place: PathBuf, target: PathBuf) -> Result<(), PlaceError> {
        if self.links.get(&place) == Some(&target) {
            return Ok(());
        }
        // A place below another link, or above one, is in no directory of ours.
        let above = place.ancestors().find_map(|above| self.links.get(above));
        let below = self.links.range(place.clone()..).next().filter(|(below, _)| below.starts_with(&place));
        if let Some(first) = above.or(below.map(|(_, first)| first)) {
            let (identifier, first) = (name.to_owned(), first.clone());
            return Err(PlaceError::Taken { identifier, first, second: target });
        }
        let link = self.top.path().join(&place);
        let made = self.make_parents(name, &link).and_then(|()| symlink(&target, &link));
        made.map_err(|source| PlaceError::Io {
            identifier: name.to_owned(),
            source: IoError::on("make the link", &link)(source),
        })?;
        self.links.insert(place, target);
        Ok(())
    }

    /// Makes the directories that a name leads through, those too that it leaves by `..` again.
    fn make_parents(&self, name: &str, link: &Path) -> io::Result<()> {
        let mut at = self.directory();
        for component in Path::new(name).parent().into_iter().flat_map(Path::components) {
            match component {
                Component::ParentDir => {
                    at.pop();
                }
                Component::Normal(part) => {
                    at.push(part);
                    fs::create_dir_all(&at)?;
                }
                _ => {}
            }
        }
        link.parent().map_or(Ok(()), fs::create_dir_all)
    }

    /// A name's place relative to the top. Every directory there is a real one, so `..` can be taken literally.
    fn place_of(&self, name: &str) -> Option<PathBuf> {
        if name.is_empty() || name.ends_with('/') || name.ends_with("/.") {
            return None;
        }
        let mut place: Vec<&std::ffi::OsStr> = vec![STEP.as_ref(); self.depth];
        let mut named = false;
        for component in Path::new(name).components() {
            named = false;
            match component {
                Component::Normal(part) => {
                    place.push(part);
                    named = true;
                }
                // The directory is as deep as any name climbs.
                Component::ParentDir => {
                    place.pop()?;
                }
                Component::CurDir => {}
                Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        named.then(|| place.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(base: &Path, placed: &[(&str, &str)], present: &[&str]) -> Result<ModuleLinks, PlaceError> {
        let placed: Vec<_> = placed.iter().map(|&(identifier, file)| (identifier, file.into())).collect();
        ModuleLinks::new(base, &placed, present, &std::env::temp_dir())
    }

    fn tree(files: &[&str]) -> TempDir {
        let tree = tempfile::tempdir().unwrap();
        for file in files {
            let path = tree.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        tree
    }

    #[test]
    fn what_cannot_be_placed_is_refused() {
        let tree = tree(&["m.o", "n.o"]);
        let refused = |placed: &[(&str, &str)]| links(tree.path(), placed, &[]).unwrap_err().to_string();
        let (m, n) = ("m.o", "n.o");
        assert!(refused(&[("/nowhere/l.a(m.o at 8)", m)]).contains("absolute identifier"));
        for odd in ["", ".", "..", "a/", "a/..", "a/."] {
            let said = refused(&[(odd, m)]);
            assert!(said.contains("no file's name"), "{odd}: {said}");
        }
        assert!(refused(&[("x", m), ("./x", n)]).contains("stands for both"));
        assert!(refused(&[("x", m), ("x/y", n)]).contains("stands for both"));
        assert!(refused(&[("x/y", m), ("x", n)]).contains("stands for both"));
        assert!(refused(&[("x", "gone.o")]).contains("gone.o"));
        assert!(refused(&[("x\0y", m)]).contains("x\\0y"));
        let name = "x".repeat(300);
        assert!(refused(&[(&name, m)]).contains("too long"));
    }
}
