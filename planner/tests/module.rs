//! Modules of real producers, read here and by `llvm-bcanalyzer`, and what hostile bytes do.

use std::path::Path;
use std::process::Command;

use distlto_planner::bitcode::ModuleHash;
use distlto_planner::empty_module::empty_module;
use distlto_planner::module::{self, Module, SummaryKind};

use crate::shard::{hostile, oracle, toolchain};

/// Reads a module and compares everything with `llvm-bcanalyzer`, but for what follows from it.
fn check(file: &Path) -> Module {
    let bytes = std::fs::read(file).expect("the compiler wrote it");
    let read = module::read(&bytes).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert_eq!(module::source_name(&bytes).expect("bitcode"), read.source_name, "{}", file.display());
    let (records, blocks) = oracle::dump(file);
    let in_module = |code: &str| records.iter().find(|r| r.block == "MODULE_BLOCK" && r.code == code);
    assert_eq!(read.triple, in_module("TRIPLE").map(|r| r.text(0)).unwrap_or_default());
    assert_eq!(read.source_name, in_module("SOURCE_FILENAME").map(|r| r.text(0)).unwrap_or_default());
    let hash = in_module("HASH").map(|record| {
        let words: Vec<_> = record.operands.iter().map(|&word| word as u32).collect();
        ModuleHash::try_from(words).expect("five words")
    });
    assert_eq!(read.hash, hash, "{}", file.display());
    let modules = blocks.iter().filter(|name| *name == "MODULE_BLOCK").count();
    assert_eq!(read.split_unit, modules == 2);
    // A split unit's second module has a summary of the other kind.
    let summary = blocks.iter().find(|name| name.ends_with("GLOBALVAL_SUMMARY_BLOCK"));
    let in_summary = records.iter().filter(|r| summary == Some(&r.block));
    let functions = in_summary.filter(|r| ["PERMODULE", "PERMODULE_PROFILE"].contains(&r.code.as_str()));
    let functions: Vec<_> = functions.map(|record| (record.operands[2], record.operands[3])).collect();
    let sum = functions.iter().map(|(instructions, _)| instructions).sum();
    assert_eq!(read.instructions, summary.map(|_| sum), "{}", file.display());
    // Bit 4 is noinline, bit 5 alwaysinline.
    let mut others = functions.iter().filter(|(_, flags)| flags & 0x30 != 0x20).peekable();
    let noinline = others.peek().is_some().then(|| others.all(|(_, flags)| flags & 0x10 != 0));
    assert_eq!(read.noinline, noinline, "{}", file.display());
    read
}

/// What lld does with an object: `--thinlto-index-only` writes a shard with content for ThinLTO objects only.
fn linker_takes_for_thin_lto(dir: &Path, version: u32, name: &str) -> bool {
    let shard = dir.join(format!("{name}.thinlto.bc"));
    let _ = std::fs::remove_file(&shard);
    toolchain::run(dir, "ld.lld", version, &["--thinlto-index-only", "-r", name, "-o", "unused"]);
    std::fs::metadata(shard).is_ok_and(|shard| shard.len() > 0)
}

#[test]
fn every_linker_takes_the_empty_module_for_thin_lto() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    std::fs::write(dir.join("empty.o"), empty_module()).expect("written");
    check(&dir.join("empty.o"));
    for version in oracle::versions() {
        assert!(linker_takes_for_thin_lto(dir, version, "empty.o"), "LLVM {version}");
        toolchain::run(dir, "ld.lld", version, &["-shared", "empty.o", "-o", "library"]);
        assert!(std::fs::remove_file(dir.join("library")).is_ok(), "LLVM {version} links it");
    }
}

#[test]
fn kinds_of_summaries_are_those_that_the_linker_sees() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    for version in oracle::versions() {
        let mut cases: Vec<(&str, &str, &[&str], SummaryKind)> = vec![
            ("called.c", "thin.o", &["-flto=thin"], SummaryKind::ThinLto),
            ("called.c", "thin-O0.o", &["-flto=thin", "-O0"], SummaryKind::ThinLto),
            ("called.c", "thin-unit.o", &["-flto=thin", "-fsplit-lto-unit"], SummaryKind::ThinLto),
            ("nothing.c", "thin-nothing.o", &["-flto=thin"], SummaryKind::ThinLto),
            ("called.c", "full.o", &["-flto"], SummaryKind::FullLto),
            ("called.c", "full-unit.o", &["-flto", "-fsplit-lto-unit"], SummaryKind::FullLto),
            ("called.c", "plain.o", &["-emit-llvm"], SummaryKind::None),
        ];
        if version >= 17 {
            cases.push(("called.c", "unified.o", &["-flto=thin", "-funified-lto"], SummaryKind::ThinLto));
            cases.push(("called.c", "unified-full.o", &["-flto", "-funified-lto"], SummaryKind::ThinLto));
        }
        for (source, name, flags, summary) in cases {
            let read = check(&toolchain::compile(dir, version, source, name, flags));
            assert_eq!(read.summary, summary, "{name} of LLVM {version}");
            let thin = linker_takes_for_thin_lto(dir, version, name);
            assert_eq!(thin, summary == SummaryKind::ThinLto, "{name} of LLVM {version}, as lld sees it");
            assert!(!read.split_unit, "{name} of LLVM {version}");
            if name.starts_with("thin") && source == "called.c" {
                assert_eq!(read.noinline, Some(name == "thin-O0.o"), "{name} of LLVM {version}");
            }
        }
    }
}

