//! Installs what a command needs: Debian's LLVM packages, build tools, and the crates whose C and C++ sources are test data.
//!
//! Asks for each program by name first, so a machine that has everything is done in a moment and needs no rights. A command
//! that builds a program needs little ([`programs`]), the tests much ([`setup`]).

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use crate::bazel::parts;
use crate::shell::{cargo, find, quietly};
use crate::{apt, builders, engine, package, page, unstable_llvm};

/// The LLVM that everything is tested with.
pub const NEWEST: u32 = 22;

/// All that are tested with.
pub const SUPPORTED: [u32; 5] = [NEWEST, 19, 16, 15, 14];

/// Packages with a program of each, by which CMake builds a program of C or C++ with clang.
const BUILD: [(&str, &str); 2] = [("cmake", "cmake"), ("ninja-build", "ninja")];

/// What the tests use besides.
const TESTS: [(&str, &str); 16] = [
    ("build-essential", "gcc"),
    ("build-essential", "g++"),
    ("make", "make"),
    ("meson", "meson"),
    ("generate-ninja", "gn"),
    ("autoconf", "autoreconf"),
    ("automake", "automake"),
    ("libtool", "libtoolize"),
    ("fakeroot", "fakeroot"),
    ("strace", "strace"),
    ("default-jdk-headless", "javac"),
    ("gdb", "gdb"),
    ("golang-go", "go"),
    ("musl-tools", "musl-gcc"),
    ("valgrind", "valgrind"),
    ("g++-mingw-w64-x86-64-win32", "x86_64-w64-mingw32-g++-win32"),
];

/// Packages with a file of each, which Debian has outside of PATH: one runs programs for Windows, one is a server of a cache,
/// one makes programs of 32 bits.
const FILES: [(&str, &str); 3] = [
    ("wine64", "/usr/lib/wine/wine64"),
    ("apache2-bin", "/usr/sbin/apache2"),
    ("gcc-multilib", "/usr/include/gnu/stubs-32.h"),
];

/// The sources of third-party programs.
const SOURCES: &str = "tests/third-party/Cargo.toml";

/// Makes usable what builds a third-party program with the newest LLVM: all that the demo needs, and most of the benches.
pub fn programs() -> Result<()> {
    provide(missing(&[NEWEST], BUILD))?;
    fetch(SOURCES)
}

/// Makes usable what the tests need, with the newest LLVM and the given ones.
pub fn setup(versions: &[u32]) -> Result<()> {
    let (unstable, versions): (Vec<u32>, Vec<u32>) =
        versions.iter().partition(|&&version| version == unstable_llvm::VERSION);
    for version in &versions {
        ensure!(
            SUPPORTED.contains(version),
            "LLVM {version} is none of {SUPPORTED:?}, nor {}",
            unstable_llvm::VERSION
        );
    }
    let versions = [versions.as_slice(), &[NEWEST]].concat();
    let tools = BUILD.into_iter().chain(TESTS).chain(engine::casd::NEEDS).chain(parts::NEEDS);
    let mut missing = missing(&versions, tools.chain(package::NEEDS).chain(page::NEEDS));
    missing.extend(versions.into_iter().filter(|&version| lacks_runtime(version)).map(runtime));
    let lacks = |(package, file): (&str, &str)| (!Path::new(file).is_file()).then(|| package.to_owned());
    missing.extend(FILES.into_iter().filter_map(lacks));
    provide(missing)?;
    engine::casd::install()?;
    parts::install()?;
    page::install()?;
    builders::install()?;
    if !unstable.is_empty() {
        unstable_llvm::install()?;
        eprintln!(
            "setup: the programs of LLVM {} are in {}",
            unstable_llvm::VERSION,
            unstable_llvm::programs().display()
        );
    }
    fetch(SOURCES)?;
    fetch("examples/rust/Cargo.toml")?;
    eprintln!("setup: everything is there");
    Ok(())
}

/// Makes an LLVM usable.
pub fn llvm(version: u32) -> Result<()> {
    match version {
        unstable_llvm::VERSION => unstable_llvm::install(),
        version => provide(missing(&[version], [])),
    }
}

/// Downloads the crates that a manifest names.
fn fetch(manifest: &str) -> Result<()> {
    quietly(cargo().args(["fetch", "--quiet", "--locked", "--manifest-path", manifest]))
}

fn provide(mut packages: Vec<String>) -> Result<()> {
    packages.sort();
    packages.dedup();
    if packages.is_empty() { Ok(()) } else { apt::install(&packages) }
}

/// The Debian packages of these tools, and of these versions of LLVM, that are not installed.
fn missing(versions: &[u32], tools: impl IntoIterator<Item = (&'static str, &'static str)>) -> Vec<String> {
    let wanted = wanted(versions, tools);
    wanted.into_iter().filter(|(_, program)| find(program).is_none()).map(|(package, _)| package).collect()
}

/// Each package with a program of it.
fn wanted(
    versions: &[u32],
    tools: impl IntoIterator<Item = (&'static str, &'static str)>,
) -> Vec<(String, String)> {
    let tools = tools.into_iter().map(|(package, program)| (package.to_owned(), program.to_owned()));
    let llvm = versions.iter().flat_map(|version| {
        [("clang", "clang"), ("lld", "ld.lld"), ("llvm", "llvm-profdata")]
            .map(|(package, program)| (format!("{package}-{version}"), format!("{program}-{version}")))
    });
    tools.chain(llvm).collect()
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_demo_wants_five_packages() {
        let wanted: BTreeSet<String> =
            wanted(&[NEWEST], BUILD).into_iter().map(|(package, _)| package).collect();
        let expected = ["clang-22", "cmake", "lld-22", "llvm-22", "ninja-build"];
        assert_eq!(wanted, expected.map(str::to_owned).into());
    }
}
