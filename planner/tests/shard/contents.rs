//! What modules and shards say of the objects that are to come, beside what `llvm-nm` says of those that clang makes.

use std::collections::BTreeSet;
use std::path::Path;

use distlto_planner::contents::{Contents, required};
use distlto_planner::symbol_table;

use super::{hostile, oracle, toolchain};

/// A thin link of `called.c`, `calls.c` and this.
const LISTS: &str = "int ext(void);\n\
    static int value;\n\
    __attribute__((noinline)) static int bump(void) { return ++value; }\n\
    int bumps(void) { return bump(); }\n\
    int twice(void) { return bumps() + bumps(); }\n\
    __attribute__((constructor)) static void first(void) { value += ext(); }\n\
    __attribute__((constructor)) static void again(void) { value = 0; }\n\
    void calls_again(void) { again(); }\n\
    __attribute__((destructor)) static void last(void) { ext(); }\n\
    __attribute__((used, section(\"entries\"))) static int entry = 1;\n\
    __attribute__((section(\"others\"))) static int other = 1;\n\
    int get(void) { return other; }\n\
    int fixed = 4, written, both = 5;\n\
    static int fixed_here = 6;\n\
    int get_fixed(void) { return fixed_here; }\n";
const USER: &str = "extern int fixed, written, both;\n\
    int bumps(void), get_fixed(void);\n\
    int ext(void) { written = both++; return bumps() + fixed + get_fixed(); }\n\
    int main(void) { return ext(); }\n";

fn compile(dir: &Path, version: u32) {
    for (name, text) in [("lists", LISTS), ("user", USER)] {
        std::fs::write(dir.join(format!("{name}.c")), text).expect("written");
        let words = ["-O1", "-flto=thin", "-c", &format!("{name}.c"), "-o", &format!("{name}.o")];
        toolchain::run(dir, "clang", version, &words);
    }
}

fn of(dir: &Path, name: &str) -> Contents {
    let read = |name: &str| std::fs::read(dir.join(name)).expect("written");
    let (module, shard) = (read(name), read(&format!("{name}.thinlto.bc")));
    required(&module, Some(&shard), name).expect("bitcode").expect("a symbol table")
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// Names of definitions that other files see, as `llvm-nm` prints them, without the link's suffix.
fn defined(dir: &Path, object: &str) -> BTreeSet<String> {
    let words = ["--extern-only", "--defined-only", "--format=just-symbols", object];
    let printed = String::from_utf8(toolchain::run(dir, "llvm-nm", toolchain::NEWEST, &words)).expect("text");
    let stem = |line: &str| line.split(".llvm.").next().unwrap_or(line).to_owned();
    printed.lines().map(stem).collect()
}

#[test]
fn symbols_are_those_of_the_object() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    for version in oracle::versions() {
        compile(dir, version);
        for words in [["-e", "main"], ["-shared", "--gc-sections"]] {
            let words = [&["--thinlto-index-only", "-o", "unused", "user.o", "lists.o"], &words[..]].concat();
            toolchain::run(dir, "ld.lld", version, &words);
            for name in ["lists.o", "user.o"] {
                let index = format!("-fthinlto-index={name}.thinlto.bc");
                toolchain::run(dir, "clang", version, &["-c", "-O2", "-fPIC", name, &index, "-o", "native"]);
                let contents = of(dir, name);
                let names: BTreeSet<_> =
                    contents.symbols.iter().map(|required| text(&required.name)).collect();
                assert_eq!(names, defined(dir, "native"), "LLVM {version} {words:?} {name}");
            }
        }
    }
}

#[test]
fn lists_and_sections() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    for version in oracle::versions() {
        compile(dir, version);
        toolchain::run(
            dir,
            "ld.lld",
            version,
            &["--thinlto-index-only", "-shared", "-o", "unused", "user.o", "lists.o"],
        );
        let lists = of(dir, "lists.o");
        assert_eq!(lists.sections, [b"entries"], "LLVM {version}");
        assert!(lists.has_destructors, "LLVM {version}");
        let constructors = lists.constructors.expect("two");
        assert_eq!(constructors.source, b"lists.c");
        // Another function calls the other.
        assert_eq!(constructors.alone, [b"first".to_vec()].into(), "LLVM {version}");
        let user = of(dir, "user.o");
        assert_eq!((user.has_destructors, user.constructors, user.sections.len()), (false, None, 0));
    }
}

#[test]
fn without_a_symbol_table_nothing_is_said() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    compile(dir, toolchain::NEWEST);
    let bytes = std::fs::read(dir.join("lists.o")).expect("written");
    assert_eq!(symbol_table::read(&bytes).expect("bitcode").expect("a table").source, b"lists.c");
    toolchain::run(dir, "llvm-dis", toolchain::NEWEST, &["lists.o", "-o", "lists.ll"]);
    let text = std::fs::read_to_string(dir.join("lists.ll")).expect("written");
    // LLVM writes no table for assembly of a machine that it does not know.
    let without = text.replacen("x86_64-pc-linux-gnu\"", "unknown-pc-linux-gnu\"\nmodule asm \"nop\"", 1);
    std::fs::write(dir.join("without.ll"), without).expect("written");
    toolchain::run(dir, "llvm-as", toolchain::NEWEST, &["without.ll", "-o", "without.o"]);
    let bytes = std::fs::read(dir.join("without.o")).expect("written");
    assert_eq!(required(&bytes, None, "without.o").expect("bitcode"), None);
}

#[test]
fn damage_does_no_harm() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    compile(dir, toolchain::NEWEST);
    toolchain::run(
        dir,
        "ld.lld",
        toolchain::NEWEST,
        &["--thinlto-index-only", "-shared", "-o", "unused", "user.o", "lists.o"],
    );
    let read = |name: &str| std::fs::read(dir.join(name)).expect("written");
    let (module, shard) = (read("user.o"), read("user.o.thinlto.bc"));
    hostile::check_damaged(&module, |bytes| required(bytes, Some(&shard), "user.o"));
    hostile::check_damaged(&shard, |bytes| required(&module, Some(bytes), "user.o"));
}
