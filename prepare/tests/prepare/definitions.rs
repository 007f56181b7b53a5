//! What native objects define, and copies without some of it; llvm-nm says which symbols there are, lld what a copy does.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use distlto_prepare::definitions::{Definitions, definitions, references, without};

use crate::tools::{run, scratch};

/// One file with a weak function, a COMDAT group with a constructor in it, and a strong function; another with the first
/// two, which print another name.
fn objects(directory: &Path) {
    for (file, own) in [("first", ""), ("second", "int main() { weak(); return shared + own(); }")] {
        let text = format!(
            "extern \"C\" int puts(const char *);\n\
             static int told(const char *text) {{ puts(text); return 0; }}\n\
             extern \"C\" __attribute__((weak)) void weak() {{ puts(\"weak of {file}\"); }}\n\
             inline int shared = told(\"group of {file}\");\nint *keep_{file} = &shared;\n\
             int own_{file}() {{ return 0; }}\n#define own own_{file}\n{own}\n"
        );
        fs::write(directory.join("x.cpp"), text).expect("scratch is writable");
        let object = format!("{file}.o");
        run(
            directory,
            "clang++-22",
            &["-O1", "-std=c++17", "-fno-threadsafe-statics", "-c", "x.cpp", "-o", &object],
        );
    }
}

fn read(directory: &Path, name: &str) -> Vec<u8> {
    fs::read(directory.join(name)).expect("written")
}

/// What a program of these objects prints.
fn says(directory: &Path, objects: &[&str]) -> String {
    run(directory, "clang++-22", &[&["-fuse-ld=lld", "-o", "program"], objects].concat());
    let program = directory.join("program");
    String::from_utf8(run(directory, program.to_str().expect("UTF-8"), &[])).expect("UTF-8")
}

#[test]
fn symbols_are_those_of_nm() {
    let scratch = scratch();
    objects(scratch.path());
    let found = definitions(&read(scratch.path(), "second.o"));
    let text = run(scratch.path(), "llvm-nm-22", &["--defined-only", "--extern-only", "second.o"]);
    let text = String::from_utf8(text).expect("UTF-8");
    let named = |letters: &str| -> HashSet<Vec<u8>> {
        let words = |line: &str| line.split(' ').skip(1).map(str::to_owned).collect::<Vec<_>>();
        let lines = text.lines().map(words).filter(|words| letters.contains(&words[0]));
        lines.map(|words| words[1].clone().into_bytes()).collect()
    };
    assert_eq!((&found.weak, &found.strong), (&named("WVu"), &named("TDBR")));
    assert!(found.weak.len() > 1 && found.strong.len() > 1, "{text}");
    assert_eq!(found.groups, HashSet::from([b"shared".to_vec()]));
}

#[test]
fn a_copy_in_front_is_taken_as_the_object_behind_is() {
    let scratch = scratch();
    objects(scratch.path());
    let first = definitions(&read(scratch.path(), "first.o"));
    let second = read(scratch.path(), "second.o");
    let all = definitions(&second);
    let lost = Definitions {
        weak: all.weak.intersection(&first.weak).cloned().collect(),
        groups: all.groups.intersection(&first.groups).cloned().collect(),
        ..Definitions::default()
    };
    fs::write(scratch.path().join("copy.o"), without(&second, &lost).expect("an ELF object"))
        .expect("written");
    let behind = says(scratch.path(), &["first.o", "second.o"]);
    assert_eq!(behind, "group of first\nweak of first\n");
    assert_eq!(says(scratch.path(), &["copy.o", "first.o"]), behind);
    assert_ne!(says(scratch.path(), &["second.o", "first.o"]), behind);
}

#[test]
fn references_are_those_of_a_shared_library() {
    let scratch = scratch();
    let directory = scratch.path();
    fs::write(directory.join("x.c"), "int wanted(void); int f(void) { return wanted(); }").expect("writable");
    run(directory, "clang-22", &["-fPIC", "-c", "x.c", "-o", "x.o"]);
    run(directory, "clang-22", &["-shared", "-nostdlib", "-fuse-ld=lld", "x.o", "-o", "x.so"]);
    assert_eq!(references(&read(directory, "x.so")), HashSet::from([b"wanted".to_vec()]));
    assert_eq!(references(&read(directory, "x.o")), HashSet::new());
}

#[test]
fn damaged_objects_are_no_reason_to_end() {
    let scratch = scratch();
    objects(scratch.path());
    let whole = read(scratch.path(), "second.o");
    let all = definitions(&whole);
    for end in (0..whole.len()).step_by(7) {
        let _ = (definitions(&whole[..end]), without(&whole[..end], &all), references(&whole[..end]));
    }
    for at in (0..whole.len()).step_by(3) {
        let mut damaged = whole.clone();
        damaged[at] = !damaged[at];
        let _ = (definitions(&damaged), without(&damaged, &all));
    }
    assert!(without(b"no object", &all).is_none());
}
