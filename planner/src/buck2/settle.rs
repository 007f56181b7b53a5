//! Reads each module's import list, moves its shard into place and writes its plan.
//!
//! Runs in parallel over paths. A [`PlanForm`] turns imports into the text of a plan. Independent of the final link's
//! lists.

use std::borrow::Cow;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;
use serde_json::value::RawValue;

use super::error::Buck2PlanError;
use super::import_list::ImportList;
use super::index_directory::{IMPORTS, IndexDirectory, SHARD};
use super::listing::{Listing, lines};
use super::meta::Object;
use super::modules::{LinkedModules, SlotOrigin};
use super::{outputs, plan, spelling};

/// The format of object plans.
pub trait PlanForm: Sync {
    /// Appends the plan of an object, which is native without `imports`. `bitcode_file` is where the linker has
    /// written its shard.
    fn plan(
        &self,
        out: &mut Vec<u8>,
        slot: usize,
        object: &Object<'_>,
        imports: Option<&ImportList>,
        bitcode_file: &str,
    ) -> Result<(), Buck2PlanError>;
}

/// The results for all modules of a link.
#[derive(Debug, Default)]
pub struct Settled {
    /// Indices of objects that are native.
    pub native: Vec<u64>,
    /// Entries of archive plans: the slot and JSON text of each member.
    pub members: Vec<(usize, Box<RawValue>)>,
    /// Imports that the meta file does not list, sorted, each once.
    pub unknown: Vec<String>,
}

/// The inputs of [`Settling::all`].
#[derive(Clone, Copy)]
pub struct Settling<'a> {
    /// The modules of the meta file.
    pub modules: &'a LinkedModules<'a>,
    /// Where the linker has written.
    pub directory: &'a IndexDirectory,
    /// The linker's listings of the modules.
    pub listing: &'a Listing<'a>,
    /// The format of plans.
    pub form: &'a dyn PlanForm,
}

/// The result for one path.
#[derive(Debug, Default)]
struct PathFate {
    bitcode: bool,
    members: Vec<(usize, Box<RawValue>)>,
    unknown: Vec<String>,
}

/// Buffers of one thread.
#[derive(Debug, Default)]
struct Buffers {
    imports: ImportList,
    shard: String,
    list: String,
    text: Vec<u8>,
}

