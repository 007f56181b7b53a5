//! Finds our own programs that a graph's commands name.
//!
//! A plan says `distlto-index` and `distlto-prepare`, wherever they are installed. Programs beside this one come
//! before those of `PATH`, and so do the subcommands of `distlto` itself: their version is the same. Does not depend
//! on their purpose.

use std::path::Path;

use distlto_planner::graph::ActionGraph;

/// The graph with paths in place of the names of programs that lie beside this one; the same ids.
pub(super) fn found(graph: &ActionGraph) -> ActionGraph {
    let mut found = graph.clone();
    let own = std::env::current_exe().unwrap_or_default();
    for (id, action) in graph.actions().filter(|(_, action)| action.prefix.is_none()) {
        if let Some(words) = action.args.first().and_then(|program| ours(&own, program)) {
            let rest = action.args.iter().skip(1).cloned();
            found.set_args(id, words.into_iter().chain(rest).collect());
        }
    }
    found
}

/// The words that start one of our programs: the one beside `own`, or `own` itself, which has it as a subcommand.
fn ours(own: &Path, program: &str) -> Option<Vec<String>> {
    if program == "distlto" {
        return Some(vec![own.to_str().filter(|_| own.file_name() == Some("distlto".as_ref()))?.to_owned()]);
    }
    let tool = program.strip_prefix("distlto-").filter(|tool| !tool.contains('/'))?;
    let path = own.with_file_name(program);
    if path.is_file() {
        return Some(vec![path.to_str()?.to_owned()]);
    }
    let has_it = matches!(tool, "index" | "prepare" | "opt");
    let own = own.to_str().filter(|_| has_it && own.file_name().is_some_and(|name| name == "distlto"))?;
    Some(vec![own.to_owned(), tool.to_owned()])
}
