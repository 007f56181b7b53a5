//! The graph's JSON: snapshots, round trips, and that reader and published schema refuse the same texts.

use distlto_planner::graph::json::{read, to_bytes, write};
use distlto_planner::graph::{ActionGraph, ActionKind, Decided, Listed};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::samples;

fn schema() -> jsonschema::Validator {
    let text = include_str!("../../../docs/action-graph.schema.json");
    let schema: Value = serde_json::from_str(text).expect("the schema is JSON");
    assert!(jsonschema::meta::is_valid(&schema), "the schema is no JSON Schema");
    jsonschema::validator_for(&schema).expect("the schema compiles")
}

fn value(graph: &ActionGraph) -> Value {
    serde_json::from_slice(&to_bytes(graph)).expect("the writer writes JSON")
}

#[test]
fn a_plan_with_odd_names() {
    let graph = samples::link().to_graph().expect("the sample plan is sound");
    insta::assert_snapshot!(String::from_utf8(to_bytes(&graph)).expect("JSON is UTF-8"));
}

#[test]
fn real_graphs_follow_the_schema_and_read_back() {
    for graph in [samples::link().to_graph().expect("sound"), samples::lld_jobs(), ActionGraph::new()] {
        let errors: Vec<_> = schema().iter_errors(&value(&graph)).map(|error| error.to_string()).collect();
        assert_eq!(errors, [""; 0]);
        let read = read(&to_bytes(&graph)).expect("the reader reads what the writer wrote");
        assert!(read == graph.canonical());
        assert_eq!(to_bytes(&read), to_bytes(&graph));
    }
}

/// Texts that are JSON but no graph: `edit` breaks one thing of a sound graph.
#[test]
fn schema_and_reader_refuse_the_same_shapes() {
    type Edit = fn(&mut Value);
    let edits: [(&str, Edit); 25] = [
        ("version 1", |graph| graph["version"] = json!(1)),
        ("version as text", |graph| graph["version"] = json!("1")),
        ("no version", |graph| drop(graph.as_object_mut().expect("object").remove("version"))),
        ("unknown field", |graph| graph["more"] = json!(1)),
        ("no files", |graph| drop(graph.as_object_mut().expect("object").remove("files"))),
        ("files as an object", |graph| graph["files"] = json!({})),
        ("a number among files", |graph| graph["files"][0] = json!(1)),
        ("an empty path", |graph| graph["files"][0] = json!("")),
        ("NUL in a path", |graph| graph["files"][0] = json!("a\0b")),
        ("a file twice", |graph| graph["files"][1] = graph["files"][0].clone()),
        ("a prefix as text", |graph| graph["prefixes"][0] = json!("clang -c")),
        ("an action as an array", |graph| {
            graph["actions"][0] = json!(["prepare", "l", 0, ["a"], [0], [1], 0])
        }),
        ("unknown kind", |graph| graph["actions"][0]["kind"] = json!("compile")),
        ("kind as an object", |graph| graph["actions"][0]["kind"] = json!({ "prepare": null })),
        ("no label", |graph| drop(graph["actions"][0].as_object_mut().expect("object").remove("label"))),
        ("unknown field of an action", |graph| graph["actions"][0]["env"] = json!({})),
        ("a word for is_record", |graph| graph["is_record"] = json!("yes")),
        ("a digest that is too short", |graph| graph["actions"][1]["shard"] = json!("0f")),
        ("negative imported", |graph| graph["actions"][1]["imported"] = json!(-1)),
        ("negative cost", |graph| graph["actions"][0]["cost"] = json!(-1)),
        ("cost beyond 64 bits", |graph| graph["actions"][0]["cost"] = json!(18446744073709551616.0)),
        ("no output", |graph| graph["actions"][0]["outputs"] = json!([])),
        ("an input twice", |graph| graph["actions"][0]["inputs"] = json!([0, 0])),
        ("an opt action without a shard", |graph| graph["actions"][2]["inputs"] = json!([0])),
        ("an index beyond 32 bits", |graph| graph["actions"][0]["prefix"] = json!(4294967296_u64)),
    ];
    let sound = value(&samples::link().to_graph().expect("sound"));
    let schema = schema();
    for (what, edit) in edits {
        let mut broken = sound.clone();
        edit(&mut broken);
        assert!(!schema.is_valid(&broken), "the schema accepts {what}");
        assert!(read(broken.to_string().as_bytes()).is_err(), "the reader accepts {what}");
    }
}

