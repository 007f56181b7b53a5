//! Job files of the current shape that no lld writes: each is refused with its place and a remedy.

use std::ops::Range;

use distlto_planner::dtlto::{self, JobFileError};
use distlto_prepare::exit;
use miette::Diagnostic;

const GOOD: &str = r#"{"common":{"linker_output":"d/out","args":["clang","-c"],"inputs":["p.prof"]},"jobs":[
{"args":["a.o","-fthinlto-index=d/a.bc","-o","d/a.native.o"],"inputs":["a.o","d/a.bc","b.o"],"outputs":["d/a.native.o"]},
{"args":["b.o","-fthinlto-index=d/b.bc","-o","d/b.native.o"],"inputs":["b.o","d/b.bc"],"outputs":["d/b.native.o"]}]}"#;

fn error(text: &str) -> JobFileError {
    let error = dtlto::read(text.as_bytes(), "x.json").expect_err(text);
    assert_eq!(exit::code_of(&error), 3, "{error}");
    assert!(error.help().is_some_and(|help| !help.to_string().is_empty()), "{error}");
    error
}

/// Whether the message is the expected one, in which `@` stands for a line and column that lie in the part of the
/// text that was edited, or just after it.
pub fn tells(error: &JobFileError, text: &str, edited: Range<usize>, expected: &str) -> bool {
    let Some((line, column)) = error.problem.position.filter(|_| expected.contains('@')) else {
        return error.to_string().contains(expected);
    };
    let start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let at = match expected.strip_prefix('@') {
        Some(_) => format!("line {line}, column {column}"),
        None => format!("(line {line}, column {column})"),
    };
    (edited.start..edited.end + 4).contains(&(start + column))
        && error.to_string().contains(&expected.replacen('@', &at, 1))
}

fn refused(from: &str, to: &str) -> JobFileError {
    assert!(GOOD.contains(from), "{from}");
    error(&GOOD.replacen(from, to, 1))
}

#[test]
fn the_good_one_is_read() {
    let file = dtlto::read(GOOD.as_bytes(), "x.json").expect("a job file");
    assert_eq!(file.jobs.len(), 2);
    assert_eq!(file.compiler(), "clang");
    assert!(file.others(file.jobs[0]).map(|path| path.as_str()).eq(["b.o", "p.prof"]));
}

#[test]
fn no_jobs_are_no_error() {
    let text = r#"{"common":{"linker_output":"out","args":["clang"],"inputs":[]},"jobs":[]}"#;
    let file = dtlto::read(text.as_bytes(), "x.json").expect("a job file");
    assert_eq!((file.jobs.len(), file.compiler()), (0, "clang"));
}

