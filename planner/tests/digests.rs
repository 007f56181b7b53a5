//! Whether a file that changes is noticed, by its status and, where that is too coarse, its content; and the file of digests.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
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

fn digest_of(digests: &FileDigests, path: &str) -> Digest {
    digests.digest(Utf8Path::new(path)).expect("the file can be read")
}

#[test]
fn digests_are_kept_for_files_at_rest_only() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let cache = dir.join("digests");
    fs::write(dir.join("resting"), "one").expect("a file");
    std::thread::sleep(Duration::from_millis(120));
    fs::write(dir.join("fresh"), "one").expect("a file");
    // However slow this machine is, the file was written only a moment before it is hashed.
    let moment = SystemTime::now() + Duration::from_secs(60);
    File::options()
        .append(true)
        .open(dir.join("fresh"))
        .expect("a file")
        .set_modified(moment)
        .expect("a time");
    let digests = FileDigests::new(dir);
    assert_eq!(digest_of(&digests, "resting"), Digest::of(b"one"));
    assert_eq!(digest_of(&digests, "fresh"), Digest::of(b"one"));
    digests.save(&cache).expect("the cache can be written");
    let saved = fs::read(&cache).expect("a cache");
    let holds = |name: &str| saved.windows(name.len()).any(|window| window == name.as_bytes());
    assert!(holds("resting") && !holds("fresh"));

    // Within a run the first look counts; the next run sees the edit, though the size is the same.
    fs::write(dir.join("resting"), "two").expect("a file");
    assert_eq!(digest_of(&digests, "resting"), Digest::of(b"one"));
    digests.forget(Utf8Path::new("resting"));
    assert_eq!(digest_of(&digests, "resting"), Digest::of(b"two"));
    let (digests, note) = FileDigests::load(&cache, dir);
    assert_eq!(note, None);
    assert_eq!(digest_of(&digests, "resting"), Digest::of(b"two"));
}

#[test]
fn a_damaged_digest_cache_is_left_unused_with_a_reason() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let cache = dir.join("digests");
    fs::write(dir.join("file"), "one").expect("a file");
    std::thread::sleep(Duration::from_millis(120));
    let digests = FileDigests::new(dir);
    digest_of(&digests, "file");
    digests.save(&cache).expect("the cache can be written");
    let good = fs::read(&cache).expect("a cache");
    for place in 0..good.len() {
        let mut bytes = good.clone();
        bytes[place] ^= 1;
        for bytes in [&bytes[..], &good[..place]] {
            fs::write(&cache, bytes).expect("a file");
            let (digests, note) = FileDigests::load(&cache, dir);
            assert!(note.expect("a reason").contains("is not used"));
            assert_eq!(digest_of(&digests, "file"), Digest::of(b"one"));
        }
    }
}

#[test]
fn many_digests_keep_their_order() {
    let dir = tempfile::tempdir().expect("a directory");
    let paths: Vec<_> = (0..300).map(|index| Utf8PathBuf::from(format!("file{index}"))).collect();
    for path in &paths {
        fs::write(dir.path().join(path), path.as_str()).expect("a file");
    }
    let mut asked = paths.clone();
    asked.push("missing".into());
    asked.push(".".into());
    let found = FileDigests::new(dir.path()).digest_all(&asked);
    for (path, digest) in paths.iter().zip(&found) {
        assert_eq!(digest.as_ref().expect("a digest"), &Digest::of(path.as_str().as_bytes()));
    }
    let kind = |index: usize| found[index].as_ref().expect_err("no file").source.kind();
    assert_eq!(kind(300), std::io::ErrorKind::NotFound);
    assert_eq!(kind(301), std::io::ErrorKind::InvalidData);
}

#[test]
fn digests_that_nobody_asks_for_are_dropped_in_the_end() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let cache = dir.join("digests");
    fs::write(dir.join("used"), "one").expect("a file");
    fs::write(dir.join("unused"), "one").expect("a file");
    std::thread::sleep(Duration::from_millis(120));
    let digests = FileDigests::new(dir);
    digest_of(&digests, "used");
    digest_of(&digests, "unused");
    digests.save(&cache).expect("the cache can be written");
    let both = fs::read(&cache).expect("a cache");
    let run = |paths: &[&str]| {
        let (digests, note) = FileDigests::load(&cache, dir);
        assert_eq!(note, None);
        paths.iter().for_each(|path| assert_eq!(digest_of(&digests, path), Digest::of(b"one")));
        digests.save(&cache).expect("the cache can be written");
        fs::read(&cache).expect("a cache")
    };
    assert_eq!(run(&["used", "unused"]), both);
    let holds = |bytes: &[u8]| bytes.windows(6).any(|window| window == b"unused");
    for round in 1..=8 {
        assert_eq!(holds(&run(&["used"])), round < 8, "run {round}");
    }
    assert_eq!(run(&["used", "unused"]), both);
}
