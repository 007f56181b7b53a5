//! `distlto cache` on a cache with two results.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use distlto_executor::cache::store::{Cache, CacheLimits};
use distlto_executor::output::Role;
use distlto_executor::result::{Key, NewOutput, NewResult};
use distlto_record::report::Measured;
use serde_json::Value;
use tempfile::TempDir;

fn run(directory: &Path, words: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_distlto"))
        .arg("cache")
        .args(words)
        .current_dir(directory)
        .env_remove("HOME")
        .env_remove("XDG_CACHE_HOME")
        .output()
        .expect("runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

fn json(directory: &Path, words: &[&str], code: i32) -> Value {
    let (found, stdout, stderr) = run(directory, words);
    assert_eq!((found, stderr.as_str()), (code, ""), "{words:?}: {stdout}");
    serde_json::from_str(&stdout).expect("JSON")
}

/// `cache` in a directory.
fn kept() -> TempDir {
    let scratch = tempfile::tempdir().expect("writable");
    let path = |name: &str| scratch.path().join(name);
    let cache = Cache::open(&path("cache"), CacheLimits::default()).expect("a cache");
    for number in [1, 2] {
        fs::write(path("m.o"), [number; 5000]).expect("writable");
        let outputs = [NewOutput { role: Role::Object, name: "m.o", file: &path("m.o") }];
        let result = NewResult {
            module: "m",
            outputs: &outputs,
            stderr: b"",
            measured: Measured::default(),
            by_engine: false,
            is_unobserved: false,
            note: "",
        };
        cache.put(&Key([number; 32]), &result).expect("kept");
    }
    cache.count(true);
    cache.count(false);
    drop(cache);
    scratch
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).expect("listed") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { files.extend(self::files(&path)) } else { files.push(path) }
    }
    files
}

#[test]
fn what_is_kept_is_told_and_pruned() {
    let scratch = kept();
    let told = json(scratch.path(), &["stats", "--cache", "cache", "--json"], 0);
    let cache = &told["cache"];
    assert_eq!(told["version"], 1);
    assert_eq!((&cache["records"], &cache["files"], &cache["bytes"]), (&2.into(), &2.into(), &10_000.into()));
    assert_eq!(cache["disk"], 2 * 4096 + 2 * 8192);
    assert_eq!((&cache["hits"], &cache["misses"], &cache["stored"]), (&1.into(), &1.into(), &2.into()));
    assert!(cache["oldest"].as_u64() <= cache["newest"].as_u64() && cache["oldest"].as_u64() > Some(0));
    let (code, text, _) = run(scratch.path(), &["stats", "--cache", "cache"]);
    assert!(code == 0 && text.contains("  objects   2\n") && text.contains("  hits      1 of 2\n"), "{text}");
    let (code, text, _) = run(scratch.path(), &["prune", "--cache", "cache", "--max-size", "12K"]);
    assert_eq!(
        (code, text.as_str()),
        (0, "cache cache\n  removed 2 files, 12 KiB\n  kept 2 files, 12 KiB\n")
    );
    let pruned = json(scratch.path(), &["prune", "--cache=cache", "--max-age=0s", "--json"], 0);
    assert_eq!(pruned["cache"]["kept_files"], 0);
}

#[test]
fn what_is_damaged_is_named_and_removed() {
    let scratch = kept();
    let verify = ["verify", "--cache=cache", "--json"];
    let clean = json(scratch.path(), &verify, 0);
    assert_eq!(clean["cache"]["files"], 4);
    let mut damaged = files(&scratch.path().join("cache/results-v1/blobs"));
    damaged.truncate(1);
    for file in &damaged {
        fs::remove_file(file).expect("there");
        fs::write(file, "").expect("writable");
    }
    let (code, text, _) = run(scratch.path(), &["verify", "--keep", "--cache=cache"]);
    assert_eq!(code, 3, "{text}");
    for file in &damaged {
        let name = file.strip_prefix(scratch.path()).expect("within").to_str().expect("text");
        assert!(text.contains(&format!("  {name}: ")), "{name}: {text}");
    }
    let found = json(scratch.path(), &verify, 3);
    assert_eq!(found["cache"]["removed"], 1);
    assert_eq!(found["cache"]["incomplete"], 1, "a result without its file goes too: {found}");
    let after = json(scratch.path(), &verify, 0);
    assert_eq!((&after["cache"]["files"], &after["cache"]["incomplete"]), (&2.into(), &0.into()), "{after}");
}

#[test]
fn what_is_none_is_an_error() {
    let scratch = kept();
    fs::create_dir(scratch.path().join("empty")).expect("writable");
    for (words, code, complaint) in [
        (&["stats", "--cache", "empty"][..], 3, "empty is no cache of results"),
        (&["prune", "--cache", "missing"], 4, "cannot list missing"),
        (&["stats", "--cache", "m.o"], 4, "cannot list m.o"),
        (&["stats"], 2, "there is no store"),
        (&["prune", "--cache=cache", "--max-size=many"], 2, "expected a number"),
    ] {
        let (found, stdout, stderr) = run(scratch.path(), words);
        assert_eq!((found, stdout.as_str()), (code, ""), "{words:?}: {stderr}");
        assert!(stderr.contains(complaint), "{words:?}: {stderr}");
    }
    assert!(!scratch.path().join("missing").exists());
    let version = |number| scratch.path().join(format!("cache/results-v{number}"));
    fs::rename(version(1), version(7)).expect("there");
    let (code, _, stderr) = run(scratch.path(), &["stats", "--cache", "cache"]);
    assert!(code == 3 && stderr.contains("version 7") && stderr.contains("up to 1"), "{stderr}");
}
