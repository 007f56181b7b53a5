//! The modules of a link: the label of each, and its file for the compiler.
//!
//! A linker calls a member of an archive `libx.a(m.o at 78)`, which is no file, and extracts the bitcode of a FatLTO
//! object itself. For a compiler, both are written to files of the state directory. Backends import in the order of
//! module names. So a shard has all of its modules renamed or none, in a way that keeps their order. Does not depend
//! on links.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use camino::Utf8PathBuf;
use distlto_planner::digests::Digest;
use distlto_planner::module::source_name;
use distlto_planner::references::{self, References};
use distlto_planner::state::Place;
use distlto_planner::words::Word;
use distlto_prepare::input::Input;
use distlto_prepare::io_error::IoError;
use distlto_prepare::kind::{Kind, bitcode_of, classify};
use distlto_prepare::member::{LocatedMember, MemberContent, located_members, splits};
use distlto_prepare::names::escape_path;
use distlto_prepare::universal;
use distlto_prepare::write::write_if_changed;

use super::settings::CompileSettings;

/// How many digits of an encoded name stand in one folder.
const DIGITS: usize = 200;

/// Modules that a driver has compiled for a link alone, by their ids.
pub type Temporaries = HashMap<String, Rc<Input>>;

/// The modules of one link.
pub struct ModuleFiles {
    /// Where the linker runs.
    directory: PathBuf,
    /// The directory for modules that are no files, as compilers name it.
    members: String,
    archives: HashMap<String, Rc<Archive>>,
    /// Where the bytes of each module are; `None` for a file that a compiler takes as it is.
    sources: HashMap<String, Option<Source>>,
    /// The object of each source that a driver compiles.
    temporaries: HashMap<String, String>,
    /// The files that have been written, each with the id of its module.
    written: HashMap<String, String>,
    /// Modules that a driver has compiled for the link alone, where they are to outlive it.
    kept: Temporaries,
    /// The place of each module, where each has the same for all that import from it.
    placed: HashMap<String, String>,
    /// The architecture whose slices of universal files count.
    architecture: Option<String>,
    /// Whether names of members are those of COFF's linker.
    is_coff: bool,
    /// The ends of archives' paths in such names, and the members' numbers.
    run_together: HashMap<String, Option<(usize, usize)>>,
    /// Whether a copy of a file is written where a symbolic link would do.
    copies: bool,
}

struct Archive {
    input: Input,
    members: Vec<LocatedMember>,
}

/// Where the bytes of a module are that is no file of its own.
#[derive(Clone)]
enum Source {
    /// The bitcode in a file, as a link takes it.
    File(PathBuf),
    /// A part of an archive.
    Part(String, Range<usize>),
    /// A file that may be gone.
    Kept(Rc<Input>),
}

impl ModuleFiles {
    /// Starts for a linker that runs in `directory`, and a link with this state directory.
    pub fn new(directory: &Path, state: &str) -> Self {
        Self {
            directory: directory.to_owned(),
            members: Place::Members.of(state),
            archives: HashMap::new(),
            sources: HashMap::new(),
            temporaries: HashMap::new(),
            written: HashMap::new(),
            kept: HashMap::new(),
            placed: HashMap::new(),
            architecture: None,
            is_coff: false,
            run_together: HashMap::new(),
            copies: false,
        }
    }

    /// Whether copies of files are written where symbolic links would do.
    pub fn with_copies(self, copies: bool) -> Self {
        Self { copies, ..self }
    }

    /// Adds modules that a driver has compiled and is about to delete.
    pub fn with_kept(self, kept: Temporaries) -> Self {
        Self { kept, ..self }
    }

    /// Takes the slices of universal files that the link takes, and the names that its linker gives to members.
    pub fn with_slices(self, compilation: &CompileSettings) -> Self {
        let is_coff = compilation.is_distributed();
        Self { architecture: compilation.architecture.clone(), is_coff, ..self }
    }

    /// Where modules were written.
    pub fn written(&self) -> impl Iterator<Item = &str> {
        self.written.keys().map(String::as_str)
    }

