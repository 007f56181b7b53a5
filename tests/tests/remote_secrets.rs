//! A link with a remote cache that wants a header: no file that it leaves, no word that it says and no program that it
//! starts has the header.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use distlto_reapi_server::{Faults, Options, Server};
use distlto_tests::distlto;
use distlto_tests::run::{capture, succeed, told};
use distlto_tests::toolchain::Toolchain;

const SECRET: &str = "hush-hush";

#[test]
fn no_header_is_left_behind() -> Result<()> {
    let authenticate = Some(format!("authorization:Bearer {SECRET}"));
    let server = Server::start(Options::default(), Faults { authenticate, ..Faults::default() })?;
    let folder = tempfile::tempdir()?;
    distlto_tests::store::prepare(folder.path())?;
    let clang = Toolchain::from_env()?.tool("clang")?;
    let wrapper = folder.path().join("cc");
    let script = format!("#!/bin/sh\nenv > environment.$$\nexec {} \"$@\"\n", clang.display());
    fs::write(&wrapper, script)?;
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
    fs::write(folder.path().join("a.c"), "int b(void);\nint main(void) { return b(); }\n")?;
    fs::write(folder.path().join("b.c"), "int b(void) { return 0; }\n")?;
    for name in ["a", "b"] {
        let (source, object) = (format!("{name}.c"), format!("{name}.o"));
        let words = ["-O2", "-flto=thin", "-c", &source, "-o", &object];
        succeed(Command::new(&clang).args(words).current_dir(&folder))?;
    }
    let mut command = Command::new(distlto::binary()?);
    command.current_dir(&folder).env("XDG_CONFIG_HOME", folder.path().join("none"));
    command.env("DISTLTO_REMOTE_HEADERS", format!("authorization: Bearer {SECRET}"));
    command.args(["link", "-v", "--trace", "trace.json", "--remote-cache"]);
    command.arg(server.url()).arg("--").arg(&wrapper);
    command.args(["-O2", "-flto=thin", "-fuse-ld=lld", "a.o", "b.o", "-o", "prog"]);
    let output = capture(&mut command)?;
    ensure!(output.status.success(), "{}", told(&command, &output));
    // The server lets nobody in without it: two objects, and the list of them.
    ensure!(
        server.counts().of("UpdateActionResult") == 3,
        "{:?}: {}",
        server.counts(),
        told(&command, &output)
    );
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    ensure!(!holds(&said), "{}", told(&command, &output));
    let mut files = 0;
    look(folder.path(), &mut files)?;
    let told = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("environment.");
    let entries = fs::read_dir(&folder)?.collect::<Result<Vec<_>, _>>()?;
    ensure!(entries.iter().any(told), "the wrapper did not run");
    ensure!(files > 10, "{files} files were looked at");
    Ok(())
}

/// That no file holds it, wherever it lies.
fn look(folder: &Path, files: &mut usize) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            look(&entry.path(), files)?;
        } else {
            *files += 1;
            ensure!(!holds(&fs::read(entry.path())?), "{} holds it", entry.path().display());
        }
    }
    Ok(())
}

fn holds(bytes: &[u8]) -> bool {
    bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes())
}
