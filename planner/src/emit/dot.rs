//! The action graph in Graphviz's DOT language: a box for each action, an arrow to each that waits for it, and a dashed
//! arrow from each module to those that import from it.
//!
//! Quoting follows <https://graphviz.org/doc/info/lang.html> and labels the escString rules of
//! <https://graphviz.org/docs/attr-types/escString/>. Does not access files on disk.

use std::collections::HashMap;
use std::io::{self, Write};

use crate::graph::{ActionGraph, ActionKind};

/// Writes the graph, in canonical order.
pub fn write(graph: &ActionGraph, out: &mut impl Write) -> io::Result<()> {
    let graph = graph.canonical();
    writeln!(out, "digraph distlto {{\n  rankdir=LR;\n  node [shape=box];")?;
    for (id, action) in graph.actions() {
        let mut label = format!("{}\\n{}", action.kind().name(), escaped(&action.label));
        if action.kind() == ActionKind::Opt {
            label.push_str(&format!("\\ncost {}", action.cost));
        }
        writeln!(out, "  a{} [label=\"{label}\"];", id.index())?;
    }
    // One column of all backends would be as high as they are many.
    let backends: Vec<usize> =
        graph.actions().filter(|(_, action)| action.backend().is_some()).map(|(id, _)| id.index()).collect();
    let rows = backends.len().isqrt().max(8);
    for (above, below) in backends.iter().zip(backends.iter().skip(rows)) {
        writeln!(out, "  a{above} -> a{below} [style=invis];")?;
    }
    for id in graph.topological() {
        for next in graph.dependents(id) {
            writeln!(out, "  a{} -> a{};", id.index(), next.index())?;
        }
    }
    let backends = || graph.actions().filter_map(|(id, action)| Some((id, action.backend()?)));
    let compiles: HashMap<_, _> = backends().map(|(id, backend)| (backend.module, id)).collect();
    for (id, backend) in backends() {
        for from in backend.imports.iter().filter_map(|import| compiles.get(import)) {
            // Nothing waits for it, so it moves no box.
            writeln!(out, "  a{} -> a{} [style=dashed, constraint=false];", from.index(), id.index())?;
        }
    }
    writeln!(out, "}}")
}

/// Text inside a quoted label. `&` would begin an HTML entity, a backslash an escape such as `\N`.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' => escaped.push_str("\\\""),
            '\\' => escaped.push_str("\\\\"),
            '&' => escaped.push_str("&amp;"),
            '\n' => escaped.push_str("\\\\n"),
            character if character.is_control() => {
                escaped.push_str(&format!("\\\\u{{{:x}}}", u32::from(character)))
            }
            character => escaped.push(character),
        }
    }
    escaped
}
