//! What Buck2's rules pass to the program, and what they read afterwards.
//!
//! `data/buck2-manifest.json` is what the stock tool wrote in a real build. For the rest the oracles are `llvm-ar`,
//! `file`, and lld, which has to take the listed objects in the archive's place.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use distlto_prepare::names::{duplicates_last, member_file_names};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::tools::{THIN_LTO, compile, files, run, scratch};

const PROGRAM: &str = env!("CARGO_BIN_EXE_distlto-prepare");

/// A run with the words of the rule for GNU linkers and more.
fn gnu(directory: &Path, archive: &str, out: &str, more: &[&str]) -> Output {
    Command::new(PROGRAM)
        .args(["--manifest-out", "m.json", "--objects-out", out, "--ar", "llvm-ar-22", "--archive", archive])
        .args(["--name", "pre/prebuilt/lib.a"])
        .args(more)
        .current_dir(directory)
        .output()
        .expect("runs")
}

/// The manifest of a run that succeeds, and what it said.
fn manifest(directory: &Path, archive: &str, out: &str, more: &[&str]) -> (Value, String) {
    let output = gnu(directory, archive, out, more);
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let text = fs::read_to_string(directory.join("m.json")).expect("written");
    (serde_json::from_str(&text).expect("JSON"), stderr)
}

/// The manifest's objects without the directory, which must hold exactly them.
fn objects(directory: &Path, archive: &str) -> Vec<String> {
    let _ = fs::remove_dir_all(directory.join("out"));
    let (manifest, _) = manifest(directory, archive, "out", &[]);
    let listed = manifest["objects"].as_array().expect("a list").iter();
    let listed: Vec<String> = listed
        .map(|path| path.as_str().and_then(|path| path.strip_prefix("out/")).expect("below out/").to_owned())
        .collect();
    let mut sorted = listed.clone();
    sorted.sort();
    assert_eq!(all_files(directory, "out"), sorted);
    listed
}

/// All names in a directory, hidden ones too.
fn all_files(directory: &Path, out: &str) -> Vec<String> {
    let entries = fs::read_dir(directory.join(out)).expect("readable");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8 names are written"))
        .collect();
    names.sort();
    names
}

/// An archive with members of these names, each with content of its own; `dup.o` and the like may occur twice.
fn archive(directory: &Path, options: &[&str], name: &str, members: &[&str]) {
    for (number, member) in members.iter().enumerate() {
        let place = directory.join(format!("d{number}"));
        if !place.exists() {
            let source = format!("m{number}.o");
            compile(directory, &source, THIN_LTO);
            fs::create_dir(&place).expect("writable");
            fs::rename(directory.join(source), place.join(member)).expect("writable");
        }
        let path = format!("d{number}/{member}");
        run(directory, "llvm-ar-22", &[options, &["qcs", name, &path]].concat());
    }
}

#[test]
fn the_recorded_manifest_comes_out() {
    let recorded = include_str!("data/buck2-manifest.json");
    let value: Value = serde_json::from_str(recorded).expect("JSON");
    let first = value["objects"][0].as_str().expect("a path");
    let out = first.strip_suffix("/one.o").expect("the first member");
    // Where the second member of that name stood is not recorded: both places give this list.
    for members in [
        ["one.o", "util.o", "dup.o", "dup.o", "native.o", "unused.o"],
        ["one.o", "util.o", "dup.o", "native.o", "unused.o", "dup.o"],
    ] {
        let scratch = scratch();
        archive(scratch.path(), &[], "libpre.a", &members);
        let (written, stderr) = manifest(scratch.path(), "libpre.a", out, &[]);
        assert_eq!(stderr, "");
        assert_eq!(written, value);
        let second = members.iter().rposition(|member| *member == "dup.o").expect("there are two");
        let content = fs::read(scratch.path().join(format!("d{second}/dup.o"))).expect("written");
        assert_eq!(files(&scratch.path().join(out))["dup_1.o"], content);
    }
}