#[test]
fn a_file_that_is_listed_twice_is_one_input() {
    let text = GOOD.replacen(r#""b.o"],"outputs""#, r#""b.o","b.o","p.prof"],"outputs""#, 1);
    let file = dtlto::read(text.as_bytes(), "x.json").expect("a job file");
    assert!(file.others(file.jobs[0]).map(|path| path.as_str()).eq(["b.o", "p.prof"]));
}

#[test]
fn the_shape_is_checked() {
    for (from, to, expected) in [
        ("\"b.o\"],\"out", "4],\"out", "jobs[0].inputs[2] @: invalid type: integer `4`, expected a string"),
        ("\"b.o\"],\"out", "null],\"out", "jobs[0].inputs[2] @: invalid type: null, expected a string"),
        (
            "[\"p.prof\"]",
            "\"p.prof\"",
            "common.inputs @: invalid type: string \"p.prof\", expected a sequence",
        ),
        ("\"d/out\"", "[]", "common.linker_output @: invalid type: sequence, expected a string"),
        (
            "\"inputs\":[\"p",
            "\"input\":[\"p",
            "common.input @: unknown field `input`, expected one of `linker_output`, `args`, `inputs`",
        ),
        (
            "{\"args\":[\"b.o",
            "{\"env\":[],\"args\":[\"b.o",
            "jobs[1].env @: unknown field `env`, expected one of `args`, `inputs`, `outputs`",
        ),
        ("\"jobs\":[", "\"jobs\":[],\"jobs\":[", "@: duplicate field `jobs`"),
        (",\"outputs\":[\"d/b.native.o\"]", "", "jobs[1] @: missing field `outputs`"),
        (GOOD, "[]", "@: invalid type: sequence, expected an object"),
        (GOOD, "", "@: the file ends too early"),
        ("]}]}", "]}]} x", "@: not JSON: trailing characters"),
        ("]}]}", "]}]", "the file ends too early"),
        ("\"a.o\",\"-f", "\"a.o\\u0000\",\"-f", "jobs[0].args[0] @: \"a.o\\0\" holds a NUL character"),
        ("[\"p.prof\"]", "[\"\"]", "common.inputs[0] @: an empty path"),
        ("\"d/out\"", "\"\"", "common.linker_output @: an empty path"),
    ] {
        let text = GOOD.replacen(from, to, 1);
        let found = error(&text);
        let edited = GOOD.find(from).expect("part of it");
        assert!(tells(&found, &text, edited..edited + to.len(), expected), "{to}: {found}");
    }
}

#[test]
fn an_unknown_field_may_come_from_a_newer_lld() {
    let error = refused("\"jobs\":[", "\"schema\":2,\"jobs\":[");
    assert!(error.to_string().contains("unknown field `schema`"), "{error}");
    assert!(error.help().expect("help").to_string().contains("newer lld"), "{error}");
}

#[test]
fn an_empty_compiler_says_which_option_names_it() {
    for (from, to) in [("\"clang\",\"-c\"", "\"\",\"-c\""), ("\"clang\",\"-c\"", "")] {
        let error = refused(from, to);
        assert!(error.to_string().contains("common.args"), "{error}");
        let help = error.help().expect("help").to_string();
        for option in ["--thinlto-remote-compiler=CLANG", "-fthinlto-distributor=", "-C link-arg="] {
            assert!(help.contains(option), "{help}");
        }
    }
}

#[test]
fn the_jobs_are_checked() {
    for (from, to, expected) in [
        (
            "[\"b.o\",\"d/b.bc\"]",
            "[\"b.o\"]",
            "jobs[1].inputs: 1 inputs, where a module and its index shard come first",
        ),
        (
            "[\"b.o\",\"d/b.bc\"]",
            "[\"b.o\",\"b.o\"]",
            "jobs[1].inputs[1]: \"b.o\" is both the module and its index shard",
        ),
        ("[\"d/b.native.o\"]", "[]", "jobs[1].outputs: the job writes no file"),
        (
            "[\"d/b.native.o\"]",
            "[\"d/c.native.o\"]",
            "jobs[1].outputs[0]: the command of the job does not name \"d/c.native.o\"",
        ),
        ("[\"b.o\",\"-f", "[\"c.o\",\"-f", "jobs[1].inputs[0]: the command of the job does not name \"b.o\""),
        (
            "-fthinlto-index=d/b.bc",
            "-fthinlto-index=d/c.bc",
            "jobs[1].inputs[1]: the command of the job does not name \"d/b.bc\"",
        ),
        ("[\"p.prof\"]", "[\"d/a.native.o\"]", "common.inputs[0]: \"d/a.native.o\" is an output of jobs[0]"),
        (
            "\"d/a.bc\",\"b.o\"",
            "\"d/a.bc\",\"d/b.native.o\"",
            "jobs[0].inputs[2]: \"d/b.native.o\" is an output of jobs[1]",
        ),
        (
            "\"d/a.bc\",\"b.o\"",
            "\"d/a.bc\",\"d/./b.native.o\"",
            "jobs[0].inputs[2]: \"d/./b.native.o\" is an output of jobs[1]",
        ),
        (
            "[\"d/b.native.o\"]",
            "[\"d/b.native.o\",\"d/a.native.o\"]",
            "jobs[1].outputs[1]: jobs[0] writes \"d/a.native.o\" too",
        ),
        (
            "[\"d/b.native.o\"]",
            "[\"d/b.native.o\",\"d/b.native.o\"]",
            "jobs[1].outputs[1]: jobs[1] writes \"d/b.native.o\" too",
        ),
        (
            "[\"d/b.native.o\"]",
            "[\"d/b.native.o\",\"b.o\"]",
            "jobs[0].inputs[2]: \"b.o\" is an output of jobs[1]",
        ),
    ] {
        let error = refused(from, to).to_string();
        assert_eq!(error, format!("x.json: {expected}"));
    }
}

#[test]
fn outputs_lie_where_lld_writes() {
    let with = |linker_output: &str, output: &str| {
        let text = GOOD.replace("\"d/out\"", &format!("\"{linker_output}\"")).replace("d/b.native.o", output);
        dtlto::read(text.as_bytes(), "x.json").map_err(|error| error.to_string())
    };
    for (linker_output, output) in [
        ("out", "b.native.o"),
        ("./out", "./b.native.o"),
        ("d/out", "elsewhere/b.native.o"),
        ("/abs/d/out", "/abs/d/b.native.o"),
        ("/abs/d/out", "b.native.o"),
        ("../d/out", "../d/b.native.o"),
        ("/dev/null", "/dev/b.native.o"),
    ] {
        if let Err(error) = with(linker_output, output) {
            panic!("{linker_output} {output}: {error}");
        }
    }
    for (linker_output, output) in [
        ("d/out", "../b.native.o"),
        ("d/out", "d/../../b.native.o"),
        ("d/out", "/etc/b.native.o"),
        ("/abs/d/out", "/abs/b.native.o"),
        ("/abs/d/out", "/abs/d/../b.native.o"),
        ("../d/out", "../b.native.o"),
        ("../d/out", "../d/../b.native.o"),
        ("d/out", ".."),
        ("d/out", "/"),
    ] {
        let error = with(linker_output, output).expect_err(output);
        assert!(error.contains("outputs[0]") && error.contains("lies outside"), "{error}");
    }
}
