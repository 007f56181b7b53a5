//! `cargo xtask install` into a prefix: the set is complete and links by itself, a second installation writes nothing,
//! and a part that is missing is told of with the command that installs it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Result, ensure};
use distlto_tests::distlto;
use distlto_tests::project::Project;
use distlto_tests::run::{succeed, told};

const SOURCES: [(&str, &str); 2] = [
    (
        "main.c",
        "#include <stdio.h>\nint part(int);\nint main(void) { printf(\"%d\\n\", part(1)); return 0; }\n",
    ),
    ("part.c", "__attribute__((noinline)) int part(int x) { return x + 1; }\n"),
];

/// All that is to be there.
const FILES: [(&str, bool); 21] = [
    ("bin/distlto", true),
    ("bin/distlto-index", true),
    ("bin/distlto-distribute", true),
    ("bin/distlto-prepare", true),
    ("bin/distlto-opt", true),
    ("bin/distlto-plan", true),
    ("bin/distlto-clang++", true),
    ("bin/distlto-clang-22", true),
    ("bin/distlto-ld.lld-18", true),
    ("lib/distlto/libdistlto_hook.so", true),
    ("lib/libDTLTOdistlto.so", true),
    ("share/man/man1/distlto.1", false),
    ("share/man/man1/distlto-link.1", false),
    ("share/bash-completion/completions/distlto", false),
    ("share/zsh/site-functions/_distlto", false),
    ("share/fish/vendor_completions.d/distlto.fish", false),
    ("share/distlto/rules/make/distlto.mk", false),
    ("share/distlto/rules/cmake/distlto.cmake", false),
    ("share/distlto/rules/buck2/toolchain.bzl", false),
    ("share/distlto/rules/bazel/MODULE.bazel", false),
    ("share/distlto/rules/bazel/private/link.bzl", false),
];

fn install(prefix: &Path, destination: &Path) -> Result<Output> {
    let mut command = distlto::xtask();
    command.args(["install", "--debug", "--prefix"]).arg(prefix).env("DESTDIR", destination);
    succeed(&mut command)
}

/// Every file by path, with what changes when it is written.
fn written(directory: &Path) -> Result<BTreeMap<PathBuf, (u64, i64, i64)>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(written(&path)?);
        } else {
            let stat = fs::metadata(&path)?;
            found.insert(path, (stat.ino(), stat.ctime(), stat.ctime_nsec()));
        }
    }
    Ok(found)
}

/// The project's link by an installed distlto, which finds for itself what belongs to it.
fn link(project: &Project, distlto: &Path, options: &[&str]) -> Result<Command> {
    let built = project.link_with(options)?;
    let mut command = Command::new(distlto);
    command.args(built.get_args()).current_dir(&project.folder.path).env_remove("DISTLTO_HOOK");
    Ok(command)
}

#[test]
fn an_installed_set_is_complete_and_links() -> Result<()> {
    let project = Project::create("install", &SOURCES)?;
    let stage = project.path("stage");
    install(Path::new("/opt/lto"), &stage)?;
    let prefix = stage.join("opt/lto");
    for (name, executable) in FILES {
        let mode = fs::metadata(prefix.join(name)).map_or(0, |found| found.permissions().mode());
        ensure!(mode != 0, "{name} is not installed");
        ensure!((mode & 0o111 != 0) == executable, "{name} has the mode {mode:o}");
    }
    let completions = fs::read_to_string(prefix.join("share/bash-completion/completions/distlto"))?;
    succeed(Command::new("bash").args(["-n", "-c", &completions]))?;
    ensure!(completions.contains("--keep-going"), "bash is not told of options");
    let before = written(&stage)?;
    install(Path::new("/opt/lto"), &stage)?;
    ensure!(written(&stage)? == before, "installing again writes files that are the same");

    // The system's loader tells which libraries the compilers have loaded.
    let distlto = prefix.join("bin/distlto");
    let told = project.path("loaded");
    fs::create_dir_all(&told)?;
    let compiler = project.folder.toolchain.tool("clang")?.display().to_string();
    let mut command = link(&project, &distlto, &["--compiler", &compiler])?;
    let output = succeed(command.env("LD_DEBUG", "files").env("LD_DEBUG_OUTPUT", told.join("by")))?;
    ensure!(!String::from_utf8_lossy(&output.stderr).contains("not installed"), "{output:?}");
    ensure!(project.say()? == "2\n", "the program is wrong");
    let library = "../lib/distlto/libdistlto_hook.so";
    let loaders = fs::read_dir(&told)?
        .filter_map(|entry| fs::read(entry.ok()?.path()).ok())
        .filter(|text| {
            String::from_utf8_lossy(text)
                .lines()
                .any(|line| line.contains("calling init") && line.contains(library))
        })
        .count();
    ensure!(loaders > 0, "no compiler has loaded the installed library");

    missing_parts(&project, &prefix)
}

/// What `cargo install --path cli` gives: programs without the library.
fn missing_parts(project: &Project, prefix: &Path) -> Result<()> {
    let alone = project.path("alone/distlto");
    fs::create_dir_all(project.path("alone"))?;
    fs::copy(prefix.join("bin/distlto"), &alone)?;
    project.edit("part.c", "x + 1", "x + 2")?;
    project.edit("main.c", "part(1)", "part(2)")?;
    let mut command = link(project, &alone, &[])?;
    let output = succeed(&mut command)?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        said.contains("libdistlto_hook.so is not installed") && said.contains("cargo xtask install --prefix"),
        "{}",
        told(&command, &output)
    );
    for quiet in [("-q", None), ("--verbose", Some("off"))] {
        let mut command = link(project, &alone, &[quiet.0])?;
        quiet.1.map(|value| command.env("DISTLTO_HOOK", value));
        let output = succeed(&mut command)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(!said.contains("not installed"), "{}", told(&command, &output));
    }
    Ok(())
}
