//! Builds every project of `examples/` as its README says, with distlto in PATH, and runs what comes out.

use std::fs;

use anyhow::{Context, Result, ensure};
use distlto_tests::example::Example;
use distlto_tests::program::objects;

#[test]
fn make() -> Result<()> {
    let example = Example::copy("make")?;
    example.run("make", &[])?;
    let (said, objects) = example.built("wordcount")?;
    ensure!(said == "10 words, \"be\" 2 times\n" && objects == 3, "{objects} objects; {said}");
    ensure!(example.run("make", &[])?.contains("up to date"), "make builds again");
    example.run("make", &["clean"])?;
    ensure!(!example.dir.join("wordcount.distlto").exists(), "clean leaves the link's state");
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

#[test]
fn rust() -> Result<()> {
    let example = Example::copy("rust")?;
    example.run("cargo", &["build", "--release", "--offline"])?;
    let said = example.run("target/release/scan", &[])?;
    ensure!(said == "2 and\n1 bird\n1 cat\n1 dog\n3 the\n", "{said}");
    // rustc links to a name with a hash and then gives it its own.
    let mut states = fs::read_dir(example.dir.join("target/release/deps"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "distlto"));
    let state = states.next().context("rustc did not link through distlto")?;
    ensure!(objects(&state.join("objects"))?.len() >= 2, "too few native objects for two crates");
    Ok(())
}
