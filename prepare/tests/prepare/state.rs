//! Unpacking again: what is left alone, what is made again, what is removed, and what belongs to others.
//!
//! Times are moved by hand where a real edit would have to wait for the clock.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::tools::{THIN_LTO, compile, files, request, run, scratch, unpacked};

const RECORD: &str = ".distlto-unpacked.json";

fn set_age(path: &Path, seconds: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    File::options().write(true).open(path).and_then(|file| file.set_modified(time)).expect("an own file");
}

fn archive(directory: &Path, members: &[&str]) {
    let _ = fs::remove_file(directory.join("a.a"));
    let mut arguments = vec!["qcs", "a.a"];
    arguments.extend(members);
    run(directory, "llvm-ar-22", &arguments);
}

#[test]
fn what_has_not_changed_is_not_written_again() {
    let scratch = scratch();
    let directory = scratch.path();
    compile(directory, "a.o", THIN_LTO);
    compile(directory, "b.o", THIN_LTO);
    archive(directory, &["a.o", "b.o"]);
    let first = unpacked(directory, "a.a", "out");
    let identity = |file: &str| {
        let found = fs::metadata(directory.join("out").join(file)).expect("written");
        (found.ino(), found.mtime(), found.mtime_nsec())
    };
    let (a, b) = (identity("a.o"), identity("b.o"));
    assert_eq!(unpacked(directory, "a.a", "out"), first);
    assert_eq!((identity("a.o"), identity("b.o")), (a, b));

    compile(directory, "b.o", &["-flto=thin", "-O0"]);
    archive(directory, &["a.o", "b.o"]);
    assert_ne!(unpacked(directory, "a.a", "out"), first);
    assert_eq!(identity("a.o"), a);
    assert_ne!(identity("b.o"), b);
}

#[test]
fn with_old_files_stat_alone_decides() {
    let scratch = scratch();
    let directory = scratch.path();
    compile(directory, "a.o", THIN_LTO);
    archive(directory, &["a.o"]);
    unpacked(directory, "a.a", "out");
    set_age(&directory.join("a.a"), 3600);
    set_age(&directory.join("out/a.o"), 3600);
    unpacked(directory, "a.a", "out");
    let record = fs::metadata(directory.join("out").join(RECORD)).expect("kept");
    unpacked(directory, "a.a", "out");
    let again = fs::metadata(directory.join("out").join(RECORD)).expect("kept");
    assert_eq!(record.ino(), again.ino(), "nothing was done, not even a record written");
}

#[test]
fn edits_are_seen_whatever_the_times_say() {
    let scratch = scratch();
    let directory = scratch.path();
    compile(directory, "a.o", THIN_LTO);
    archive(directory, &["a.o"]);
    unpacked(directory, "a.a", "out");
    let out = directory.join("out/a.o");
    let good = fs::read(&out).expect("written");
    // The same size, and the same time: as young as the record, so the time proves nothing.
    let time = fs::metadata(&out).and_then(|found| found.modified()).expect("a time");
    let mut bad = good.clone();
    *bad.last_mut().expect("not empty") ^= 1;
    fs::write(&out, bad).expect("writable");
    File::options().write(true).open(&out).and_then(|file| file.set_modified(time)).expect("writable");
    unpacked(directory, "a.a", "out");
    assert_eq!(fs::read(&out).expect("written"), good);
    // An old file that is edited has another time.
    set_age(&out, 3600);
    set_age(&directory.join("a.a"), 3600);
    unpacked(directory, "a.a", "out");
    fs::write(&out, b"edited").expect("writable");
    unpacked(directory, "a.a", "out");
    assert_eq!(fs::read(&out).expect("written"), good);
    fs::remove_file(&out).expect("removable");
    unpacked(directory, "a.a", "out");
    assert_eq!(fs::read(&out).expect("written"), good);
    // The archive of the same size in place of the old one, as old as it.
    let mut archive = fs::read(directory.join("a.a")).expect("written");
    *archive.last_mut().expect("not empty") ^= 1;
    fs::write(directory.join("new.a"), archive).expect("writable");
    set_age(&directory.join("new.a"), 3600);
    fs::rename(directory.join("new.a"), directory.join("a.a")).expect("renamable");
    unpacked(directory, "a.a", "out");
    assert_ne!(fs::read(&out).expect("written"), good);
}

#[test]
fn edited_members_of_thin_archives_are_seen() {
    let scratch = scratch();
    let directory = scratch.path();
    compile(directory, "a.o", THIN_LTO);
    run(directory, "llvm-ar-22", &["qcs", "--thin", "a.a", "a.o"]);
    for file in ["a.o", "a.a"] {
        set_age(&directory.join(file), 3600);
    }
    unpacked(directory, "a.a", "out");
    set_age(&directory.join("out/a.o"), 3600);
    unpacked(directory, "a.a", "out");
    compile(directory, "a.o", &["-flto=thin", "-O0"]);
    unpacked(directory, "a.a", "out");
    assert_eq!(files(&directory.join("out"))["a.o"], fs::read(directory.join("a.o")).expect("written"));
}

#[test]
fn what_the_archive_has_no_more_is_removed_and_nothing_else() {
    let scratch = scratch();
    let directory = scratch.path();
    for file in ["a.o", "b.o", "B.o"] {
        compile(directory, file, THIN_LTO);
    }
    fs::write(directory.join("readme"), "not an object").expect("writable");
    fs::create_dir(directory.join("out")).expect("writable");
    fs::write(directory.join("out/mine.txt"), "mine").expect("writable");
    fs::write(directory.join("out/readme"), "mine too").expect("writable");
    let kept = ["mine.txt", "readme"];
    let names = |expected: &[&str]| {
        let all: Vec<String> = files(&directory.join("out")).into_keys().collect();
        let mut expected: Vec<&str> = expected.iter().chain(&kept).copied().collect();
        expected.sort_unstable();
        assert_eq!(all, expected);
    };
    for (members, expected) in [
        (&["a.o", "b.o", "readme"][..], &["a.o", "b.o"][..]),
        (&["a.o"], &["a.o"]),
        (&["b.o", "a.o"], &["a.o", "b.o"]),
        (&["B.o", "a.o"], &["B.o", "a.o"]),
        (&["readme"], &[]),
    ] {
        archive(directory, members);
        distlto_prepare::unpack::unpack(&request(&directory.join("a.a"), &directory.join("out")))
            .expect("unpacked");
        names(expected);
    }
}

#[test]
fn a_forged_record_removes_nothing_outside() {
    let scratch = scratch();
    let directory = scratch.path();
    compile(directory, "a.o", THIN_LTO);
    archive(directory, &["a.o"]);
    unpacked(directory, "a.a", "out");
    fs::write(directory.join("victim"), "mine").expect("writable");
    let path = directory.join("out").join(RECORD);
    let record = fs::read_to_string(&path).expect("kept");
    for forged in
        [record.replace("\"files\":{", "\"files\":{\"../victim\":null,"), "{".to_owned(), String::new()]
    {
        assert_ne!(forged, record);
        fs::write(&path, forged).expect("writable");
        unpacked(directory, "a.a", "out");
        assert!(directory.join("victim").exists());
    }
}
