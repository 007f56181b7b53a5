//! A case in another format than ELF's: the program of a served link equals that of the linker alone, byte for byte.
//!
//! The sources are compiled for the format's target with the few declarations of `data/headers`, without a system's
//! libraries, so nothing runs the program. A case names the formats that it is not for.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::build::build;
use crate::campaign::formats::{Format, LIBRARY};
use crate::campaign::windows;
use crate::case::Case;
use crate::distlto::{self, objects};
use crate::run::{fail, succeed};
use crate::toolchain::Toolchain;
use crate::way::Way;

/// Checks a case in a format.
pub fn check(case: &Case, format: Format, toolchain: Toolchain) -> Result<()> {
    let case = of_format(case, format);
    let folder = build(&case, toolchain)?;
    match format {
        Format::Macho => drop(folder.write("libSystem.tbd", LIBRARY)?),
        Format::Coff => windows::runtime(&folder.path, toolchain)?,
        Format::Wasm | Format::MinGw => {}
    }
    let way = Way::Distlto;
    let (mut alone, mut served) = (way.command_alone(&case, &folder)?, way.command(&case, &folder)?);
    if case.fails.is_some() {
        fail(&mut alone)?;
        fail(&mut served)?;
        return Ok(());
    }
    let output = folder.path.join(way.dir()).join(format.program());
    let read = || fs::read(&output).with_context(|| format!("cannot read {}", output.display()));
    succeed(&mut alone)?;
    let expected = read()?;
    fs::remove_file(&output)?;
    let mut verbose = Command::new(distlto::binary()?);
    verbose.args(["link", "-v", "--"]).arg(alone.get_program()).args(alone.get_args());
    let ended = succeed(verbose.current_dir(&folder.path))?;
    ensure!(read()? == expected, "another program than that of the linker alone");
    let said = String::from_utf8_lossy(&ended.stderr);
    let is_alone = said.contains("links by itself");
    ensure!(!is_alone || case.modules.is_none_or(|modules| modules == 0), "the link is not served:\n{said}");
    let kept = objects(&output)?;
    // COFF's own linker knows no groups of lazy objects.
    if let Some(modules) = case.modules.filter(|_| format != Format::Coff) {
        let found = kept.len();
        ensure!(found == modules, "{found} native objects were compiled, expected {modules}");
    }
    succeed(&mut served)?;
    ensure!(
        read()? == expected && objects(&output)? == kept,
        "a second link wrote the program or objects again"
    );
    Ok(())
}

/// The case with the format's target and linker.
fn of_format(case: &Case, format: Format) -> Case {
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/headers");
    let headers = match format {
        Format::MinGw => String::new(),
        _ => format!("-isystem '{}' -fno-exceptions", headers.display()),
    };
    let flags = format!("{} {headers} -w", format.target());
    let clang = if case.is_cpp() { "%clang++" } else { "%clang" };
    let words = format.link_words().join(" ");
    Case {
        name: format!("{format:?}/{}", case.name).to_lowercase(),
        flags: [vec![flags], case.flags.clone()].concat(),
        driver: Some(format!("{clang} -O2 {} -o %dir/{} {words}", format.target(), format.program())),
        ..case.clone()
    }
}
