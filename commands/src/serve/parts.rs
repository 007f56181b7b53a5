//! What the key of a kept object is made of, part by part, so that it can be said which of them changed.
//!
//! Serves explanations alone: whether an object is kept is for its key to say. Digests are cut short, and which import
//! changed is found by asking what each was compiled from itself. Knows nothing of what is kept where.

use std::collections::BTreeMap;

use distlto_executor::describe::framed::Framed;
use distlto_executor::describe::inputs::Inputs;
use distlto_planner::digests::Digest;
use distlto_record::why::{Change, What};
use serde::{Deserialize, Serialize};

/// How many digits of a digest tell contents of one thing apart.
const DIGITS: usize = 16;

/// A key's parts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Parts {
    compiler: String,
    flags: String,
    module: String,
    shard: String,
    imports: String,
    /// Further files by name, such as profiles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<(String, String)>,
}

/// What decides how all modules of a link are compiled.
#[derive(Debug)]
pub struct Identity {
    /// Of all of it.
    pub digest: Digest,
    compiler: String,
    flags: String,
}

/// What a backend reads.
#[derive(Default)]
pub struct Content {
    /// Of all of it.
    pub digest: String,
    /// Part by part, for those who ask why it ran.
    pub parts: Parts,
    /// The modules that it imports from, each by a short digest.
    pub imports: Vec<String>,
}

impl Identity {
    /// Of a compiler, `note` being what tells it from another one of its name, and of what it is told.
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

impl Parts {
    /// The parts for a module. `extra`: inputs that are not imports. `flags`: the module's own. `dwo`: the split debug file.
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
            // In what order the shard names them is no change of theirs.
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

    /// The module's own content.
    pub fn module(&self) -> &str {
        &self.module
    }

    /// What differs from an earlier compilation. `imports` tells of those that are not what they were.
    pub fn changes(&self, before: &Self, imports: impl FnOnce() -> Vec<Change>) -> Vec<Change> {
        let mut changes = Vec::new();
        for (now, before, what) in [
            (&self.compiler, &before.compiler, What::Compiler),
            (&self.flags, &before.flags, What::Flags),
            (&self.module, &before.module, What::Module),
            (&self.shard, &before.shard, What::Shard),
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
        changes.extend(input(What::InputAdded, &self.inputs, &before.inputs));
        changes.extend(input(What::InputRemoved, &before.inputs, &self.inputs));
        let changed = self
            .inputs
            .iter()
            .filter(|(name, now)| before.inputs.iter().any(|(known, before)| known == name && before != now));
        changes.extend(changed.map(|(name, _)| Change::named(What::Input, name)));
        if changes.is_empty() {
            // Of imports alone it may be unknown which one it is: it was compiled by a link that failed later. What is left is
            // the order in which the shard names modules.
            let what = if self.imports == before.imports { What::Shard } else { What::Import };
            changes.push(Change::of(what));
        }
        changes
    }
}

/// A digest as parts have it.
pub fn short(digest: &Digest) -> String {
    digest.hex()[..DIGITS].to_owned()
}
