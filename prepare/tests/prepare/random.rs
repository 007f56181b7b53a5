//! Archives with arbitrary names and content, and valid archives with arbitrary damage.
//!
//! The first must come out as they went in; the second must give a result or an error, never a panic.

use std::fs;
use std::io::Cursor;

use ar_archive_writer::{ArchiveKind, DEFAULT_OBJECT_READER, NewArchiveMember, write_archive_to_stream};
use distlto_prepare::unpack::unpack;
use proptest::prelude::*;

use crate::tools::{THIN_LTO, check, compile, files, request, run, scratch};

/// Raw bitcode as far as anybody looks, so that the member is written.
fn content() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..200).prop_map(|tail| [b"BC\xC0\xDE", tail.as_slice()].concat())
}

fn member_name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]{1,2}\\.[oO]", "(/|\\.\\.|a|%|\\\\| )[/a-z.]{0,30}", "[a-z]{250,300}"]
}

/// An archive in the BSD format, whose names are any bytes and stand before the content.
fn bsd_archive(members: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, content) in members {
        let (field, size) = (format!("#1/{}", name.len()), name.len() + content.len());
        archive.extend(format!("{field:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644).bytes());
        archive.extend(name.iter().chain(content));
        archive.extend(if size % 2 == 1 { &b"\n"[..] } else { b"" });
    }
    archive
}

/// Unpacks to a directory beside the archive and checks names, content and that nothing lies elsewhere.
fn check_round_trip(archive: &[u8], contents: &[Vec<u8>]) {
    let scratch = scratch();
    let (path, out) = (scratch.path().join("a.a"), scratch.path().join("out/deep"));
    fs::write(&path, archive).expect("scratch is writable");
    check(&unpack(&request(&path, &out)).unwrap_or_else(|error| panic!("{error}")), &out);
    let mut written: Vec<Vec<u8>> = files(&out).into_values().collect();
    let mut contents: Vec<Vec<u8>> = contents.to_vec();
    contents.sort();
    written.sort();
    assert_eq!(written, contents);
    assert_eq!(fs::read_dir(scratch.path()).expect("readable").count(), 2);
    assert_eq!(fs::read_dir(scratch.path().join("out")).expect("readable").count(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn what_went_in_comes_out(
        members in proptest::collection::vec((member_name(), content()), 0..12),
        kind in prop_oneof![
            Just(ArchiveKind::Gnu), Just(ArchiveKind::Gnu64), Just(ArchiveKind::Bsd), Just(ArchiveKind::Coff),
        ],
    ) {
        let new: Vec<_> = members
            .iter()
            .map(|(name, content)| NewArchiveMember::new(content, &DEFAULT_OBJECT_READER, name.clone()))
            .collect();
        let mut written = Cursor::new(Vec::new());
        write_archive_to_stream(&mut written, &new, kind, false, None).expect("names without newlines");
        check_round_trip(&written.into_inner(), &members.iter().map(|(_, content)| content.clone()).collect::<Vec<_>>());
    }

    #[test]
    fn names_of_any_bytes_stay_inside(
        members in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 0..300), content()), 0..12),
    ) {
        check_round_trip(&bsd_archive(&members), &members.iter().map(|(_, content)| content.clone()).collect::<Vec<_>>());
    }
}

/// Bytes of small valid archives of each format.
fn seeds() -> Vec<Vec<u8>> {
    let scratch = scratch();
    let directory = scratch.path();
    compile(directory, "a.o", &[]);
    compile(directory, "long enough for the table of names.o", THIN_LTO);
    compile(directory, "fat.o", &["-flto=thin", "-ffat-lto-objects"]);
    compile(directory, "mach.o", &["-target", "arm64-apple-macosx14"]);
    compile(directory, "coff.o", &["-target", "x86_64-pc-windows-msvc"]);
    let mut seeds = Vec::new();
    for (format, objects) in [
        ("gnu", ["a.o", "fat.o"]),
        ("bsd", ["a.o", "long enough for the table of names.o"]),
        ("darwin", ["mach.o", "mach.o"]),
        ("coff", ["coff.o", "long enough for the table of names.o"]),
        ("bigarchive", ["a.o", "fat.o"]),
    ] {
        let operation = if format == "bigarchive" { "qcS" } else { "qcs" };
        let option = format!("--format={format}");
        run(directory, "llvm-ar-22", &[&option, operation, format, objects[0], objects[1]]);
        seeds.push(fs::read(directory.join(format)).expect("written"));
    }
    run(directory, "llvm-ar-22", &["qcs", "--thin", "thin.a", "a.o"]);
    seeds.push(fs::read(directory.join("thin.a")).expect("written"));
    run(directory, "llvm-lipo-22", &["-create", "darwin", "-output", "universal"]);
    seeds.push(fs::read(directory.join("universal")).expect("written"));
    seeds
}

#[test]
fn damage_never_panics() {
    let seeds = seeds();
    let scratch = scratch();
    let (archive, out) = (scratch.path().join("a.a"), scratch.path().join("out"));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(1500));
    // Headers matter most, and ASCII digits in them.
    let place =
        prop_oneof![3 => 0..400usize, 1 => any::<prop::sample::Index>().prop_map(|at| at.index(100_000))];
    let byte = prop_oneof![any::<u8>(), b'0'..=b'9', Just(b'/'), Just(b' '), Just(0xff)];
    let damage = proptest::collection::vec((place, byte), 1..8);
    let cut = prop_oneof![4 => Just(usize::MAX), 1 => 0..2000usize];
    let result = runner.run(&(0..seeds.len(), damage, cut, any::<bool>()), |(seed, damage, cut, fat_lto)| {
        let mut bytes = seeds[seed].clone();
        let length = bytes.len();
        damage.into_iter().for_each(|(at, byte)| bytes[at % length] = byte);
        bytes.truncate(cut);
        fs::write(&archive, bytes).expect("scratch is writable");
        let mut request = request(&archive, &out);
        request.fat_lto = fat_lto;
        let _ = fs::remove_dir_all(&out);
        if let Ok(unpacked) = unpack(&request) {
            check(&unpacked, &out);
        }
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}
