//! The text of a dry run: which actions would run and why, the costliest first.
//!
//! Pure: takes what the freshness check found. Knows nothing of logs and digests.

use std::cmp::Reverse;

use distlto_planner::freshness::Reason;
use distlto_planner::graph::{ActionGraph, ActionId};

/// One line for each action that would run, and a closing line with their number.
pub fn text(graph: &ActionGraph, found: &[(ActionId, Option<Reason>)]) -> String {
    let mut running: Vec<_> =
        found.iter().filter_map(|(id, reason)| reason.as_ref().map(|reason| (*id, reason))).collect();
    running.sort_by_key(|(id, _)| (Reverse(graph.action(*id).cost), *id));
    let width = running.first().map_or(0, |(id, _)| graph.action(*id).cost.to_string().len());
    let mut text = String::new();
    for (id, reason) in &running {
        let action = graph.action(*id);
        let line = format!("{:>width$}  {} {}: {reason}", action.cost, action.kind().name(), action.label);
        text.extend(line.chars().flat_map(one_line));
        text.push('\n');
    }
    text.push_str(&format!("{} of {} actions would run\n", running.len(), found.len()));
    text
}

/// A name may hold line breaks and terminal controls; a line of the list may not.
fn one_line(character: char) -> impl Iterator<Item = char> {
    let escaped = character.is_control().then(|| character.escape_default());
    let plain = (!character.is_control()).then_some(character);
    escaped.into_iter().flatten().chain(plain)
}

#[cfg(test)]
mod tests {
    use super::text;
    use distlto_planner::freshness::Reason;
    use distlto_planner::graph::{Action, ActionGraph, Backend, Work};

    #[test]
    fn costliest_first_then_in_order() {
        let mut graph = ActionGraph::new();
        let ids = [("a", 5), ("b\n\u{1b}[31m", 70), ("c", 5), ("d", 900)].map(|(name, cost)| {
            let (module, shard) =
                (graph.file(format!("{name}.bc")), graph.file(format!("{name}.thinlto.bc")));
            let object = graph.file(name);
            let (imports, extra, also) = (Vec::new(), Vec::new(), Vec::new());
            let work = Work::Backend(Backend { module, shard, imports, extra, object, dwo: None, also });
            let (label, args) = (name.to_owned(), vec!["clang".to_owned()]);
            graph.add(Action { work, label, prefix: None, args, cost })
        });
        let reasons = [
            Some(Reason::CommandChanged),
            Some(Reason::NeverRun),
            Some(Reason::DependencyRuns("b".into())),
            None,
        ];
        let found: Vec<_> = ids.into_iter().zip(reasons).collect();
        assert_eq!(
            text(&graph, &found),
            "70  opt b\\n\\u{1b}[31m: there is no record of an earlier run\n \
             5  opt a: its command changed\n \
             5  opt c: it reads what b writes, which runs\n\
             3 of 4 actions would run\n"
        );
    }
}
