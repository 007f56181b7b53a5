//! Generated links: meta files of every shape that the rule can write, with what a linker would leave for them.
//!
//! The linker here is a table: which files are bitcode, which were loaded, what imports what.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::project::write;

/// Where the linker writes.
pub const INDEX: &str = "index/directory";

/// Something to link.
#[derive(Debug, Clone)]
pub enum Item {
    Object(String),
    /// The index directory's members; `None` where the rule knows of none.
    Archive(Option<Vec<String>>),
    /// A file, and whether words stand around it.
    Opaque(String, bool),
    Shared(String),
}

/// An entry of a meta file.
#[derive(Debug, Clone)]
pub struct Part {
    pub pre: Vec<String>,
    pub post: Vec<String>,
    pub items: Vec<Item>,
}

/// What a linker makes of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    pub bitcode: bool,
    pub loaded: bool,
}

/// A link.
#[derive(Debug, Clone)]
pub struct Link {
    pub parts: Vec<Part>,
    pub kinds: BTreeMap<String, Kind>,
    pub imports: BTreeMap<String, Vec<String>>,
}

/// A link of up to eight entries.
pub fn link() -> impl Strategy<Value = Link> {
    let item = prop_oneof![
        // Few numbers, so that some paths are listed more than once.
        4 => (0_u8..24).prop_map(|number| Item::Object(format!("buck-out/o/{number}.cpp.o"))),
        2 => prop::option::weighted(0.8, prop::collection::vec(0_u8..6, 0..5)).prop_map(|members| {
            Item::Archive(members.map(|members| members.iter().map(|number| format!("{number}.o")).collect()))
        }),
        1 => (0_u8..6, any::<bool>()).prop_map(|(number, whole)| Item::Opaque(format!("pre/lib{number}.a"), whole)),
        1 => (0_u8..6).prop_map(|number| Item::Shared(format!("pre/lib{number}.so"))),
    ];
    let flags = prop_oneof![3 => Just(0_usize), 2 => 1_usize..3];
    let part = (flags.clone(), flags, prop::collection::vec(item, 0..4));
    (prop::collection::vec(part, 1..8), any::<u64>()).prop_map(|(parts, seed)| {
        let parts = parts
            .into_iter()
            .enumerate()
            .map(|(number, (pre, post, items))| Part {
                pre: (0..pre).map(|flag| format!("-Wl,--pre={number}.{flag}")).collect(),
                post: (0..post).map(|flag| format!("-Wl,--post={number}.{flag}")).collect(),
                items: items.into_iter().enumerate().map(|(at, item)| placed(item, number, at)).collect(),
            })
            .collect();
        settle(parts, seed)
    })
}

/// An archive's members lie in a directory of its own.
fn placed(item: Item, part: usize, at: usize) -> Item {
    match item {
        Item::Archive(Some(members)) => Item::Archive(Some(
            members.iter().map(|member| format!("{}/objects/{member}", archive_base(part, at))).collect(),
        )),
        other => other,
    }
}

fn archive_base(part: usize, at: usize) -> String {
    format!("out/archive-{part}.{at}")
}

/// Chooses what the linker does, by a hash of each path.
fn settle(parts: Vec<Part>, seed: u64) -> Link {
    let chance = |text: &str| {
        text.bytes().fold(seed | 1, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)) >> 32
    };
    let mut link = Link { parts, kinds: BTreeMap::new(), imports: BTreeMap::new() };
    for path in link.paths() {
        let kind = Kind {
            bitcode: chance(&format!("{path}b")) % 4 != 0,
            loaded: chance(&format!("{path}l")) % 5 != 0,
        };
        link.kinds.insert(path, kind);
    }
    let bitcode: Vec<&String> =
        link.kinds.iter().filter(|(_, kind)| kind.bitcode).map(|(path, _)| path).collect();
    for &path in &bitcode {
        let others =
            bitcode.iter().filter(|&&other| other != path && chance(&format!("{path}{other}")) % 3 == 0);
        link.imports.insert(path.clone(), others.map(|&other| other.clone()).collect());
    }
    link
}

