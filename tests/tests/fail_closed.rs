//! A backend that fails, in any of the ways compilers do, fails the link: its module is named, the old program stays in
//! place, and the next link with a healthy compiler succeeds. In-process ThinLTO has no such step, so the expectations
//! are those of the text; clang's own ways of failing silently are LLVM issue 75441.

use anyhow::{Result, ensure};
use distlto_tests::project::{Misbehaviour, Project};
use distlto_tests::run::{fail, succeed};

const MAIN: &str =
    "#include <stdio.h>\nint part(int);\nint main(void) { printf(\"old %d\\n\", part(1)); return 0; }\n";
const PART: &str = "int other(int);\nint part(int x) { return other(x) + 1; }\n";
const OTHER: &str = "int other(int x) { return x * 10; }\n";

/// Links a good program, breaks the compiler, edits, and expects the link to fail with exit code 1.
fn refused(name: &'static str, script: &'static str) -> Result<()> {
    let project = Project::create(name, &[("main.c", MAIN), ("part.c", PART), ("other.c", OTHER)])?;
    succeed(&mut project.link()?)?;
    ensure!(project.say()? == "old 11\n");
    project.misbehave("part.o", Misbehaviour { name, script })?;
    project.edit("part.c", "+ 1", "+ 2")?;
    let (code, said) = fail(&mut project.link()?)?;
    ensure!(code == 1, "{name}: exit code {code}, expected 1:\n{said}");
    ensure!(said.contains("part.o"), "{name}: the message does not name the module:\n{said}");
    ensure!(project.say()? == "old 11\n", "{name}: the old program is not in place");
    ensure!(project.temporaries()?.is_empty(), "{name}: temporaries are left: {:?}", project.temporaries()?);
    project.behave()?;
    let ran = project.relink()?;
    ensure!(ran.backends.contains(&"part.o".to_owned()), "{name}: the refused object was kept: {ran:?}");
    ensure!(project.say()? == "old 12\n", "{name}: the program is wrong after recovery");
    Ok(())
}

#[test]
fn writes_nothing() -> Result<()> {
    refused("writes-nothing", "exit 0")
}

#[test]
fn writes_an_empty_object() -> Result<()> {
    refused("writes-empty", ": > \"$out\"; exit 0")
}

#[test]
fn writes_a_truncated_object() -> Result<()> {
    refused(
        "writes-truncated",
        "\"$clang\" \"$@\"; head -c 200 \"$out\" > \"$out.cut\"; mv \"$out.cut\" \"$out\"; exit 0",
    )
}

#[test]
fn writes_text() -> Result<()> {
    refused(
        "writes-text",
        "echo 'this is no object file, although it is long enough to be one, one might think' > \"$out\"; exit 0",
    )
}

#[test]
fn writes_bitcode() -> Result<()> {
    refused("writes-bitcode", "cp part.o \"$out\"; exit 0")
}

#[test]
fn writes_for_another_machine() -> Result<()> {
    refused(
        "writes-aarch64",
        "echo 'int x;' | \"$clang\" --target=aarch64-linux-gnu -c -x c - -o \"$out\"; exit 0",
    )
}

#[test]
fn says_an_error_and_exits_0() -> Result<()> {
    refused(
        "says-error",
        "\"$clang\" \"$@\"; echo \"Error running ThinLTO backend: Error loading imported file 'x.o'\" >&2; exit 0",
    )
}

#[test]
fn exits_with_an_error() -> Result<()> {
    refused("exits-1", "echo 'fatal error: cannot' >&2; exit 1")
}

#[test]
fn exits_with_an_error_after_writing() -> Result<()> {
    refused("exits-1-after-writing", "\"$clang\" \"$@\"; exit 1")
}

#[test]
fn dies_by_a_signal() -> Result<()> {
    refused("dies", "kill -SEGV $$")
}

#[test]
fn writes_the_object_of_another_module() -> Result<()> {
    refused("writes-another", "echo 'int unrelated;' | \"$clang\" -c -x c - -o \"$out\"; exit 0")
}

const LISTS: &str = "#include <stdio.h>\nint entries;\nvoid enlist(void) { ++entries; }\n\
    int main(void) { printf(\"%d entries\\n\", entries); return 0; }\n";
const LISTED: &str =
    "void enlist(void);\n__attribute__((constructor)) static void enlisted(void) { enlist(); }\n";

/// Without its object the link succeeds, and the program lacks an entry.
#[test]
fn a_module_that_only_registers_something() -> Result<()> {
    let nothing = "echo | \"$clang\" -c -x c - -o \"$out\"; exit 0";
    let project = Project::create("only-registers", &[("main.c", LISTS), ("listed.c", LISTED)])?;
    project.misbehave("listed.o", Misbehaviour { name: "nothing", script: nothing })?;
    let (code, said) = fail(&mut project.link()?)?;
    let lacks = "is not that of its module: it has no list of constructors";
    ensure!(code == 1 && said.contains("listed.o: ") && said.contains(lacks), "{said}");
    let once = "if [ ! -e lied ]; then : > lied; echo | \"$clang\" -c -x c - -o \"$out\"; exit 0; fi; exec \"$clang\" \"$@\"";
    project.misbehave("listed.o", Misbehaviour { name: "once", script: once })?;
    let said = succeed(&mut project.link()?)?;
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    let lines: Vec<_> = said.lines().filter(|line| line.contains(lacks)).collect();
    ensure!(lines.len() == 1 && lines[0].ends_with("; it is tried once more"), "{said}");
    ensure!(lines[0].starts_with("distlto: warning: listed.o: "), "{said}");
    ensure!(project.say()? == "1 entries\n");
    project.behave()?;
    ensure!(project.relink()?.backends.is_empty(), "a good object is not kept");
    Ok(())
}

#[test]
fn the_first_link_leaves_no_program() -> Result<()> {
    let project = Project::create("first-link", &[("main.c", MAIN), ("part.c", PART), ("other.c", OTHER)])?;
    project.misbehave("other.o", Misbehaviour { name: "nothing", script: "exit 0" })?;
    let (_, said) = fail(&mut project.link()?)?;
    ensure!(said.contains("other.o"), "the message does not name the module:\n{said}");
    ensure!(!project.path("program").exists(), "a program without its module was made");
    Ok(())
}

#[test]
fn keep_going_compiles_the_rest() -> Result<()> {
    let project = Project::create("keep-going", &[("main.c", MAIN), ("part.c", PART), ("other.c", OTHER)])?;
    project.misbehave("part.o", Misbehaviour { name: "fails", script: "exit 3" })?;
    let (_, said) = fail(&mut project.link_with(&["--keep-going", "-j", "1"])?)?;
    ensure!(said.contains("part.o"), "the message does not name the module:\n{said}");
    project.behave()?;
    let ran = project.relink()?;
    ensure!(ran.backends == ["part.o"], "only the failed module was left to compile, yet {ran:?}");
    Ok(())
}
