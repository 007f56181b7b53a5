//! Links for machines other than this one: what the driver and the linker say of them, the backends are told.

use anyhow::{Result, ensure};
use distlto_tests::project::Project;
use distlto_tests::run::{capture, succeed};

const FIRST: &str = "int next(int);\nextern __thread int calls;\n\
                     __attribute__((visibility(\"default\"))) int first(int x) { return next(x) + calls; }\n";
const SECOND: &str = "__thread int calls;\nint next(int x) { calls++; return x * 2.5; }\n";

/// A shared library for a machine, linked by lld alone, and in each way; `is_same` where lld's DTLTO makes the same.
fn linked(target: &str, is_same: bool) -> Result<()> {
    let mut project =
        Project::create(&format!("machine-{target}"), &[("first.c", FIRST), ("second.c", SECOND)])?;
    for name in ["first", "second"] {
        let words = format!("%clang --target={target} -O2 -fPIC -flto=thin -c {name}.c -o {name}.o");
        succeed(&mut project.folder.command(&words, "")?)?;
    }
    project.flags = [&format!("--target={target}"), "-nostdlib", "-shared"].map(str::to_owned).to_vec();
    succeed(&mut project.plain_link()?)?;
    let expected = std::fs::read(project.path(&project.output))?;
    let output = capture(&mut project.link()?)?;
    ensure!(output.status.success(), "{target}: {}", String::from_utf8_lossy(&output.stderr));
    let found = std::fs::read(project.path(&project.output))?;
    ensure!(!is_same || found == expected, "{target}: another program than lld's");
    Ok(())
}

#[test]
fn aarch64() -> Result<()> {
    linked("aarch64-linux-gnu", true)
}

#[test]
fn i386() -> Result<()> {
    linked("i386-linux-gnu", true)
}

/// lld in process says VFPv3 where its DTLTO says VFPv3-D16.
#[test]
fn armv7() -> Result<()> {
    linked("armv7-linux-gnueabihf", false)
}

/// lld in process takes the processor that the driver names for one without compressed instructions, its DTLTO does not.
#[test]
fn riscv64() -> Result<()> {
    linked("riscv64-linux-gnu", false)
}
