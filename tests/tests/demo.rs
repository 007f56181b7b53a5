//! `distlto demo` with a compiler and a linker alone, without them, and in a folder that is not empty.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::{fail, succeed};
use distlto_tests::toolchain::{Toolchain, system_tool};

/// Programs that the shown commands call, besides the compiler.
const SYSTEM: [&str; 4] = ["sh", "env", "sed", "cksum"];

fn place(name: &str, tools: &[&str]) -> Result<Folder> {
    let folder = Folder::create(Toolchain::from_env()?, &format!("demo/{name}"))?;
    let path = folder.path.join("path");
    fs::create_dir_all(&path)?;
    fs::create_dir(folder.path.join("tmp"))?;
    for tool in tools {
        symlink(folder.toolchain.tool(tool)?, path.join(format!("{tool}-{}", folder.toolchain.version)))?;
    }
    for tool in SYSTEM {
        symlink(system_tool(tool)?, path.join(tool))?;
    }
    Ok(folder)
}

/// A user whose own settings would spoil it: a server that is not there, and options that nobody knows.
fn demo(folder: &Folder) -> Result<Command> {
    let at = |name: &str| folder.path.join(name);
    let mut command = Command::new(distlto::binary()?);
    command.arg("demo").current_dir(&folder.path);
    command.env("PATH", at("path")).env("TMPDIR", at("tmp")).env("HOME", at("home"));
    command.env("DISTLTO_REMOTE", "grpc://127.0.0.1:1").env("DISTLTO_LINK_OPTIONS", "--no-such-option");
    Ok(command)
}

/// All below a folder.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect()
}

#[test]
fn it_shows_links_that_are_true() -> Result<()> {
    let folder = place("whole", &["clang++", "ld.lld"])?;
    let said = String::from_utf8(succeed(&mut demo(&folder)?)?.stdout)?;
    let [project] = entries(&folder.path.join("tmp"))?.try_into().ok().context("one project is left")?;
    let counts: Vec<&str> = said.lines().filter(|line| line.starts_with("distlto: parts: ")).collect();
    for (line, expected) in [
        (0, "13 modules, 24 imports; 13 of 13 backends were out of date"),
        (2, "nothing to do"),
        (3, "13 modules, 24 imports; 3 of 13 backends were out of date"),
    ] {
        ensure!(counts.get(line) == Some(&format!("distlto: parts: {expected}").as_str()), "{said}");
    }
    let sums: Vec<_> = said.lines().filter(|line| line.starts_with("the sum is ")).collect();
    ensure!(sums.len() == 3 && sums[0] != sums[1] && sums[1] == sums[2], "{said}");
    ensure!(
        said.contains("\nerror: ") && said.contains("wrote an empty\n") && said.contains("\n(exit code 1, ")
    );
    let page = project.join("report.html");
    ensure!(said.contains(&format!("The page is {}\n", page.display())), "{said}");
    ensure!(fs::read_to_string(page)?.starts_with("<!doctype html>"));
    let place = project.display().to_string();
    let long: Vec<_> = said.lines().filter(|line| line.len() > 80 && !line.contains(&place)).collect();
    ensure!(long.is_empty(), "{long:?}");
    // The user's own folders are as they were.
    ensure!(entries(&folder.path.join(".cache"))?.is_empty() && !folder.path.join("home").exists());
    Ok(())
}

#[test]
fn it_says_what_is_missing_and_takes_no_folder_with_files() -> Result<()> {
    let folder = place("mistakes", &["clang++"])?;
    let (code, said) = fail(&mut demo(&folder)?)?;
    ensure!(code == 7 && said.contains("apt-get install clang-"), "{code}: {said}");
    let version = folder.toolchain.version;
    symlink(folder.toolchain.tool("ld.lld")?, folder.path.join(format!("path/ld.lld-{version}")))?;
    let (code, said) = fail(demo(&folder)?.arg("--keep").arg(&folder.path))?;
    ensure!(code == 2 && said.contains("is not empty") && said.contains("--keep"), "{code}: {said}");
    ensure!(entries(&folder.path.join("tmp"))?.is_empty(), "something is left");
    Ok(())
}
