//! Names that no text file of cases can hold: newlines and bytes that are not UTF-8. lld itself cannot hand the latter
//! to a distributor, so a link may refuse them, naming the file; it may not link something else.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use anyhow::{Result, ensure};
use distlto_tests::distlto;
use distlto_tests::project::Project;
use distlto_tests::run::{capture, told};

const SOURCES: [(&str, &str); 2] = [
    (
        "main.c",
        "#include <stdio.h>\nint part(int);\nint main(void) { printf(\"%d\\n\", part(1)); return 0; }\n",
    ),
    ("part.c", "int part(int x) { return x + 1; }\n"),
];

/// Links with the second object, or an archive of it, renamed. Returns whether it was linked rather than refused.
fn link_with(folder: &str, name: &[u8], archive: bool) -> Result<bool> {
    let mut project = Project::create(folder, &SOURCES)?;
    project.objects.pop();
    let name = OsStr::from_bytes(name);
    if archive {
        let ar = project.folder.toolchain.tool("llvm-ar")?;
        let mut ar = std::process::Command::new(ar);
        distlto_tests::run::succeed(ar.args(["rcs", "lib.a", "part.o"]).current_dir(&project.folder.path))?;
        fs::rename(project.path("lib.a"), project.folder.path.join(name))?;
    } else {
        fs::rename(project.path("part.o"), project.folder.path.join(name))?;
    }
    let mut link = distlto::link()?;
    let plain = project.plain_link()?;
    link.arg(plain.get_program()).args(plain.get_args()).arg(name).current_dir(&project.folder.path);
    let output = capture(&mut link)?;
    if output.status.success() {
        ensure!(project.say()? == "2\n", "the program is wrong");
        return Ok(true);
    }
    let code = output.status.code().unwrap_or(101);
    ensure!(code != 101, "{}", told(&link, &output));
    ensure!(!project.path("program").exists(), "a program is left behind");
    ensure!(!output.stderr.is_empty(), "nothing is said");
    Ok(false)
}

#[test]
fn a_newline() -> Result<()> {
    link_with("newline", b"par\nt.o", false).map(drop)
}

#[test]
fn a_newline_in_an_archives_name() -> Result<()> {
    link_with("newline-archive", b"li\nb.a", true).map(drop)
}

#[test]
fn bytes_that_are_not_utf_8() -> Result<()> {
    link_with("not-utf-8", b"par\xfft.o", false).map(drop)
}

#[test]
fn an_archive_whose_name_is_not_utf_8() -> Result<()> {
    link_with("not-utf-8-archive", b"li\xffb.a", true).map(drop)
}

#[test]
fn the_test_itself_links_a_plain_name() -> Result<()> {
    ensure!(link_with("plain-name", b"other.o", false)?, "an ordinary name is refused");
    Ok(())
}

#[test]
fn an_output_with_spaces_and_quotes() -> Result<()> {
    let mut project = Project::create("output-name", &SOURCES)?;
    fs::create_dir(project.path("a dir"))?;
    project.output = "a dir/it's a \"program\"; $x".to_owned();
    let ran = project.relink()?;
    ensure!(ran.backends.len() == 2 && project.say()? == "2\n", "{ran:?}");
    ensure!(project.relink()?.backends.is_empty(), "a second link runs something");
    Ok(())
}
