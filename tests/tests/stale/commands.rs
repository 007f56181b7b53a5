//! Commands that are no driver and no linker: they may read anything, and run each time.

use std::fs;
use std::process::Command;

use anyhow::{Result, ensure};
use distlto_tests::run::succeed;

use super::{Link, WAYS, in_every_way};

#[test]
fn a_wrapper_that_depends_on_any_variable() -> Result<()> {
    in_every_way("wrapper", |link| {
        let text = format!("exec '{}' -Wl,--defsym=by_$ODD_VARIABLE=1 \"$@\"\n", link.tool("clang")?);
        link.script("clang", &text)?;
        let wrapper = link.path("clang").display().to_string();
        let mut link = link.by(wrapper);
        link.set("ODD_VARIABLE", "one");
        link.each_time(|link| {
            link.set("ODD_VARIABLE", "two");
            Ok(())
        })
    })
}

/// A list of words that comes through standard input.
#[test]
fn a_list_from_standard_input() -> Result<()> {
    let mut link = Link::new("input", WAYS[0])?;
    let text = format!("exec xargs '{}' \"$@\" < list\n", link.tool("clang")?);
    link.script("by-list", &text)?;
    link.write("list", "")?;
    let wrapper = link.path("by-list").display().to_string();
    link = link.by(wrapper);
    link.each_time(|link| link.write("list", "-Wl,--defsym=more=1\n"))
}

/// A shell reads its environment without getenv(3).
#[test]
fn a_variable_of_a_shell() -> Result<()> {
    let link = Link::new("shell", WAYS[0])?;
    let clang = link.tool("clang")?;
    let mut link = link.by("bash");
    link.first = ["-c".to_owned(), format!("{clang} $EXTRA \"$@\""), "bash".to_owned()].to_vec();
    link.set("EXTRA", "-Wl,--defsym=more=1");
    link.each_time(|link| {
        link.set("EXTRA", "-Wl,--defsym=more=2");
        Ok(())
    })
}

/// A wrapper that makes the linker's input.
#[test]
fn an_input_that_the_command_writes() -> Result<()> {
    in_every_way("written", |link| {
        link.native("g", "int g(void) { return 1; }\n")?;
        link.archive("libg.a", "rcS", &["g.o"])?;
        let text =
            format!("'{}' libg.a && exec '{}' \"$@\"\n", link.tool("llvm-ranlib")?, link.tool("clang")?);
        link.script("clang", &text)?;
        let wrapper = link.path("clang").display().to_string();
        link.with(&["-Wl,-u,g", "libg.a"]).by(wrapper).each_time(|link| {
            link.native("g", "int g(void) { return 2; }\n")?;
            fs::remove_file(link.path("libg.a"))?;
            link.archive("libg.a", "rcS", &["g.o"])
        })
    })
}

/// The same by a linker that a driver starts: what it reads has just been written.
#[test]
fn an_input_that_a_linker_of_a_driver_writes() -> Result<()> {
    let link = Link::new("written-by-linker", WAYS[0])?;
    link.native("g", "int g(void) { return 1; }\n")?;
    link.archive("libg.a", "rcS", &["g.o"])?;
    let text = format!("'{}' libg.a && exec '{}' \"$@\"\n", link.tool("llvm-ranlib")?, link.tool("ld.lld")?);
    link.script("ld.lld", &text)?;
    let path = format!("--ld-path={}", link.path("ld.lld").display());
    link.with(&["-Wl,-u,g", "libg.a", &path]).each_time(|link| {
        link.native("g", "int g(void) { return 2; }\n")?;
        fs::remove_file(link.path("libg.a"))?;
        link.archive("libg.a", "rcS", &["g.o"])
    })
}

/// A source on the standard input of a driver.
#[test]
fn a_source_from_standard_input() -> Result<()> {
    let link = Link::new("source-input", WAYS[0])?;
    let inner = link.command("program")?;
    let mut sources = Vec::new();
    for value in [1, 2, 2] {
        let mut command = Command::new("bash");
        command.args([
            "-c",
            &format!("echo '__attribute__((used)) int more = {value};' | \"$0\" \"$@\" -x c -"),
        ]);
        command.arg(inner.get_program()).args(inner.get_args()).current_dir(&link.folder.path);
        let said = succeed(&mut command)?.stderr;
        ensure!(!String::from_utf8_lossy(&said).contains("nothing to do"), "it was not read");
        sources.push(fs::read(link.path("program"))?);
    }
    ensure!(sources[0] != sources[1] && sources[1] == sources[2], "the program is stale");
    Ok(())
}
