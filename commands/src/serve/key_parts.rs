//! The parts of an object's key, so that an explanation can name the parts that changed.
//!
//! Used for explanations only: the key itself decides on a hit. Digests are cut short. A changed import is found by
//! comparing each imported module with its own earlier record. Does not depend on where objects are kept.

use std::collections::BTreeMap;

use distlto_executor::describe::inputs::Inputs;
use distlto_planner::digests::Digest;
use distlto_planner::shard::ShardModule;
use distlto_prepare::frame::Framed;
use distlto_record::why::{Change, ChangeKind};
use serde::{Deserialize, Serialize};

/// Digits of a shortened digest, enough to distinguish the contents of one part.
const DIGITS: usize = 16;

/// A key's parts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KeyParts {
    compiler: String,
    flags: String,
    module: String,
    shard: String,
    imports: String,
    /// Further files by name, such as profiles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<(String, String)>,
}

/// The settings that apply to all modules of a link: the compiler and its flags.
#[derive(Debug)]
pub struct Identity {
    /// The digest of both.
    pub digest: Digest,
    compiler: String,
    flags: String,
}

/// The inputs of a backend, as digests.
#[derive(Default)]
pub struct Content {
    /// The digest of all inputs, the compiler and its flags.
    pub digest: String,
    /// The key's parts, to explain why the backend ran.
    pub parts: KeyParts,
    /// The modules that it imports from, each by a short digest.
    pub imports: Vec<String>,
}

impl Identity {
    /// Hashes the words of a compiler's command line and its `note`, which distinguishes compilers of one name.
    pub fn of<'w>(note: &[u8], words: impl IntoIterator<Item = &'w String> + Clone) -> Self {
        let add = |framed: &mut Framed| words.clone().into_iter().for_each(|word| framed.add("word", word));
        let mut all = Framed::new("distlto compilation 1");
        all.add("compiler", note);
        add(&mut all);
        let mut flags = Framed::new("distlto flags 1");
        add(&mut flags);
        Self { digest: all.finish(), compiler: short(&Digest::of(note)), flags: short(&flags.finish()) }
    }
}

impl KeyParts {
    /// The parts for a module. `extra`: inputs that are not imports. `flags`: the module's own. `dwo`: the split
    /// debug file.
    pub fn of(identity: &Identity, inputs: &Inputs<'_>, extra: &[&str], flags: &[String], dwo: &str) -> Self {
        let (own, module) = inputs.module;
        let mut shard = Framed::new("distlto part 1");
        let mut imports = Framed::new("distlto part 2");
        let mut named = Framed::new("distlto part 1");
        named.add("flags", &identity.flags);
        named.add("dwo", dwo);
        flags.iter().for_each(|flag| named.add("flag", flag));
        if let Some(known) = &inputs.shard {
            shard.content("decisions", &known.decisions());
            let imported = known.modules.iter().filter(|module| module.path != own);
            // The order of the modules in the shard does not count as a change of the imports.
            let mut contents: Vec<_> = imported.map(|module| module.content).collect();
            contents.sort_unstable();
            contents.iter().for_each(|content| imports.content("content", content));
        }
        let others = inputs.others.iter().filter(|(name, _)| extra.contains(name));
        Self {
            compiler: identity.compiler.clone(),
            flags: short(&named.finish()),
            module: short(&module),
            shard: short(&shard.finish()),
            imports: short(&imports.finish()),
            inputs: others.map(|(name, content)| ((*name).to_owned(), short(content))).collect(),
        }
    }

    /// The parts for a module that its linker compiles: the modules of its shard by the hashes that the shard has.
    /// Returns the contents of its imports, too.
    pub fn of_shard(
        identity: &Identity,
        own: &str,
        modules: &[ShardModule],
        shard: &str,
    ) -> (Self, Vec<String>) {
        let content = |module: &ShardModule| {
            let hash = module.hash.unwrap_or_default().map(u32::to_be_bytes).concat();
            hash.iter().take(DIGITS / 2).map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        let own = own.as_bytes();
        let module = modules.iter().find(|module| module.path == own).map(content).unwrap_or_default();
        let imports: Vec<String> = modules.iter().filter(|module| module.path != own).map(content).collect();
        let mut sorted = imports.clone();
        sorted.sort_unstable();
        let mut framed = Framed::new("distlto part 2");
        sorted.iter().for_each(|content| framed.add("content", content));
        let parts = Self {
            compiler: identity.compiler.clone(),
            flags: identity.flags.clone(),
            module,
            shard: shard.get(..DIGITS).unwrap_or(shard).to_owned(),
            imports: short(&framed.finish()),
            inputs: Vec::new(),
        };
        (parts, imports)
    }

    /// Each part by a name.
    pub fn named(&self) -> BTreeMap<String, String> {
        let Self { compiler, flags, module, shard, imports, inputs } = self;
        let own = [
            ("compiler", compiler),
            ("flags", flags),
            ("module", module),
            ("shard", shard),
            ("imports", imports),
        ];
        let own = own.into_iter().map(|(name, digest)| (name.to_owned(), digest.clone()));
        own.chain(inputs.iter().map(|(name, digest)| (format!("input {name}"), digest.clone()))).collect()
    }

    /// Whether nothing but the shard and the imports may differ.
    pub fn has_same_rest(&self, other: &Self) -> bool {
        let of = |parts: &Self| {
            let Self { compiler, flags, module, inputs, .. } = parts.clone();
            (compiler, flags, module, inputs)
        };
        of(self) == of(other)
    }

    /// The module's own content.
    pub fn module(&self) -> &str {
        &self.module
    }

    /// Returns the differences from an earlier compilation. `imports` returns the changed imports, and is called only
    /// if their digest differs.
    pub fn changes(&self, before: &Self, imports: impl FnOnce() -> Vec<Change>) -> Vec<Change> {
        let mut changes = Vec::new();
        for (now, before, what) in [
            (&self.compiler, &before.compiler, ChangeKind::Compiler),
            (&self.flags, &before.flags, ChangeKind::Flags),
            (&self.module, &before.module, ChangeKind::Module),
            (&self.shard, &before.shard, ChangeKind::Shard),
        ] {
            if now != before {
                changes.push(Change::of(what));
            }
        }
        if self.imports != before.imports {
            changes.extend(imports());
        }
        let input = |what, list: &[(String, String)], other: &[(String, String)]| {
            let absent = |(name, _): &&(String, String)| other.iter().all(|(known, _)| known != name);
            list.iter().filter(absent).map(|(name, _)| Change::named(what, name)).collect::<Vec<_>>()
        };
        changes.extend(input(ChangeKind::InputAdded, &self.inputs, &before.inputs));
        changes.extend(input(ChangeKind::InputRemoved, &before.inputs, &self.inputs));
        let changed = self
            .inputs
            .iter()
            .filter(|(name, now)| before.inputs.iter().any(|(known, before)| known == name && before != now));
        changes.extend(changed.map(|(name, _)| Change::named(ChangeKind::Input, name)));
        if changes.is_empty() {
            // The changed import may be unknown: a link that failed later compiled it. With equal imports, only the
            // order of the shard's modules differs.
            let what = if self.imports == before.imports { ChangeKind::Shard } else { ChangeKind::Import };
            changes.push(Change::of(what));
        }
        changes
    }
}

/// Shortens a digest for use in parts.
pub fn short(digest: &Digest) -> String {
    digest.hex()[..DIGITS].to_owned()
}
