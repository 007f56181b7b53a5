//! Compiles this crate's source a second time: as the library itself, without the standard library.
//!
//! That one needs libgcc_s and thread-local storage, which a library for every process of a build must not bring along.
//! cargo cannot build one library of a workspace with another way of panicking than the rest, so the compiler is called
//! here. The library is linked to no version of a libc: the symbols that it needs are in each.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rustc-check-cfg=cfg(library)");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let library = Path::new(&variable("OUT_DIR")).join("libdistlto_exec.so");
    let is_loaded = variable("CARGO_CFG_TARGET_OS") == "linux"
        && variable("CARGO_CFG_TARGET_ENV") == "gnu"
        && variable("CARGO_CFG_TARGET_POINTER_WIDTH") == "64";
    if !is_loaded {
        std::fs::write(&library, "").expect("cargo's own directory can be written");
        return;
    }
    let mut compiler = Command::new(variable("RUSTC"));
    compiler.args(["--crate-name", "distlto_exec", "--edition", "2024", "--crate-type", "cdylib"]);
    compiler.args(["--cfg", "library", "-Cpanic=abort", "-Copt-level=s", "-Cstrip=debuginfo", "-Dwarnings"]);
    compiler.args(["--target", &variable("TARGET")]);
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut codegen = std::ffi::OsString::from("-Clinker=");
        codegen.push(linker);
        compiler.arg(codegen);
    }
    for argument in ["-nostdlib", "-Wl,--gc-sections", "-Wl,--no-as-needed", "-ldl"] {
        compiler.arg(format!("-Clink-arg={argument}"));
    }
    let status = compiler.arg("-o").arg(&library).arg("src/lib.rs").status();
    assert!(status.is_ok_and(|status| status.success()), "{compiler:?} failed");
}
