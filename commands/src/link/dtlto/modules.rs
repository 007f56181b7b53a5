//! The modules of a link by lld, and how they are compiled.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use camino::Utf8PathBuf;
use distlto_planner::backend_flags::BackendFlags;
use distlto_planner::digests::Digest;
use distlto_planner::dtlto;
use distlto_planner::module;
use distlto_planner::shard::{self, Cost};
use distlto_prepare::input::Input;

use super::kept::KeptObject;
use super::names::Name;
use super::parts::{Identity, Parts};

/// What decides how modules of a link are compiled.
pub struct CompileSettings {
    /// The clang.
    pub compiler: String,
    /// What it is told.
    pub flags: BackendFlags,
    /// How many backends the link line asks to run at once.
    pub jobs: Option<usize>,
}

/// One module of the link.
#[derive(Debug)]
pub struct LinkModule {
    pub name: Name,
    /// Its file, as lld names it.
    pub path: String,
    pub shard: Utf8PathBuf,
    /// Where lld wants the object.
    pub wanted: Utf8PathBuf,
    /// The modules it imports from, by path.
    pub imports: Vec<String>,
    pub cost: Cost,
    pub key: Option<Digest>,
    /// What the key is made of.
    pub parts: Option<Parts>,
    /// Its object, once it is there.
    pub object: Option<KeptObject>,
    /// Whether it was compiled for this link, rather than found.
    pub ran: bool,
}

/// How the backends of a link went.
pub struct Ran {
    /// For the linker: 0 when all objects are in their places.
    pub code: u8,
    pub modules: Vec<LinkModule>,
}

/// The modules' names in every link, by their paths in this one.
pub fn labels(modules: &[LinkModule]) -> HashMap<&str, &str> {
    modules.iter().map(|module| (module.path.as_str(), module.name.label.as_str())).collect()
}

/// IR instructions by its shard, or by the size of its file.
pub fn cost(module: &LinkModule) -> Cost {
    let from_shard = fs::read(&module.shard).ok().and_then(|bytes| {
        let cost = shard::read(&bytes).ok()?.cost(&module.path).ok()?;
        (cost.total() > 0).then_some(cost)
    });
    from_shard.unwrap_or_else(|| Cost {
        own_instructions: dtlto::cost::by_size(Path::new(&module.path)),
        imported_instructions: 0,
    })
}

/// The module's own target triple; none for what cannot be read, of which the job itself says more.
pub fn triple(path: &str) -> String {
    let bytes = Input::open(Path::new(path)).ok();
    bytes.and_then(|bytes| Some(module::read(&bytes).ok()?.triple)).unwrap_or_default()
}

impl CompileSettings {
    /// Stands for what is compiled how, `note` being what tells the compiler from another one of its name.
    pub fn identity(&self, note: &[u8]) -> Identity {
        Identity::of(note, &self.flags.shared_words(&self.compiler))
    }
}
