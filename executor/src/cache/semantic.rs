//! The semantic key: what decides an object and nothing else, so that equal work is found again anywhere.
//!
//! It is the SHA-256 of: the compiler's content (`compiler`), its words (`words`), the environment that a compiler reads,
//! the module's content, the shard without its paths, for each module in the shard's table its number, hash and content,
//! every other declared input with its name, and what is written. So it is the same in another output directory or
//! checkout, on another machine, and under names with another linker's process number.
//!
//! The table's order stays as it is. LLVM sorts it by path and imports in that order, which decides the order of code in
//! the object: two checkouts whose paths sort differently have different keys, as they may have different objects.
//! What else may differ from object to object stands in the bitcode, and so in the module's content: source names,
//! debug information, the directory of the compilation.

use std::collections::BTreeSet;

use distlto_planner::digests::Digest;

use super::framed::Framed;
use super::inputs::Inputs;
use super::words::Words;
use crate::action::Description;
use crate::verify::Role;

/// What is known of an action beyond its description.
#[derive(Debug, Clone, Copy)]
pub struct Compilation<'a> {
    /// The compiler's identity.
    pub compiler: &'a Digest,
    /// Its words.
    pub words: &'a Words,
    /// What it reads, each by what it is for.
    pub inputs: &'a Inputs<'a>,
}

/// The key. The variables of the action are sorted by name.
pub fn key(action: &Description<'_>, compilation: Compilation<'_>) -> Digest {
    let Compilation { compiler, words, inputs } = compilation;
    // The driver's words and the inputs' names decide nothing that `compilation` does not say without names.
    let Description { words: _, environment, directory, inputs: _, outputs, platform: _, salt: _ } = action;
    let mut framed = Framed::new("distlto semantic key 1");
    framed.content("compiler", compiler);
    framed.content("words", &words.digest);
    for (name, value) in *environment {
        framed.add("variable", name);
        framed.add("value", value);
    }
    add_inputs(&mut framed, inputs, &words.files);
    for (at, (name, role)) in outputs.iter().enumerate() {
        framed.add("output", format!("{role:?}"));
        // The name of split debug information stands in the object.
        if at > 0 || *role != Role::Object || words.names_matter {
            framed.add("name", name.as_str());
        }
    }
    if words.names_matter {
        framed.add("directory", directory);
        framed.add("name", inputs.module.0);
        framed.add("name", inputs.shard.as_ref().map_or("", |shard| shard.name));
        for (entry, _) in inputs.shard.iter().flat_map(|shard| &shard.table) {
            framed.add("name", &entry.path);
        }
    }
    framed.finish()
}

/// What a backend reads, by content: the module, the shard without its paths, each module in the shard's table, and every
/// other declared input but those that are `named` by the command's words.
pub fn add_inputs(framed: &mut Framed, inputs: &Inputs<'_>, named: &BTreeSet<String>) {
    let (module, content) = inputs.module;
    framed.content("module", &content);
    if let Some(shard) = &inputs.shard {
        framed.content("shard", &shard.rest);
        for (entry, content) in &shard.table {
            let own = entry.path == module.as_bytes();
            framed.add(if own { "own number" } else { "number" }, entry.number.to_le_bytes());
            let hash = entry.hash.iter().flatten().flat_map(|word| word.to_le_bytes());
            framed.add("hash", hash.collect::<Vec<_>>());
            framed.content("content", content);
        }
    }
    let mut remaining: Vec<_> = inputs.remaining(named).collect();
    remaining.sort_unstable();
    remaining.dedup();
    for (name, content) in remaining {
        framed.add("input", name);
        framed.content("content", &content);
    }
}
