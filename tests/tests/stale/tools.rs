//! Tools that are replaced, with what they load, and wrappers around them.

use std::fs;

use anyhow::{Result, ensure};

use super::{Link, WAYS, in_every_way};

/// Replaces a text in a copy of a program by one of the same length, with the times of the original.
fn rebuilt(link: &Link, program: &str, from: &str, to: &str) -> Result<()> {
    let place = link.path(program);
    let times = fs::metadata(&place)?.modified()?;
    let mut bytes = fs::read(&place)?;
    let at = bytes.windows(from.len()).position(|part| part == from.as_bytes());
    let at = at.ok_or_else(|| anyhow::anyhow!("{program} does not hold {from}"))?;
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    let mode = fs::metadata(&place)?.permissions();
    fs::remove_file(&place)?;
    fs::write(&place, bytes)?;
    fs::set_permissions(&place, mode)?;
    Ok(fs::File::options().write(true).open(&place)?.set_modified(times)?)
}

#[test]
fn a_linker_of_the_same_name_size_and_time() -> Result<()> {
    in_every_way("other-linker", |link| {
        fs::copy(link.folder.toolchain.tool("ld.lld")?, link.path("ld.lld"))?;
        let path = format!("--ld-path={}", link.path("ld.lld").display());
        // What the linker writes into `.comment`.
        link.with(&[&path]).changed_by(|link| rebuilt(link, "ld.lld", "Debian LLD ", "Debian MLD "))
    })
}

#[test]
fn a_script_around_the_linker() -> Result<()> {
    in_every_way("linker-script", |link| {
        let text = |version: u32| -> Result<String> {
            Ok(format!("LLD_VERSION={version} exec '{}' \"$@\"\n", link.tool("ld.lld")?))
        };
        let (one, two) = (text(1)?, text(2)?);
        link.script("ld.lld", &one)?;
        let path = format!("--ld-path={}", link.path("ld.lld").display());
        link.with(&[&path]).changed_by(|link| link.script("ld.lld", &two))
    })
}

/// Where most of a compiler is: a library that it loads is replaced by another one, and every backend runs again.
#[test]
fn a_library_that_the_compiler_loads() -> Result<()> {
    let mut link = Link::new("library", WAYS[0])?;
    let list = std::process::Command::new("ldd").arg(link.folder.toolchain.tool("clang")?).output()?;
    let list = String::from_utf8(list.stdout)?;
    let line = list.lines().find(|line| line.contains("libz.so")).expect("clang loads zlib");
    let library = line.split_whitespace().nth(2).expect("a path").to_owned();
    let name = line.split_whitespace().next().expect("a name").to_owned();
    fs::create_dir(link.path("lib"))?;
    let place = link.path("lib").join(&name);
    fs::copy(&library, &place)?;
    link.set("LD_LIBRARY_PATH", link.path("lib").display().to_string());
    link.run("program")?;
    ensure!(link.run("program")?.1, "the second link had something to do");
    let content = fs::read(&library)?;
    for (more, out_of_date) in [("", "0 of 2"), ("another", "2 of 2")] {
        fs::remove_file(&place)?;
        // What follows the sections of a library is not loaded.
        fs::write(&place, [&content, more.as_bytes()].concat())?;
        // What loads it could not be told from what loads a later copy of the same moment.
        std::thread::sleep(std::time::Duration::from_millis(50));
        let mut command = link.command("program")?;
        let said = distlto_tests::run::succeed(&mut command)?.stderr;
        let said = String::from_utf8_lossy(&said).into_owned();
        ensure!(said.contains(&format!("{out_of_date} backends were out of date")), "{said}");
    }
    ensure!(link.run("program")?.1, "the link after that had something to do");
    Ok(())
}
