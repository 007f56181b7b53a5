//! Estimates against what a real program's modules took: libgit2 1.9 with its dependencies at -O3, 232 modules,
//! compiled by clang 22. The table has one line for each module.

use std::path::Path;
use std::time::Duration;

use distlto_executor::schedule::estimate::{ENOUGH, Estimates};
use distlto_executor::schedule::history::History;
use distlto_planner::graph::{Action, ActionGraph, ActionId, BackendWork, Decided, Work};
use distlto_record::report::Measured;

const MIB: u64 = 1 << 20;

struct Module {
    name: &'static str,
    cost: u64,
    measured: Measured,
}

fn libgit2() -> Vec<Module> {
    let lines = include_str!("estimate/libgit2.tsv").lines().skip(1);
    let module = |line: &'static str| {
        let fields: Vec<_> = line.split('\t').collect();
        let number = |at: usize| fields[at].parse::<u64>().unwrap();
        let cpu = Duration::from_millis(number(2));
        let measured =
            Measured { wall: cpu, cpu: Some(cpu), peak_memory: Some(number(3)), ..Measured::default() };
        Module { name: fields[0], cost: number(1), measured }
    };
    lines.map(module).collect()
}

fn add(graph: &mut ActionGraph, flags: &[&str], label: &str, cost: u64) -> ActionId {
    let prefix = Some(graph.prefix(flags.iter().map(|&flag| flag.to_owned()).collect()));
    let work = Work::Backend(BackendWork {
        module: graph.file(label),
        shard: graph.file(format!("{label}.thinlto.bc")),
        imports: vec![],
        extra: vec![],
        object: graph.file(format!("{label}.out")),
        dwo: None,
        also: vec![],
        decided: Decided::default(),
    });
    graph.add(Action { work, label: label.to_owned(), prefix, args: vec![], cost })
}

fn graph(modules: &[Module], flags: &[&str]) -> (ActionGraph, Vec<ActionId>) {
    let mut graph = ActionGraph::new();
    let ids = modules.iter().map(|module| add(&mut graph, flags, module.name, module.cost)).collect();
    (graph, ids)
}

fn estimates(graph: &ActionGraph, ids: &[ActionId], history: Option<&Path>) -> Estimates<'static> {
    Estimates::new(graph, ids, History::load(history), None, None)
}

/// How the measured memory lies against the estimates: how many modules are above, and the most that one is above, in MiB.
fn above(estimates: &Estimates<'_>, ids: &[ActionId], modules: &[Module]) -> (usize, u64) {
    let over = ids.iter().zip(modules).filter_map(|(&id, module)| {
        module.measured.peak_memory.unwrap().checked_sub(estimates.weight(id).memory).filter(|&over| over > 0)
    });
    over.fold((0, 0), |(count, most), over| (count + 1, most.max(over / MIB)))
}

#[test]
fn without_measurements_a_real_program_takes_about_what_the_model_says() {
    let modules = libgit2();
    let (graph, ids) = graph(&modules, &["clang", "-O3"]);
    let estimates = estimates(&graph, &ids, None);
    let (count, most) = above(&estimates, &ids, &modules);
    assert!(count <= 5 && most <= 10, "{count} of {} modules take more, up to {most} MiB", modules.len());
    let time: u64 = ids.iter().map(|&id| estimates.weight(id).time).sum();
    let cpu: u128 = modules.iter().map(|module| module.measured.cpu.unwrap().as_micros()).sum();
    assert!((0.9..1.1).contains(&(time as f64 / cpu as f64)), "{time} of {cpu} microseconds");
}

#[test]
fn what_a_run_has_measured_corrects_the_estimates_of_the_rest() {
    let modules = libgit2();
    let (graph, ids) = graph(&modules, &["clang", "-O3"]);
    let mut estimates = estimates(&graph, &ids, None);
    // A compiler that is linked statically needs less.
    let small = |module: &Module| {
        let memory = module.measured.peak_memory.map(|memory| memory - 70 * MIB);
        Measured { peak_memory: memory, ..module.measured }
    };
    let before = estimates.weight(ids[100]).memory;
    let changed: Vec<_> = (0..ENOUGH).map(|at| estimates.measured(ids[at], small(&modules[at]))).collect();
    assert_eq!(changed.iter().filter(|&&changed| changed).count(), 1);
    assert!(changed[ENOUGH - 1]);
    let after = estimates.weight(ids[100]).memory;
    assert!(before - after > 60 * MIB, "{} MiB, then {}", before / MIB, after / MIB);
    for (&id, module) in ids.iter().zip(&modules).skip(ENOUGH) {
        estimates.measured(id, small(module));
    }
    let small: Vec<_> = modules.iter().map(|module| Module { measured: small(module), ..*module }).collect();
    let (count, most) = above(&estimates, &ids, &small);
    assert!(count <= small.len() / 10 && most <= 10, "{count} modules take more, up to {most} MiB");
}

