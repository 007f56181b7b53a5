//! Graphs that the tests share: a hand-made link with odd names, a graph of a real job file of lld, and
//! arbitrary graphs.

use camino::{Utf8Path, Utf8PathBuf};
use distlto_planner::graph::build::{BackendParts, LinkParts};
use distlto_planner::graph::{ActionGraph, ActionId, ActionKind, Decided, FileId, Listed, PrefixId};
use distlto_planner::shard::Cost;
use proptest::prelude::*;
use serde::Deserialize;

/// One backend compilation with the names that an index directory would give its files.
fn module(label: &str, file: &str, imports: &[&str], own: u64, imported: u64) -> BackendParts {
    BackendParts {
        label: label.to_owned(),
        module: file.into(),
        shard: format!("thin/{label}.thinlto.bc").into(),
        digest: Some(format!("{own:064x}")),
        imports: imports.iter().map(Utf8PathBuf::from).collect(),
        object: format!("native/{label}").into(),
        shared: words(&["clang", "-c", "-O2", "-DNAME=\"a $b\"", "-Wno-unused-command-line-argument"]),
        args: words(&[
            "-x",
            "ir",
            file,
            &format!("-fthinlto-index=thin/{label}.thinlto.bc"),
            "-o",
            &format!("native/{label}"),
        ]),
        cost: Cost { own_instructions: own, imported_instructions: imported },
        ..BackendParts::default()
    }
}

fn paths<'a>(paths: impl IntoIterator<Item = &'a str>) -> Vec<Utf8PathBuf> {
    paths.into_iter().map(Utf8PathBuf::from).collect()
}

fn words(line: &[&str]) -> Vec<String> {
    line.iter().map(|word| (*word).to_owned()).collect()
}

/// A link of two objects and an archive, with names that every reader of a command treats specially.
pub fn link() -> LinkParts {
    let mut b = module(
        "it's $b|(odd).o",
        "it's $b|(odd).o",
        &["a dir/a:1.o", "thin/members/lib$.a(m (1).o).bc"],
        40,
        25,
    );
    b.inputs = paths(["prof \"x\".profdata"]);
    b.args.push("-fprofile-use=prof \"x\".profdata".to_owned());
    b.outputs = paths(["native/it's $b|(odd).dwo"]);
    let line = ["clang", "a dir/a:1.o", "it's $b|(odd).o", "lib;1/lib$.a", "", "-o", "out dir/prog"];
    let after = |first: &[&str]| words(&[first, &["--"], &line].concat());
    LinkParts {
        output: "out dir/prog".into(),
        thin_link: Some((after(&["distlto-index", "--index", "thin"]), "thin/graph.json".into())),
        written: paths(["thin/members/lib$.a(m (1).o).bc"]),
        command: after(&["distlto", "link", "--graph", "thin/graph.json"]),
        inputs: paths(["a dir/a:1.o", "it's $b|(odd).o", "lib;1/lib$.a", "native\\.o"]),
        backends: vec![
            module("a dir/a:1.o", "a dir/a:1.o", &[], 100, 0),
            b,
            module("lib$.a(m (1).o)", "thin/members/lib$.a(m (1).o).bc", &["a dir/a:1.o"], 7, 3),
        ],
    }
}

/// Gives every backend another word.
pub fn tell_backends(link: &mut LinkParts, word: &str) {
    link.backends.iter_mut().for_each(|backend| backend.shared.push(word.to_owned()));
}

