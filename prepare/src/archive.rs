//! The members of an archive, nested archives flattened, each as a range of an open file or a file of its own.
//!
//! Reads only; knows nothing of output names. Formats are read by the crate `object`; the rules for thin archives
//! are those of lld: a member's path is absolute or relative to the directory of the archive that names it.

use std::collections::HashMap;
use std::ops::{Deref, Range};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::read::archive::{ArchiveFile, ArchiveKind, ArchiveMember};

use crate::error::PrepareError;
use crate::input::Input;
use crate::io_error::IoError;
use crate::kind::{self, Kind};
use crate::names::printable;
use crate::universal;

/// More than any real archive holds; nested ones count too.
const MOST_MEMBERS: usize = 1 << 20;
/// Archives in archives; real ones have one or two levels.
const DEEPEST: usize = 16;

/// An archive's files and members.
pub(crate) struct Contents {
    /// Every archive file that was read, the given one first.
    pub sources: Vec<(PathBuf, Input)>,
    pub members: Vec<RawMember>,
}

/// A member as the archive has it.
pub(crate) struct RawMember {
    /// For people: `inner.a(member.o)` in a nested archive.
    pub display: String,
    /// The name in the innermost archive, from which the file name is made.
    pub name: Vec<u8>,
    pub content: Content,
}

/// Where a member's bytes are.
pub(crate) enum Content {
    /// In the `source`-th file.
    Inside { source: usize, range: Range<usize> },
    /// In a file named by the thin archive `archive`.
    Beside { path: PathBuf, archive: PathBuf },
}

impl Contents {
    /// Opens the archive at `path` and reads its member lists. Of a universal file, the slice for `architecture` counts.
    pub(crate) fn open(path: &Path, architecture: Option<&str>) -> Result<Self, PrepareError> {
        let input = Input::open(path)?;
        let kind = kind::classify(&input);
        let range = match kind {
            Kind::Universal => universal::slice(path, &input, architecture)?,
            _ => 0..input.len(),
        };
        let mut contents = Self { sources: vec![(path.to_owned(), input)], members: Vec::new() };
        let mut walk = Walk { contents: &mut contents, visited: 0, opened: HashMap::new() };
        let slice_kind = kind::classify(&walk.contents.sources[0].1[range.clone()]);
        match slice_kind {
            Kind::Archive { .. } => {
                walk.archive(
                    &Place { path, display: path.to_owned(), prefix: None, parents: &[] },
                    0,
                    range,
                )?;
            }
            // `lipo` also joins single objects, which link like an archive of one member.
            found if kind == Kind::Universal && found.is_object() => {
                let name = path.file_name().unwrap_or_default().as_bytes().to_vec();
                let content = Content::Inside { source: 0, range };
                contents.members.push(RawMember { display: printable(&name), name, content });
            }
            found => {
                return Err(PrepareError::NotAnArchive { path: path.to_owned(), found: found.to_string() });
            }
        }
        Ok(contents)
    }

    /// The content of a member, read if it lies in a file of its own.
    pub(crate) fn bytes(&self, member: &RawMember) -> Result<MemberBytes<'_>, PrepareError> {
        match &member.content {
            Content::Inside { source, range } => {
                Ok(MemberBytes::Inside(&self.sources[*source].1[range.clone()]))
            }
            Content::Beside { path, archive } => {
                let missing = |source| PrepareError::MissingMember {
                    archive: archive.clone(),
                    member: path.clone(),
                    source,
                };
                Ok(MemberBytes::Beside(Input::open_regular(path).map_err(missing)?))
            }
        }
    }
}

/// The files that a thin archive names, those of nested archives too; none for any other file.
pub fn files_beside(path: &Path) -> Result<Vec<PathBuf>, PrepareError> {
    let thin =
        |head: &[u8]| matches!(kind::classify(&head[..head.len().min(8)]), Kind::Archive { thin: true });
    if !Input::begins_with(path, thin).map_err(IoError::on("read", path))? {
        return Ok(Vec::new());
    }
    let contents = Contents::open(path, None)?;
    let members = contents.members.into_iter().filter_map(|member| match member.content {
        Content::Beside { path, .. } => Some(path),
        Content::Inside { .. } => None,
    });
    Ok(contents.sources.into_iter().skip(1).map(|(path, _)| path).chain(members).collect())
}

/// A member's content.
pub(crate) enum MemberBytes<'a> {
    Inside(&'a [u8]),
    Beside(Input),
}

