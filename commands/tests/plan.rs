//! The program `distlto-plan`: what it prints and writes, its exit codes, and its errors.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};

use distlto_commands::action_log::ActionLog;
use distlto_planner::graph::build::LinkParts;
use distlto_planner::graph::json;
use distlto_planner::state;

#[path = "../../planner/tests/graph/samples.rs"]
#[expect(dead_code, reason = "the samples serve the tests of the graph too")]
mod samples;

fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_distlto-plan"));
    command.current_dir(directory).env("XDG_CACHE_HOME", directory.join("cache")).args(arguments);
    command
}

fn run(directory: &Path, arguments: &[&str]) -> Output {
    command(directory, arguments).output().expect("distlto-plan starts")
}

/// Standard output of a run that must succeed.
fn out(directory: &Path, arguments: &[&str]) -> String {
    let output = run(directory, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Exit code and standard error of a run that must fail.
fn failure(directory: &Path, arguments: &[&str]) -> String {
    let output = run(directory, arguments);
    let code = output.status.code().expect("an exit code");
    assert_ne!(code, 0, "{arguments:?} succeeded");
    format!("exit {code}\n{}", String::from_utf8_lossy(&output.stderr).trim_end())
}

fn bytes(link: &LinkParts) -> Vec<u8> {
    json::to_bytes(&link.to_graph().expect("sound"))
}

/// A directory with the index directory `i` of the sample plan.
fn index() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::create_dir(directory.path().join("i")).expect("making the index directory");
    fs::write(directory.path().join("i/graph.json"), bytes(&samples::link())).expect("writing the plan");
    directory
}

#[test]
fn a_directory_and_its_graph_give_the_same() {
    let directory = index();
    let directory = directory.path();
    assert_eq!(out(directory, &["i", "--json", "g.json"]), "");
    let written = fs::read(directory.join("g.json")).expect("the graph");
    assert_eq!(written, bytes(&samples::link()));
    for option in ["--json", "--dot"] {
        assert_eq!(out(directory, &["i", option, "-"]), out(directory, &["g.json", option, "-"]));
    }
    assert_eq!(out(directory, &["i"]), out(directory, &["g.json", "--summary"]));
}

#[test]
fn files_are_rewritten_only_when_they_differ() {
    let directory = index();
    let path = directory.path().join("g.json");
    let modified = || fs::metadata(&path).and_then(|found| found.modified()).expect("the graph");
    out(directory.path(), &["i", "--json", "g.json"]);
    let first = modified();
    out(directory.path(), &["i", "--json", "g.json"]);
    assert_eq!(modified(), first);
}

/// A dry run of a link whose sources exist and that never ran; then of one with a missing source.
#[test]
fn a_dry_run_says_what_and_why() {
    let directory = index();
    insta::assert_snapshot!(out(directory.path(), &["i", "--dry-run"]));
    let names: Vec<_> = fs::read_dir(directory.path().join("i"))
        .expect("the index directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(names, ["graph.json"], "a dry run writes nothing");
}

/// After all actions of the sample plan ran: nothing would run; after an edit, what reads the edited file.
#[test]
fn a_dry_run_follows_content() {
    let directory = index();
    let directory = directory.path();
    let graph = samples::link().to_graph().expect("sound");
    for path in graph.files() {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().expect("a directory")).expect("making a directory");
        fs::write(&path, path.as_os_str().as_encoded_bytes()).expect("writing a file");
    }
    let links = directory.join("cache/distlto/links-v1");
    let graph_path = directory.join("i/graph.json");
    let state = state::directory(&graph_path.to_string_lossy(), &links.to_string_lossy());
    fs::create_dir_all(&state).expect("making a directory");
    let log = ActionLog::open(Path::new(&state), directory).expect("an empty log");
    for id in graph.topological() {
        log.finished(&graph, id).expect("all files are there");
    }
    assert_eq!(out(directory, &["i", "--dry-run"]), "0 of 5 actions would run\n");
    let module = directory.join("it's $b|(odd).o");
    fs::write(&module, fs::read(&module).expect("the module")).expect("writing it again unchanged");
    assert_eq!(out(directory, &["i", "--dry-run"]), "0 of 5 actions would run\n");
    fs::write(directory.join("prof \"x\".profdata"), "other").expect("editing the profile");
    fs::remove_file(directory.join("native/a dir/a:1.o")).expect("removing an object");
    insta::assert_snapshot!(out(directory, &["i", "--dry-run"]));
    fs::remove_file(module).expect("removing a module");
    insta::assert_snapshot!(failure(directory, &["i", "--dry-run"]));
}

/// Ninja makes the file again before it builds when the plan is newer.
#[test]
fn the_ninja_file_makes_itself_again() {
    let directory = index();
    let directory = directory.path();
    out(directory, &["i", "--ninja", "x.ninja"]);
    let ninja = || {
        let output = Command::new("ninja").args(["-f", "x.ninja", "x.ninja"]).current_dir(directory).output();
        let output = output.expect("ninja is missing: apt-get install ninja-build");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(ninja().contains("no work to do"));
    let mut link = samples::link();
    samples::tell_backends(&mut link, "-DADDED");
    fs::write(directory.join("i/graph.json"), bytes(&link)).expect("writing the plan");
    // Both may have been written within one tick of the file system's clock.
    let file = fs::File::options().append(true).open(directory.join("x.ninja")).expect("the Ninja file");
    file.set_modified(SystemTime::now() - Duration::from_secs(60)).expect("setting its time");
    ninja();
    let text = fs::read_to_string(directory.join("x.ninja")).expect("the Ninja file");
    assert!(text.contains("-DADDED"));
    assert!(ninja().contains("no work to do"));
    assert!(directory.join("i/.ninja_log").exists() && !directory.join(".ninja_log").exists());
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let directory = index();
    // More than a pipe holds, so that writing meets the closed end.
    let mut link = samples::link();
    samples::tell_backends(&mut link, &"x".repeat(1 << 20));
    fs::write(directory.path().join("i/graph.json"), bytes(&link)).expect("writing the plan");
    let mut child = command(directory.path(), &["i", "--json", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("distlto-plan starts");
    let mut first = [0; 16];
    child.stdout.take().expect("a pipe").read_exact(&mut first).expect("the beginning");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn errors_name_file_and_remedy() {
    let directory = index();
    let directory = directory.path();
    let write =
        |name: &str, text: &[u8]| fs::write(directory.join(name), text).expect("writing a broken file");
    fs::create_dir(directory.join("empty")).expect("making a directory");
    let plan = bytes(&samples::link());
    let broken = |name: &str, text: &[u8]| {
        fs::create_dir(directory.join(name)).expect("making a directory");
        write(&format!("{name}/graph.json"), text);
    };
    broken("truncated", &plan[..plan.len() / 2]);
    broken("newer", b"{\"version\":9,\"links\":[]}");
    broken("array", b"[1]");
    let text = String::from_utf8(plan.clone()).expect("text");
    let record = text.replacen("\"files\"", "\"is_record\":true,\n\"files\"", 1);
    broken("record", record.as_bytes());
    write("g.json", b"{\"version\":1,\n\"files\":[");
    write("not-text.json", b"\xff\xfe\0");
    let mut newline = samples::link();
    newline.backends[0].label = "a\nb.o".into();
    broken("newline", &bytes(&newline));
    let failures = [
        failure(directory, &["absent"]),
        failure(directory, &["empty"]),
        failure(directory, &["truncated"]),
        failure(directory, &["newer"]),
        failure(directory, &["array"]),
        failure(directory, &["record", "--ninja", "-"]),
        failure(directory, &["g.json"]),
        failure(directory, &["not-text.json"]),
        failure(directory, &["newline", "--ninja", "-"]),
        failure(directory, &["i", "--json", "-", "--dot", "-"]),
        failure(directory, &["i", "--json", "i"]),
    ];
    insta::assert_snapshot!(failures.join("\n\n"));
}
