//! Version 0.0: the example of the proposal of 2023, and what its indices may not be.

use distlto_planner::dtlto::{self, JobFile};

use super::malformed::tells;

/// Three modules, two of them members of archives. `<uid>` is the proposal's own.
const EXAMPLE: &str = r#"{
  "version": {"major": 0, "minor": 0},
  "common": {
    "args": ["-cc1", "-O2", "-o", ["", "outputs", 0], "-emit-obj", "-x", "ir", ["", "inputs", 0],
             ["-fthinlto-index=", "inputs", 1], "-triple", "x86_64-unknown-linux-gnu"],
    "codegen-tool": "/path/to/clang",
    "inputs": ["my.profdata"],
    "modules": [["libmain.a(main.o at 82)", "main.<uid>.o"], "c.o", ["liba.a(a.o at 78)", "a.o"]]
  },
  "jobs": [
    {"inputs": [0, "main.<uid>.o.native.o.thinlto.bc", 1, 2], "outputs": ["main.<uid>.o.native.o"]},
    {"inputs": [2, "a.<uid>.o.native.o.thinlto.bc"],           "outputs": ["a.<uid>.o.native.o"]},
    {"inputs": [1, "c.<uid>.native.o.thinlto.bc"],             "outputs": ["c.<uid>.native.o"]}
  ]
}"#;

