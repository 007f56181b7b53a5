//! `distlto cargo build --release` without flags: programs are those that cargo makes with the same flags, host programs take
//! no part, and nothing is set where the user has chosen or nothing fits.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_record::run::{RunRecord, list, read};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::{fail, succeed};
use distlto_tests::store;
use distlto_tests::toolchain::{Toolchain, find, system_tool};

use super::job_slots::{backends_at_once, without_slots};

const WORKSPACE: &str = "[workspace]\nmembers = [\"words\", \"one\", \"two\", \"derive\", \"archive\"]\n\
    default-members = [\"one\", \"two\"]\nresolver = \"3\"\n\
    [profile.release]\nlto = \"fat\"\n[profile.unlinked]\ninherits = \"release\"\nlto = \"off\"\n";
const DERIVE: &str = "use proc_macro::TokenStream;\n#[proc_macro]\n\
    pub fn seven(_: TokenStream) -> TokenStream { \"7\".parse().unwrap() }\n";
const WORDS: &str = "#[inline(never)]\npub fn count(text: &str) -> usize {\n\
    text.split_whitespace().filter(|word| word.len() > 3).count()\n}\n\
    #[cfg(test)]\nmod tests {\n#[test]\nfn counts() { assert_eq!(super::count(\"four five\"), 2); }\n}\n";
const BUILD: &str = "fn main() { println!(\"cargo::rustc-env=BUILT=yes\"); }\n";
/// The options by which the linker names promoted locals as distlto has it do.
const NAMES: &str = "-Clink-arg=-Wl,-mllvm,-use-source-filename-for-promoted-locals";

fn program(number: usize) -> String {
    format!(
        "fn main() {{\n let text = std::env::args().nth(1).unwrap_or_default();\n\
         println!(\"{{}} {{}} {number}\", words::count(&text) + derive::seven!(), env!(\"BUILT\"));\n}}\n"
    )
}

/// Two programs that share a library, a procedural macro and build scripts; and a library for other linkers.
fn workspace(name: &str) -> Result<Folder> {
    let folder = Folder::create(Toolchain::from_env()?, &format!("cargo/{name}"))?;
    folder.write("Cargo.toml", WORKSPACE)?;
    let package = |name: &str, more: &str| {
        format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{more}")
    };
    let uses = "[dependencies]\nwords = { path = \"../words\" }\nderive = { path = \"../derive\" }\n";
    for (name, more, file, text) in [
        ("words", "", "lib.rs", WORDS),
        ("derive", "[lib]\nproc-macro = true\n", "lib.rs", DERIVE),
        ("archive", "[lib]\ncrate-type = [\"staticlib\"]\n", "lib.rs", WORDS),
        ("one", uses, "main.rs", &program(1)),
        ("two", uses, "main.rs", &program(2)),
    ] {
        folder.write(&format!("{name}/Cargo.toml"), package(name, more))?;
        folder.write(&format!("{name}/src/{file}"), text)?;
        if file == "main.rs" {
            folder.write(&format!("{name}/build.rs"), BUILD)?;
        }
    }
    Ok(folder)
}

/// A command in a folder, with cargo's target folder below it.
fn command(folder: &Folder, program: &Path, words: &[&str], target: &str) -> Command {
    let mut command = Command::new(program);
    command.args(words).current_dir(&folder.path).env("CARGO_TARGET_DIR", folder.path.join(target));
    for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTC", "RUSTC_WRAPPER", "CARGO_BUILD_TARGET", "CC"]
    {
        command.env_remove(name);
    }
    store::give(without_slots(&mut command));
    command
}

/// cargo under distlto.
fn served(folder: &Folder, words: &[&str]) -> Result<Command> {
    Ok(command(folder, distlto::binary()?, &[&["cargo"], words].concat(), "target"))
}

/// What distlto itself has said.
fn said(build: &mut Command) -> Result<String> {
    let output = succeed(build)?;
    let text = String::from_utf8(output.stderr)?;
    Ok(text.lines().filter(|line| line.starts_with("distlto: ")).collect::<Vec<_>>().join("\n"))
}

fn release(folder: &Folder, target: &str, name: &str) -> PathBuf {
    folder.path.join(target).join("release").join(name)
}

/// The records of all links, by their outputs' names up to cargo's hash.
fn links(folder: &Folder) -> Result<Vec<(String, RunRecord)>> {
    let mut links = Vec::new();
    for record in fs::read_dir(store::of(&folder.path)?.join("links-v1"))? {
        let record = record?.path();
        for run in if record.is_dir() { list(&record)? } else { Vec::new() } {
            let run = read(&run)?;
            let output = PathBuf::from(run.output.clone().context("a link has an output")?);
            let name = output.file_name().context("a file")?.to_string_lossy().into_owned();
            links.push((name.split('-').next().unwrap_or_default().to_owned(), run));
        }
    }
    links.sort_by_key(|(_, run)| run.begun_ms);
    Ok(links)
}

