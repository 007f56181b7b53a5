//! Some members of an archive, in a chosen order, as an archive of their own.
//!
//! Whoever links such an excerpt with `--whole-archive` loads those members and no others, under the archive's own name.
//! Reads one archive and writes nothing; the format is that of GNU ar, without a symbol table, which no linker needs for
//! a whole archive.

use std::collections::HashMap;
use std::path::Path;

use crate::archive::{Contents, last_component};
use crate::error::PrepareError;

/// An archive whose members can be taken by name.
pub struct Excerpts {
    contents: Contents,
    /// Members by the last component of their name.
    by_name: HashMap<Vec<u8>, Vec<usize>>,
}

impl Excerpts {
    /// Reads the member list of the archive at `path`.
    pub fn open(path: &Path) -> Result<Self, PrepareError> {
        let contents = Contents::open(path, None)?;
        let mut by_name: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
        for (at, member) in contents.members.iter().enumerate() {
            by_name.entry(last_component(&member.name).to_vec()).or_default().push(at);
        }
        Ok(Self { contents, by_name })
    }

    /// How many members there are.
    pub fn count(&self) -> usize {
        self.contents.members.len()
    }

    /// What each member is called, `inner.a(member.o)` in a nested archive.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.contents.members.iter().map(|member| member.display.as_str())
    }

    /// The place of a member in the archive; `None` if there is none of that name, or more than one. Directories in a name,
    /// which members of thin archives have, do not count: not every linker prints them.
    pub fn place(&self, name: &[u8]) -> Option<usize> {
        match self.places(name) {
            &[at] => Some(at),
            _ => None,
        }
    }

    /// The places of all members of a name, in order.
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

    /// An archive of the members at these places, in this order, some of them with another content.
    pub fn archive(&self, places: &[(usize, Option<Vec<u8>>)]) -> Result<Vec<u8>, PrepareError> {
        let members: Vec<_> =
            places.iter().filter_map(|(at, copy)| Some((self.contents.members.get(*at)?, copy))).collect();
        let mut names = Vec::new();
        let mut offsets = Vec::new();
        for (member, _) in &members {
            offsets.push(names.len());
            names.extend_from_slice(last_component(&member.name));
            names.extend_from_slice(b"/\n");
        }
        let mut out = object::archive::MAGIC.to_vec();
        push(&mut out, "//", &names);
        for ((member, copy), offset) in members.into_iter().zip(offsets) {
            let name = format!("/{offset}");
            match copy {
                Some(copy) => push(&mut out, &name, copy),
                None => push(&mut out, &name, &self.contents.bytes(member)?),
            }
        }
        Ok(out)
    }
}

/// One member: the header's fields are name, time, owner, group, mode, size.
fn push(out: &mut Vec<u8>, name: &str, content: &[u8]) {
    let size = content.len();
    out.extend_from_slice(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644).as_bytes());
    out.extend_from_slice(content);
    if size % 2 == 1 {
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_an_archive_of_the_members_in_the_order_asked_for() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("x.a");
        let mut whole = object::archive::MAGIC.to_vec();
        push(&mut whole, "a.o/", b"odd");
        push(&mut whole, "twice.o/", b"1");
        push(&mut whole, "b.o/", b"even");
        push(&mut whole, "twice.o/", b"2");
        std::fs::write(&path, whole).expect("written");
        let excerpts = Excerpts::open(&path).expect("an archive");
        let places = [b"b.o", b"a.o"].map(|name| excerpts.place(name).expect("a member"));
        assert_eq!((places, excerpts.place(b"twice.o"), excerpts.place(b"c.o")), ([2, 0], None, None));
        let inner = directory.path().join("inner.a");
        std::fs::write(&inner, excerpts.archive(&places.map(|at| (at, None))).expect("read"))
            .expect("written");
        let found = Contents::open(&inner, None).expect("an archive");
        let content = |at: usize| found.bytes(&found.members[at]).expect("read").to_vec();
        assert_eq!((found.members[0].name.as_slice(), content(0)), (&b"b.o"[..], b"even".to_vec()));
        assert_eq!((found.members[1].name.as_slice(), content(1)), (&b"a.o"[..], b"odd".to_vec()));
    }
}
