//! Module identifiers that name a member of an archive: `libx.a(m.o at 118)`.
//!
//! lld makes them of the archive's path, the last component of the member's name, and the offset of the member's
//! header in the archive (`BitcodeFile` in `lld/ELF/InputFiles.cpp`). Pure: whether the archive exists is for the
//! caller to see.

use std::path::{Component, Path};

use camino::Utf8Path;

/// A member of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveMember<'a> {
    /// The archive's path.
    pub archive: &'a Utf8Path,
    /// The last component of the member's name.
    pub member: &'a str,
    /// Where the member is in the archive, in bytes.
    pub offset: u64,
}

/// Returns the archive members that an identifier may mean, the most likely one first. There are several where names
/// hold parentheses, and none for any other identifier. The correct one is in an archive that exists.
pub fn members(identifier: &str) -> Vec<ArchiveMember<'_>> {
    let Some((head, offset)) = identifier.strip_suffix(')').and_then(|rest| rest.rsplit_once(" at ")) else {
        return Vec::new();
    };
    let digits = !offset.is_empty() && offset.bytes().all(|byte| byte.is_ascii_digit());
    let Some(offset) = offset.parse().ok().filter(|_| digits) else { return Vec::new() };
    let mut found: Vec<_> = head
        .match_indices('(')
        .map(|(at, _)| (&head[..at], &head[at + 1..]))
        .filter(|(archive, member)| !archive.is_empty() && !member.is_empty() && !member.contains('/'))
        .map(|(archive, member)| ArchiveMember { archive: Utf8Path::new(archive), member, offset })
        .collect();
    let usual = |found: &ArchiveMember<'_>| matches!(found.archive.extension(), Some("a" | "lib" | "rlib"));
    found.sort_by_key(|found| !usual(found));
    found
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(identifier: &str) -> Vec<(&str, &str, u64)> {
        members(identifier).iter().map(|found| (found.archive.as_str(), found.member, found.offset)).collect()
    }

    #[test]
    fn parentheses_in_names_leave_a_choice() {
        let expected = [("lib.a", "x(y.o", 5), ("lib.a(x", "y.o", 5)];
        assert_eq!(read("lib.a(x(y.o at 5)"), expected);
        let expected = [("l(1).a", "x at y.o", 7), ("l", "1).a(x at y.o", 7)];
        assert_eq!(read("l(1).a(x at y.o at 7)"), expected);
    }
}