impl Deref for MemberBytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Inside(bytes) => bytes,
            Self::Beside(input) => input,
        }
    }
}

/// Where the walk is.
struct Place<'a> {
    /// The archive's file, or that of the outermost archive around it that is a file.
    path: &'a Path,
    /// For messages: `outer.a(inner.a)`.
    display: PathBuf,
    /// For display names of members: the nested archive's name.
    prefix: Option<String>,
    /// Device and inode of the archive files around this one, itself included.
    parents: &'a [(u64, u64)],
}

struct Walk<'a> {
    contents: &'a mut Contents,
    /// Members and nested archives seen.
    visited: usize,
    /// The nested archive files that are sources already: one may be named many times.
    opened: HashMap<PathBuf, usize>,
}

/// A member's header, free of the borrow of the archive's bytes.
struct Entry {
    name: Vec<u8>,
    /// `None` for one of a thin archive.
    range: Option<Range<usize>>,
}

impl Walk<'_> {
    fn archive(&mut self, place: &Place<'_>, source: usize, range: Range<usize>) -> Result<(), PrepareError> {
        let identity = self.contents.sources[source].1.identity();
        let parents: Vec<_> = place.parents.iter().copied().chain([identity]).collect();
        let bytes = &self.contents.sources[source].1[range.clone()];
        for entry in entries(&place.display, bytes)? {
            self.visited += 1;
            if self.visited > MOST_MEMBERS {
                let path = self.contents.sources[0].0.clone();
                return Err(PrepareError::TooManyMembers { path, limit: MOST_MEMBERS });
            }
            let display = match &place.prefix {
                Some(prefix) => format!("{prefix}({})", printable(&entry.name)),
                None => printable(&entry.name),
            };
            match entry.range {
                Some(inner) => {
                    // `entries` has checked the range against the slice's length.
                    let range = range.start + inner.start..range.start + inner.end;
                    self.inside(place, &parents, source, range, entry.name, display)?;
                }
                None => self.beside(place, &parents, entry.name, display)?,
            }
        }
        Ok(())
    }

    fn inside(
        &mut self,
        place: &Place<'_>,
        parents: &[(u64, u64)],
        source: usize,
        range: Range<usize>,
        name: Vec<u8>,
        display: String,
    ) -> Result<(), PrepareError> {
        if is_archive(&self.contents.sources[source].1[range.clone()]) {
            let nested = self.nested(place, parents, &display)?;
            return self.archive(&nested, source, range);
        }
        self.contents.members.push(RawMember { display, name, content: Content::Inside { source, range } });
        Ok(())
    }

    fn beside(
        &mut self,
        place: &Place<'_>,
        parents: &[(u64, u64)],
        name: Vec<u8>,
        display: String,
    ) -> Result<(), PrepareError> {
        let directory = place.path.parent().unwrap_or(Path::new(""));
        let path = directory.join(std::ffi::OsStr::from_bytes(&name));
        let missing = |source| PrepareError::MissingMember {
            archive: place.display.clone(),
            member: path.clone(),
            source,
        };
        let opened = self.opened.get(&path).copied();
        if opened.is_some() || Input::begins_with(&path, is_archive).map_err(missing)? {
            let source = match opened {
                Some(source) => source,
                None => {
                    let input = Input::open_regular(&path).map_err(missing)?;
                    self.contents.sources.push((path.clone(), input));
                    let source = self.contents.sources.len() - 1;
                    self.opened.insert(path.clone(), source);
                    source
                }
            };
            let input = &self.contents.sources[source].1;
            if parents.contains(&input.identity()) {
                let problem = "which contains it in turn";
                return Err(PrepareError::Nesting { archive: place.display.clone(), member: path, problem });
            }
            let range = 0..input.len();
            let mut nested = self.nested(place, parents, &display)?;
            nested.path = &path;
            nested.display = path.clone();
            return self.archive(&nested, source, range);
        }
        let content = Content::Beside { path, archive: place.display.clone() };
        self.contents.members.push(RawMember { display, name, content });
        Ok(())
    }

    fn nested<'a>(
        &self,
        place: &Place<'a>,
        parents: &'a [(u64, u64)],
        display: &str,
    ) -> Result<Place<'a>, PrepareError> {
        let inner = PathBuf::from(format!("{}({display})", place.display.display()));
        if parents.len() > DEEPEST {
            let problem = "more than 16 archives deep";
            return Err(PrepareError::Nesting { archive: place.display.clone(), member: inner, problem });
        }
        Ok(Place { path: place.path, display: inner, prefix: Some(display.to_owned()), parents })
    }
}

