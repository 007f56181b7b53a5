//! Whether a file that changes while a run lasts is noticed, by its status and, where that is too coarse, its content.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use camino::Utf8Path;
use distlto_planner::digests::{Digest, FileDigests};

/// A file that came to rest long before the run looks at it.
fn write_resting(path: &Path, content: &str) {
    fs::write(path, content).expect("written");
    std::thread::sleep(Duration::from_millis(60));
}

fn is_unchanged(digests: &FileDigests, path: &str) -> bool {
    digests.is_unchanged(Utf8Path::new(path)).expect("a file that can be read")
}

#[test]
fn another_status_is_a_change() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("input");
    write_resting(&path, "one");
    let digests = FileDigests::new(dir.path());
    assert!(is_unchanged(&digests, "input"), "what nobody looked at is not compared");
    digests.watch("input".into()).expect("looked at");
    assert!(is_unchanged(&digests, "input"));
    // Of the same size and with the time that it had.
    let time = fs::metadata(&path).and_then(|found| found.modified()).expect("a time");
    fs::write(&path, "two").expect("written");
    File::options().append(true).open(&path).and_then(|file| file.set_modified(time)).expect("set");
    assert!(!is_unchanged(&digests, "input"));
    fs::remove_file(&path).expect("removed");
    assert!(!is_unchanged(&digests, "input"));
}

#[test]
fn pruning_forgets_files_that_are_gone_or_changed() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let names = ["changed", "gone", "same"];
    names.iter().for_each(|name| fs::write(dir.path().join(name), name).expect("written"));
    std::thread::sleep(Duration::from_millis(60));
    let cache = dir.path().join("cache");
    let digests = FileDigests::new(dir.path());
    for name in names {
        digests.digest(Utf8Path::new(name)).expect("read");
    }
    digests.save(&cache).expect("saved");
    let prune = || FileDigests::prune(&cache, dir.path()).expect("pruned");
    let whole = fs::read(&cache).expect("saved");
    assert_eq!(prune(), 0);
    assert_eq!(fs::read(&cache).expect("there"), whole);
    fs::remove_file(dir.path().join("gone")).expect("removed");
    write_resting(&dir.path().join("changed"), "otherwise");
    assert_eq!((prune(), prune()), (2, 0));
    let left = fs::read(&cache).expect("there");
    let holds = |name: &str| left.windows(name.len()).any(|part| part == name.as_bytes());
    assert_eq!(names.map(holds), [false, false, true]);
    assert_eq!(FileDigests::load(&cache, dir.path()).1, None);
}

#[test]
fn the_first_look_counts_whatever_is_read_after_it() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    write_resting(&dir.path().join("input"), "one");
    let digests = FileDigests::new(dir.path());
    digests.watch("input".into()).expect("looked at");
    fs::write(dir.path().join("input"), "other").expect("written");
    digests.digest("input".into()).expect("read");
    assert!(!is_unchanged(&digests, "input"));
}

#[test]
fn a_file_that_is_not_at_rest_is_read_again() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("input");
    let soon = SystemTime::now() + Duration::from_secs(3600);
    let write = |content| {
        fs::write(&path, content).expect("written");
        // A time to come is never one of a file at rest.
        File::options().append(true).open(&path).and_then(|file| file.set_modified(soon)).expect("set");
    };
    write("one");
    let digests = FileDigests::new(dir.path());
    let one = digests.digest("input".into()).expect("read");
    assert!(is_unchanged(&digests, "input"));
    assert_eq!(digests.digest("input".into()).expect("read"), one);
    fs::remove_file(&path).expect("removed");
    assert!(!is_unchanged(&digests, "input"));
    write("two");
    assert!(!is_unchanged(&digests, "input"));
}

#[test]
fn what_is_no_file_does_not_change() {
    let digests = FileDigests::new(Path::new(""));
    digests.watch("/dev/null".into()).expect("looked at");
    assert!(is_unchanged(&digests, "/dev/null"));
    assert!(digests.watch("/nowhere/at/all".into()).is_err());
}

#[test]
fn what_is_read_is_what_the_digest_is_of() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("file");
    fs::write(&file, "one").expect("written");
    let digests = FileDigests::new(dir.path());
    let (bytes, digest) = digests.read("file".into()).expect("read");
    assert_eq!((bytes.as_slice(), digest), (&b"one"[..], Digest::of(b"one")));
    assert_eq!(digests.digest("file".into()).expect("known"), digest);
    fs::write(&file, "two").expect("written");
    digests.read("file".into()).expect_err("another content");
}
