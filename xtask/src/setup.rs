//! Installs what the tests need: Debian's LLVM packages, build tools, and the crates whose C and C++ sources are test data.
//!
//! Asks for each program by name first, so a machine that has everything is done in a moment and needs no rights.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use anyhow::{Result, bail, ensure};

use crate::shell::{cargo, find, output, quietly, run, shown};
use crate::{bazel, engine, package, page};

/// The LLVM that everything is tested with.
pub const NEWEST: u32 = 22;

/// All that are tested with.
pub const SUPPORTED: [u32; 5] = [22, 19, 16, 15, 14];

/// Makes the newest LLVM and the given ones usable.
pub fn setup(versions: &[u32]) -> Result<()> {
    for version in versions {
        ensure!(SUPPORTED.contains(version), "LLVM {version} is none of {SUPPORTED:?}");
    }
    let missing = missing(versions);
    if !missing.is_empty() {
        install(&missing)?;
    }
    engine::casd::install()?;
    bazel::install()?;
    page::install()?;
    for manifest in ["tests/third-party/Cargo.toml", "examples/rust/Cargo.toml"] {
        quietly(cargo().args(["fetch", "--quiet", "--locked", "--manifest-path", manifest]))?;
    }
    eprintln!("setup: everything is there");
    Ok(())
}

/// Installs the packages of those programs that are not there.
pub fn provide(programs: &[(&str, &str)]) -> Result<()> {
    let missing = programs.iter().filter(|(_, program)| find(program).is_none());
    let missing: Vec<String> = missing.map(|&(package, _)| package.to_owned()).collect();
    if missing.is_empty() { Ok(()) } else { install(&missing) }
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
            .chain(bazel::NEEDS)
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

/// Installs packages.
pub fn install(packages: &[String]) -> Result<()> {
    let root = output(Command::new("id").arg("-u"))?.trim() == "0";
    let sudo = || {
        let asked =
            Command::new("sudo").args(["-n", "true"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    };
    let apt = |arguments: &[&str]| {
        let mut command = Command::new(if root { "env" } else { "sudo" });
        command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]).args(arguments);
        command
    };
    let mut install = apt(&["install", "--yes", "--no-install-recommends"]);
    install.args(packages);
    if find("apt-get").is_none() || !(root || sudo()) {
        bail!(
            "these packages are missing and cannot be installed without rights; run\n  {}",
            shown(&install).replacen("env ", "sudo ", 1)
        );
    }
    if !lists_are_fresh() {
        run(&mut apt(&["update"]))?;
    }
    if run(&mut install).is_err() {
        // Lists may be younger than a day and still name packages that the mirror has replaced.
        run(&mut apt(&["update"]))?;
        run(&mut install)?;
    }
    Ok(())
}

/// Whether apt knows packages, and learned of them within a day.
fn lists_are_fresh() -> bool {
    let Ok(lists) = fs::read_dir(Path::new("/var/lib/apt/lists")) else { return false };
    let newest = lists
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().contains("Packages"))
        .filter_map(|entry| entry.metadata().ok()?.modified().ok())
        .max();
    let age = newest.and_then(|newest| SystemTime::now().duration_since(newest).ok());
    age.is_some_and(|age| age < Duration::from_secs(24 * 60 * 60))
}