/// The graph of a job file that lld 22 wrote for a link with odd names: its jobs as opt actions, its link.
pub fn lld_jobs() -> ActionGraph {
    #[derive(Deserialize)]
    struct File {
        common: Common,
        jobs: Vec<Job>,
    }
    #[derive(Deserialize)]
    struct Common {
        linker_output: String,
        args: Vec<String>,
    }
    #[derive(Deserialize)]
    struct Job {
        args: Vec<String>,
        inputs: Vec<String>,
        outputs: Vec<String>,
    }
    let file: File =
        serde_json::from_str(include_str!("lld-dtlto-oddnames.json")).expect("a job file of lld");
    let mut graph = ActionGraph::new();
    let prefix = graph.prefix(file.common.args);
    let mut objects = Vec::new();
    for job in file.jobs {
        let inputs = job.inputs.iter().map(|path| graph.file(path)).collect();
        let outputs: Vec<_> = job.outputs.iter().map(|path| graph.file(path)).collect();
        objects.extend(&outputs);
        add(
            &mut graph,
            Listed {
                kind: ActionKind::Opt,
                label: job.inputs[0].clone(),
                prefix: Some(prefix),
                args: job.args,
                inputs,
                outputs,
                cost: 0,
                decided: Decided::default(),
            },
        );
    }
    let output = graph.file(&file.common.linker_output);
    add(
        &mut graph,
        Listed {
            kind: ActionKind::Link,
            label: file.common.linker_output,
            prefix: None,
            args: vec!["ld.lld".to_owned()],
            inputs: objects,
            outputs: vec![output],
            cost: 0,
            decided: Decided::default(),
        },
    );
    graph
}

/// Adds an action, which imports all that it reads after its shard.
pub fn add(graph: &mut ActionGraph, action: Listed) -> ActionId {
    let action = action.typed(&|file| Some(graph.path(file)), &|_| true).expect("whole lists");
    graph.add(action)
}

/// The parts of a valid graph whose paths and words match a pattern: actions read files of earlier actions and sources.
pub fn parts(word: &'static str) -> impl Strategy<Value = (Vec<Utf8PathBuf>, Vec<Vec<String>>, Vec<Listed>)> {
    let shape = (0..4_usize, any::<prop::sample::Index>(), 1..3_usize, prop::collection::vec(word, 0..3));
    let actions = prop::collection::vec(
        (
            shape,
            prop::collection::vec(any::<prop::sample::Index>(), 2..6),
            prop_oneof![0..9_u64, any::<u64>()],
        ),
        0..8,
    );
    let names = prop::collection::hash_set(word, 30..31);
    let prefixes = prop::collection::hash_set(prop::collection::vec(word, 1..4), 1..4);
    (names, prefixes, actions).prop_map(|(names, prefixes, shapes)| {
        // Paths such as `a/./b` and `a/b` are one file; the table may hold it once.
        let mut graph = ActionGraph::new();
        for name in &names {
            graph.file(name);
        }
        let files: Vec<Utf8PathBuf> = graph.files().map(Utf8Path::to_owned).collect();
        let prefixes: Vec<_> = prefixes.into_iter().collect();
        let mut unwritten: Vec<u32> = (0..u32::try_from(files.len()).unwrap_or(u32::MAX)).collect();
        let mut readable: Vec<u32> = unwritten.split_off(unwritten.len() / 2);
        let mut actions = Vec::new();
        for ((kind, prefix, outputs, args), inputs, cost) in shapes {
            let outputs: Vec<u32> = unwritten.drain(..outputs.min(unwritten.len())).collect();
            let mut chosen = Vec::new();
            for index in inputs {
                let file = *index.get(&readable);
                if !chosen.contains(&FileId(file)) {
                    chosen.push(FileId(file));
                }
            }
            if outputs.is_empty() || chosen.len() < 2 {
                continue;
            }
            readable.extend(&outputs);
            let outputs: Vec<_> = outputs.into_iter().map(FileId).collect();
            let prefix = prefix.index(prefixes.len());
            actions.push(Listed {
                kind: ActionKind::ALL[kind],
                label: files[outputs[0].0 as usize].to_string(),
                prefix: Some(PrefixId(u32::try_from(prefix).unwrap_or(0))),
                args,
                inputs: chosen,
                outputs,
                cost,
                decided: Decided::default(),
            });
        }
        (files, prefixes, actions)
    })
}