    /// Returns the label of a module. A member has its archive and its name, with a number if several members share
    /// the name. A driver's temporary has its source.
    pub fn label(&mut self, id: &str) -> String {
        if is_temporary(id) {
            return self.label_of_temporary(id);
        }
        let Some((path, archive, at)) = self.member(id) else { return id.to_owned() };
        let name = &archive.members[at].name;
        let earlier = archive.members[..at].iter().filter(|found| found.name == *name).count();
        let name = String::from_utf8_lossy(name);
        match earlier {
            0 => format!("{path}({name})"),
            earlier => format!("{path}({name} #{})", earlier + 1),
        }
    }

    /// Returns the source of the module with this label, if it can be found ([`Self::label`]).
    pub fn source_of(&mut self, label: &str) -> Option<String> {
        self.with_labelled(label, |bytes| source_name(bytes).ok())
    }

    /// Calls `work` with the bitcode of the module with this label, if it can be found.
    pub fn with_labelled<T>(&mut self, label: &str, work: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
        let work = |bytes: &[u8]| work(bitcode_of(bytes).unwrap_or(bytes));
        let file = self.directory.join(label);
        if file.is_file() {
            return self.with_bitcode(label, work).ok()?;
        }
        let (path, member) = label.strip_suffix(')')?.rsplit_once('(')?;
        let (member, number) = match member.rsplit_once(" #") {
            Some((member, number)) => (member, number.parse::<usize>().ok()?),
            None => (member, 1),
        };
        let archive = self.archive(path)?;
        let mut same = archive.members.iter().filter(|found| found.name == member.as_bytes());
        match &same.nth(number.checked_sub(1)?)?.content {
            MemberContent::Inside(range) => work(archive.input.get(range.clone())?),
            MemberContent::Beside(path) => work(&Input::open(path).ok()?),
        }
    }

    /// Labels an object that a driver has named: by its source, or by its id if another object has that source.
    fn label_of_temporary(&mut self, id: &str) -> String {
        let kept = self.kept.get(id).cloned();
        let input = kept.or_else(|| Input::open(&self.directory.join(id)).ok().map(Rc::new));
        let source = input.and_then(|input| source_name(bitcode_of(&input)?).ok());
        let source = source.filter(|source| !source.is_empty()).unwrap_or_else(|| id.to_owned());
        match self.temporaries.entry(source) {
            Entry::Vacant(free) => {
                let source = free.key().clone();
                free.insert(id.to_owned());
                source
            }
            Entry::Occupied(known) if known.get() == id => known.key().clone(),
            Entry::Occupied(_) => id.to_owned(),
        }
    }

