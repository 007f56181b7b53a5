//! Installs what the tests need: Debian's LLVM packages, build tools, and the crates whose C and C++ sources are test data.
//!
//! Asks for each program by name first, so a machine that has everything is done in a moment and needs no rights.

use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use crate::bazel::parts;
use crate::shell::{cargo, find, quietly};
use crate::{apt, engine, package, page};

/// The LLVM that everything is tested with.
pub const NEWEST: u32 = 22;

/// All that are tested with.
pub const SUPPORTED: [u32; 5] = [NEWEST, 19, 16, 15, 14];

/// Makes the newest LLVM and the given ones usable.
pub fn setup(versions: &[u32]) -> Result<()> {
    for version in versions {
        ensure!(SUPPORTED.contains(version), "LLVM {version} is none of {SUPPORTED:?}");
    }
    let missing = missing(versions);
    if !missing.is_empty() {
        apt::install(&missing)?;
    }
    engine::casd::install()?;
    parts::install()?;
    page::install()?;
    for manifest in ["tests/third-party/Cargo.toml", "examples/rust/Cargo.toml"] {
        quietly(cargo().args(["fetch", "--quiet", "--locked", "--manifest-path", manifest]))?;
    }
    eprintln!("setup: everything is there");
    Ok(())
}

/// The Debian packages that are still wanted.
fn missing(versions: &[u32]) -> Vec<String> {
    let mut wanted = vec![
        ("make".to_owned(), "make"),
        ("cmake".to_owned(), "cmake"),
        ("ninja-build".to_owned(), "ninja"),
        ("meson".to_owned(), "meson"),
        ("generate-ninja".to_owned(), "gn"),
        ("build-essential".to_owned(), "gcc"),
        ("build-essential".to_owned(), "g++"),
    ]
    .into_iter()
    .chain(
        engine::casd::NEEDS
            .into_iter()
            .chain(parts::NEEDS)
            .chain(package::NEEDS)
            .chain(page::NEEDS)
            .map(|(package, program)| (package.to_owned(), program)),
    )
    .map(|(package, program)| (package, program.to_owned()))
    .collect::<Vec<_>>();
    let mut versions = versions.to_owned();
    versions.push(NEWEST);
    for version in &versions {
        for (package, program) in [("clang", "clang"), ("lld", "ld.lld"), ("llvm", "llvm-profdata")] {
            wanted.push((format!("{package}-{version}"), format!("{program}-{version}")));
        }
    }
    let mut missing: Vec<String> = wanted
        .into_iter()
        .filter(|(_, program)| find(program).is_none())
        .map(|(package, _)| package)
        .collect();
    missing.extend(versions.into_iter().filter(|&version| lacks_runtime(version)).map(runtime));
    missing.sort();
    missing.dedup();
    missing
}

/// The package that holds the runtime of instrumented programs. Debian has none for LLVM 15, and needs none for 14.
fn runtime(version: u32) -> String {
    format!("libclang-rt-{version}-dev")
}

fn lacks_runtime(version: u32) -> bool {
    let installed = || {
        let said = Command::new("dpkg-query")
            .args(["--show", "--showformat=${db:Status-Status}", &runtime(version)])
            .stderr(Stdio::null())
            .output();
        said.is_ok_and(|said| said.stdout == b"installed")
    };
    version >= 16 && !installed()
}