#[test]
fn every_truncation_is_refused() {
    let bytes = to_bytes(&samples::link().to_graph().expect("sound"));
    let end = bytes.len() - 1;
    assert!(read(&bytes[..end]).is_ok(), "only the last newline is missing");
    for length in 0..end {
        assert!(read(&bytes[..length]).is_err(), "{length} of {end} bytes are read as a graph");
    }
}

#[test]
fn errors_name_the_place() {
    let message = |text: &str| read(text.as_bytes()).expect_err("a broken text").to_string();
    let deep = format!("{{\"version\":2,\"files\":{}", "[".repeat(100_000));
    let deep_unknown = format!("{{\"version\":2,\"more\":{}", "[".repeat(100_000));
    let texts = [
        "",
        "{\"version\":2,\n\"files\":[],\"prefixes\":[],\n\"actions\":[]} x",
        "{\"version\":7,\"nodes\":[]}",
        "{\"version\":2,\n\"files\":[\"a\",7]",
        "{\"version\":2,\"files\":[],\"prefixes\":[],\"actions\":[],\n \"version\":2}",
        "[1,[],[],[]]",
        "{\"version\":2,\"files\":[\"a\"],\"prefixes\":[],\"actions\":[\n{\"kind\":\"link\",\"label\":\"p\",\
         \"args\":[\"ld\"],\"inputs\":[],\"outputs\":[1],\"cost\":0}]}",
        "{\"version\":2,\"files\":[\"a\"],\"prefixes\":[],\"actions\":[\n{\"kind\":\"link\",\"label\":\"p\",\
         \"prefix\":3,\"args\":[\"ld\"],\"inputs\":[],\"outputs\":[0],\"cost\":0}]}",
        "{\"version\":2,\"files\":[\"a/b\",\"a//b\"],\"prefixes\":[],\"actions\":[]}",
        &deep,
        &deep_unknown,
        "{\"version\":2,\"files\":[\"\u{fffd}\",\"\\ud800\"]}",
    ];
    insta::assert_snapshot!(texts.map(message).join("\n"));
    assert!(read(b"{\"version\":2,\"files\":[\"\xff\"]}").is_err(), "bytes that are not UTF-8");
}

/// Far more than any known link.
#[test]
fn a_hundred_thousand_actions() {
    let mut graph = ActionGraph::new();
    let prefix = graph.prefix(vec!["clang".to_owned(), "-c".to_owned()]);
    let modules: Vec<_> = (0..100_000).map(|n| graph.file(format!("m{n}.o"))).collect();
    for (n, &module) in modules.iter().enumerate() {
        let mut inputs = vec![module, graph.file(format!("m{n}.o.thinlto.bc"))];
        inputs.extend((1..19).map(|step| modules[(n + step * 97) % modules.len()]));
        let outputs = vec![graph.file(format!("m{n}.native.o"))];
        let (kind, label) = (ActionKind::Opt, format!("m{n}.o"));
        samples::add(
            &mut graph,
            Listed {
                kind,
                label,
                prefix: Some(prefix),
                args: Vec::new(),
                inputs,
                outputs,
                cost: n as u64,
                decided: Decided::default(),
            },
        );
    }
    let mut bytes = Vec::new();
    write(&graph, &mut bytes).expect("writing to a Vec does not fail");
    let read = read(&bytes).expect("the writer's text");
    assert_eq!(read.actions().len(), 100_000);
}

proptest! {
    #[test]
    fn any_graph_survives(parts in samples::parts("[^\0]{1,12}"), seed in any::<u64>()) {
        let (files, prefixes, actions) = parts;
        let graph = ActionGraph::from_lists(files.clone(), prefixes.clone(), actions.clone())
            .expect("the strategy makes sound parts");
        let bytes = to_bytes(&graph);
        let again = read(&bytes).expect("the reader reads what the writer wrote");
        prop_assert!(again == graph);
        prop_assert_eq!(to_bytes(&again), bytes.clone());
        // The same graph, put together in another order.
        let mut shuffled = actions;
        let steps = shuffled.len().max(1);
        shuffled.rotate_left(usize::try_from(seed % steps as u64).unwrap_or(0));
        shuffled.reverse();
        let other = ActionGraph::from_lists(files, prefixes, shuffled).expect("order does not matter");
        prop_assert_eq!(to_bytes(&other), bytes);
    }

    #[test]
    fn no_text_panics(cut in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = to_bytes(&samples::link().to_graph().expect("sound"));
        let at = cut.index(bytes.len());
        bytes[at] = byte;
        if let Ok(graph) = read(&bytes) {
            prop_assert!(read(&to_bytes(&graph)).is_ok());
        }
    }
}