impl Link {
    /// Every object and member, in order, each time that it is listed.
    pub fn paths(&self) -> Vec<String> {
        let items = self.parts.iter().flat_map(|part| &part.items);
        items
            .flat_map(|item| match item {
                Item::Object(path) => vec![path.clone()],
                Item::Archive(Some(members)) => members.clone(),
                _ => Vec::new(),
            })
            .collect()
    }

    /// The meta file; what plans call an item is its number over all entries.
    pub fn meta(&self) -> Value {
        let mut index = 0;
        let mut entries = Vec::new();
        for (number, part) in self.parts.iter().enumerate() {
            let mut linkables = Vec::new();
            for (at, item) in part.items.iter().enumerate() {
                linkables.push(linkable(item, index, &archive_base(number, at)));
                index += 1;
            }
            entries.push(json!({
                "pre_flags": nested(&part.pre), "post_flags": nested(&part.post), "linkables": linkables,
            }));
        }
        Value::Array(entries)
    }

    /// The files that the linker has loaded, in order, each once, as on its line.
    pub fn loaded(&self) -> Vec<String> {
        let mut loaded: Vec<String> = Vec::new();
        for item in self.parts.iter().flat_map(|part| &part.items) {
            let files = match item {
                Item::Object(path) => vec![path],
                Item::Archive(members) => members.iter().flatten().collect(),
                Item::Opaque(file, _) | Item::Shared(file) => vec![file],
            };
            for file in files {
                let is_loaded = self.kinds.get(file).is_none_or(|kind| kind.loaded);
                if is_loaded && !loaded.contains(file) {
                    loaded.push(file.clone());
                }
            }
        }
        loaded
    }

    /// Writes what the linker leaves.
    pub fn write_index(&self) {
        let loaded = self.loaded();
        let is_bitcode = |file: &String| self.kinds.get(file).is_some_and(|kind| kind.bitcode);
        let line =
            |file: &String| if is_bitcode(file) { format!("{INDEX}/{file}\n") } else { format!("{file}\n") };
        write(&format!("{INDEX}/index.full"), loaded.iter().map(line).collect::<String>());
        // By resolution, not by the line.
        let index: String = loaded.iter().rev().filter(|file| is_bitcode(file)).map(line).collect();
        write(&format!("{INDEX}/index"), index);
        for (path, imports) in &self.imports {
            write(&format!("{INDEX}/{path}.thinlto.bc"), shard(path));
            write(
                &format!("{INDEX}/{path}.imports"),
                imports.iter().map(|path| format!("{path}\n")).collect::<String>(),
            );
        }
    }
}

/// What stands for a module's shard.
pub fn shard(path: &str) -> String {
    format!("the shard of {path}")
}

fn linkable(item: &Item, index: usize, base: &str) -> Value {
    match item {
        Item::Object(path) => json!({
            "type": "bitcode", "path": path, "idx": index,
            "output": format!("out/{index}.thinlto.bc"), "plan_output": format!("out/{index}.opt.plan"),
        }),
        Item::Archive(members) => json!({
            "type": "archive", "archive_idx": index, "archive_name": base,
            "archive_plan": format!("{base}/plan.json"), "archive_index_dir": format!("{base}/indexes"),
            "archive_opt_objects_dir": format!("{base}/opt_objects"), "prepend": false,
            "objects": members.as_ref().map(|members| members.iter().map(|path| json!({
                "path": path, "idx": index, "output": "", "plan_output": "",
            })).collect::<Vec<_>>()),
        }),
        Item::Opaque(file, whole) => {
            let words = match whole {
                true => json!(["-Wl,--whole-archive", [[file]], "-Wl,--no-whole-archive"]),
                false => json!(file),
            };
            json!({"type": "cmd_args", "cmd_args": words, "object": {"type": "archive", "archive": file}})
        }
        Item::Shared(file) => {
            json!({"type": "cmd_args", "cmd_args": [file], "object": {"type": "shared_lib", "name": file}})
        }
    }
}

/// Flags in lists of lists, as the rule leaves them.
fn nested(flags: &[String]) -> Value {
    let mut value = json!([[]]);
    for flag in flags.iter().rev() {
        value = json!([[flag], [value]]);
    }
    value
}
