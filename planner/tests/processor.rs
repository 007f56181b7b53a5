//! Which processor real producers write on their functions, as the compilers that read them see it.

use std::path::Path;
use std::process::Command;

use distlto_planner::processor::{self, Processors};

use crate::shard::{hostile, toolchain};

/// Functions with and without a processor, and with features.
const ASSEMBLY: &str = r#"
define void @silent() { ret void }
define void @named() "target-cpu"="znver3" { ret void }
define void @listed() "target-cpu"="haswell" "target-features"="+avx2" { ret void }
declare void @elsewhere() "target-cpu"="i486"
"#;

fn read(file: &Path) -> Processors {
    let bytes = std::fs::read(file).expect("a tool wrote it");
    processor::read(&bytes).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn assembled(dir: &Path, version: u32, text: &str) -> Processors {
    std::fs::write(dir.join("a.ll"), text).expect("written");
    toolchain::run(dir, "llvm-as", version, &["a.ll", "-o", "a.bc"]);
    read(&dir.join("a.bc"))
}

fn without_features(names: &[&str]) -> Processors {
    Processors { unnamed: false, without_features: names.iter().map(|&name| name.to_owned()).collect() }
}

#[test]
fn each_function_speaks_for_itself() {
    let dir = tempfile::tempdir().expect("a directory");
    for version in [22, 19, 16, 14] {
        let all = assembled(dir.path(), version, ASSEMBLY);
        assert_eq!(all, Processors { unnamed: true, ..without_features(&["znver3"]) }, "LLVM {version}");
        let but = |name: &str| {
            let lines = ASSEMBLY.lines().filter(|line| !line.contains(name));
            assembled(dir.path(), version, &lines.collect::<Vec<_>>().join("\n"))
        };
        assert!(!but("@silent").unnamed);
        assert_eq!(but("@named"), Processors { unnamed: true, ..without_features(&[]) });
        // Clang lists the features, whatever it is told.
        for flags in [&["-flto=thin"][..], &["-flto=thin", "-march=haswell"], &["-emit-llvm", "-O0"]] {
            let file = toolchain::compile(dir.path(), version, "calls.c", "c.o", flags);
            assert_eq!(read(&file), without_features(&[]), "clang {version} {flags:?}");
        }
        let unit = ["-flto=thin", "-fsplit-lto-unit", "-fwhole-program-vtables", "-fvisibility=hidden"];
        let file = toolchain::compile(dir.path(), version, "virtual.cpp", "split.o", &unit);
        assert!(read(&file).without_features.is_empty());
    }
}

#[test]
fn rustc_names_a_processor_and_no_features() {
    let dir = tempfile::tempdir().expect("a directory");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/sources/plain.rs");
    for (flags, expected) in [
        (&[][..], without_features(&["x86-64"])),
        (&["-Ctarget-cpu=haswell"], without_features(&["haswell"])),
        (&["-Ctarget-feature=+avx"], without_features(&[])),
    ] {
        let status = Command::new("rustc")
            .args(["--crate-type=lib", "--edition=2024", "-O", "--target=x86_64-unknown-linux-gnu"])
            .args(["-Clinker-plugin-lto", "--emit=obj", source, "-o", "r.o"])
            .args(flags)
            .current_dir(dir.path())
            .status();
        assert!(status.expect("rustc is missing; install it with rustup").success());
        assert_eq!(read(&dir.path().join("r.o")), expected, "{flags:?}");
    }
}

#[test]
fn hostile_bytes_do_no_harm() {
    hostile::check_crafted(processor::read);
    let dir = tempfile::tempdir().expect("a directory");
    assembled(dir.path(), toolchain::NEWEST, ASSEMBLY);
    let good = std::fs::read(dir.path().join("a.bc")).expect("a tool wrote it");
    let mut damaged = good.clone();
    for bit in 0..good.len() * 8 {
        damaged[bit / 8] ^= 1 << (bit % 8);
        if let Err(error) = processor::read(&damaged) {
            assert!(error.bit <= good.len() as u64 * 8, "{error}");
        }
        damaged[bit / 8] ^= 1 << (bit % 8);
    }
    assert!(processor::read(&good[..good.len() / 4]).is_err());
}
