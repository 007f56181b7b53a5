//! Runs the real LLVM tools for the tests of modules, flags, index shards and freshness.
//!
//! Tools have Debian's names. Knows nothing of distlto's own readers.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The LLVM that reads all others' bitcode.
pub const NEWEST: u32 = 22;

/// Runs a tool in a directory and gives its standard output.
pub fn run(dir: &Path, tool: &str, version: u32, args: &[&str]) -> Vec<u8> {
    let name = format!("{tool}-{version}");
    let package = match tool {
        "ld.lld" => format!("lld-{version}"),
        "clang" | "clang++" => format!("clang-{version}"),
        _ => format!("llvm-{version}"),
    };
    let output = Command::new(&name)
        .args(args)
        .current_dir(dir)
        .output()
        .unwrap_or_else(|error| panic!("{name}: {error}; install it with `apt-get install {package}`"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {args:?}: {}\n{errors}", output.status);
    output.stdout
}

/// Compiles one of `tests/data/sources` to `name` in `dir`.
pub fn compile(dir: &Path, version: u32, source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sources").join(source);
    let source = source.to_str().expect("the checkout's path is UTF-8");
    let compiler = if source.ends_with(".cpp") { "clang++" } else { "clang" };
    let mut args = vec!["-O2", "-c", source, "-o", name];
    args.extend(flags);
    run(dir, compiler, version, &args);
    dir.join(name)
}