fn is_archive(bytes: &[u8]) -> bool {
    matches!(kind::classify(&bytes[..bytes.len().min(8)]), Kind::Archive { .. })
}

/// The members of one archive, special ones (symbol tables, long names) left out.
fn entries(path: &Path, bytes: &[u8]) -> Result<Vec<Entry>, PrepareError> {
    let malformed =
        |place: String, problem: String| PrepareError::Malformed { path: path.to_owned(), place, problem };
    let file = ArchiveFile::parse(bytes).map_err(|error| {
        malformed("its first members (symbol table, long names)".to_owned(), error.to_string())
    })?;
    let mut entries: Vec<Entry> = Vec::new();
    let mut end = 0;
    let mut total = 0;
    for member in file.members() {
        let here = |entries: &[Entry], end: usize| match entries.last() {
            Some(last) => {
                format!("member {} after `{}`, byte {end} or later", entries.len() + 1, printable(&last.name))
            }
            None => "its first member".to_owned(),
        };
        let member = match member {
            Ok(member) => member,
            Err(error) => {
                if let Some(header) = file.is_thin().then(|| nested_reference(bytes)).flatten() {
                    return Err(PrepareError::NestedReference { path: path.to_owned(), header });
                }
                return Err(malformed(here(&entries, end), error.to_string()));
            }
        };
        let name = member.name().to_vec();
        let range = if file.is_thin() && member.is_thin() {
            None
        } else {
            let range = range_of(&member, bytes).ok_or_else(|| {
                let (offset, size) = member.file_range();
                let length = bytes.len();
                let problem = format!("it claims {size} bytes at {offset}, the archive ends at {length}");
                malformed(format!("{} `{}`", here(&entries, end), printable(&name)), problem)
            })?;
            end = range.end;
            total += range.len();
            Some(range)
        };
        // Only a big archive's index can name the same bytes again and again.
        if total > bytes.len() {
            return Err(malformed(here(&entries, end), "members overlap".to_owned()));
        }
        entries.push(Entry { name, range });
    }
    check_symbols(&file, bytes).map_err(|problem| malformed("its symbol table".to_owned(), problem))?;
    Ok(entries)
}

fn range_of(member: &ArchiveMember<'_>, bytes: &[u8]) -> Option<Range<usize>> {
    let (offset, size) = member.file_range();
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(size).ok()?)?;
    (end <= bytes.len()).then_some(start..end)
}

/// An archive cut off between two members is well formed but for its symbol table, which names members beyond
/// the end or reaches beyond it itself.
fn check_symbols(file: &ArchiveFile<'_>, bytes: &[u8]) -> Result<(), String> {
    let length = bytes.len() as u64;
    if matches!(file.kind(), ArchiveKind::Unknown | ArchiveKind::AixBig | ArchiveKind::Zos) {
        return Ok(());
    }
    // The first member is special in the other formats, and `object` does not look at its end.
    let size = bytes.get(56..66).and_then(|field| str::from_utf8(field).ok()?.trim_end().parse::<u64>().ok());
    if size.is_none_or(|size| size > length.saturating_sub(68)) {
        return Err(format!("it reaches beyond the end of the archive at {length}"));
    }
    let symbols = match file.symbols() {
        Ok(Some(symbols)) => symbols,
        // The second member of COFF archives, which `object` does not measure either.
        Err(error) if file.kind() == ArchiveKind::Coff => return Err(error.to_string()),
        // Linkers do without the table; a malformed one loses no member.
        _ => return Ok(()),
    };
    for symbol in symbols.map_while(Result::ok) {
        if symbol.offset().0 >= length {
            let (symbol, offset) = (printable(symbol.name()), symbol.offset().0);
            return Err(format!(
                "`{symbol}` is in the member at byte {offset}, but the archive ends at {length}"
            ));
        }
    }
    Ok(())
}

/// GNU ar writes `/<name>:<offset>` into a thin archive for a member of a regular archive.
fn nested_reference(bytes: &[u8]) -> Option<String> {
    let header = bytes.windows(60).find(|window| {
        let name = window[..16].trim_ascii_end();
        let digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
        let mut parts = name.strip_prefix(b"/").unwrap_or_default().splitn(2, |&byte| byte == b':');
        window[58..] == *b"`\n" && parts.next().is_some_and(digits) && parts.next().is_some_and(digits)
    })?;
    Some(printable(header[..16].trim_ascii_end()))
}
