//! Property tests: whatever the bytes, there is a result, and an error has a place in the text.

use distlto_planner::dtlto;
use proptest::prelude::*;

use super::golden::files;

fn check(bytes: &[u8]) {
    match dtlto::read(bytes, "x") {
        Ok(file) => {
            // What was read has everything that a distributor asks for.
            for &job in &file.jobs {
                assert!(!file.module(job).is_empty() && !file.compiler().is_empty());
                assert!(file.graph.command(job).iter().any(|word| word.ends_with(file.shard(job).as_str())));
                assert!(
                    file.graph.action(job).outputs().all(|output| file.graph.producer(output) == Some(job))
                );
            }
        }
        Err(error) => {
            let has_place = !error.problem.place.is_empty() || error.problem.position.is_some();
            assert!(has_place, "{error}");
        }
    }
}

/// One of the files that lld wrote.
fn golden() -> impl Strategy<Value = Vec<u8>> {
    prop::sample::select(files().into_iter().map(|(_, bytes)| bytes).collect::<Vec<_>>())
}

/// Parts of JSON that turn one valid text into another.
const PARTS: &[&str] = &[
    "\"",
    "[]",
    "{}",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "0",
    "-1",
    "1.5",
    "1e999",
    "null",
    "true",
    "\"\"",
    "\\u0000",
    "\\ud800",
    "\"version\":{\"major\":0,\"minor\":0},",
    "\"inputs\":[],",
    "\"t5.o\",",
    "../",
    "/",
    "\u{fffd}",
    "[0],",
    "t2.o",
    "native",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&bytes);
    }

    #[test]
    fn flipped_bytes(mut bytes in golden(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let at = at.index(bytes.len());
        bytes[at] = byte;
        check(&bytes);
    }

    #[test]
    fn truncated(bytes in golden(), at in any::<prop::sample::Index>()) {
        let at = at.index(bytes.len());
        check(&bytes[..at]);
    }

    #[test]
    fn parts_put_in_and_taken_out(
        mut bytes in golden(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(PARTS), 0..12_usize), 1..4),
    ) {
        for (at, part, length) in edits {
            let at = at.index(bytes.len());
            let end = (at + length).min(bytes.len());
            bytes.splice(at..end, part.bytes());
        }
        check(&bytes);
    }

    #[test]
    fn old_ones(index in any::<i64>(), module in any::<u8>(), list in prop::sample::select(vec!["inputs", "outputs", "x"])) {
        let text = format!(
            r#"{{"version":{{"major":0,"minor":0}},"common":{{"args":["-o",["","outputs",0],["","inputs",0],
            ["-fthinlto-index=","inputs",1],["x","{list}",{index}]],"codegen-tool":"c","inputs":[],
            "modules":["a.o",["l.a(b.o at 8)","b.o"]]}},"jobs":[{{"inputs":[{module},"s",1],"outputs":["o"]}}]}}"#
        );
        check(text.as_bytes());
    }
}

#[test]
fn deep_nesting_ends() {
    for open in ["[", "{\"common\":", "{\"x\":", "{\"jobs\":[{\"inputs\":[["] {
        check(open.repeat(200_000).as_bytes());
    }
    // The version is looked for behind whatever else there is.
    check(format!("{{\"x\":{}", "[".repeat(1_000_000)).as_bytes());
}
