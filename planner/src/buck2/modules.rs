//! The objects and archive members of a meta file, found by path, with their indices in plans.
//!
//! Pure. A path has one slot for each time that the meta file lists it. Imports and lists mean the last slot, as in the
//! stock tools; the others get the same files at their own places.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use distlto_prepare::names::escape_path;

use super::index_directory::{SHARD, relative};
use super::meta::{Archive, Linkable, Meta, Object};

/// Subdirectory of an archive's shard directory, for members that share their base name with another member.
const BY_PATH: &str = "by-path";

/// An object or archive member of the link.
#[derive(Debug)]
pub struct ModuleSlot<'m> {
    /// As on the link line.
    pub path: &'m str,
    /// The entry of the meta file that lists it.
    pub entry: usize,
    /// The object or archive that lists it there.
    pub origin: SlotOrigin<'m>,
}

/// Where a slot comes from.
#[derive(Debug, Clone, Copy)]
pub enum SlotOrigin<'m> {
    /// An object of its own.
    Object(&'m Object<'m>),
    /// A member of this one of [`LinkedModules::archives`].
    Member(usize),
}

/// The properties of a slot that an import list needs.
#[derive(Debug, Clone, Copy)]
pub struct Brief {
    /// The index in plans: the object's own, or the archive's for a member.
    pub index: u64,
    /// The archive that it is a member of.
    pub archive: Option<u32>,
}

/// An archive with its members.
#[derive(Debug)]
pub struct ArchiveSlots<'m> {
    /// The archive.
    pub archive: &'m Archive<'m>,
    /// Slots of its members, sorted by path.
    pub members: Vec<usize>,
}

/// All objects and members of a link.
#[derive(Debug)]
pub struct LinkedModules<'m> {
    /// In the order of the meta file.
    pub slots: Vec<ModuleSlot<'m>>,
    /// In the order of the meta file.
    pub archives: Vec<ArchiveSlots<'m>>,
    /// The slots that their path means.
    pub leaders: Vec<usize>,
    by_path: HashMap<&'m [u8], usize>,
    brief: Vec<Brief>,
    copies: HashMap<usize, Vec<usize>>,
    /// Shards that cannot have their base name alone.
    longer_names: HashMap<usize, String>,
}

impl<'m> LinkedModules<'m> {
    /// Collects the objects and archive members of a meta file.
    pub fn of(meta: &'m Meta<'m>) -> Self {
        Self::with_names(meta, &[])
    }

    /// The same, with further names of slots; a slot's own path comes before them.
    pub fn with_names(meta: &'m Meta<'m>, others: &[(&'m str, usize)]) -> Self {
        let mut found = Self {
            slots: Vec::new(),
            archives: Vec::new(),
            leaders: Vec::new(),
            by_path: HashMap::new(),
            brief: Vec::new(),
            copies: HashMap::new(),
            longer_names: HashMap::new(),
        };
        for (entry, listed) in meta.entries.iter().enumerate() {
            for linkable in &listed.linkables {
                match linkable {
                    Linkable::Object(object) => {
                        found.slots.push(ModuleSlot {
                            path: &object.path,
                            entry,
                            origin: SlotOrigin::Object(object),
                        });
                    }
                    Linkable::Archive(archive) => found.add_archive(archive, entry),
                    Linkable::Opaque(_) => {}
                }
            }
        }
        found.brief = found.slots.iter().map(|slot| found.brief_of(slot)).collect();
        found.look_up_paths(others);
        found.name_shards();
        found
    }

    fn brief_of(&self, slot: &ModuleSlot<'_>) -> Brief {
        match slot.origin {
            SlotOrigin::Object(object) => Brief { index: object.index, archive: None },
            SlotOrigin::Member(archive) => {
                let index = self.archives[archive].archive.index;
                Brief { index, archive: u32::try_from(archive).ok() }
            }
        }
    }

    fn add_archive(&mut self, archive: &'m Archive<'m>, entry: usize) {
        let first = self.slots.len();
        let origin = SlotOrigin::Member(self.archives.len());
        let mut paths: Vec<&'m str> = archive.members.iter().flatten().map(|path| &**path).collect();
        paths.sort_unstable();
        paths.dedup();
        self.slots.extend(paths.into_iter().map(|path| ModuleSlot { path, entry, origin }));
        self.archives.push(ArchiveSlots { archive, members: (first..self.slots.len()).collect() });
    }

    /// Builds the table of paths. `others` are further names of slots; a slot's own path takes precedence.
    fn look_up_paths(&mut self, others: &[(&'m str, usize)]) {
        let paths = self.slots.iter().enumerate().map(|(at, slot)| (slot.path, at));
        let named = others.iter().copied().chain(paths);
        self.by_path = named.map(|(path, slot)| (path.as_bytes(), slot)).collect();
        for (at, slot) in self.slots.iter().enumerate() {
            match self.find(slot.path.as_bytes()) {
                Some(leader) if leader != at => self.copies.entry(leader).or_default().push(at),
                _ => self.leaders.push(at),
            }
        }
    }

    /// The shard of a member has the member's base name, as in the stock tools, unless another member has it too.
    fn name_shards(&mut self) {
        let mut seen: HashSet<&str> = HashSet::new();
        for ArchiveSlots { archive, members } in &self.archives {
            seen.clear();
            let shared: HashSet<&str> = members
                .iter()
                .map(|&member| base_name(self.slots[member].path))
                .filter(|&name| !seen.insert(name))
                .collect();
            for &member in members {
                let path = self.slots[member].path;
                if shared.contains(base_name(path)) {
                    let name = escape_path(relative(path, archive.base()).as_bytes());
                    self.longer_names.insert(member, format!("{BY_PATH}/{name}"));
                }
            }
        }
    }

    /// The slot that a path means.
    pub fn find(&self, path: &[u8]) -> Option<usize> {
        self.by_path.get(path).copied()
    }

    /// Returns the index in plans and the archive of a slot; small, because each import looks it up.
    pub fn brief(&self, slot: usize) -> Brief {
        self.brief[slot]
    }

    /// Where the plans of all objects go.
    pub fn plans(&self) -> impl Iterator<Item = &str> {
        self.slots.iter().filter_map(|slot| match slot.origin {
            SlotOrigin::Object(object) => Some(&*object.plan_output),
            SlotOrigin::Member(_) => None,
        })
    }

    /// The other slots of a path.
    pub fn copies(&self, leader: usize) -> &[usize] {
        self.copies.get(&leader).map_or(&[], Vec::as_slice)
    }

    /// Returns the index of a slot in plans.
    pub fn index(&self, slot: usize) -> u64 {
        self.brief[slot].index
    }

    /// Where a member's shard goes.
    pub fn member_shard(&self, slot: usize, archive: &Archive<'_>) -> String {
        let name = match self.longer_names.get(&slot) {
            Some(name) => name,
            None => base_name(self.slots[slot].path),
        };
        format!("{}{name}{SHARD}", with_slash(&archive.index_directory))
    }

    /// Where a member's native object will be.
    pub fn member_object(&self, slot: usize, archive: &Archive<'_>) -> String {
        let relative = relative(self.slots[slot].path, archive.base());
        match &*relative {
            absolute if absolute.starts_with('/') => absolute.to_owned(),
            below => format!("{}{below}", with_slash(&archive.objects_directory)),
        }
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A directory as the beginning of a path, as Python's `os.path.join` makes it.
fn with_slash(directory: &str) -> Cow<'_, str> {
    if directory.is_empty() || directory.ends_with('/') {
        Cow::Borrowed(directory)
    } else {
        Cow::Owned(format!("{directory}/"))
    }
}
