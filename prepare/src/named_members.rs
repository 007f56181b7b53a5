//! The members of an archive by their names, with their contents.
//!
//! Reads one archive and writes nothing.

use std::collections::HashMap;
use std::path::Path;

use crate::archive::{Contents, last_component};
use crate::error::PrepareError;

/// An archive with its members by name.
pub struct NamedMembers {
    contents: Contents,
    /// Members by the last component of their name.
    by_name: HashMap<Vec<u8>, Vec<usize>>,
}

impl NamedMembers {
    /// Reads the member list of the archive at `path`.
    pub fn open(path: &Path) -> Result<Self, PrepareError> {
        let contents = Contents::open(path, None)?;
        let mut by_name: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
        for (at, member) in contents.members.iter().enumerate() {
            by_name.entry(last_component(&member.name).to_vec()).or_default().push(at);
        }
        Ok(Self { contents, by_name })
    }

    /// Returns the name of each member, `inner.a(member.o)` in a nested archive.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.contents.members.iter().map(|member| member.display.as_str())
    }

    /// The places of all members of a name, in order. Directories in a name, which members of thin archives have, do not count.
    pub fn places(&self, name: &[u8]) -> &[usize] {
        self.by_name.get(last_component(name)).map_or(&[], Vec::as_slice)
    }

    /// A member's content.
    pub fn member(&self, place: usize) -> Result<Vec<u8>, PrepareError> {
        match self.contents.members.get(place) {
            Some(member) => Ok(self.contents.bytes(member)?.to_vec()),
            None => Ok(Vec::new()),
        }
    }
}