    /// The archive that holds a module, if one does, and where in it.
    pub fn archive_of<'i>(&mut self, id: &'i str) -> Option<(&'i str, usize)> {
        let (path, archive, at) = self.member(id)?;
        Some((path, archive.members[at].offset))
    }

    /// The object that a build has compiled a module to, and the archive that holds it, if it is in no file of its own.
    pub fn recorded_as(&mut self, id: &str) -> (Utf8PathBuf, Option<String>) {
        let Some((path, archive, at)) = self.member(id) else { return (id.into(), None) };
        let LocatedMember { name, content, .. } = &archive.members[at];
        match content {
            MemberContent::Inside(_) => {
                (String::from_utf8_lossy(name).into_owned().into(), Some(path.to_owned()))
            }
            MemberContent::Beside(file) => (file.to_string_lossy().into_owned().into(), None),
        }
    }

    /// The archive that holds a module, by its path, and the module's place among its members.
    fn member<'i>(&mut self, id: &'i str) -> Option<(&'i str, Rc<Archive>, usize)> {
        splits(id)
            .find_map(|(path, _, offset)| {
                let archive = self.archive(path)?;
                let at = archive.members.binary_search_by_key(&offset, |member| member.offset).ok()?;
                Some((path, archive, at))
            })
            .or_else(|| self.is_coff.then(|| self.member_of_coff(id))?)
    }

    /// The same by the name that COFF's linker gives to a member: archive, name and offset run together. Its number stands in
    /// place of the offset if all members are taken.
    fn member_of_coff<'i>(&mut self, id: &'i str) -> Option<(&'i str, Rc<Archive>, usize)> {
        let known = match self.run_together.get(id) {
            Some(known) => *known,
            None => {
                let found = self.look_for_member(id);
                self.run_together.insert(id.to_owned(), found);
                found
            }
        };
        let (end, at) = known?;
        Some((&id[..end], self.archive(&id[..end])?, at))
    }

    fn look_for_member(&mut self, id: &str) -> Option<(usize, usize)> {
        if self.directory.join(id).is_file() {
            return None;
        }
        id.char_indices().skip(1).find_map(|(end, _)| {
            let (path, rest) = id.split_at(end);
            let archive = self.archive(path)?;
            let named = |place: &dyn Fn(usize, &LocatedMember) -> usize| {
                archive.members.iter().enumerate().position(|(number, member)| {
                    let place = place(number, member).to_string();
                    rest.as_bytes() == [&member.name, place.as_bytes()].concat()
                })
            };
            let at = named(&|_, member| member.offset).or_else(|| named(&|number, _| number));
            Some((end, at?))
        })
    }

    /// The digest of a module's bitcode.
    pub fn content(&mut self, id: &str) -> Result<String, IoError> {
        self.with_bitcode(id, |bytes| Digest::of(bytes).hex())
    }

    /// Whether a file is an archive.
    pub fn is_archive(&mut self, path: &str) -> bool {
        self.archive(path).is_some()
    }

    /// Whether the archive of this path has a member of this name, in COFF's linker's way, with the content of a file. A file
    /// that is not there does not count.
    pub fn has_member(&mut self, id: &str, file: &Path) -> bool {
        if self.member_of_coff(id).is_none() {
            return false;
        }
        let Ok(expected) = Input::open(file) else { return true };
        self.with_bitcode(id, |bytes| bytes == bitcode_of(&expected).unwrap_or(&expected)).unwrap_or(false)
    }

    /// Gives each module of a link one place for all its importers.
    pub fn place(&mut self, ids: &[&str]) -> Result<(), IoError> {
        let places = self.places(ids)?;
        self.placed = ids.iter().map(|&id| id.to_owned()).zip(places).collect();
        Ok(())
    }

    /// The files of the modules that one shard names, in the order of `ids`; the ids themselves where all are files.
    pub fn places(&mut self, ids: &[&str]) -> Result<Vec<String>, IoError> {
        let placed: Option<Vec<String>> = ids.iter().map(|&id| self.placed.get(id).cloned()).collect();
        if let Some(placed) = placed {
            return Ok(placed);
        }
        let sources: Vec<_> = ids.iter().map(|id| self.source(id)).collect::<Result<_, _>>()?;
        if sources.iter().all(Option::is_none) {
            return Ok(ids.iter().map(|&id| id.to_owned()).collect());
        }
        let labels: Vec<String> = ids.iter().map(|id| self.label(id)).collect();
        let names = names(ids, &labels);
        let place = |((id, source), name): ((&&str, &Option<Source>), String)| {
            let place = format!("{}/{name}", self.members);
            self.write(id, &place, source.as_ref())?;
            Ok(place)
        };
        ids.iter().zip(&sources).zip(names).map(place).collect()
    }

    /// Returns where the bytes of a module are; `None` for a file that a compiler takes as it is.
    fn source(&mut self, id: &str) -> Result<Option<Source>, IoError> {
        if let Some(known) = self.sources.get(id) {
            return Ok(known.clone());
        }
        let found = self.look(id)?;
        self.sources.insert(id.to_owned(), found.clone());
        Ok(found)
    }

    /// The file that holds a module, and where in it, unless it is the whole file.
    pub fn container(&mut self, id: &str) -> Result<(PathBuf, Option<Range<usize>>), IoError> {
        Ok(match self.source(id)? {
            Some(Source::Part(path, range)) => (self.directory.join(path), Some(range)),
            Some(Source::File(path)) => (path, None),
            Some(Source::Kept(_)) | None => (self.directory.join(id), None),
        })
    }

    /// Reads the references of a module's definitions from its summary.
    pub fn references(&mut self, id: &str) -> Option<References> {
        self.with_bitcode(id, |bytes| references::read(bytes).ok().flatten()).ok().flatten()
    }

    /// Calls `work` with the bitcode of a module.
    fn with_bitcode<T>(&mut self, id: &str, work: impl FnOnce(&[u8]) -> T) -> Result<T, IoError> {
        let work = |bytes: &[u8]| work(bitcode_of(bytes).unwrap_or(bytes));
        let file = match self.source(id)? {
            Some(Source::Part(path, range)) => {
                let archive = self.archive(&path);
                return Ok(work(
                    archive.as_ref().and_then(|archive| archive.input.get(range)).unwrap_or_default(),
                ));
            }
            Some(Source::Kept(input)) => return Ok(work(&input)),
            Some(Source::File(path)) => path,
            None => self.directory.join(id),
        };
        let input = Input::open(&file).map_err(|error| unreadable(&file, error))?;
        Ok(work(&input))
    }

    fn look(&mut self, id: &str) -> Result<Option<Source>, IoError> {
        if let Some(kept) = self.kept.get(id) {
            return Ok(Some(Source::Kept(Rc::clone(kept))));
        }
        let file = self.directory.join(id);
        if !file.is_file()
            && let Some((path, archive, at)) = self.member(id)
        {
            return Ok(Some(match &archive.members[at].content {
                MemberContent::Inside(range) => Source::Part(path.to_owned(), range.clone()),
                MemberContent::Beside(path) => Source::File(path.clone()),
            }));
        }
        let input = Input::open(&file).map_err(|error| unreadable(&file, error))?;
        Ok(match classify(&input) {
            Kind::FatLto(_) => Some(Source::File(file)),
            Kind::Universal => self.slice(&file, &input).map(|slice| Source::Part(id.to_owned(), slice)),
            _ => None,
        })
    }

    fn archive(&mut self, path: &str) -> Option<Rc<Archive>> {
        if let Some(known) = self.archives.get(path) {
            return Some(Rc::clone(known));
        }
        let file = self.directory.join(path);
        let input = Input::open(&file).ok()?;
        let slice = match classify(&input) {
            Kind::Archive { .. } => 0..input.len(),
            Kind::Universal => self.slice(&file, &input)?,
            _ => return None,
        };
        let mut members = Vec::new();
        if matches!(classify(&input[slice.clone()]), Kind::Archive { .. }) {
            members = located_members(&file, &input[slice.clone()]);
        }
        for member in &mut members {
            if let MemberContent::Inside(range) = &mut member.content {
                *range = slice.start + range.start..slice.start + range.end;
            }
        }
        let archive = Rc::new(Archive { input, members });
        self.archives.insert(path.to_owned(), Rc::clone(&archive));
        Some(archive)
    }

    /// The part of a universal file that the link takes.
    fn slice(&self, file: &Path, bytes: &[u8]) -> Option<Range<usize>> {
        universal::slice(file, bytes, self.architecture.as_deref()).ok()
    }

    /// Writes a module to a place; for a file, a symbolic link or a copy.
    fn write(&mut self, id: &str, place: &str, source: Option<&Source>) -> Result<(), IoError> {
        let before = self.written.insert(place.to_owned(), id.to_owned());
        match before {
            Some(written) if written == id => return Ok(()),
            // `a` and `/a`.
            Some(written) => {
                let taken = std::io::Error::other(format!("{written} and {id} have one place"));
                return Err(IoError::on("write", place)(taken));
            }
            None => {}
        }
        let file = self.directory.join(place);
        let parent = file.parent().unwrap_or(&self.directory);
        fs::create_dir_all(parent).map_err(IoError::on("create directory", parent))?;
        if source.is_none() && !self.copies {
            return link(&self.directory.join(id), &file);
        }
        let bytes = self.with_bitcode(id, <[u8]>::to_vec)?;
        if file.is_symlink() {
            fs::remove_file(&file).map_err(IoError::on("remove", &file))?;
        }
        write_if_changed(&file, &bytes).map(drop)
    }
}

