//! Where our own programs are that a graph's commands name.
//!
//! A plan says `distlto-index` and `distlto-prepare`, wherever they are installed. Those beside this program are taken
//! before those of `PATH`: they are of the same version. Knows nothing of what they do.

use std::path::Path;

use distlto_planner::graph::ActionGraph;

/// The graph with paths in place of the names of programs that lie beside this one; the same ids.
pub(super) fn found(graph: &ActionGraph) -> ActionGraph {
    let mut found = graph.clone();
    let own = std::env::current_exe().unwrap_or_default();
    for (id, action) in graph.actions().filter(|(_, action)| action.prefix.is_none()) {
        if let Some(path) = action.args.first().and_then(|program| beside(&own, program)) {
            let rest = action.args.iter().skip(1).cloned();
            found.set_args(id, std::iter::once(path).chain(rest).collect());
        }
    }
    found
}

/// The path of one of our programs, if it lies beside `own`.
fn beside(own: &Path, program: &str) -> Option<String> {
    if !program.starts_with("distlto-") || program.contains('/') {
        return None;
    }
    let path = own.with_file_name(program);
    path.is_file().then(|| path.to_str().map(str::to_owned)).flatten()
}
