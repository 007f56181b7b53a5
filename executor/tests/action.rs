//! Action digests are those of an independent implementation.
//!
//! The first was computed by Python's protobuf 7.36 with the generated messages of BuildStream 2.8.1, which are made from
//! the API's own `remote_execution.proto`, the other one by a dozen lines of Python that know nothing but the wire format.

use distlto_executor::action::{ActionInput, Description, InputContent};
use distlto_executor::output::Role;
use distlto_planner::digests::Digest;

const WORDS: &[&str] =
    &["/usr/bin/clang-22", "-c", "-O2", "t1.o", "-fthinlto-index=t1.o.thinlto.bc", "-o", "out/t1.o"];

fn input<'a>(name: &'a str, content: &[u8]) -> ActionInput<'a> {
    let digest = Digest::of(content);
    ActionInput { name: name.into(), digest, is_executable: false, content: InputContent::File(name.into()) }
}

fn inputs<'a>(files: &[(&'a str, &[u8])]) -> Vec<ActionInput<'a>> {
    files.iter().map(|(name, content)| input(name, content)).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn action<'a>(outputs: &[&'a str], inputs: &[ActionInput<'a>]) -> Description<'a> {
    Description {
        words: WORDS.iter().map(|&word| word.into()).collect(),
        environment: &[],
        outputs: outputs.iter().map(|&name| (name.into(), Role::File)).collect(),
        inputs: inputs.to_vec(),
        salt: Vec::new(),
        platform: &[],
    }
}

fn digest(action: &Description<'_>) -> String {
    action.encode().expect("inputs of one tree").digest().to_string()
}

const PLAIN: &str = "1a981f07c76daf5bbfd9d23a4d12ad22b1c474999eb0c8e45c2cbd4b327305f0/141";

#[test]
fn the_order_of_inputs_does_not_matter() {
    let files: [(&str, &[u8]); 4] =
        [("t1.o", b"one"), ("t1.o.thinlto.bc", b"shard"), ("lib/b.o", b"two"), ("lib/a.o", b"")];
    let mut inputs = inputs(&files);
    assert_eq!(digest(&action(&["out/t1.o"], &inputs)), PLAIN);
    inputs.reverse();
    inputs.push(inputs[0].clone());
    assert_eq!(digest(&action(&["out/t1.o"], &inputs)), PLAIN);
    inputs[0].is_executable = true;
    inputs.pop();
    assert_ne!(digest(&action(&["out/t1.o"], &inputs)), PLAIN);
}

#[test]
fn all_fields_are_encoded() {
    let files: [(&str, &[u8]); 3] =
        [("t1.o", b"one"), ("lib/b.o", "two ü".as_bytes()), ("src/a.prof", &[b'p'; 70000])];
    let found = digest(&Description {
        environment: &pairs(&[("SOURCE_DATE_EPOCH", "7"), ("AS_SECURE_LOG_FILE", "x")]),
        platform: &pairs(&[("OSFamily", "linux"), ("ISA", "x86-64")]),
        salt: (0..32).collect(),
        ..action(&["out/t1.o", "out/t1.dwo"], &inputs(&files))
    });
    assert_eq!(found, "21fc464b5cfd02f2040a048ab35325713bf84c5ee74ec181820c100eae474676/212");
}

#[test]
fn what_cannot_be_one_tree_has_no_digest() {
    for files in [
        [("a", b"one"), ("a", b"two")],
        [("a", b"one"), ("a/b", b"two")],
        [("a/b", b"one"), ("a", b"two")],
        [("a", b"one"), ("", b"two")],
        [("a", b"one"), ("../b", b"two")],
        [("a", b"one"), ("/b", b"two")],
    ] {
        let files: Vec<(&str, &[u8])> = files.iter().map(|(name, content)| (*name, &content[..])).collect();
        assert!(action(&["o"], &inputs(&files)).encode().is_err(), "{files:?}");
    }
}
