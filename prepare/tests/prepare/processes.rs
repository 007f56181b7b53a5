//! The program `distlto-prepare` as others meet it: its command line, and a full disk.
//!
//! Limits stand for a full disk: `RLIMIT_FSIZE` makes writes fail as root too.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::tools::{compile, files, run, scratch};

const PROGRAM: &str = env!("CARGO_BIN_EXE_distlto-prepare");

fn command(directory: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["--archive", "a.a", "--objects-out", "out"]).current_dir(directory);
    command
}

fn finished(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

#[test]
fn the_command_line() {
    let scratch = scratch();
    let directory = scratch.path();
    compile(directory, "a.o", &["-flto=thin"]);
    run(directory, "llvm-ar-22", &["qcs", "a.a", "a.o"]);
    let output = command(directory).args(["--manifest-out", "m.json"]).output().expect("runs");
    assert_eq!((finished(&output), output.stdout, output.stderr), (0, vec![], vec![]));
    let json = fs::read(directory.join("m.json")).expect("written");
    let manifest: Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(manifest, json!({ "debug": "current ar archive\n", "objects": ["out/a.o"] }));
    let output = command(directory).args(["--manifest-out", "-"]).output().expect("runs");
    assert_eq!(output.stdout, json);

    assert_eq!(finished(&command(directory).arg("--no-such-option").output().expect("runs")), 2);
    fs::write(directory.join("a.a"), "!<arch>\nrubbish").expect("writable");
    let output = command(directory).output().expect("runs");
    assert_eq!(finished(&output), 3);
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(
        stderr.contains("a.a is malformed") && stderr.contains("help: build the archive again"),
        "{stderr}"
    );
    assert_eq!(files(&directory.join("out")).len(), 1, "earlier output is intact");
}

#[test]
fn a_file_system_that_takes_no_more_leaves_earlier_output() {
    let scratch = scratch();
    let directory = scratch.path();
    compile(directory, "a.o", &["-flto=thin"]);
    let object = fs::read(directory.join("a.o")).expect("written");
    run(directory, "llvm-ar-22", &["qcS", "a.a", "a.o"]);
    assert_eq!(finished(&command(directory).output().expect("runs")), 0);
    let before = files(&directory.join("out"));
    let large = [object.as_slice(), &[1; 20_000]].concat();
    fs::write(directory.join("b.o"), &large).expect("writable");
    run(directory, "llvm-ar-22", &["qcS", "a.a", "b.o"]);
    // Files of at most 8 blocks of 512 or 1024 bytes, less than a member has; the signal is ignored, so writes fail.
    let script = format!("trap '' XFSZ; ulimit -f 8; exec {PROGRAM} --archive a.a --objects-out out");
    let output = Command::new("sh").args(["-c", &script]).current_dir(directory).output().expect("runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(finished(&output), 4, "{stderr}");
    assert!(stderr.contains("cannot write out/"), "{stderr}");
    assert_eq!(files(&directory.join("out")), before, "nothing half written, nothing lost");
    assert_eq!(finished(&command(directory).output().expect("runs")), 0);
    assert_eq!(files(&directory.join("out"))["b.o"], large);
}