#[test]
fn duplicates_come_last_and_take_no_members_name() {
    for (members, expected) in [
        (
            &["a.o", "b.o", "b.o", "a.o", "a.o", "c.o"][..],
            &["a.o", "b.o", "c.o", "a_1.o", "a_2.o", "b_1.o"][..],
        ),
        (&["dup.o", "dup.o", "dup_1.o"], &["dup.o", "dup_1.o", "dup_2.o"]),
        // Not duplicates: they keep their place. The files differ on every file system.
        (&["A.o", "a.o", "b.o"], &["A.o", "a_1.o", "b.o"]),
        (
            &["two words.o", "it's \"quoted\".o", "100%.o"],
            &["two%20words.o", "it%27s%20%22quoted%22.o", "100%25.o"],
        ),
    ] {
        let scratch = scratch();
        for format in ["gnu", "bsd", "darwin", "coff"] {
            archive(scratch.path(), &[&format!("--format={format}")], format, members);
            assert_eq!(objects(scratch.path(), format), expected, "{format}");
            let out = files(&scratch.path().join("out"));
            for (number, name) in members.iter().enumerate() {
                let content = fs::read(scratch.path().join(format!("d{number}/{name}"))).expect("written");
                // In Darwin's format a member's size includes its padding to 8 bytes.
                let holds =
                    |written: &&Vec<u8>| written.starts_with(&content) && written.len() - content.len() < 8;
                assert_eq!(out.values().filter(holds).count(), 1, "{format} {name}");
            }
        }
    }
}

#[test]
fn thin_archives_members_are_put_into_the_directory() {
    let scratch = scratch();
    let directory = scratch.path();
    archive(directory, &["--thin"], "t.a", &["a.o", "b.o", "a.o"]);
    assert_eq!(objects(directory, "t.a"), ["a.o", "b.o", "a_1.o"]);
    let out = files(&directory.join("out"));
    assert_eq!(out["a_1.o"], fs::read(directory.join("d2/a.o")).expect("written"));
    assert!(!directory.join("out/a.o").is_symlink());
    assert_ne!(out["a.o"], out["a_1.o"]);

    fs::remove_file(directory.join("d1/b.o")).expect("it was there");
    let _ = fs::remove_dir_all(directory.join("out"));
    let output = gnu(directory, "t.a", "out", &[]);
    assert_eq!(output.status.code(), Some(3));
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(stderr.contains("t.a") && stderr.contains("d1/b.o"), "{stderr}");
    assert!(!directory.join("out").exists());
}

#[test]
fn debug_is_what_file_says() {
    let scratch = scratch();
    let directory = scratch.path();
    archive(directory, &["--thin"], "thin.a", &["a.o", "b.o"]);
    archive(directory, &["--thin"], "thin1.a", &["a.o"]);
    archive(directory, &["--format=bsd"], "bsd.a", &["a.o"]);
    archive(directory, &[], "gnu.a", &["a.o"]);
    for archive in ["thin.a", "thin1.a", "bsd.a", "gnu.a"] {
        let _ = fs::remove_dir_all(directory.join("out"));
        let (manifest, _) = manifest(directory, archive, "out", &[]);
        let file = String::from_utf8(run(directory, "file", &["-b", archive])).expect("UTF-8");
        assert_eq!(manifest["debug"], file, "{archive}");
    }
}

#[test]
fn an_archive_without_objects_gives_one_that_each_link_takes() {
    let scratch = scratch();
    let directory = scratch.path();
    fs::write(directory.join("main.c"), "int main(void) { return 0; }").expect("writable");
    run(directory, "clang-22", &["-flto=thin", "-c", "main.c"]);
    fs::write(directory.join("README"), "no object").expect("writable");
    run(directory, "llvm-ar-22", &["qcs", "none.a"]);
    run(directory, "llvm-ar-22", &["qcs", "text.a", "README"]);
    for archive in ["none.a", "text.a"] {
        assert_eq!(objects(directory, archive), ["empty.o"]);
        fs::remove_dir_all(directory.join("out")).expect("removable");
        let (manifest, _) = manifest(directory, archive, "out", &[]);
        link(directory, &manifest);
    }
}