/// The modules among these inputs that a driver has compiled for the link alone.
pub fn temporaries<'w>(inputs: impl Iterator<Item = &'w Word>) -> Temporaries {
    let named = inputs.filter_map(|word| std::str::from_utf8(word).ok()).filter(|id| is_temporary(id));
    // The linker reports unreadable inputs.
    named.filter_map(|id| Some((id.to_owned(), Rc::new(Input::open(Path::new(id)).ok()?)))).collect()
}

/// Whether a module has a name that a driver has made up.
fn is_temporary(id: &str) -> bool {
    Path::new(id).starts_with(std::env::temp_dir())
}

/// Creates a symbolic link at `place`, and replaces an existing file.
fn link(file: &Path, place: &Path) -> Result<(), IoError> {
    let file = std::path::absolute(file).map_err(IoError::on("find", file))?;
    if fs::read_link(place).is_ok_and(|found| found == file) {
        return Ok(());
    }
    match fs::remove_file(place) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(IoError::on("remove", place)(error)),
        _ => {}
    }
    symlink(&file, place).map_err(IoError::on("link", place))
}

fn unreadable(path: &Path, error: impl std::fmt::Display) -> IoError {
    IoError::on("read", path)(std::io::Error::other(error.to_string()))
}

/// Returns file names that sort as the ids do. Labels come first: they stay when another member of an archive grows.
/// Else the ids themselves serve, or digits. Names end in `.bc`, since make takes `a(b)` for a member of an archive.
fn names(ids: &[&str], labels: &[String]) -> Vec<String> {
    let mut order: Vec<usize> = (0..ids.len()).collect();
    order.sort_by_key(|&at| ids[at]);
    let are_fit = |names: &Vec<String>| order.windows(2).all(|pair| names[pair[0]] < names[pair[1]]);
    let by_label = labels.iter().map(|label| format!("{}.bc", escape_path(label.as_bytes()))).collect();
    let of_id = |id: &str| format!("{}.bc", escape_path(id.trim_start_matches('/').as_bytes()));
    let by_id = ids.iter().map(|id| of_id(id)).collect();
    // In the place of a name that a driver has made up.
    let stable = |(id, label): (&&str, &String)| match Path::new(id).parent().filter(|_| is_temporary(id)) {
        Some(folder) => of_id(&format!("{}/{label}", folder.display())),
        None => of_id(id),
    };
    let by_source = ids.iter().zip(labels).map(stable).collect();
    let encoded = || ids.iter().map(|id| encoded_name(id)).collect();
    [by_label, by_source, by_id].into_iter().find(are_fit).unwrap_or_else(encoded)
}

/// A name of digits that sorts as the name itself does, in folders. The end sorts before a folder, and before digits.
fn encoded_name(id: &str) -> String {
    let mut name = String::with_capacity(2 * id.len() + 2 * id.len() / DIGITS + 1);
    for (at, byte) in id.bytes().enumerate() {
        if at > 0 && (2 * at).is_multiple_of(DIGITS) {
            name.push('/');
        }
        name += &format!("{byte:02x}");
    }
    name + "."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_names_sort_as_names_do() {
        let long = "x".repeat(DIGITS / 2);
        let mut names = [
            "a".to_owned(),
            "a.o".into(),
            "../a.o".into(),
            "/a".into(),
            long.clone(),
            long.clone() + "y",
            long + "/y",
        ];
        names.sort();
        let encoded: Vec<_> = names.iter().map(|name| encoded_name(name)).collect();
        assert!(encoded.is_sorted(), "{encoded:?}");
    }
}