impl Settling<'_> {
    /// Moves the shards and writes the plans of all modules.
    pub fn all(&self) -> Result<Settled, Buck2PlanError> {
        let modules = self.modules;
        let imported: Vec<AtomicBool> = modules.slots.iter().map(|_| AtomicBool::new(false)).collect();
        let fates: Vec<PathFate> = modules
            .leaders
            .par_iter()
            .with_min_len(64)
            .map_init(Buffers::default, |buffers, &slot| self.one(slot, &imported, buffers))
            .collect::<Result<_, _>>()?;
        let mut settled = Settled::default();
        for (&leader, mut fate) in modules.leaders.iter().zip(fates) {
            settled.members.append(&mut fate.members);
            settled.unknown.append(&mut fate.unknown);
            if fate.bitcode {
                continue;
            }
            if imported[leader].load(Ordering::Relaxed) {
                return Err(self.imported_without_shard(leader));
            }
            let slots = modules.copies(leader).iter().chain([&leader]);
            settled.native.extend(
                slots
                    .filter(|&&slot| matches!(modules.slots[slot].origin, SlotOrigin::Object(_)))
                    .map(|&slot| modules.index(slot)),
            );
        }
        settled.unknown.sort_unstable();
        settled.unknown.dedup();
        Ok(settled)
    }

    /// Moves the shard of one path and writes the plans of its objects.
    fn one(
        &self,
        leader: usize,
        imported: &[AtomicBool],
        buffers: &mut Buffers,
    ) -> Result<PathFate, Buck2PlanError> {
        let path = self.modules.slots[leader].path;
        self.directory.module_file(&mut buffers.shard, path, SHARD);
        self.directory.module_file(&mut buffers.list, path, IMPORTS);
        let place = self.shard_place(leader);
        let bitcode = self.is_bitcode(leader, buffers)?
            && match outputs::transfer(&IndexDirectory::written(&buffers.shard), &place)? {
                true => true,
                // A list without a shard is left from an earlier link, unless the linker says otherwise.
                false if self.listing.indexed[leader] => return Err(missing(&buffers.shard)),
                false => false,
            };
        if bitcode {
            spelling::mend(&place, path, buffers.imports.text())?;
            buffers.imports.look_up(path, &buffers.list, self.modules, imported)?;
        }
        let mut fate = PathFate { bitcode, ..PathFate::default() };
        for &slot in std::iter::once(&leader).chain(self.modules.copies(leader)) {
            let copy = (slot != leader).then(|| self.shard_place(slot)).filter(|copy| *copy != place);
            if let Some(copy) = copy.as_deref().filter(|_| bitcode) {
                outputs::copy(&place, copy)?;
            }
            match self.modules.slots[slot].origin {
                SlotOrigin::Object(object) => self.object_plan(slot, object, bitcode, buffers)?,
                SlotOrigin::Member(_) => {
                    let shard = copy.as_deref().unwrap_or(&place);
                    fate.members.push((slot, self.member_plan(slot, bitcode, shard, buffers)));
                }
            }
        }
        if bitcode {
            fate.unknown.append(&mut buffers.imports.unknown);
        }
        Ok(fate)
    }

    /// Whether the linker has taken a path for bitcode; reads its import list then.
    fn is_bitcode(&self, slot: usize, buffers: &mut Buffers) -> Result<bool, Buck2PlanError> {
        let indexed = self.listing.indexed[slot];
        if self.listing.as_native[slot] && !indexed {
            return Ok(false);
        }
        if !buffers.imports.read(&IndexDirectory::written(&buffers.list))? {
            return if indexed { Err(missing(&buffers.list)) } else { Ok(false) };
        }
        // lld leaves an empty shard for bitcode without a ThinLTO summary, and no backend can use it. The listing shows
        // loaded files. No backend compiles an unloaded object, but one compiles each archive member.
        let is_member = matches!(self.modules.slots[slot].origin, SlotOrigin::Member(_));
        if !indexed && (is_member || self.listing.as_bitcode[slot]) {
            let shard = IndexDirectory::written(&buffers.shard);
            return Ok(fs::metadata(&*shard).is_ok_and(|found| found.len() > 0));
        }
        Ok(true)
    }

    /// Names a module that imports from `slot`.
    fn imported_without_shard(&self, slot: usize) -> Buck2PlanError {
        let path = self.modules.slots[slot].path;
        let mut list = String::new();
        let importer = self.modules.slots.iter().find(|importer| {
            self.directory.module_file(&mut list, importer.path, IMPORTS);
            let text = fs::read(&*IndexDirectory::written(&list)).unwrap_or_default();
            lines(&text).any(|line| self.modules.find(line) == Some(slot))
        });
        let importer = importer.map_or("another module", |importer| importer.path);
        let mut shard = String::new();
        self.directory.module_file(&mut shard, path, SHARD);
        Buck2PlanError::Missing { file: shard.into(), because: format!("{importer} imports from its module") }
    }

    fn shard_place(&self, slot: usize) -> Cow<'_, str> {
        match self.modules.slots[slot].origin {
            SlotOrigin::Object(object) => Cow::Borrowed(&object.output),
            SlotOrigin::Member(archive) => {
                let archive = self.modules.archives[archive].archive;
                Cow::Owned(self.modules.member_shard(slot, archive))
            }
        }
    }

    fn object_plan(
        &self,
        slot: usize,
        object: &Object<'_>,
        bitcode: bool,
        buffers: &mut Buffers,
    ) -> Result<(), Buck2PlanError> {
        let Buffers { imports, shard, text, .. } = buffers;
        if !bitcode {
            outputs::write(&object.output, b"")?;
        }
        text.clear();
        self.form.plan(text, slot, object, bitcode.then_some(&*imports), shard)?;
        Ok(outputs::write(&object.plan_output, text)?)
    }

    fn member_plan(&self, slot: usize, bitcode: bool, shard: &str, buffers: &Buffers) -> Box<RawValue> {
        let path = self.modules.slots[slot].path;
        if bitcode { plan::of_member(&buffers.imports, path, shard) } else { plan::of_native_member(path) }
    }
}

fn missing(file: &str) -> Buck2PlanError {
    Buck2PlanError::Missing { file: file.into(), because: "the linker's index lists its module".to_owned() }
}