#[test]
fn what_a_linker_ignores_in_an_archive_is_left_out() {
    let scratch = scratch();
    let directory = scratch.path();
    compile(directory, "a.o", THIN_LTO);
    compile(directory, "b.o", &[]);
    run(directory, "llvm-ar-22", &["qcs", "inner.a", "b.o"]);
    fs::write(directory.join("empty.o"), "").expect("writable");
    fs::write(directory.join("README"), "not a linker script").expect("writable");
    fs::write(directory.join("main.c"), "int f_a_o(void); int main(void) { return f_a_o() - 3; }")
        .expect("writable");
    run(directory, "clang-22", &["-flto=thin", "-c", "main.c"]);
    run(directory, "llvm-ar-22", &["qcs", "mixed.a", "README", "a.o", "empty.o", "inner.a"]);
    assert_eq!(objects(directory, "mixed.a"), ["a.o", "b.o"]);
    fs::remove_dir_all(directory.join("out")).expect("removable");
    let (manifest, stderr) = manifest(directory, "mixed.a", "out", &[]);
    assert_eq!(
        stderr,
        "distlto: warning: mixed.a: the member `README` is text and not an object; it is left out, and 1 more like it\n"
    );
    link(directory, &manifest);
}

/// Links `main.o` with the objects of a manifest as the rule does, and runs the program.
fn link(directory: &Path, manifest: &Value) {
    let listed = manifest["objects"].as_array().expect("a list").iter().filter_map(Value::as_str);
    // One word a line without quotes: an argument file as Buck2 writes it.
    let lines: Vec<&str> = ["-flto=thin", "main.o", "-Wl,--start-lib"]
        .into_iter()
        .chain(listed)
        .chain(["-Wl,--end-lib"])
        .collect();
    fs::write(directory.join("args"), lines.join("\n")).expect("writable");
    let lld = ["-fuse-ld=lld", "--ld-path=ld.lld-22", "@args", "-o", "program"];
    run(directory, "clang-22", &lld);
    run(directory, directory.join("program").to_str().expect("UTF-8"), &[]);
}

#[test]
fn names_that_argument_files_cannot_hold_still_link() {
    let scratch = scratch();
    let directory = scratch.path();
    compile(directory, "a.o", THIN_LTO);
    fs::write(directory.join("main.c"), "int f_a_o(void); int main(void) { return f_a_o() - 3; }")
        .expect("writable");
    run(directory, "clang-22", &["-flto=thin", "-c", "main.c"]);
    fs::rename(directory.join("a.o"), directory.join("it's \"a\" name.o")).expect("writable");
    run(directory, "llvm-ar-22", &["qcs", "l.a", "it's \"a\" name.o"]);
    let (manifest, _) = manifest(directory, "l.a", "out", &[]);
    link(directory, &manifest);
}

#[test]
fn rlibs_link_without_their_metadata() {
    let scratch = scratch();
    let directory = scratch.path();
    let source = "#[unsafe(no_mangle)] pub extern \"C\" fn seven() -> i32 { 7 }";
    fs::write(directory.join("lib.rs"), source).expect("writable");
    fs::write(directory.join("main.c"), "int seven(void); int main(void) { return seven() - 7; }")
        .expect("writable");
    let arguments = ["--crate-type=rlib", "--crate-name=seven", "-Clinker-plugin-lto", "-O", "lib.rs"];
    run(directory, "rustc", &arguments);
    run(directory, "clang-22", &["-flto=thin", "-c", "main.c"]);
    let listed = objects(directory, "libseven.rlib");
    assert!(!listed.is_empty() && !listed.contains(&"lib.rmeta".to_owned()), "{listed:?}");
    fs::remove_dir_all(directory.join("out")).expect("removable");
    let (manifest, stderr) = manifest(directory, "libseven.rlib", "out", &[]);
    assert_eq!((manifest["debug"].as_str(), stderr.as_str()), (Some("current ar archive\n"), ""));
    link(directory, &manifest);
}

#[test]
fn the_rule_for_darwin_gets_bare_names_of_a_slice() {
    let scratch = scratch();
    let directory = scratch.path();
    for architecture in ["arm64", "x86_64"] {
        let object = format!("{architecture}.o");
        compile(directory, &object, &["-target", &format!("{architecture}-apple-macosx14"), "-flto=thin"]);
        for _ in 0..2 {
            let library = format!("{architecture}.a");
            run(directory, "llvm-ar-22", &["--format=darwin", "qcs", &library, &object]);
        }
    }
    run(directory, "llvm-lipo-22", &["-create", "arm64.a", "x86_64.a", "-output", "universal.a"]);
    for (archive, architecture) in
        [("universal.a", "arm64"), ("universal.a", "x86_64"), ("arm64.a", "arm64"), ("x86_64.a", "x86_64")]
    {
        for more in [
            &["--target-architecture", architecture][..],
            &["--target-architecture", architecture, "--lipo", "no-such-lipo"],
        ] {
            let _ = fs::remove_dir_all(directory.join("out"));
            let (manifest, _) = manifest(directory, archive, "out", more);
            let (first, second) = (format!("{architecture}.o"), format!("{architecture}_1.o"));
            assert_eq!(manifest, json!({ "objects": [first, second] }));
            assert_eq!(all_files(directory, "out"), [first.clone(), second]);
            let content = fs::read(directory.join(&first)).expect("written");
            assert!(files(&directory.join("out")).values().all(|written| *written == content));
        }
    }
    let output = gnu(directory, "universal.a", "none", &["--target-architecture", "armv7"]);
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("universal.a") && stderr.contains("x86_64, arm64"), "{stderr}");
}