#[test]
fn a_split_unit_holds_two_modules() {
    let dir = tempfile::tempdir().expect("a directory");
    for version in oracle::versions() {
        let unit = ["-fsplit-lto-unit", "-fwhole-program-vtables", "-fvisibility=hidden"];
        let thin = [&unit[..], &["-flto=thin"]].concat();
        let read = check(&toolchain::compile(dir.path(), version, "virtual.cpp", "split.o", &thin));
        assert_eq!((read.split_unit, read.summary), (true, SummaryKind::ThinLto));
        let full = [&unit[..], &["-flto"]].concat();
        let read = check(&toolchain::compile(dir.path(), version, "virtual.cpp", "full.o", &full));
        assert_eq!((read.split_unit, read.summary), (false, SummaryKind::FullLto));
    }
}

#[test]
fn the_wrapper_of_darwin_is_accepted() {
    let dir = tempfile::tempdir().expect("a directory");
    for version in oracle::versions() {
        let target = "--target=arm64-apple-macos11";
        let thin =
            check(&toolchain::compile(dir.path(), version, "called.c", "thin.o", &["-flto=thin", target]));
        assert_eq!(thin.summary, SummaryKind::ThinLto);
        let full = check(&toolchain::compile(dir.path(), version, "called.c", "full.o", &["-flto", target]));
        assert_eq!(full.summary, SummaryKind::None);
        assert!(std::fs::read(dir.path().join("full.o")).expect("a file").starts_with(&[0xDE, 0xC0]));
    }
}

#[test]
fn other_producers_record_no_hash() {
    let dir = tempfile::tempdir().expect("a directory");
    let newest = toolchain::NEWEST;
    toolchain::compile(dir.path(), newest, "called.c", "plain.bc", &["-emit-llvm"]);
    toolchain::run(dir.path(), "opt", newest, &["-module-summary", "plain.bc", "-o", "summary.bc"]);
    let read = check(&dir.path().join("summary.bc"));
    assert_eq!((read.summary, read.hash), (SummaryKind::ThinLto, None));
    toolchain::run(
        dir.path(),
        "opt",
        newest,
        &["-module-summary", "-module-hash", "plain.bc", "-o", "hash.bc"],
    );
    assert!(check(&dir.path().join("hash.bc")).hash.is_some());
    toolchain::run(dir.path(), "llvm-dis", newest, &["plain.bc", "-o", "plain.ll"]);
    toolchain::run(dir.path(), "llvm-as", newest, &["plain.ll", "-o", "assembled.bc"]);
    assert_eq!(check(&dir.path().join("assembled.bc")).summary, SummaryKind::None);
}

#[test]
fn rust_bitcode_takes_part_in_thin_lto() {
    let dir = tempfile::tempdir().expect("a directory");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/sources/plain.rs");
    for (name, flags) in [("a.o", ["-Clinker-plugin-lto", "--emit=obj"]), ("b.bc", ["-O", "--emit=llvm-bc"])]
    {
        let status = Command::new("rustc")
            .args(["--crate-type=lib", "--edition=2024", "-O", source, "-o", name])
            .args(if flags[0] == "-O" { &flags[1..] } else { &flags[..] })
            .current_dir(dir.path())
            .status();
        assert!(status.expect("rustc is missing; install it with rustup").success());
        let read = check(&dir.path().join(name));
        assert_eq!(read.summary, SummaryKind::ThinLto, "{name}");
        assert!(read.hash.is_some(), "{name}");
    }
}

#[test]
fn hostile_bytes_give_errors_with_a_place() {
    hostile::check_crafted(module::read);
    let dir = tempfile::tempdir().expect("a directory");
    let file = toolchain::compile(dir.path(), toolchain::NEWEST, "called.c", "thin.o", &["-flto=thin"]);
    let bytes = std::fs::read(file).expect("the compiler wrote it");
    hostile::check(&bytes, module::read);
    let error = module::read(&bytes[..bytes.len() / 2]).expect_err("half a module");
    assert!(error.to_string().contains("may be truncated"), "{error}");
    let shard = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/shards/t1.o.thinlto.bc"));
    let error = module::read(&shard.expect("test data")).expect_err("an index shard is no module");
    assert!(error.to_string().contains("index shard"), "{error}");
}