#[test]
fn a_module_is_expected_to_take_what_it_took() {
    let place = tempfile::tempdir().unwrap();
    let history = place.path().join("state/history");
    let modules = libgit2();
    let (graph, ids) = graph(&modules, &["clang", "-O3"]);
    let mut first = estimates(&graph, &ids, Some(&history));
    for (&id, module) in ids.iter().zip(&modules) {
        first.measured(id, module.measured);
    }
    first.history().save().unwrap();
    let again = estimates(&graph, &ids, Some(&history));
    for (&id, module) in ids.iter().zip(&modules) {
        assert_eq!(again.weight(id).memory, module.measured.peak_memory.unwrap());
        assert_eq!(u128::from(again.weight(id).time), module.measured.cpu.unwrap().as_micros());
    }

    // Larger by a half: more by as much as the model says. Unknown, or compiled otherwise: by the model.
    let largest = modules.iter().enumerate().max_by_key(|(_, module)| module.cost).unwrap().0;
    let module = &modules[largest];
    let mut grown = ActionGraph::new();
    let id = add(&mut grown, &["clang", "-O3"], module.name, module.cost * 3 / 2);
    let other = add(&mut grown, &["clang", "-O3"], "unknown.o", module.cost);
    let flags = add(&mut grown, &["clang", "-O1"], module.name, module.cost);
    let grown_estimates = estimates(&grown, &[id, other, flags], Some(&history));
    let took = module.measured.peak_memory.unwrap();
    let more = grown_estimates.weight(id).memory - took;
    assert!((5 * MIB..60 * MIB).contains(&more), "{} MiB more", more / MIB);
    assert_ne!(grown_estimates.weight(other).memory, took);
    assert_ne!(grown_estimates.weight(flags).memory, grown_estimates.weight(other).memory);
}

#[test]
fn a_module_of_unknown_cost_is_estimated_by_its_size() {
    let place = tempfile::tempdir().unwrap();
    for (name, size) in [("small.o", 1_000), ("large.o", 2_000_000)] {
        std::fs::write(place.path().join(name), vec![0; size]).unwrap();
    }
    let mut graph = ActionGraph::new();
    let ids = ["small.o", "large.o", "missing.o"].map(|name| add(&mut graph, &["clang"], name, 0));
    let estimates = Estimates::new(&graph, &ids, History::load(None), Some(place.path()), None);
    let [small, large, missing] = ids.map(|id| estimates.weight(id));
    assert!(large.time > 20 * small.time && large.memory > 3 * small.memory, "{small:?} {large:?}");
    assert!(missing.time <= small.time && missing.memory > 0);
}

#[test]
fn history_is_bounded_and_keeps_what_ran_last() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("history");
    let measured = Measured { wall: Duration::from_millis(1), ..Measured::default() };
    for run in ["old", "new"] {
        let mut history = History::load(Some(&path));
        for n in 0..distlto_executor::schedule::history::MODULES * 3 / 4 {
            history.add(1, &format!("{run}{n}"), 1, measured);
        }
        history.save().unwrap();
    }
    let history = History::load(Some(&path));
    assert_eq!(history.of_kind(1).count(), distlto_executor::schedule::history::MODULES);
    assert!(
        (0..distlto_executor::schedule::history::MODULES * 3 / 4)
            .all(|n| history.get(1, &format!("new{n}")).is_some())
    );
}

#[test]
fn memory_that_varies_is_not_forgotten_at_once() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("history");
    let mut seen = Vec::new();
    for memory in [100, 60, 200, 100] {
        let mut history = History::load(Some(&path));
        history.add(1, "a.o", 5, Measured { peak_memory: Some(memory), ..Measured::default() });
        history.save().unwrap();
        seen.push(History::load(Some(&path)).get(1, "a.o").unwrap().memory.unwrap());
    }
    assert_eq!(seen, [100, 80, 200, 150]);
}