#[test]
fn the_directory_holds_members_alone() {
    let scratch = scratch();
    let directory = scratch.path();
    archive(directory, &[], "l.a", &["a.o", "b.o"]);
    // What a killed run has left beside the directory, and an older one in it.
    for left in [".distlto-tmp-out", "out/.distlto-tmp-objects"] {
        fs::create_dir_all(directory.join(left)).expect("writable");
        fs::write(directory.join(left).join("a.o"), "half").expect("writable");
        let (manifest, _) = manifest(directory, "l.a", "out", &[]);
        assert_eq!(manifest["objects"], json!(["out/a.o", "out/b.o"]));
        assert_eq!(all_files(directory, "out"), ["a.o", "b.o"]);
        fs::remove_dir_all(directory.join("out")).expect("removable");
    }
    assert!(!directory.join(".distlto-tmp-out").exists());
    // Again into what is there: nothing is written; an edited file is replaced.
    let (first, _) = manifest(directory, "l.a", "./out/", &[]);
    assert_eq!(first["objects"], json!(["./out/a.o", "./out/b.o"]));
    let before = fs::metadata(directory.join("out/b.o")).expect("written").modified().expect("a time");
    let good = fs::read(directory.join("out/a.o")).expect("written");
    fs::write(directory.join("out/a.o"), "edited").expect("writable");
    manifest(directory, "l.a", "out", &[]);
    assert_eq!(fs::read(directory.join("out/a.o")).expect("written"), good);
    assert_eq!(fs::metadata(directory.join("out/b.o")).expect("written").modified().expect("a time"), before);
    // A file of another's is neither removed nor handed to Buck2.
    fs::write(directory.join("out/mine.txt"), "mine").expect("writable");
    fs::write(directory.join("out/a.o"), "edited").expect("writable");
    let output = gnu(directory, "l.a", "out", &[]);
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("out holds `mine.txt`"), "{stderr}");
    assert_eq!(all_files(directory, "out"), ["a.o", "b.o", "mine.txt"]);
    assert_eq!(fs::read(directory.join("out/a.o")).expect("written"), b"edited", "nothing is touched");
}

#[test]
fn failures_leave_no_directory() {
    let scratch = scratch();
    let directory = scratch.path();
    archive(directory, &[], "whole.a", &["a.o", "b.o"]);
    let whole = fs::read(directory.join("whole.a")).expect("written");
    fs::write(directory.join("cut.a"), &whole[..whole.len() - 100]).expect("writable");
    fs::copy(directory.join("d0/a.o"), directory.join("object.o")).expect("writable");
    for (archive, complaint, code) in [
        ("cut.a", "cut.a is malformed: member 2 after `a.o`", 3),
        ("object.o", "object.o is not an archive but bitcode", 3),
        ("missing.a", "cannot read missing.a", 4),
    ] {
        let output = gnu(directory, archive, "deep/out", &[]);
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert!(stderr.contains(complaint), "{stderr}");
        assert!(!directory.join("m.json").exists());
    }
    let script = format!(
        "trap '' XFSZ; ulimit -f 1; exec {PROGRAM} --archive whole.a --objects-out deep/out --manifest-out m.json --ar x"
    );
    let output = Command::new("sh").args(["-c", &script]).current_dir(directory).output().expect("runs");
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(all_files(directory, "deep"), [""; 0]);
}

