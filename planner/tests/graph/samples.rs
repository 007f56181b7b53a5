//! Graphs that the tests share: a hand-made plan with odd names, a graph of a real job file of lld, and
//! arbitrary graphs.

use camino::{Utf8Path, Utf8PathBuf};
use distlto_planner::graph::{ActionGraph, ActionId, ActionKind, FileId, Listed, PrefixId};
use distlto_planner::link_plan::{ArchivePlan, LinkPlan, MemberPlan, ObjectPlan, PlanStep, VERSION};
use proptest::prelude::*;
use serde::Deserialize;

/// One backend compilation with the names that lld and the driver would give its files.
pub fn module(id: &str, imports: &[&str], own: u64, imported: u64) -> ObjectPlan {
    ObjectPlan {
        archive: None,
        id: id.into(),
        shard: format!("thin/{id}.thinlto.bc").into(),
        imports: imports.iter().map(Utf8PathBuf::from).collect(),
        extra_inputs: Vec::new(),
        object: format!("native/{id}").into(),
        extra_outputs: Vec::new(),
        args: [
            "-x",
            "ir",
            id,
            &format!("-fthinlto-index=thin/{id}.thinlto.bc"),
            "-o",
            &format!("native/{id}"),
        ]
        .map(str::to_owned)
        .to_vec(),
        own_instructions: own,
        imported_instructions: imported,
    }
}

fn sorted<'a>(paths: impl IntoIterator<Item = &'a str>) -> Vec<Utf8PathBuf> {
    let mut paths: Vec<_> = paths.into_iter().map(Utf8PathBuf::from).collect();
    paths.sort();
    paths
}

fn words(line: &[&str]) -> Vec<String> {
    line.iter().map(|word| (*word).to_owned()).collect()
}

/// A link of two objects and an archive, with names that every reader of a command treats specially.
pub fn plan() -> LinkPlan {
    let member = |path: &str, bitcode, loaded| MemberPlan { path: path.into(), bitcode, loaded };
    let mut b = module("it's $b|(odd).o", &["a dir/a:1.o", "unpacked/lib.a/m (1).o"], 40, 25);
    b.extra_inputs = vec!["prof \"x\".profdata".into()];
    b.args.push("-fprofile-use=prof \"x\".profdata".to_owned());
    b.extra_outputs = vec!["native/it's $b|(odd).dwo".into()];
    LinkPlan {
        by_linker: false,
        version: VERSION,
        output: "out dir/prog".into(),
        archives: vec![ArchivePlan {
            path: "lib;1/lib$.a".into(),
            directory: "unpacked/lib.a".into(),
            fat_lto: true,
            inputs: vec!["lib;1/lib$.a".into()],
            members: vec![
                member("unpacked/lib.a/m (1).o", true, true),
                member("unpacked/lib.a/unused.o", true, false),
                member("unpacked/lib.a/native\\.o", false, true),
                member("elsewhere/thin.o", true, false),
            ],
        }],
        thin_link: PlanStep {
            command: words(&[
                "distlto-index",
                "--index",
                "thin",
                "--compiler",
                "clang",
                "--",
                "ld.lld",
                "a dir/a:1.o",
                "it's $b|(odd).o",
            ]),
            inputs: sorted([
                "a dir/a:1.o",
                "it's $b|(odd).o",
                "unpacked/lib.a/m (1).o",
                "unpacked/lib.a/unused.o",
                "unpacked/lib.a/native\\.o",
            ]),
            outputs: sorted(["thin/link-plan.json"]),
        },
        backend: words(&["clang", "-c", "-O2", "-DNAME=\"a $b\"", "-Wno-unused-command-line-argument"]),
        modules: vec![
            module("a dir/a:1.o", &[], 100, 0),
            b,
            module("unpacked/lib.a/m (1).o", &["a dir/a:1.o"], 7, 3),
        ],
        link: PlanStep {
            command: words(&[
                "clang",
                "-o",
                "out dir/prog",
                "native/a dir/a:1.o",
                "native/it's $b|(odd).o",
                "",
            ]),
            inputs: sorted([
                "native/a dir/a:1.o",
                "native/it's $b|(odd).o",
                "native/unpacked/lib.a/m (1).o",
                "unpacked/lib.a/native\\.o",
            ]),
            outputs: sorted(["out dir/prog"]),
        },
    }
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
            });
        }
        (files, prefixes, actions)
    })
}
