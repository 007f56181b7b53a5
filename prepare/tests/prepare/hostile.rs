//! Archives no tool would make, and file systems that refuse.
//!
//! Each must end in an error that names the file and the place, with earlier output intact.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;

use distlto_prepare::exit::code_of;
use distlto_prepare::unpack::unpack;

use crate::tools::{THIN_LTO, compile, files, refused, request, run, scratch, unpacked};

/// A member header of the common format.
fn header(name: &str, size: &str) -> String {
    format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644)
}

/// A thin archive of these members, in the GNU form.
fn thin(members: &[&str]) -> Vec<u8> {
    let mut names = String::new();
    let mut headers = String::new();
    for member in members {
        headers += &header(&format!("/{}", names.len()), "0");
        names += &format!("{member}/\n");
    }
    if names.len() % 2 == 1 {
        names.push('\n');
    }
    format!("!<thin>\n{}{names}{headers}", header("//", &names.len().to_string())).into_bytes()
}

#[test]
fn cut_at_every_offset() {
    let scratch = scratch();
    let directory = scratch.path();
    // A small object, so that every offset can be tried.
    fs::write(directory.join("a.ll"), "@a = global i8 1").expect("writable");
    run(directory, "clang-22", &["-Wno-override-module", "-c", "a.ll", "-o", "a.o"]);
    run(directory, "llvm-objcopy-22", &["--redefine-sym", "a=b", "a.o", "a second member.o"]);
    for format in ["gnu", "bsd", "darwin", "coff"] {
        let option = format!("--format={format}");
        let _ = fs::remove_file(directory.join("whole.a"));
        run(directory, "llvm-ar-22", &[&option, "qcs", "whole.a", "a.o", "a second member.o"]);
        let whole = fs::read(directory.join("whole.a")).expect("written");
        assert_eq!(unpacked(directory, "whole.a", "refused").len(), 2);
        let before = files(&directory.join("refused"));
        // Darwin pads members with zeros, and the rest with newlines, that nobody needs.
        let padding = whole.iter().rev().take_while(|byte| matches!(byte, 0 | b'\n')).count();
        // The magic alone is an empty archive. In one format every offset is tried, in the others all headers.
        for length in
            (0..whole.len() - padding).filter(|at| *at != 8 && (format == "gnu" || *at < 300 || at % 17 == 0))
        {
            fs::write(directory.join("cut.a"), &whole[..length]).expect("scratch is writable");
            let error = refused(directory, "cut.a");
            assert_eq!(code_of(&error), 3, "{format} {length}: {error}");
            assert!(error.to_string().contains("cut.a"), "{format} {length}: {error}");
        }
        assert_eq!(files(&directory.join("refused")), before);
    }
}

#[test]
fn sizes_and_offsets_beyond_the_end() {
    let scratch = scratch();
    let directory = scratch.path();
    let five_gigabytes = header("a.o/", "5368709120");
    for (archive, place) in [
        (format!("!<arch>\n{five_gigabytes}BC"), "`a.o`"),
        (format!("!<arch>\n{}BC", header("a.o/", "9999999999")), "`a.o`"),
        (format!("!<arch>\n{}BC", header("a.o/", "-1")), "its first member"),
        (format!("!<arch>\n{}BC", header("a.o/", "twelve")), "its first member"),
        (format!("!<arch>\n{}BC", header("/99", "2")), "its first member"),
        (format!("!<arch>\n{}BC", header("#1/99", "2")), "its first member"),
        (
            format!("!<arch>\n{}BC{}", header("a.o/", "2"), header("/7777", "0")),
            "member 2 after `a.o`, byte 70",
        ),
        (format!("!<arch>\n{}", header("a.o/", "0").replace('`', "'")), "its first member"),
    ] {
        fs::write(directory.join("bad.a"), &archive).expect("scratch is writable");
        let error = refused(directory, "bad.a");
        let text = error.to_string();
        assert_eq!(code_of(&error), 3, "{text}");
        assert!(text.contains("bad.a") && text.contains(place), "{archive}: {text}");
    }
    // A big archive's index may name one member a thousand times: more content than the file has.
    compile(directory, "a.o", &[]);
    run(directory, "llvm-ar-22", &["--format=bigarchive", "qcS", "big.a", "a.o"]);
    let mut big = fs::read(directory.join("big.a")).expect("written");
    let first = String::from_utf8(big[68..88].to_vec()).expect("digits");
    let table = big.len() + big.len() % 2;
    big.resize(table, 0);
    let index = format!("{:<20}{}", 1000, first.repeat(1000));
    let fields = format!("{:<20}{:<20}{:<20}{:<12}{:<12}{:<12}{:<12}{:<4}", index.len(), 0, 0, 0, 0, 0, 0, 0);
    big.extend(format!("{fields}`\n{index}").bytes());
    big[8..28].copy_from_slice(format!("{table:<20}").as_bytes());
    fs::write(directory.join("big.a"), big).expect("scratch is writable");
    let error = refused(directory, "big.a").to_string();
    assert!(error.contains("members overlap"), "{error}");
}

