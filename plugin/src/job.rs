//! The linker's nodes as the text of a job file for `distlto-distribute`.
//!
//! Its version is 0.0, since only that allows a module's identifier to differ from its path. The words of a command
//! have the order of the plugin interface: compiler, the linker's options, then the module's own. `-target` is the
//! module's own too: clang and rustc spell their triples differently, and one link may have modules of both.

use std::collections::BTreeSet;
use std::path::{Component, Path};

use serde_json::{Value, json};

use crate::call::Call;

/// The job file. `args` come after the linker's own options.
pub fn text(call: &Call, compiler: &str, args: &[String]) -> String {
    // Two files of one identifier are two entries, which the reader refuses.
    let modules: BTreeSet<_> = call.nodes.iter().map(|node| [&node.module, &node.path]).collect();
    let jobs = call.nodes.iter().map(|node| {
        let others = node.imports.iter().filter(|import| !import.is_empty() && **import != node.module);
        let inputs: Vec<_> = [&node.module, &node.shard].into_iter().chain(others).collect();
        json!({ "inputs": inputs, "outputs": [without_climbing(&node.object)], "args": [node.triple] })
    });
    let mut words: Vec<Value> = call.arguments.iter().chain(args).map(|word| json!(word)).collect();
    words.extend([json!("-c"), json!("-x"), json!("ir"), json!(["-fthinlto-index=", "inputs", 1])]);
    words.extend([json!("-target"), json!(["", "args", 0])]);
    words.extend([json!("-o"), json!(["", "outputs", 0]), json!(["", "inputs", 0])]);
    json!({
        "version": { "major": 0, "minor": 0 },
        "common": { "codegen-tool": compiler, "args": words, "inputs": [], "modules": modules },
        "jobs": jobs.collect::<Vec<_>>(),
    })
    .to_string()
}

/// The same place: a job file may name no output by a path with `..` in it.
fn without_climbing(object: &str) -> String {
    let path = Path::new(object);
    let climbs = path.components().any(|part| part == Component::ParentDir);
    let real = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?).to_str()?.to_owned());
    climbs.then(real).flatten().unwrap_or_else(|| object.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_named_without_climbing() {
        let place = tempfile::tempdir().unwrap();
        let real = place.path().canonicalize().unwrap();
        let object = real.join("../x.o");
        assert_eq!(
            Path::new(&without_climbing(object.to_str().unwrap())),
            real.parent().unwrap().join("x.o")
        );
        for same in ["x.o", "out/x.o", "/nowhere/../x/x.o", "..", "/a/x.o"] {
            assert_eq!(without_climbing(same), same);
        }
    }
}