fn read(text: &str) -> JobFile {
    dtlto::read(text.as_bytes(), "jobs").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_example_gives_its_commands() {
    let (file, placed) = dtlto::read_placed(EXAMPLE.as_bytes(), "jobs").expect("a job file");
    // The proposal spells the second one out: the tool, `-o` with the object, the identifier, and the shard.
    let expected = [
        ("main.<uid>.o.native.o", "libmain.a(main.o at 82)", "main.<uid>.o.native.o.thinlto.bc"),
        ("a.<uid>.o.native.o", "liba.a(a.o at 78)", "a.<uid>.o.native.o.thinlto.bc"),
        ("c.<uid>.native.o", "c.o", "c.<uid>.native.o.thinlto.bc"),
    ];
    let inputs: [&[&str]; 3] =
        [&["c.o", "liba.a(a.o at 78)", "my.profdata"], &["my.profdata"], &["my.profdata"]];
    assert_eq!(file.jobs.len(), expected.len());
    for ((&job, (object, module, shard)), others) in file.jobs.iter().zip(expected).zip(inputs) {
        let index = format!("-fthinlto-index={shard}");
        let command =
            ["/path/to/clang", "-cc1", "-O2", "-o", object, "-emit-obj", "-x", "ir", module, &index];
        let command = [&command[..], &["-triple", "x86_64-unknown-linux-gnu"]].concat();
        assert_eq!(file.graph.command(job), command);
        assert_eq!(
            (file.object(job).as_str(), file.module(job), file.shard(job).as_str()),
            (object, module, shard)
        );
        assert!(file.others(job).map(|path| path.as_str()).eq(others.iter().copied()));
    }
    let placed = placed.expect("version 0.0");
    let placed: Vec<_> = placed.iter().map(|(id, path)| (id.as_str(), path.as_str())).collect();
    assert_eq!(placed, [("libmain.a(main.o at 82)", "main.<uid>.o"), ("liba.a(a.o at 78)", "a.o")]);
}

#[test]
fn a_job_has_words_of_its_own() {
    let text = EXAMPLE
        .replace(r#""-triple", "x86_64-unknown-linux-gnu""#, r#""-triple", ["", "args", 0]"#)
        .replace(r#".o.native.o"]}"#, r#".o.native.o"], "args": ["x86_64-unknown-linux-gnu"]}"#)
        .replace(r#"c.<uid>.native.o"]}"#, r#"c.<uid>.native.o"], "args": ["x86_64-pc-linux-gnu"]}"#);
    let (file, plain) = (read(&text), read(EXAMPLE));
    for (&job, &same) in file.jobs.iter().zip(&plain.jobs) {
        let mut expected = plain.graph.command(same).to_vec();
        if file.module(job) == "c.o" {
            *expected.last_mut().expect("words") = "x86_64-pc-linux-gnu";
        }
        assert_eq!(file.graph.command(job), expected);
    }
    let error =
        dtlto::read(text.replace(r#""args", 0"#, r#""args", 1"#).as_bytes(), "jobs").expect_err("refused");
    assert!(
        error.to_string().contains("common.args[10]: index 1 of jobs[0].args, which has 1 entries"),
        "{error}"
    );
}

#[test]
fn the_version_is_found_wherever_it_stands() {
    let version = r#""version": {"major": 0, "minor": 0},"#;
    let last = EXAMPLE.replace(version, "");
    let last =
        format!(r#"{}, "version": {{"minor": 0, "major": 0}}}}"#, last.trim_end().trim_end_matches('}'));
    assert_eq!(read(&last), read(EXAMPLE));
}

#[test]
fn module_and_shard_come_first_whatever_their_places() {
    let text = EXAMPLE
        .replace(r#"["", "inputs", 0]"#, r#"["", "inputs", 1]"#)
        .replace(r#""inputs", 1],"#, r#""inputs", 0],"#)
        .replace(r#"["-fthinlto-index=", "inputs", 1]"#, r#"["-fthinlto-index=", "inputs", 0]"#);
    // Words and lists swapped alike: the jobs are the same.
    let swapped = text
        .replace(r#"["", "inputs", 0],"#, r#"["", "inputs", 1],"#)
        .replace(r#"[0, "main.<uid>.o.native.o.thinlto.bc", "#, r#"["main.<uid>.o.native.o.thinlto.bc", 0, "#)
        .replace(r#"[2, "a.<uid>.o.native.o.thinlto.bc"]"#, r#"["a.<uid>.o.native.o.thinlto.bc", 2]"#)
        .replace(r#"[1, "c.<uid>.native.o.thinlto.bc"]"#, r#"["c.<uid>.native.o.thinlto.bc", 1]"#);
    assert_ne!(swapped, EXAMPLE);
    assert_eq!(read(&swapped).graph, read(EXAMPLE).graph);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (from, to, expected) in [
        (r#"[0, "main"#, r#"[3, "main"#, "jobs[0].inputs[0]: index 3 of common.modules, which has 3 entries"),
        (
            r#"[0, "main"#,
            r#"[-1, "main"#,
            "jobs[0].inputs[0] @: expected a path, or the index of a module from 0 on",
        ),
        (
            r#"[0, "main"#,
            r#"[0.5, "main"#,
            "jobs[0].inputs[0] @: expected a path, or the index of a module from 0 on",
        ),
        (
            r#"[0, "main"#,
            r#"[1e99, "main"#,
            "jobs[0].inputs[0] @: expected a path, or the index of a module from 0 on",
        ),
        (
            r#"[0, "main"#,
            r#"[99999999999999999999999, "main"#,
            "jobs[0].inputs[0] @: expected a path, or the index of a module from 0 on",
        ),
        (
            r#"[0, "main"#,
            r#"[[0], "main"#,
            "jobs[0].inputs[0] @: expected a path, or the index of a module from 0 on",
        ),
        (
            r#""inputs", 1]"#,
            r#""inputs", 4]"#,
            "common.args[8]: index 4 of jobs[0].inputs, which has 4 entries",
        ),
        (
            r#""outputs", 0]"#,
            r#""outputs", 1]"#,
            "common.args[3]: index 1 of jobs[0].outputs, which has 1 entries",
        ),
        (
            r#""outputs", 0]"#,
            r#""outputs", -2]"#,
            "common.args[3] @: expected a word, or an array of a prefix, ",
        ),
        (
            r#""outputs", 0]"#,
            r#""output", 0]"#,
            "common.args[3] @: expected a word, or an array of a prefix, ",
        ),
        (r#""outputs", 0]"#, r#""outputs"]"#, "common.args[3] @: expected a word, or an array of a prefix, "),
        (
            r#""outputs", 0]"#,
            r#""outputs", 0, 0]"#,
            "common.args[3] @: expected a word, or an array of a prefix, ",
        ),
        (
            r#", "a.o"]]"#,
            r#", "a.o", "b"]]"#,
            "common.modules[2] @: expected a path, or a pair of module identifier and path",
        ),
        (
            r#"["liba.a(a.o at 78)", "a.o"]"#,
            r#"["c.o", "a.o"]"#,
            "common.modules[2]: \"c.o\" is also the identifier of common.modules[1]",
        ),
        (
            r#""c.o", ["#,
            r#""-c.o", ["#,
            "jobs[2].inputs[0]: the compiler takes the module identifier \"-c.o\" for an option",
        ),
        (r#""minor": 0"#, r#""minor": 1"#, "version: a job file of version 0.1"),
        (r#""minor": 0"#, r#""patch": 0"#, "version.patch @: unknown field `patch`"),
        (r#"{"major": 0, "minor": 0}"#, "0", "version @: invalid type: integer `0`"),
        (r#""/path/to/clang""#, r#""""#, "common.codegen-tool: the compiler's name is empty"),
        (
            r#""codegen-tool": "/path/to/clang","#,
            "",
            "common (line 9, column 3): missing field `codegen-tool`",
        ),
        (
            r#""outputs": ["c.<uid>.native.o"]"#,
            r#""outputs": ["a.<uid>.o.native.o"]"#,
            "jobs[2].outputs[0]: jobs[1] writes \"a.<uid>.o.native.o\" too",
        ),
        (
            r#", "a.o"]]"#,
            r#", "c.<uid>.native.o"]]"#,
            "common.modules[2]: \"c.<uid>.native.o\" is an output of jobs[2]",
        ),
        (
            r#""outputs": ["c.<uid>.native.o"]"#,
            r#""outputs": ["../c.native.o"]"#,
            "jobs[2].outputs[0]: \"../c.native.o\" lies outside",
        ),
    ] {
        let edited = EXAMPLE.find(from).expect("part of it");
        let text = EXAMPLE.replacen(from, to, 1);
        let error = dtlto::read(text.as_bytes(), "jobs").expect_err("refused");
        assert!(tells(&error, &text, edited..edited + to.len(), expected), "{to}: {error}");
    }
}
