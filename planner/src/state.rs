//! Where the state of a link lies: in a folder that holds that of many.
//!
//! The one rule for the name, for those who link and those who look, and the names of all that lies in it. Pure,
//! except that the output's directory is resolved: one output has one name in every spelling. Does not depend on
//! formats.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use distlto_prepare::names::escape_path;

use crate::digests::Digest;

/// The variable that names the folder.
pub const VARIABLE: &str = "DISTLTO_STATE";

/// The suffix of the name of an output's index folder.
pub const SUFFIX: &str = ".distlto";

/// A file or folder of a state directory, which `docs/reference.md` lists for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The files that each action read and wrote last time.
    ActionLog,
    /// Objects of sources on the link line.
    Compiled,
    /// Digests of files.
    Digests,
    /// The action graph.
    Graph,
    /// Measurements of modules in their last compilations.
    History,
    /// The graph of an index, with its shards: by default a folder of the link's state.
    Index,
    /// The files of the last link.
    LastLink,
    /// The outputs of the last link.
    LastOutputs,
    /// The graph of the last link, to be looked at.
    LinkGraph,
    /// Held while a link runs.
    Lock,
    /// Unpacked members of archives.
    Members,
    /// The modules of the last link, each with its key.
    Modules,
    /// Native objects, by module, while a link runs.
    Objects,
    /// Index shards and import lists, by module.
    Shards,
    /// The note on the compiler.
    Toolchain,
}

impl Place {
    /// Its name in the directory.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ActionLog => "actions.log",
            Self::Compiled => "compiled",
            Self::Digests => "digests",
            Self::Graph => "graph.json",
            Self::History => "history",
            Self::Index => "index",
            Self::LastLink => "last-link.json",
            Self::LastOutputs => "last-outputs.json",
            Self::LinkGraph => "link-graph.json",
            Self::Lock => "lock",
            Self::Members => "members",
            Self::Modules => "modules",
            Self::Objects => "objects",
            Self::Shards => "shards",
            Self::Toolchain => "toolchain",
        }
    }

    /// Its path, which begins with that of the state directory as it is spelled.
    pub fn of(self, state: &str) -> String {
        format!("{state}/{}", self.name())
    }

    /// Its path in a directory.
    pub fn path(self, state: impl AsRef<Path>) -> PathBuf {
        state.as_ref().join(self.name())
    }

    /// Whether a path is named so.
    pub fn is_name_of(self, path: impl AsRef<Path>) -> bool {
        path.as_ref().file_name().is_some_and(|name| name == self.name())
    }
}

/// Returns the origin of a module of a state directory: an archive's member, or a source on the line. The origin is
/// the rest of the module's path, which is the same in any other directory.
pub fn made_of<'p>(path: &'p str, state: &str) -> Option<&'p str> {
    let rest = path.strip_prefix(state)?.strip_prefix('/')?;
    [Place::Members, Place::Compiled]
        .iter()
        .find_map(|place| rest.strip_prefix(place.name())?.strip_prefix('/'))
}

/// Digits of the digest that distinguish outputs of one name: 48 bits.
const DIGITS: usize = 12;
/// How much of an output's name is used at most, as file systems allow 255 bytes.
const LONGEST: usize = 160;

/// Returns the directory for the state of an output, in a folder for the state of many. The directory's own name is
/// ASCII, since module ids of archive members contain it.
pub fn directory(output: &str, folder: &str) -> String {
    let name = output.rsplit_once('/').map_or(output, |(_, name)| name);
    let mut ascii = if name.is_ascii() { name.to_owned() } else { escape_path(name.as_bytes()) };
    ascii.truncate(LONGEST);
    let digest = Digest::of(absolute(output, name).as_os_str().as_bytes()).hex();
    format!("{}/{ascii}-{}", folder.trim_end_matches('/'), &digest[..DIGITS])
}

/// Where the output lies, by one name: links on the way to it are followed, and the output itself may be missing.
fn absolute(output: &str, name: &str) -> PathBuf {
    let parent = match output.rsplit_once('/') {
        None => Path::new("."),
        Some(("", _)) => Path::new("/"),
        Some((parent, _)) => Path::new(parent),
    };
    let whole = parent.canonicalize().or_else(|_| std::path::absolute(parent));
    whole.unwrap_or_else(|_| parent.to_owned()).join(name)
}
