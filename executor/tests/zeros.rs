//! Objects by real compilers pass; the same with zeros where a crash or a full disk leaves them do not.

use std::path::Path;
use std::process::Command;

use distlto_executor::verify::{Expectation, check_object};
use object::{Object, ObjectSection, SectionKind};

/// Modules that are poor in something, and one that is rich.
const SOURCES: [(&str, &str); 7] = [
    ("empty", ""),
    ("data", "int zeros[5000] = {0}; const long constants[3000] = {0}; int one = 1;"),
    ("common", "int tentative[5000];"),
    ("asm", "__asm__(\".section .note.x,\\\"a\\\"\\n.zero 9000\\n.text\\n\");"),
    ("pointer", "extern int x; int *pointer = &x;"),
    ("function", "int f(int x) { return x + 1; }"),
    (
        "many",
        "#define F(n) int f##n(int x) { return x * n + g(x); } \n#define T(n) F(n##0) F(n##1) F(n##2) F(n##3) F(n##4) F(n##5) F(n##6) F(n##7) F(n##8) F(n##9)\n\
         #define H(n) T(n##0) T(n##1) T(n##2) T(n##3) T(n##4) T(n##5) T(n##6) T(n##7) T(n##8) T(n##9)\n\
         int g(int); H(1) H(2) H(3) H(4) H(5)",
    ),
];

const OPTIONS: [&[&str]; 6] = [
    &[],
    &["-g", "-ffunction-sections", "-fdata-sections"],
    &["-falign-functions=4096"],
    &["-fpatchable-function-entry=64", "-fPIC"],
    &["--target=aarch64-linux-gnu", "-falign-functions=8192"],
    &["--target=i386-linux-gnu", "-fbasic-block-address-map"],
];

fn compile(directory: &Path, source: &str, options: &[&str]) -> Vec<u8> {
    std::fs::write(directory.join("x.c"), source).unwrap();
    let mut clang = Command::new("clang-22");
    clang.args(["-O1", "-ffreestanding", "-c", "x.c", "-o", "x.o"]).args(options).current_dir(directory);
    assert!(
        clang.status().expect("clang-22 is installed: cargo xtask setup").success(),
        "{source} {options:?}"
    );
    std::fs::read(directory.join("x.o")).unwrap()
}

#[track_caller]
fn refused(bytes: &[u8], what: &str) {
    let error = check_object(bytes, Path::new("x.o"), &Expectation::default()).expect_err(what).to_string();
    assert!(error.contains("x.o is"), "{what}: {error}");
}

fn zeroed(bytes: &[u8], range: std::ops::Range<usize>) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[range].fill(0);
    bytes
}

#[test]
fn what_compilers_write_passes() {
    let place = tempfile::tempdir().unwrap();
    for (name, source) in SOURCES {
        for options in OPTIONS {
            let bytes = compile(place.path(), source, options);
            check_object(&bytes, Path::new("x.o"), &Expectation::default())
                .unwrap_or_else(|error| panic!("{name} {options:?}: {error}"));
        }
    }
}

#[test]
fn zeros_in_their_place_do_not() {
    let place = tempfile::tempdir().unwrap();
    for (name, source) in SOURCES {
        for options in OPTIONS {
            let bytes = compile(place.path(), source, options);
            let file = object::File::parse(bytes.as_slice()).unwrap();
            let e_shoff = if file.is_64() {
                u64::from_le_bytes(bytes[0x28..0x30].try_into().unwrap())
            } else {
                u32::from_le_bytes(bytes[0x20..0x24].try_into().unwrap()).into()
            };
            let sections = usize::try_from(e_shoff).unwrap();
            let header = if file.is_64() { 64 } else { 52 };
            // The header alone survives; the header and the section headers do.
            refused(&zeroed(&bytes, header..bytes.len()), &format!("{name} {options:?}: all"));
            refused(&zeroed(&bytes, header..sections), &format!("{name} {options:?}: contents"));
            refused(&zeroed(&bytes, sections..bytes.len()), &format!("{name} {options:?}: section headers"));
            for section in file.sections() {
                let Some((start, size)) = section.file_range().filter(|&(_, size)| size > 1) else {
                    continue;
                };
                let start = usize::try_from(start).unwrap();
                let range = start..start + usize::try_from(size).unwrap();
                let section_name = section.name().unwrap().to_owned();
                let table = ["strtab", "symtab", "rel", "group"].iter().any(|&part| {
                    section_name.starts_with(&format!(".{part}")) && section_name != ".relro_padding"
                });
                // A symbol table of one symbol is empty in any case.
                if table && bytes[range.clone()].iter().any(|&byte| byte != 0) {
                    refused(&zeroed(&bytes, range.clone()), &format!("{name} {options:?}: {section_name}"));
                }
                if section.kind() == SectionKind::Text {
                    let pages = range.start.next_multiple_of(4096)..range.end / 4096 * 4096;
                    for page in pages.step_by(4096) {
                        refused(
                            &zeroed(&bytes, page..page + 4096),
                            &format!("{name} {options:?}: page {page}"),
                        );
                    }
                }
            }
        }
    }
}
