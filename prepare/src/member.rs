//! One member of an archive, known by its name and the offset of its header, as a file.
//!
//! Linkers name modules so: `libx.a(m.o at 118)` is the member m.o with its header at byte 118 of libx.a (`BitcodeFile`
//! in `lld/ELF/InputFiles.cpp`). The format is that of ar(5), with the long names of GNU and BSD. A thin archive names its
//! members' files, which are absolute or relative to its own directory (lld's rule). Does not depend on the kind of the
//! members.

use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::read::archive::{ArchiveFile, ArchiveOffset};

use crate::error::PrepareError;
use crate::input::Input;
use crate::kind::{Kind, classify};
use crate::names::printable;
use crate::write;

/// Writes a member of `archive` to `path`: the one with its header at `offset` and `name` as the last component of its
/// name.
pub fn place(archive: &Path, name: &[u8], offset: u64, path: &Path) -> Result<(), PrepareError> {
    let input = Input::open(archive)?;
    let not_there = |found: String| PrepareError::NoSuchMember {
        archive: archive.to_owned(),
        name: printable(name),
        offset,
        found,
    };
    if !matches!(classify(&input), Kind::Archive { .. }) {
        let found = classify(&input).to_string();
        return Err(PrepareError::NotAnArchive { path: archive.to_owned(), found });
    }
    let malformed = |problem: object::Error| PrepareError::Malformed {
        path: archive.to_owned(),
        place: "its first members (symbol table, long names)".to_owned(),
        problem: problem.to_string(),
    };
    let file = ArchiveFile::parse(&input[..]).map_err(malformed)?;
    let member =
        file.member(ArchiveOffset(offset)).map_err(|_| not_there("no member's header".to_owned()))?;
    let own = member.name().rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    if own != name {
        return Err(not_there(format!("`{}`", printable(member.name()))));
    }
    let beside;
    let bytes = if file.is_thin() && member.is_thin() {
        let file = archive.parent().unwrap_or(Path::new("")).join(OsStr::from_bytes(member.name()));
        beside = Input::open(&file)?;
        &beside[..]
    } else {
        member.data(&input[..]).map_err(|_| not_there("one that ends beyond the archive".to_owned()))?
    };
    Ok(write::write_atomically(path, bytes)?)
}

/// A member's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberContent {
    /// In the archive itself.
    Inside(Range<usize>),
    /// In a file of its own.
    Beside(PathBuf),
}

/// The size of a member's header.
const HEADER: usize = 60;

/// The ways to read the name of a module as that of a member: the archive, the member, and where its header is in it. None for
/// the name of a file; several where names have parentheses. Mach-O's linker has the place at the end: `libx.a(m.o)78`.
pub fn splits(name: &str) -> impl Iterator<Item = (&str, &str, usize)> {
    let inside = || name.strip_suffix(')')?.rsplit_once(" at ");
    let whole = inside().or_else(|| name.rsplit_once(')'));
    let whole = whole.and_then(|(rest, offset)| Some((rest, offset.parse().ok()?)));
    whole.into_iter().flat_map(|(rest, offset)| {
        rest.match_indices('(').map(move |(at, _)| (&rest[..at], &rest[at + 1..], offset))
    })
}

/// A member of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocatedMember {
    /// Its name without directories.
    pub name: Vec<u8>,
    /// Where its header is.
    pub offset: usize,
    /// Its content.
    pub content: MemberContent,
}

/// Returns the members of the archive at `path` with content `bytes`, as far as it can be read.
pub fn located_members(path: &Path, bytes: &[u8]) -> Vec<LocatedMember> {
    let is_thin = bytes.starts_with(&object::archive::THIN_MAGIC);
    let beside = path.parent().unwrap_or(Path::new(""));
    let (mut members, mut long_names): (Vec<LocatedMember>, &[u8]) = (Vec::new(), &[]);
    let mut offset = object::archive::MAGIC.len();
    while let Some(header) = Header::at(bytes, offset) {
        let start = offset + HEADER;
        let is_table =
            matches!(header.name, b"/" | b"//" | b"/SYM64/") || header.name.starts_with(b"__.SYMDEF");
        // A thin archive has the content of its tables alone.
        let size = if is_thin && !is_table { 0 } else { header.size };
        let Some(content) = start.checked_add(size).and_then(|end| bytes.get(start..end)) else { break };
        if header.name == b"//" {
            long_names = content;
        }
        if !is_table && let Some((name, shift)) = header.full_name(content, long_names) {
            let content = match is_thin {
                true => MemberContent::Beside(beside.join(Path::new(OsStr::from_bytes(name)))),
                false => MemberContent::Inside(start + shift..start + size),
            };
            let name = name.rsplit(|&byte| byte == b'/').next().unwrap_or(name).to_owned();
            members.push(LocatedMember { name, offset, content });
        }
        offset = (start + size).next_multiple_of(2);
    }
    members
}

