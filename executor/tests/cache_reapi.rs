//! Action digests are those of an independent implementation.
//!
//! The digests were computed by Python's protobuf 7.36 with the generated messages of BuildStream 2.8.1, which are made
//! from the API's own `remote_execution.proto`; the trees by a dozen lines of Python over those messages.

use std::borrow::Cow;

use camino::Utf8Path;
use distlto_executor::action::Description;
use distlto_executor::cache::reapi::encode;
use distlto_executor::verify::Role;
use distlto_planner::digests::Digest;

const WORDS: &[&str] =
    &["/usr/bin/clang-22", "-c", "-O2", "t1.o", "-fthinlto-index=t1.o.thinlto.bc", "-o", "out/t1.o"];

type Inputs<'a> = Vec<(Cow<'a, str>, Digest)>;
type Outputs = [(&'static Utf8Path, Role)];

fn inputs<'a>(files: &[(&'a str, &[u8])]) -> Inputs<'a> {
    files.iter().map(|(name, content)| ((*name).into(), Digest::of(content))).collect()
}

fn outputs(names: &[&'static str]) -> Vec<(&'static Utf8Path, Role)> {
    names.iter().map(|&name| (Utf8Path::new(name), Role::File)).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn action<'a>(outputs: &'a Outputs, directory: &'a str, inputs: &Inputs<'a>) -> Description<'a> {
    let inputs = inputs.clone();
    Description {
        words: WORDS,
        environment: &[],
        outputs,
        directory,
        inputs,
        salt: Vec::new(),
        platform: &[],
    }
}

fn digest(action: Description<'_>) -> String {
    encode(&action).expect("inputs of one tree").digest.to_string()
}

const PLAIN: &str = "1a981f07c76daf5bbfd9d23a4d12ad22b1c474999eb0c8e45c2cbd4b327305f0/141";

#[test]
fn a_working_directory_that_holds_everything_is_the_input_root() {
    let files: [(&str, &[u8]); 4] =
        [("t1.o", b"one"), ("t1.o.thinlto.bc", b"shard"), ("lib/b.o", b"two"), ("lib/a.o", b"")];
    let mut inputs = inputs(&files);
    assert_eq!(digest(action(&outputs(&["out/t1.o"]), "/srv/x/build", &inputs)), PLAIN);
    inputs.reverse();
    inputs.push(inputs[0].clone());
    inputs[1].0 = "./lib/../lib//b.o".into();
    assert_eq!(
        digest(action(&outputs(&["out/t1.o"]), "/elsewhere", &inputs)),
        PLAIN,
        "order, place and spelling do not matter"
    );
}

#[test]
fn all_fields_are_encoded() {
    let files: [(&str, &[u8]); 3] =
        [("t1.o", b"one"), ("../lib/b.o", "two ü".as_bytes()), ("../../src/a.prof", &[b'p'; 70000])];
    let inputs = inputs(&files);
    let salt: Vec<u8> = (0..32).collect();
    let found = digest(Description {
        environment: &pairs(&[("SOURCE_DATE_EPOCH", "7"), ("AS_SECURE_LOG_FILE", "x")]),
        platform: &pairs(&[("OSFamily", "linux"), ("ISA", "x86-64")]),
        salt,
        ..action(&outputs(&["out/t1.o", "out/t1.dwo"]), "/srv/x/build/deep", &inputs)
    });
    assert_eq!(found, "84abd869ab94a65248b92d88854cd905fade7a60ba66aefc6c50aeff176ac266/212");
}

#[test]
fn an_absolute_name_makes_the_whole_file_system_the_input_root() {
    let inputs = inputs(&[("t1.o", b"one"), ("/opt/lib/b.o", b"two")]);
    let found = digest(action(&outputs(&["/srv/x/out/t1.o"]), "/srv/x/build", &inputs));
    assert_eq!(found, "c8bc1f6a61328d814b873bd3d4b2d86e7a66fcf5168cc495d30b90df695c6e3f/141");
}

#[test]
fn what_cannot_be_one_tree_has_no_digest() {
    for files in [
        [("a", b"one"), ("a", b"two")],
        [("a", b"one"), ("a/b", b"two")],
        [("a/b", b"one"), ("a", b"two")],
        [("a", b"one"), ("", b"two")],
    ] {
        let files: Vec<(&str, &[u8])> = files.iter().map(|(name, content)| (*name, &content[..])).collect();
        assert_eq!(encode(&action(&outputs(&["o"]), "/w", &inputs(&files))), None, "{files:?}");
    }
}
