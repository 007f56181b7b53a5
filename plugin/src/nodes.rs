//! From the linker's nodes to an action graph: one backend compilation each, in the words of the plugin interface.
//!
//! Pure. Knows nothing of who runs the graph. The order of words is the one that the interface prescribes: compiler,
//! the linker's options, then what is the module's own.

use std::collections::HashMap;

use camino::{Utf8Path, Utf8PathBuf};
use distlto_planner::graph::error::GraphError;
use distlto_planner::graph::{Action, ActionGraph, BackendWork, Decided, FileId, Work};
use miette::Diagnostic;
use thiserror::Error;

use crate::call::BackendNode;

/// Nodes that no link has.
#[derive(Debug, Error, Diagnostic)]
pub enum NodesError {
    /// An identifier that the compiler would take for something else than a module.
    #[error(
        "the module identifier {module:?} begins with {letter:?}, so the compiler takes it for an option"
    )]
    #[diagnostic(
        code(distlto::bad_input),
        help("name the object on the link line by a path that begins otherwise, such as its absolute one")
    )]
    Option { module: String, letter: char },
    /// One identifier for two modules.
    #[error("the module identifier {module:?} stands for both {first} and {second}")]
    #[diagnostic(
        code(distlto::bad_input),
        help(
            "the linker must give every module an identifier of its own: members of one archive differ by offset"
        )
    )]
    TwoModules { module: String, first: Utf8PathBuf, second: Utf8PathBuf },
    /// Two nodes with one output, or an output that is an input.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Graph(#[from] GraphError),
}

/// The compilations. `prefix` is the compiler with all options, `at` gives shards and objects the spelling that the
/// compiler is to see.
pub fn graph(
    nodes: &[BackendNode],
    prefix: &[String],
    at: impl Fn(&Utf8Path) -> Utf8PathBuf,
) -> Result<ActionGraph, NodesError> {
    let mut graph = ActionGraph::new();
    for node in nodes {
        let action = action(&mut graph, node, prefix, &at);
        graph.add(action);
    }
    Ok(graph.checked()?)
}

/// Refuses identifiers that no compilation can have.
pub fn check(nodes: &[BackendNode]) -> Result<(), NodesError> {
    let mut paths: HashMap<&str, &Utf8Path> = HashMap::with_capacity(nodes.len());
    for node in nodes {
        let module = || node.module.clone();
        if let Some(letter) = node.module.chars().next().filter(|letter| matches!(letter, '-' | '@')) {
            return Err(NodesError::Option { module: module(), letter });
        }
        match paths.insert(&node.module, &node.path) {
            Some(first) if first != node.path => {
                let (first, second) = (first.to_owned(), node.path.clone());
                return Err(NodesError::TwoModules { module: module(), first, second });
            }
            _ => {}
        }
    }
    Ok(())
}

fn action(
    graph: &mut ActionGraph,
    node: &BackendNode,
    prefix: &[String],
    at: &impl Fn(&Utf8Path) -> Utf8PathBuf,
) -> Action {
    let (shard, object) = (at(&node.shard), at(&node.object));
    let args = [
        "-c",
        "-x",
        "ir",
        &format!("-fthinlto-index={shard}"),
        "-target",
        &node.triple,
        "-o",
        object.as_str(),
        &node.module,
    ];
    let mut imports: Vec<FileId> = node
        .imports
        .iter()
        .filter(|&import| *import != node.module && !import.is_empty())
        .map(|import| graph.file(import))
        .collect();
    imports.sort_unstable();
    imports.dedup();
    let work = Work::Backend(BackendWork {
        module: graph.file(&node.module),
        shard: graph.file(&shard),
        imports,
        extra: Vec::new(),
        object: graph.file(&object),
        dwo: None,
        also: Vec::new(),
        decided: Decided::default(),
    });
    Action {
        work,
        label: node.module.clone(),
        prefix: Some(graph.prefix(prefix.to_vec())),
        args: args.map(str::to_owned).to_vec(),
        // Time goes with the size of the module's bitcode.
        cost: node.size.max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(module: &str, path: &str, object: &str) -> BackendNode {
        BackendNode {
            module: module.to_owned(),
            path: path.into(),
            size: 7,
            shard: format!("{object}.thinlto.bc").into(),
            object: object.into(),
            imports: ["c.o", module, "b.o", "c.o", ""].map(str::to_owned).to_vec(),
            triple: "x86_64-unknown-linux-gnu".to_owned(),
        }
    }

    fn made(nodes: &[BackendNode]) -> Result<ActionGraph, NodesError> {
        check(nodes)?;
        graph(nodes, &["clang", "-O2"].map(str::to_owned), |path| Utf8Path::new("/at").join(path))
    }

    #[test]
    fn a_node_becomes_the_command_of_the_interface() {
        let graph = made(&[node("lib.a(m.o at 78)", "m.o", "m.native.o")]).unwrap();
        let (id, action) = graph.actions().next().unwrap();
        assert_eq!(
            graph.command(id),
            [
                "clang",
                "-O2",
                "-c",
                "-x",
                "ir",
                "-fthinlto-index=/at/m.native.o.thinlto.bc",
                "-target",
                "x86_64-unknown-linux-gnu",
                "-o",
                "/at/m.native.o",
                "lib.a(m.o at 78)"
            ]
        );
        let backend = action.backend().unwrap();
        let path = |file: FileId| graph.path(file).as_str();
        assert_eq!(path(backend.module), "lib.a(m.o at 78)");
        assert_eq!(path(backend.shard), "/at/m.native.o.thinlto.bc");
        let mut imports: Vec<_> = backend.imports.iter().map(|&import| path(import)).collect();
        imports.sort();
        assert_eq!(imports, ["b.o", "c.o"]);
        assert!(action.outputs().map(path).eq(["/at/m.native.o"]));
        assert_eq!(action.cost, 7);
    }

    #[test]
    fn what_no_link_has_is_refused() {
        let said = |nodes: &[BackendNode]| made(nodes).unwrap_err().to_string();
        assert!(said(&[node("-a.o", "a.o", "1.o")]).contains("takes it for an option"));
        assert!(said(&[node("@a.o", "a.o", "1.o")]).contains("takes it for an option"));
        assert!(said(&[node("a.o", "a.o", "1.o"), node("a.o", "b.o", "2.o")]).contains("a.o and b.o"));
        assert!(said(&[node("a.o", "a.o", "1.o"), node("b.o", "b.o", "1.o")]).contains("/at/1.o"));
        assert!(made(&[]).unwrap().actions().next().is_none());
    }
}
