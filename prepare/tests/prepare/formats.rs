//! Archives of every format, made by real archivers, against what `llvm-ar` extracts.
//!
//! Formats: GNU, BSD, Darwin, COFF, AIX big, thin, nested, rlib, Mach-O universal.

use std::fs;
use std::path::Path;

use distlto_prepare::kind::{Kind, classify};
use distlto_prepare::unpack::{Unpack, unpack};

use crate::tools::{
    THIN_LTO, check, compare_with_llvm_ar, compile, files, refused, request, run, scratch, unpacked,
};

const LONG: &str = "a name of more than sixteen characters.o";
/// The name of its file: blanks are encoded.
const LONG_FILE: &str = "a%20name%20of%20more%20than%20sixteen%20characters.o";

fn objects(directory: &Path) {
    compile(directory, "a.o", THIN_LTO);
    compile(directory, "b.o", &[]);
    compile(directory, LONG, THIN_LTO);
    fs::create_dir(directory.join("sub")).expect("scratch is writable");
    compile(directory, "sub/a.o", THIN_LTO);
    fs::write(directory.join("odd.txt"), "an odd number of bytes.").expect("scratch is writable");
}

#[test]
fn every_format_of_llvm_ar() {
    let scratch = scratch();
    let directory = scratch.path();
    objects(directory);
    for format in ["gnu", "bsd", "darwin", "coff", "bigarchive"] {
        for symbols in ["qcs", "qcS"] {
            let archive = format!("{format}-{symbols}.a");
            let option = format!("--format={format}");
            // XCOFF tools refuse symbols of other objects, so a big archive has none.
            let operation = if format == "bigarchive" { "qcS" } else { symbols };
            let members = ["a.o", "b.o", LONG, "odd.txt", "sub/a.o", "a.o"];
            let mut arguments = vec![option.as_str(), operation, archive.as_str()];
            arguments.extend(members);
            run(directory, "llvm-ar-22", &arguments);
            let out = format!("out-{archive}");
            let files = unpacked(directory, &archive, &out);
            assert_eq!(files, ["a.o", "b.o", LONG_FILE, "a_1.o", "a_2.o"], "{archive}");
            compare_with_llvm_ar(directory, &archive, &["odd.txt"], &out);
        }
    }
}

#[test]
fn gnu_ar_makes_the_same() {
    let scratch = scratch();
    let directory = scratch.path();
    objects(directory);
    run(directory, "ar", &["qcs", "gnu.a", "b.o", LONG, "odd.txt"]);
    unpacked(directory, "gnu.a", "out");
    compare_with_llvm_ar(directory, "gnu.a", &["odd.txt"], "out");
    run(directory, "ar", &["qcsT", "thin.a", "b.o", LONG, "sub/a.o"]);
    assert_eq!(unpacked(directory, "thin.a", "out"), ["b.o", LONG_FILE, "a.o"]);
}

#[test]
fn thin_members_are_relative_to_their_archive() {
    let scratch = scratch();
    let directory = scratch.path();
    objects(directory);
    fs::create_dir(directory.join("libs")).expect("scratch is writable");
    run(directory, "llvm-ar-22", &["qcs", "--thin", "libs/thin.a", "a.o", "sub/a.o", LONG]);
    assert_eq!(unpacked(directory, "libs/thin.a", "out"), ["a.o", "a_1.o", LONG_FILE]);
    let out = files(&directory.join("out"));
    assert_eq!(out["a_1.o"], fs::read(directory.join("sub/a.o")).expect("written"));

    fs::remove_file(directory.join("sub/a.o")).expect("it was there");
    let error = refused(directory, "libs/thin.a").to_string();
    assert!(error.contains("libs/thin.a") && error.contains("libs/../sub/a.o"), "{error}");
}

#[test]
fn nested_archives_are_flattened() {
    let scratch = scratch();
    let directory = scratch.path();
    objects(directory);
    run(directory, "llvm-ar-22", &["qcs", "inner.a", "a.o", "b.o"]);
    run(directory, "llvm-ar-22", &["qcs", "--thin", "sub/thin.a", "sub/a.o", LONG]);
    run(directory, "llvm-ar-22", &["qcs", "--thin", "outer.a", "inner.a", "sub/thin.a", "b.o"]);
    assert_eq!(unpacked(directory, "outer.a", "out"), ["a.o", "b.o", "a_1.o", LONG_FILE, "b_1.o"]);

    run(directory, "llvm-ar-22", &["qcs", "regular.a", "b.o", "inner.a"]);
    assert_eq!(unpacked(directory, "regular.a", "out"), ["b.o", "a.o", "b_1.o"]);
    // `L` adds a thin archive's members themselves.
    run(directory, "llvm-ar-22", &["qcsL", "--thin", "flat.a", "sub/thin.a", "b.o"]);
    assert_eq!(unpacked(directory, "flat.a", "out"), ["a.o", LONG_FILE, "b.o"]);
    // GNU ar writes a form of its own that LLVM does not read.
    run(directory, "ar", &["qcsT", "gnu-nested.a", "inner.a", "b.o"]);
    let refusal = refused(directory, "gnu-nested.a").to_string();
    assert!(refusal.contains("gnu-nested.a") && refusal.contains("`/0:"), "{refusal}");
}

