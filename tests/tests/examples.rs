//! Builds every project of `examples/` as its README says, with distlto in PATH, and runs what comes out.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::program::objects;
use distlto_tests::run::succeed;
use distlto_tests::toolchain::{NEWEST, Toolchain, repository};

/// A copy of an example and a PATH in which distlto goes by its names.
struct Example {
    dir: PathBuf,
    path: std::ffi::OsString,
}

impl Example {
    fn copy(name: &str) -> Result<Self> {
        let toolchain = Toolchain { version: NEWEST };
        let folder = Folder::create(toolchain, &format!("example/{name}"))?;
        let dir = folder.path.join(name);
        succeed(Command::new("cp").arg("-r").arg(repository().join("examples").join(name)).arg(&dir))?;
        let bin = folder.path.join("bin");
        fs::create_dir(&bin)?;
        let distlto = fs::canonicalize(distlto::binary()?)?;
        symlink(&distlto, bin.join("distlto"))?;
        symlink(&distlto, bin.join("distlto-clang-22"))?;
        let search = env::var_os("PATH").context("PATH is set")?;
        let path = env::join_paths([bin].into_iter().chain(env::split_paths(&search)))?;
        Ok(Self { dir, path })
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.dir).env("PATH", &self.path);
        // Cargo's own variables would make another cargo build into the tests' directory with their flags.
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CARGO")) {
            if name != "CARGO_HOME" {
                command.env_remove(name);
            }
        }
        command.env("MAKEFLAGS", "");
        String::from_utf8(succeed(&mut command)?.stdout).context("programs print UTF-8")
    }

    /// Runs the built program and counts the native objects it was linked from.
    fn built(&self, program: &str) -> Result<(String, usize)> {
        let output = self.dir.join(program);
        let said = self.run(output.to_str().context("paths are UTF-8")?, &[])?;
        Ok((said, objects(&distlto::objects_dir(Path::new(&output)))?.len()))
    }
}

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
    ensure!(said == "2 shapes, area 21\n" && objects == 3, "{objects} objects; {said}");
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