#[test]
fn a_killed_run_leaves_all_or_nothing() {
    let scratch = scratch();
    let directory = scratch.path();
    compile(directory, "a.o", THIN_LTO);
    let object = fs::read(directory.join("a.o")).expect("written");
    let names: Vec<String> = (0..300).map(|number| format!("m{number}.o")).collect();
    for name in &names {
        fs::write(directory.join(name), object.repeat(10)).expect("writable");
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    run(directory, "llvm-ar-22", &[&["qcS", "l.a"][..], &names].concat());
    let mut killed_midway = 0;
    for attempt in 0..6 {
        let words = ["--archive", "l.a", "--objects-out", "out", "--manifest-out", "m.json", "--name", "l"];
        let mut child = Command::new(PROGRAM).args(words).current_dir(directory).spawn().expect("spawns");
        let there = || fs::read_dir(directory.join(".distlto-tmp-out")).map_or(0, Iterator::count);
        while there() < 5 + attempt * 30 && child.try_wait().expect("a child").is_none() {
            std::thread::sleep(Duration::from_micros(100));
        }
        child.kill().expect("a child");
        child.wait().expect("a child");
        match directory.join("out").exists() {
            true => assert_eq!(files(&directory.join("out")).len(), 300),
            false => killed_midway += 1,
        }
        let (manifest, _) = manifest(directory, "l.a", "out", &[]);
        assert_eq!(manifest["objects"].as_array().map(Vec::len), Some(300));
        assert!(files(&directory.join("out")).values().all(|content| content.len() == object.len() * 10));
        assert!(!directory.join(".distlto-tmp-out").exists());
        fs::remove_dir_all(directory.join("out")).expect("removable");
    }
    assert!(killed_midway > 0, "no attempt was killed in the middle");
    // Several at once for one directory: each ends well, and the directory is whole.
    let command = || {
        let mut command = Command::new(PROGRAM);
        command.args(["--archive", "l.a", "--objects-out", "out", "--name", "l"]).current_dir(directory);
        command.spawn().expect("spawns")
    };
    let children: Vec<_> = (0..4).map(|_| command()).collect();
    for mut child in children {
        assert!(child.wait().expect("a child").success());
    }
    assert_eq!(all_files(directory, "out").len(), 300);
}

proptest! {
    #[test]
    fn the_order_has_first_occurrences_first(names in proptest::collection::vec("[ab]{1,2}", 0..20)) {
        let order = duplicates_last(names.iter().map(String::as_str));
        let mut sorted = order.clone();
        sorted.sort_unstable();
        prop_assert_eq!(sorted, (0..names.len()).collect::<Vec<_>>(), "each member once");
        let is_first = |&at: &usize| names.iter().position(|name| *name == names[at]) == Some(at);
        let (firsts, others) = order.split_at(order.iter().filter(|at| is_first(at)).count());
        prop_assert!(firsts.iter().all(is_first) && firsts.is_sorted());
        // Those of one name stand together, in archive order.
        for pair in others.windows(2) {
            let first = |at: usize| names.iter().position(|name| *name == names[at]);
            prop_assert!((first(pair[0]), pair[0]) < (first(pair[1]), pair[1]));
        }
    }

    #[test]
    fn files_are_words_of_an_argument_file(
        names in proptest::collection::vec(
            prop_oneof![
                "[aA](_1)?\\.o".prop_map(String::into_bytes),
                proptest::collection::vec(any::<u8>(), 0..300),
                "[ '\"\\\\\n/.]{0,90}".prop_map(String::into_bytes),
            ],
            0..20,
        ),
    ) {
        let files = member_file_names(names.iter().map(Vec::as_slice));
        let mut folded: Vec<String> = files.iter().map(|file| file.to_ascii_lowercase()).collect();
        folded.sort();
        folded.dedup();
        prop_assert_eq!(folded.len(), names.len(), "{:?}", files);
        for (file, name) in files.iter().zip(&names) {
            prop_assert!(file.bytes().all(|byte| byte.is_ascii_graphic() && !b"'\"\\/;".contains(&byte)), "{}", file);
            prop_assert!(!file.is_empty() && file.len() <= 255 && file != "." && file != "..");
            // The first member of a plain object's name keeps it.
            let plain = name.ends_with(b".o") && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'.') && name.len() <= 200;
            let first = names.iter().position(|other| other.eq_ignore_ascii_case(name));
            if plain && name.iter().any(|byte| *byte != b'.') && first.is_some_and(|at| names[at] == *name) {
                prop_assert!(files[first.unwrap_or(0)].as_bytes() == name.as_slice(), "{} {:?}", file, name);
            }
        }
    }
}
