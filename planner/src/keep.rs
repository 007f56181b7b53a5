//! What a planned link keeps in its state directory: shards, import lists, the object of regular LTO, the toolchain's
//! note, and the plan itself. `docs/thin-link.md` has the layout.
//!
//! Everything is written only where its content differs, and what the last plan named and this one does not is
//! removed. Knows nothing of how a plan is made.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use distlto_prepare::io_error::IoError;
use distlto_prepare::names::escape_path;
use distlto_prepare::regular;
use distlto_prepare::write::{remove, write_atomically, write_if_changed};

use crate::digests::Digest;
use crate::first_words;
use crate::link_plan::LinkPlan;
use crate::search_path::program_file;
use crate::shard;
use crate::state::Place;
use crate::thin_link::IndexedModule;

/// Where a module's files lie in the state directory.
pub struct ModulePlaces {
    /// The index shard.
    pub shard: String,
    /// The import list.
    pub imports: String,
    /// The native object.
    pub object: String,
}

impl ModulePlaces {
    /// For a module id.
    pub fn of(state: &str, id: &str) -> Self {
        let name = escape_path(id.as_bytes());
        let shards = Place::Shards.of(state);
        Self {
            shard: format!("{shards}/{name}.thinlto.bc"),
            imports: format!("{shards}/{name}.imports"),
            object: format!("{}/{name}.o", Place::Objects.of(state)),
        }
    }
}

/// Where the link plan lies.
pub fn plan_place(state: &str) -> String {
    Place::LinkPlan.of(state)
}

/// Where the note of what compiles lies.
pub fn toolchain_place(state: &str) -> String {
    Place::Toolchain.of(state)
}

/// Whether a file is such a note: an input by which other runs know the compiler, and which no compiler reads.
pub fn is_toolchain(file: &Path) -> bool {
    let first = ["compiler ", "file ", "is "];
    Place::Toolchain.is_name_of(file)
        && regular::read(file).ok().and_then(|text| String::from_utf8(text).ok()).is_some_and(|text| {
            text.lines().count() >= first.len()
                && text.lines().zip(first).all(|(line, word)| line.starts_with(word))
                && text.lines().skip(first.len()).all(|line| line.starts_with(FURTHER))
        })
}

/// How each line of a note begins that its caller adds.
const FURTHER: &str = "with ";

/// Where the object with the code of regular LTO lies.
pub fn regular_object_place(state: &str) -> String {
    Place::RegularLto.of(state)
}

/// Writes a module's shard and import list where their content differs.
pub fn shard(state: &str, module: &IndexedModule) -> Result<(), IoError> {
    let places = ModulePlaces::of(state, &module.id);
    let mut imports = module.imports.join("\n");
    if !imports.is_empty() {
        imports.push('\n');
    }
    write_if_changed(Path::new(&places.imports), imports.as_bytes())?;
    shard_at(Path::new(&places.shard), &module.shard).map(|_| ())
}

/// Writes a shard unless the one in its place says the same: everything that goes by content or by time would run the
/// backend again. Says whether it was written.
pub fn shard_at(place: &Path, bytes: &[u8]) -> Result<bool, IoError> {
    // What cannot be read is replaced, or is an error of writing.
    if regular::read(place).is_ok_and(|kept| shard::is_equivalent(&kept, bytes)) {
        return Ok(false);
    }
    write_atomically(place, bytes).map(|()| true)
}

/// Writes the object of regular LTO, or removes the one of an earlier link that needed it.
pub fn regular_object(state: &str, object: Option<&[u8]>) -> Result<(), IoError> {
    let place = regular_object_place(state);
    match object {
        Some(object) => write_if_changed(Path::new(&place), object).map(|_| ()),
        None => remove(Path::new(&place)),
    }
}

/// Writes excerpts of archives where their content differs.
pub fn excerpts(excerpts: &[(String, Vec<u8>)]) -> Result<(), IoError> {
    excerpts.iter().try_for_each(|(place, bytes)| write_if_changed(Path::new(place), bytes).map(|_| ()))
}

/// By what a tool's file is told from another one at its place. A touched one is the same tool: a small file goes by its
/// content. To read all of a compiler's libraries takes longer than to compile several modules, so those go by their state.
pub fn told_by(file: &Path) -> String {
    use std::os::unix::fs::MetadataExt;
    const SMALL: u64 = 1 << 20;
    let Ok(stat) = fs::metadata(file) else { return "gone".to_owned() };
    let content = (stat.is_file() && stat.size() <= SMALL).then(|| fs::read(file).ok()).flatten();
    if let Some(content) = content {
        return format!("content {}", Digest::of(&content));
    }
    let modified = i128::from(stat.mtime()) * 1_000_000_000 + i128::from(stat.mtime_nsec());
    format!("size {} modified {modified} inode {}", stat.size(), stat.ino())
}

/// Writes what compiles, so that another compiler under the same name makes every backend run again. `further` says what
/// else decides what it does: libraries, configuration, environment; a line each.
pub fn toolchain(state: &str, compiler: &str, further: &[String]) -> Result<(), IoError> {
    let named = Path::new(compiler);
    let file = program_file(named);
    let real = file.and_then(|file| file.canonicalize().ok()).unwrap_or_else(|| named.to_owned());
    let mut text = format!("compiler {compiler}\nfile {}\nis {}\n", real.display(), told_by(&real));
    for line in further {
        text += &format!("{FURTHER}{}\n", line.escape_default());
    }
    write_if_changed(Path::new(&toolchain_place(state)), text.as_bytes()).map(|_| ())
}

/// Removes the shards, import lists and objects of modules that the last plan had and this one has not, its excerpts of
/// archives likewise, and makes this plan the last one.
pub fn plan(state: &str, plan: &LinkPlan) -> Result<(), IoError> {
    let place = plan_place(state);
    let path = Path::new(&place);
    let bytes = plan.to_bytes();
    let old = regular::read(path).ok();
    if old.as_ref() == Some(&bytes) {
        return Ok(());
    }
    let current: HashSet<&str> = plan.modules.iter().map(|module| module.id.as_str()).collect();
    // An unreadable old plan names nothing to sweep; its files are only left over.
    let old = old.and_then(|old| LinkPlan::read(&old).ok());
    let gone = old.iter().flat_map(|old| &old.modules).filter(|module| !current.contains(module.id.as_str()));
    for module in gone {
        let places = ModulePlaces::of(state, module.id.as_str());
        for stale in [places.shard, places.imports, places.object] {
            remove(Path::new(&stale))?;
        }
    }
    let excerpts = format!("{}/", first_words::directory(state));
    let stale = old.iter().flat_map(|old| &old.thin_link.outputs);
    for stale in stale.filter(|file| file.as_str().starts_with(&excerpts)) {
        if !plan.thin_link.outputs.contains(stale) {
            remove(stale.as_std_path())?;
        }
    }
    write_atomically(path, &bytes)
}