#[test]
fn a_sparse_file_of_five_gigabytes_costs_nothing() {
    let scratch = scratch();
    let directory = scratch.path();
    fs::write(directory.join("sparse.a"), "!<arch>\n").expect("scratch is writable");
    let file = File::options().write(true).open(directory.join("sparse.a")).expect("writable");
    file.set_len(5 << 30).expect("sparse files are supported");
    assert!(refused(directory, "sparse.a").to_string().contains("sparse.a is malformed"));
    fs::write(directory.join("thin.a"), thin(&["sparse.bin"])).expect("scratch is writable");
    let file = File::create(directory.join("sparse.bin")).expect("writable");
    file.set_len(5 << 30).expect("sparse files are supported");
    assert_eq!(unpacked(directory, "thin.a", "out"), [""; 0]);
}

#[test]
fn thin_archives_that_contain_themselves() {
    let scratch = scratch();
    let directory = scratch.path();
    fs::write(directory.join("self.a"), thin(&["self.a"])).expect("scratch is writable");
    let error = refused(directory, "self.a").to_string();
    assert!(error.contains("self.a contains") && error.contains("in turn"), "{error}");
    // By another name, and by way of another archive.
    symlink("one.a", directory.join("alias.a")).expect("scratch is writable");
    fs::write(directory.join("one.a"), thin(&["two.a"])).expect("scratch is writable");
    fs::write(directory.join("two.a"), thin(&["alias.a"])).expect("scratch is writable");
    let error = refused(directory, "one.a").to_string();
    assert!(error.contains("two.a contains") && error.contains("alias.a"), "{error}");
    // A long chain without a cycle.
    for level in 0..40 {
        let next = format!("{}.a", level + 1);
        fs::write(directory.join(format!("{level}.a")), thin(&[&next])).expect("scratch is writable");
    }
    fs::write(directory.join("40.a"), thin(&[])).expect("scratch is writable");
    assert!(refused(directory, "0.a").to_string().contains("archives deep"));
    assert_eq!(unpacked(directory, "30.a", "out"), [""; 0]);
}

#[test]
fn a_few_bytes_that_unfold_into_millions_of_members() {
    let scratch = scratch();
    let directory = scratch.path();
    for level in 0..9 {
        let next = format!("{}.a", level + 1);
        let members = vec![next.as_str(); 10];
        fs::write(directory.join(format!("{level}.a")), thin(&members)).expect("scratch is writable");
    }
    fs::write(directory.join("9.a"), thin(&[])).expect("scratch is writable");
    let error = refused(directory, "0.a").to_string();
    assert!(error.contains("0.a has more than 1048576 members"), "{error}");
}

#[test]
fn thin_members_may_be_nested_thin_archives() {
    let scratch = scratch();
    let directory = scratch.path();
    fs::create_dir(directory.join("sub")).expect("scratch is writable");
    compile(directory, "sub/a.o", THIN_LTO);
    fs::write(directory.join("sub/inner.a"), thin(&["a.o"])).expect("scratch is writable");
    let absolute = directory.join("sub/a.o");
    let absolute = absolute.to_str().expect("UTF-8");
    fs::write(directory.join("outer.a"), thin(&["sub/inner.a", absolute])).expect("scratch is writable");
    assert_eq!(unpacked(directory, "outer.a", "out"), ["a.o", "a_1.o"]);
    assert_eq!(files(&directory.join("out"))["a_1.o"], fs::read(absolute).expect("written"));
}

#[test]
fn inputs_that_are_not_files() {
    let scratch = scratch();
    let directory = scratch.path();
    fs::create_dir(directory.join("dir.a")).expect("scratch is writable");
    assert!(refused(directory, "dir.a").to_string().contains("dir.a is not a regular file"));
    assert_eq!(code_of(&refused(directory, "none.a")), 4);
    // Opening a pipe would wait for a writer for ever.
    run(directory, "mkfifo", &["pipe.o"]);
    assert!(refused(directory, "pipe.o").to_string().contains("pipe.o is not a regular file"));
    for member in ["pipe.o", "dir.a", "none.o"] {
        fs::write(directory.join("thin.a"), thin(&[member])).expect("scratch is writable");
        let error = refused(directory, "thin.a");
        assert_eq!(code_of(&error), 3);
        assert!(error.to_string().contains("thin.a names the member") && error.to_string().contains(member));
    }
    for (content, what) in [("", "empty file"), ("int main;", "text")] {
        fs::write(directory.join("text.a"), content).expect("scratch is writable");
        assert!(refused(directory, "text.a").to_string().contains(&format!("not an archive but {what}")));
    }
}

fn archive_of_one(directory: &Path) {
    compile(directory, "a.o", THIN_LTO);
    run(directory, "llvm-ar-22", &["qcs", "a.a", "a.o"]);
}

#[test]
fn outputs_that_cannot_be_written() {
    let scratch = scratch();
    let directory = scratch.path();
    archive_of_one(directory);
    // A file where the directory should be.
    fs::write(directory.join("refused"), "mine").expect("scratch is writable");
    let error = refused(directory, "a.a");
    assert_eq!(code_of(&error), 4, "{error}");
    assert_eq!(fs::read(directory.join("refused")).expect("untouched"), b"mine");
    // A directory where a member should be.
    fs::remove_file(directory.join("refused")).expect("removable");
    fs::create_dir_all(directory.join("refused/a.o/keep")).expect("scratch is writable");
    let error = refused(directory, "a.a");
    assert!(error.to_string().contains("refused/a.o"), "{error}");
    assert_eq!(code_of(&error), 4);
    assert!(directory.join("refused/a.o/keep").is_dir());
    // A file system that takes no writes at all.
    let error = unpack(&request(&directory.join("a.a"), Path::new("/proc/distlto"))).expect_err("read-only");
    assert_eq!(code_of(&error), 4, "{error}");
}