#[test]
fn programs_are_those_of_cargo_with_the_same_flags() -> Result<()> {
    let folder = workspace("equal")?;
    let told = said(&mut served(&folder, &["build", "--release", "-j2"])?)?;
    ensure!(
        told.contains("cargo has -Clinker-plugin-lto for ThinLTO by the linker, in place of the profile's own LTO (DISTLTO_PLAIN=1: without)"),
        "{told}"
    );
    let mut plain = command(&folder, &system_tool("cargo")?, &["build", "--release"], "plain");
    plain.env("CARGO_PROFILE_RELEASE_LTO", "false");
    plain.env("RUSTFLAGS", format!("-Clinker-plugin-lto {NAMES}"));
    succeed(&mut plain)?;
    for name in ["one", "two"] {
        let [own, other] = ["target", "plain"].map(|target| fs::read(release(&folder, target, name)));
        ensure!(own? == other?, "{name} differs");
    }
    let output = succeed(Command::new(release(&folder, "target", "two")).arg("many a word"))?;
    ensure!(output.stdout == b"9 yes 2\n", "{:?}", output.stdout);
    let mut names: Vec<_> = links(&folder)?.into_iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    ensure!(names == ["one", "two"], "build scripts and macros take no part: {names:?}");
    let (most, ran) = backends_at_once(&store::of(&folder.path)?)?;
    ensure!(ran > 0 && most <= 2, "{most} backends at once under -j2");

    // An edit, and the tests of the workspace.
    let edited = WORDS.replace("> 3", "> 1");
    folder.write("words/src/lib.rs", edited)?;
    let told = said(&mut served(&folder, &["build", "--release"])?)?;
    ensure!(told.contains("2 links"), "{told}");
    let output = succeed(Command::new(release(&folder, "target", "one")).arg("an old word"))?;
    ensure!(output.stdout == b"10 yes 1\n", "{:?}", output.stdout);
    let told = said(&mut served(&folder, &["test", "--release", "--workspace"])?)?;
    ensure!(told.contains("cargo links as without distlto: archive is a staticlib"), "{told}");
    let told = said(&mut served(&folder, &["test", "--release"])?)?;
    ensure!(told.contains("2 links"), "{told}");
    Ok(())
}

#[test]
fn users_settings_count() -> Result<()> {
    let folder = workspace("own")?;
    let told = |words: &[&str], variables: &[(&str, &str)]| -> Result<String> {
        said(served(&folder, words)?.envs(variables.iter().copied()))
    };
    let release = ["build", "--release", "-p", "one"];
    for (words, variables, part) in [
        (&["build", "-p", "one"][..], &[][..], "the profile dev is not optimised"),
        (&["build", "--profile", "unlinked", "-p", "one"], &[], "the profile unlinked has lto = \"off\""),
        (&["build", "--release", "-p", "archive"], &[], "archive is a staticlib"),
        (&release, &[("RUSTFLAGS", "-Clinker=cc")], "the flags of rustc have linker=cc"),
        (&release, &[("DISTLTO_PLAIN", "1")], ""),
        (&["check", "--release", "-p", "one"], &[], ""),
    ] {
        let told = told(words, variables)?;
        ensure!(told.contains(part) && told.is_empty() == part.is_empty(), "{words:?} {variables:?}: {told}");
        ensure!(!told.contains("linker-plugin-lto"), "{words:?} {variables:?}: {told}");
    }
    // Flags of the user's own stay.
    folder.write(".cargo/config.toml", "[build]\nrustflags = [\"--cfg\", \"mine\"]\n")?;
    folder.write(
        "one/src/main.rs",
        format!("#[cfg(not(mine))]\ncompile_error!(\"no flag\");\n{}", program(1)),
    )?;
    let told = said(&mut served(&folder, &release)?)?;
    ensure!(told.contains("1 link"), "{told}");
    // The program that starts rustc's own lld is no linker that passed through.
    folder.write("one/src/main.rs", program(4))?;
    let told = said(served(&folder, &release)?.env("DISTLTO_REQUIRE", "1"))?;
    ensure!(told.contains("1 link in ") && !told.contains("passed"), "{told}");
    let (_, wrong) = fail(&mut served(&folder, &["build", "--release", "--no-such"])?)?;
    ensure!(wrong.contains("--no-such"), "{wrong}");
    Ok(())
}

/// A rustc that does not link by its own lld.
fn rustc_without_lld(folder: &Folder) -> Result<PathBuf> {
    let rustc = system_tool("rustc")?;
    let script = format!("#!/bin/sh\nexec {} -Clinker-features=-lld \"$@\"\n", rustc.display());
    let path = folder.write("rustc", script)?;
    succeed(Command::new("chmod").arg("+x").arg(&path))?;
    Ok(path)
}

#[test]
fn a_clang_of_the_llvm_of_rustc_links_where_rustc_has_no_lld() -> Result<()> {
    let folder = workspace("clang")?;
    let rustc = rustc_without_lld(&folder)?;
    let mut build = served(&folder, &["build", "--release", "-p", "one"])?;
    let told = said(build.env("RUSTC", &rustc))?;
    ensure!(told.contains("-Clinker=clang-22 -Clink-arg=-fuse-ld=lld"), "{told}");
    let names: Vec<_> = links(&folder)?.into_iter().map(|(name, _)| name).collect();
    ensure!(names == ["one"], "{names:?}");

    // Without one, the line names the packages.
    let programs = folder.path.join("programs");
    fs::create_dir(&programs)?;
    for name in ["cargo", "rustc", "cc", "as", "ld", "sh", "true"] {
        symlink(find(name).with_context(|| format!("{name} is missing"))?, programs.join(name))?;
    }
    folder.write("one/src/main.rs", program(3))?;
    let mut build = served(&folder, &["build", "--release", "-p", "one"])?;
    let told = said(build.env("RUSTC", &rustc).env("PATH", &programs))?;
    ensure!(told.contains("apt install clang-22 lld-22"), "{told}");
    Ok(())
}
