//! Builds a case's objects: writes its sources, runs its steps, compiles each source with `-O2 -flto=thin` and its flags.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::case::Case;
use crate::folder::Folder;
use crate::run::succeed;
use crate::toolchain::Toolchain;

/// Makes the case's folder and everything in it up to the link.
pub fn build(case: &Case, toolchain: Toolchain) -> Result<Folder> {
    let mut folder = Folder::create(toolchain, &case.name)?;
    for section in &case.sections {
        folder.write(&section.name, &section.text)?;
    }
    steps(&folder, &case.before)?;
    if !case.compiles_nothing {
        let mut sources: Vec<String> = case.sections.iter().map(|section| section.name.clone()).collect();
        for pattern in &case.sources {
            sources.extend(folder.glob(pattern, "")?);
        }
        for source in &sources {
            compile(case, &mut folder, source)?;
        }
    }
    steps(&folder, &case.steps)?;
    Ok(folder)
}

fn steps(folder: &Folder, lines: &[String]) -> Result<()> {
    for line in lines {
        succeed(&mut folder.command(line, "")?)?;
    }
    Ok(())
}

/// Compiles one source beside itself, or into `objects/` when it lies outside the folder; skips what is no source.
fn compile(case: &Case, folder: &mut Folder, source: &str) -> Result<()> {
    let path = Path::new(source);
    let (compiler, lto) = match path.extension().and_then(|extension| extension.to_str()) {
        Some("c") => ("clang", true),
        Some("cpp" | "cc") => ("clang++", true),
        Some("s" | "S") => ("clang", false),
        _ => return Ok(()),
    };
    let object = if path.is_absolute() {
        let name: Vec<_> =
            path.components().rev().take(2).map(|part| part.as_os_str().to_string_lossy()).collect();
        let name = name.into_iter().rev().collect::<Vec<_>>().join("_");
        Path::new("objects").join(name).with_extension("o")
    } else {
        path.with_extension("o")
    };
    if let Some(parent) = object.parent() {
        std::fs::create_dir_all(folder.path.join(parent))?;
    }
    let mut command = Command::new(folder.toolchain.tool(compiler)?);
    command.current_dir(&folder.path).arg("-c");
    if lto {
        command.args(["-O2", "-flto=thin"]);
    }
    let own = case.flags_of.iter().filter(|(name, _)| name == source).map(|(_, flags)| flags);
    for flags in case.flags.iter().chain(own) {
        command.args(folder.words(flags, "")?);
    }
    command.arg(source).arg("-o").arg(&object);
    succeed(&mut command)?;
    folder.objects.push(object.into_os_string().into_string().ok().context("names of sources are UTF-8")?);
    Ok(())
}
