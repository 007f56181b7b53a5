//! The program `distlto-prepare` as others meet it: several at once, killed, on a full disk.
//!
//! Limits stand for a full disk: `RLIMIT_FSIZE` makes writes fail as root too.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use distlto_prepare::manifest::Manifest;

use crate::tools::{check, compile, files, run, scratch};

const PROGRAM: &str = env!("CARGO_BIN_EXE_distlto-prepare");

fn command(directory: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["--archive", "a.a", "--objects-out", "out"]).current_dir(directory);
    command
}

fn finished(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

/// An archive large enough to be interrupted.
fn archive(directory: &Path) -> Vec<String> {
    compile(directory, "a.o", &["-flto=thin"]);
    let object = fs::read(directory.join("a.o")).expect("written");
    let names: Vec<String> = (0..400).map(|number| format!("m{number}.o")).collect();
    for (name, fill) in names.iter().zip(0u32..) {
        let content = [object.as_slice(), &fill.to_le_bytes().repeat(5000)].concat();
        fs::write(directory.join(name), content).expect("writable");
    }
    let mut arguments = vec!["qcS", "a.a"];
    arguments.extend(names.iter().map(String::as_str));
    run(directory, "llvm-ar-22", &arguments);
    names
}

fn check_all(directory: &Path, names: &[String]) {
    let out = files(&directory.join("out"));
    assert_eq!(out.len(), names.len());
    for name in names {
        assert!(out[name] == fs::read(directory.join(name)).expect("written"), "{name}");
    }
}

#[test]
fn the_command_line() {
    let scratch = scratch();
    let directory = scratch.path();
    compile(directory, "a.o", &["-flto=thin"]);
    run(directory, "llvm-ar-22", &["qcs", "a.a", "a.o"]);
    let output =
        command(directory).args(["--manifest-out", "m.json", "--store", "s"]).output().expect("runs");
    assert_eq!((finished(&output), output.stdout, output.stderr), (0, vec![], vec![]));
    let json = fs::read(directory.join("m.json")).expect("written");
    check(&Manifest::from_json(Path::new("m.json"), &json).expect("own manifest"), &directory.join("out"));
    let output = command(directory).args(["--manifest-out", "-"]).output().expect("runs");
    assert_eq!(output.stdout, json);
    let later = String::from_utf8(json).expect("UTF-8").replace("\"version\": 1", "\"version\": 2");
    let error = Manifest::from_json(Path::new("m.json"), later.as_bytes()).expect_err("an unknown version");
    assert!(error.to_string().contains("m.json: its version is 2"), "{error}");

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
fn several_processes_unpack_one_archive_at_once() {
    let scratch = scratch();
    let directory = scratch.path();
    let names = archive(directory);
    let children: Vec<Child> = (0..4)
        .map(|_| command(directory).args(["--store", "s"]).stderr(Stdio::piped()).spawn().expect("spawns"))
        .collect();
    for child in children {
        let output = child.wait_with_output().expect("ends");
        assert_eq!(finished(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
    }
    check_all(directory, &names);
}

#[test]
fn a_killed_process_leaves_whole_files_and_the_next_sweeps() {
    let scratch = scratch();
    let directory = scratch.path();
    let names = archive(directory);
    let mut killed_midway = 0;
    for attempt in 0..12 {
        let _ = fs::remove_dir_all(directory.join("out"));
        let mut child = command(directory).spawn().expect("spawns");
        // When some members are there, and not all.
        let there = || fs::read_dir(directory.join("out")).map_or(0, |entries| entries.count());
        while there() < 20 + attempt * 10 && child.try_wait().expect("a child").is_none() {
            std::thread::sleep(Duration::from_micros(200));
        }
        child.kill().expect("a child");
        child.wait().expect("a child");
        let left = files(&directory.join("out"));
        killed_midway += usize::from(left.len() < names.len());
        for (name, content) in &left {
            if !name.starts_with(".distlto-tmp-") {
                assert!(
                    *content == fs::read(directory.join(name)).expect("written"),
                    "{name} is half written"
                );
            }
        }
        fs::write(directory.join("out/.distlto-tmp-left"), "half").expect("writable");
        assert_eq!(finished(&command(directory).output().expect("runs")), 0);
        check_all(directory, &names);
    }
    assert!(killed_midway > 0, "no attempt was killed in the middle");
    // What a killed run wrote is known to be ours, even if the archive has lost it since.
    let _ = fs::remove_dir_all(directory.join("out"));
    let mut child = command(directory).spawn().expect("spawns");
    while !directory.join("out/m0.o").exists() && child.try_wait().expect("a child").is_none() {}
    child.kill().expect("a child");
    child.wait().expect("a child");
    fs::remove_file(directory.join("a.a")).expect("removable");
    run(directory, "llvm-ar-22", &["qcS", "a.a", "m399.o"]);
    assert_eq!(finished(&command(directory).output().expect("runs")), 0);
    check_all(directory, &names[399..]);
}

#[test]
fn a_file_system_that_takes_no_more_leaves_earlier_output() {
    let scratch = scratch();
    let directory = scratch.path();
    let names = archive(directory);
    fs::rename(directory.join("a.a"), directory.join("all.a")).expect("renamable");
    run(directory, "llvm-ar-22", &["qcS", "a.a", "m0.o"]);
    assert_eq!(finished(&command(directory).output().expect("runs")), 0);
    let before = files(&directory.join("out"));
    fs::rename(directory.join("all.a"), directory.join("a.a")).expect("renamable");
    // Files of at most 8 blocks of 512 or 1024 bytes, less than a member has; the signal is ignored, so writes fail.
    let script = format!("trap '' XFSZ; ulimit -f 8; exec {PROGRAM} --archive a.a --objects-out out");
    let output = Command::new("sh").args(["-c", &script]).current_dir(directory).output().expect("runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(finished(&output), 4, "{stderr}");
    assert!(stderr.contains("cannot write out/"), "{stderr}");
    let after = files(&directory.join("out"));
    assert_eq!(after, before, "nothing half written, nothing lost");
    assert_eq!(finished(&command(directory).output().expect("runs")), 0);
    check_all(directory, &names);
}