#[test]
fn empty_archives_have_no_members() {
    let scratch = scratch();
    let directory = scratch.path();
    for magic in ["!<arch>\n", "!<thin>\n"] {
        fs::write(directory.join("empty.a"), magic).expect("scratch is writable");
        assert_eq!(unpacked(directory, "empty.a", "out"), [""; 0]);
    }
    run(directory, "llvm-ar-22", &["qcs", "none.a"]);
    assert_eq!(unpacked(directory, "none.a", "out"), [""; 0]);
}

#[test]
fn rlibs_give_their_objects() {
    let scratch = scratch();
    let directory = scratch.path();
    fs::write(directory.join("lib.rs"), "pub fn seven() -> u32 { 7 }").expect("scratch is writable");
    let arguments = ["--crate-type=rlib", "--crate-name=seven", "-Clinker-plugin-lto", "-O", "lib.rs"];
    run(directory, "rustc", &arguments);
    unpacked(directory, "libseven.rlib", "out");
    compare_with_llvm_ar(directory, "libseven.rlib", &["lib.rmeta"], "out");
    let kinds: Vec<Kind> = files(&directory.join("out")).values().map(|bytes| classify(bytes)).collect();
    assert!(kinds.contains(&Kind::Bitcode { wrapped: false }), "{kinds:?}");
}

#[test]
fn fat_lto_members_are_written_as_asked() {
    let scratch = scratch();
    let directory = scratch.path();
    compile(directory, "fat.o", &["-flto=thin", "-ffat-lto-objects"]);
    run(directory, "llvm-objcopy-22", &["--dump-section=.llvm.lto=fat.bc", "fat.o"]);
    run(directory, "llvm-ar-22", &["qcs", "fat.a", "fat.o"]);
    let (archive, out) = (directory.join("fat.a"), directory.join("out"));
    for (fat_lto, same_as) in [(false, "fat.o"), (true, "fat.bc"), (false, "fat.o")] {
        check(&unpack(&Unpack { fat_lto, ..request(&archive, &out) }).expect("unpacked"), &out);
        assert_eq!(files(&out)["fat.o"], fs::read(directory.join(same_as)).expect("written"));
    }
}

#[test]
fn universal_files_give_the_slice_asked_for() {
    let scratch = scratch();
    let directory = scratch.path();
    let mut libraries = Vec::new();
    for architecture in ["arm64", "x86_64"] {
        let (object, library) = (format!("{architecture}.o"), format!("{architecture}.a"));
        compile(directory, &object, &["-target", &format!("{architecture}-apple-macosx14"), "-flto=thin"]);
        run(directory, "llvm-ar-22", &["--format=darwin", "qcs", &library, &object]);
        libraries.push(library);
    }
    let arguments = ["-create", &libraries[0], &libraries[1], "-output", "universal.a"];
    run(directory, "llvm-lipo-22", &arguments);
    let (archive, out) = (directory.join("universal.a"), directory.join("out"));
    let of = |architecture| {
        let _ = fs::remove_dir_all(&out);
        unpack(&Unpack { architecture, ..request(&archive, &out) })
    };
    for architecture in ["arm64", "x86_64"] {
        check(&of(Some(architecture)).expect("the slice is there"), &out);
        let expected = fs::read(directory.join(format!("{architecture}.o"))).expect("written");
        assert_eq!(files(&out)[&format!("{architecture}.o")], expected);
    }
    for (architecture, complaint) in
        [(None, "no architecture chosen"), (Some("arm64e"), "no slice for the architecture arm64e")]
    {
        let error = of(architecture).expect_err("there are two slices").to_string();
        assert!(error.contains(complaint) && error.ends_with("it holds x86_64, arm64"), "{error}");
    }
    run(directory, "llvm-lipo-22", &["-create", &libraries[0], "-output", "universal.a"]);
    assert_eq!(of(None).expect("the only slice").files, ["arm64.o"]);
    run(directory, "llvm-lipo-22", &["-create", "arm64.o", "x86_64.o", "-output", "universal.a"]);
    assert_eq!(of(Some("arm64")).expect("a slice that is an object").files, ["universal.a.o"]);
}

#[test]
fn real_libraries_come_out_as_llvm_ar_has_them() {
    let scratch = scratch();
    let directory = scratch.path();
    let sysroot = String::from_utf8(run(directory, "rustc", &["--print", "sysroot"])).expect("UTF-8");
    let libraries = Path::new(sysroot.trim()).join("lib/rustlib/x86_64-unknown-linux-gnu/lib");
    let core = fs::read_dir(libraries).expect("the standard library is installed").find_map(|entry| {
        let path = entry.ok()?.path();
        let name = path.file_name()?.to_str()?;
        (name.starts_with("libstd-") && name.ends_with(".rlib")).then_some(path)
    });
    let libc = run(directory, "clang-22", &["-print-file-name=libc.a"]);
    let libc = Path::new(str::from_utf8(&libc).expect("UTF-8").trim()).to_owned();
    for archive in [core.expect("libstd is there"), libc] {
        let (out, theirs) = (scratch.path().join("ours"), scratch.path().join("theirs"));
        fs::create_dir(&theirs).expect("scratch is writable");
        check(&unpack(&request(&archive, &out)).expect("unpacked"), &out);
        let path = archive.to_str().expect("UTF-8");
        run(&theirs, "llvm-ar-22", &["x", path]);
        let mut theirs_content = files(&theirs);
        theirs_content.remove("lib.rmeta");
        assert!(files(&out) == theirs_content, "{path}");
        fs::remove_dir_all(&theirs).expect("removable");
        fs::remove_dir_all(&out).expect("removable");
    }
}