struct Header<'a> {
    name: &'a [u8],
    size: usize,
}

impl<'a> Header<'a> {
    fn at(bytes: &'a [u8], offset: usize) -> Option<Self> {
        let header = bytes.get(offset..offset.checked_add(HEADER)?)?;
        header.ends_with(b"`\n").then_some(())?;
        Some(Self { name: header[..16].trim_ascii_end(), size: decimal(&header[48..58])? })
    }

    /// The member's whole name, and how much of its content that takes.
    fn full_name(&self, content: &'a [u8], long_names: &'a [u8]) -> Option<(&'a [u8], usize)> {
        if let Some(length) = self.name.strip_prefix(b"#1/") {
            let length = decimal(length)?;
            return Some((content.get(..length)?.split(|&byte| byte == 0).next()?, length));
        }
        // In archives of COFF objects a name ends with NUL.
        let is_end = |byte: &u8| matches!(byte, b'\n' | 0);
        let name = match self.name.strip_prefix(b"/") {
            Some(place) => long_names.get(decimal(place)?..)?.split(is_end).next()?,
            None => self.name,
        };
        Some((name.strip_suffix(b"/").unwrap_or(name), 0))
    }
}

fn decimal(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits.trim_ascii()).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_of_coff_objects_end_with_nul() {
        let header = |name: &str, size: usize| format!("{name:<16}{:<32}{size:<10}`\n", 0);
        let names = "a long name.obj\0another one.obj\0";
        let text = format!(
            "!<arch>\n{}{names}{}ab{}cd",
            header("//", names.len()),
            header("/0", 2),
            header("/16", 2)
        );
        let members = located_members(Path::new("l.lib"), text.as_bytes());
        let names: Vec<&[u8]> = members.iter().map(|member| &*member.name).collect();
        assert_eq!(names, [&b"a long name.obj"[..], b"another one.obj"]);
    }

    #[test]
    fn members_are_found_by_their_headers() {
        let header =
            |name: &str, size: usize| format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644);
        let names = "long/name/m.o/\nother.o/\n";
        let plain = format!(
            "!<arch>\n{}tabl{}{names}{}abc\n{}xyname{}z",
            header("/", 4),
            header("//", names.len()),
            header("m.o/", 3),
            header("#1/2", 6),
            header("/15", 1)
        );
        let found = |text: &str| {
            let members = located_members(Path::new("d/l.a"), text.as_bytes());
            let member = |member: LocatedMember| {
                let name = String::from_utf8(member.name).expect("text");
                match member.content {
                    MemberContent::Inside(range) => (name, member.offset, text[range].to_owned()),
                    MemberContent::Beside(path) => (name, member.offset, path.display().to_string()),
                }
            };
            members.into_iter().map(member).collect::<Vec<_>>()
        };
        let first = 8 + 2 * HEADER + 4 + names.len();
        let expected = [("m.o", first, "abc"), ("xy", first + 64, "name"), ("other.o", first + 130, "z")];
        assert_eq!(found(&plain), expected.map(|(name, at, text)| (name.to_owned(), at, text.to_owned())));
        // A truncated member is passed over.
        assert_eq!(found(&plain[..plain.len() - 1]).len(), 2);
        let thin =
            format!("!<thin>\n{}{names}{}{}", header("//", names.len()), header("/0", 7), header("s.o/", 7));
        let first = 8 + HEADER + names.len();
        let expected = [("m.o", first, "d/long/name/m.o"), ("s.o", first + HEADER, "d/s.o")];
        assert_eq!(found(&thin), expected.map(|(name, at, path)| (name.to_owned(), at, path.to_owned())));
    }
}
