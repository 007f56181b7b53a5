//! Builds projects of `examples/` as their README says, with distlto in PATH, and runs what comes out. Those that
//! `docs/recipes.md` tells of are built in `recipes.rs`.

use anyhow::{Result, ensure};
use distlto_tests::example::Example;

#[test]
fn make() -> Result<()> {
    let example = Example::copy("make")?;
    example.run("make", &[])?;
    let (said, objects) = example.built("wordcount")?;
    ensure!(said == "10 words, \"be\" 2 times\n" && objects == 3, "{objects} objects; {said}");
    ensure!(example.run("make", &[])?.contains("up to date"), "make builds again");
    example.run("make", &["clean"])?;
    ensure!(!example.dir.join("wordcount.distlto").exists(), "something is left beside the program");
    Ok(())
}

#[test]
fn cmake() -> Result<()> {
    let example = Example::copy("cmake")?;
    let compiler = "-DCMAKE_CXX_COMPILER=clang++-22";
    let launcher = "-DCMAKE_CXX_LINKER_LAUNCHER=distlto;link;--";
    example.run("cmake", &["-G", "Ninja", "-B", "build", compiler, launcher])?;
    example.run("cmake", &["--build", "build"])?;
    let (said, objects) = example.built("build/shapes")?;
    ensure!(said == "2 shapes, area 21\n" && objects == 4, "{objects} objects; {said}");
    Ok(())
}

#[test]
fn lld() -> Result<()> {
    let example = Example::copy("lld")?;
    example.run("make", &[])?;
    let (said, objects) = example.built("hello")?;
    ensure!(said == "hello without a C library\n" && objects == 2, "{objects} objects; {said}");
    Ok(())
}
