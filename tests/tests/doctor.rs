//! `distlto doctor` with the installed tools, with one of them missing, and in a build with job slots; and links
//! that say the same of make, and why there was nothing to do.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::{capture, shown, succeed, told};
use distlto_tests::toolchain::{Toolchain, system_tool};
use serde_json::Value;

/// What make tells its children, and what would change what the doctor sees.
const OURS: [&str; 8] = [
    "MAKEFLAGS",
    "MFLAGS",
    "MAKELEVEL",
    "CARGO_MAKEFLAGS",
    "DISTLTO_CACHE",
    "DISTLTO_STATE",
    "DISTLTO_REMOTE",
    "DISTLTO_HOOK",
];

/// A folder, and a PATH that holds these tools alone, without their versions.
struct Place {
    folder: Folder,
    path: PathBuf,
}

impl Place {
    fn create(name: &str, tools: &[&str]) -> Result<Self> {
        let folder = Folder::create(Toolchain::from_env()?, &format!("doctor/{name}"))?;
        let path = folder.path.join("path");
        std::fs::create_dir(&path)?;
        for tool in tools {
            symlink(folder.toolchain.tool(tool)?, path.join(tool))?;
        }
        Ok(Self { folder, path })
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        for name in OURS {
            command.env_remove(name);
        }
        command.env("PATH", &self.path).env("HOME", &self.folder.path).env_remove("XDG_CONFIG_HOME");
        command.current_dir(&self.folder.path);
        command
    }

    fn distlto(&self, words: &[&str]) -> Result<Command> {
        let mut command = self.command(distlto::binary()?);
        command.args(words);
        Ok(command)
    }

    /// One make whose recipes have these names and commands, each with and without `+`.
    fn make(&self, flags: &[&str], command: &Command, plus: bool) -> Result<Output> {
        let recipe = shown(command).replace('$', "$$");
        let plus = if plus { "+" } else { "" };
        self.folder.write("Makefile", format!("all:\n\t{plus}{recipe}\n"))?;
        let mut make = self.command(system_tool("make")?);
        make.arg("-s").args(flags);
        succeed(&mut make)
    }

    /// Objects of a program of two modules.
    fn compile(&self, flags: &[&str]) -> Result<()> {
        self.folder.write("main.c", "int f(int);\nint main(void) { return f(0); }\n")?;
        self.folder.write("f.c", "int f(int x) { return x; }\n")?;
        let mut clang = self.command(self.folder.toolchain.tool("clang")?);
        succeed(clang.args(flags).args(["-c", "main.c", "f.c"])).map(drop)
    }
}

/// A sentence of this kind, of what is wrong, said or noted.
fn says(output: &Output, level: &str, part: &str) -> bool {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().any(|line| line.trim_start().starts_with(level) && line.contains(part))
}

fn expect(command: &mut Command, code: i32, sentences: &[(&str, &str)]) -> Result<Output> {
    let output = capture(command)?;
    ensure!(output.status.code() == Some(code), "not {code}: {}", told(command, &output));
    for (level, part) in sentences {
        ensure!(says(&output, level, part), "{level}, {part:?}: {}", told(command, &output));
    }
    Ok(output)
}

#[test]
fn installed_tools_work_and_programs_read_the_same() -> Result<()> {
    let place = Place::create("works", &["clang", "ld.lld"])?;
    let version = format!("LLD {}.", place.folder.toolchain.version);
    let asks = match place.folder.toolchain.version >= 15 {
        true => ("ok", "it asks distlto for its objects"),
        false => ("WRONG", "it cannot ask for objects"),
    };
    let sentences = [
        ("ok", version.as_str()),
        asks,
        ("ok", "do a ThinLTO link of some lines together"),
        ("ok", "is loaded into linkers"),
        ("note", "no make, Ninja or cargo with job slots runs this"),
        ("yes: links by distlto can work here", ""),
    ];
    // Links of other tests come and go.
    let doctor = |words: &[&str]| -> Result<Command> {
        let mut command = place.distlto(words)?;
        command.env("DISTLTO_LEDGER", place.path.join("ledger"));
        Ok(command)
    };
    let text = expect(&mut doctor(&["doctor"])?, 0, &sentences)?;
    let json = succeed(&mut doctor(&["doctor", "--json"])?)?;
    let json: Value = serde_json::from_slice(&json.stdout)?;
    let findings = json["findings"].as_array().context("a list")?;
    let of_text = String::from_utf8(text.stdout)?;
    ensure!(
        findings.len() == of_text.lines().filter(|line| line.starts_with("  ")).count(),
        "{json}\n{of_text}"
    );
    for finding in findings.iter().filter(|finding| finding["about"] != "memory") {
        let sentence = finding["sentence"].as_str().context("a sentence")?;
        ensure!(of_text.contains(sentence), "{sentence}\n{of_text}");
    }
    ensure!(json["code"] == 0 && json["verdict"] == "yes: links by distlto can work here", "{json}");
    Ok(())
}

/// As Debian installs them.
#[test]
fn without_a_command_the_newest_version_is_looked_at() -> Result<()> {
    let place = Place::create("versions", &[])?;
    let version = place.folder.toolchain.version;
    for tool in ["clang", "ld.lld"] {
        let program = place.folder.toolchain.tool(tool)?;
        symlink(&program, place.path.join(format!("{tool}-{version}")))?;
        // An older one would be run if it were looked at, and a program of another name may say anything.
        symlink(system_tool("false")?, place.path.join(format!("{tool}-3")))?;
        symlink(system_tool("false")?, place.path.join(format!("{tool}-{version}-rc1")))?;
    }
    let found = format!("ld.lld-{version} is ");
    let can = ("yes: links by distlto can work here", "");
    expect(&mut place.distlto(&["doctor"])?, 0, &[("ok", &found), can])?;
    Ok(())
}

#[test]
fn what_is_missing_is_named_and_is_the_exit_code() -> Result<()> {
    let place = Place::create("missing", &["clang"])?;
    let cannot = ("no: links by distlto cannot work here", "");
    expect(&mut place.distlto(&["doctor"])?, 7, &[("WRONG", "ld.lld is missing"), cannot])?;
    let lld = place.folder.toolchain.tool("ld.lld")?;
    let lld = lld.to_str().context("UTF-8")?;
    let gcc = system_tool("gcc")?;
    let words = ["doctor", "--compiler", gcc.to_str().context("UTF-8")?, "--", lld];
    expect(&mut place.distlto(&words)?, 7, &[("WRONG", "does not call itself clang"), cannot])?;
    let words = ["doctor", "--", "clang", "-fuse-ld=missing", "main.o"];
    expect(&mut place.distlto(&words)?, 7, &[("WRONG", "-###"), cannot])?;
    // A backend by another compiler than one that reads the shard.
    place.folder.write(
        "false",
        "#!/bin/sh\ncase $1 in --version) echo clang version 22.0.0 ;; *) exit 1 ;; esac\n",
    )?;
    std::fs::set_permissions(place.folder.path.join("false"), Permissions::from_mode(0o755))?;
    let words = ["doctor", "--compiler", "./false", "--", lld];
    expect(&mut place.distlto(&words)?, 7, &[("WRONG", "do not fit together"), cannot])?;
    Ok(())
}

#[test]
fn places_that_cannot_be_used_are_told_apart() -> Result<()> {
    let place = Place::create("places", &["clang", "ld.lld"])?;
    place.folder.write("file", "")?;
    let mut command = place.distlto(&["doctor"])?;
    expect(
        command.env("DISTLTO_CACHE", "file/cache"),
        4,
        &[("WRONG", "file/cache cannot be used"), ("WRONG", "cannot be written")],
    )?;
    let mut command = place.distlto(&["doctor", "--state", "file/states"])?;
    expect(&mut command, 4, &[("WRONG", "file/states cannot be written")])?;
    let mut command = place.distlto(&["doctor", "--cache", "cache", "--state", "states"])?;
    expect(&mut command, 0, &[("ok", "cache holds no objects"), ("ok", "states can be made")])?;
    ensure!(!place.folder.path.join("cache").exists() && !place.folder.path.join("states").exists(), "made");
    place.compile(&["-flto=thin"])?;
    let clang = place.folder.toolchain.tool("clang")?;
    let clang = clang.to_str().context("UTF-8")?;
    let link = ["--", clang, "-fuse-ld=lld", "main.o", "f.o", "-o", "program"];
    succeed(&mut place.distlto(&[&["link", "--cache", "cache"][..], &link].concat())?)?;
    let mut command = place.distlto(&[&["doctor", "--cache", "cache"][..], &link].concat())?;
    let sentences = [
        ("ok", "cache holds 2 objects"),
        ("ok", "cache/links-v1/program-"),
        ("ok", "the linker loads 2 ThinLTO modules"),
    ];
    expect(&mut command, 0, &sentences)?;
    place.folder.write("distlto.toml", "[remote]\nurl = \"grpc://localhost:1\"\n")?;
    let asks = [("note", "`distlto remote check grpc://localhost:1` asks it")];
    expect(&mut place.distlto(&["doctor"])?, 0, &asks)?;
    Ok(())
}

#[test]
fn job_slots_of_make_are_told_of() -> Result<()> {
    let place = Place::create("make", &["clang", "ld.lld"])?;
    let doctor = place.distlto(&["doctor"])?;
    for plus in [false, true] {
        let found = place.make(&["-j3"], &doctor, plus)?;
        ensure!(says(&found, "ok", "jobs take slots of the build that runs this"), "{found:?}");
    }
    let none = place.make(&[], &doctor, true)?;
    ensure!(says(&none, "note", "has no job slots"), "{none:?}");
    let mut gone = place.distlto(&["doctor"])?;
    gone.env("MAKEFLAGS", " -j3 --jobserver-auth=fifo:/nowhere");
    let gone = capture(&mut gone)?;
    ensure!(says(&gone, "WRONG", "the job slots fifo:/nowhere, which cannot be used"), "{gone:?}");
    Ok(())
}

#[test]
fn links_without_thinlto_say_so_when_asked() -> Result<()> {
    let place = Place::create("verbose", &["clang", "ld.lld"])?;
    let clang = place.folder.toolchain.tool("clang")?;
    let clang = clang.to_str().context("UTF-8")?;
    for (flags, served) in [
        (&["-flto"][..], "its bitcode is of full LTO (compile with -flto=thin): the linker"),
        (&[], "no input is ThinLTO bitcode (compile with -flto=thin): the linker"),
    ] {
        place.compile(flags)?;
        for (options, expected) in [(&[][..], served), (&["--plain-shards"], served)] {
            let command = ["--", clang, "-fuse-ld=lld", "main.o", "f.o", "-o", "program"];
            for (verbose, times) in [(&["-v"][..], 1), (&[], 0)] {
                let mut link = place.distlto(&[&["link"], options, verbose, &command].concat())?;
                let ran = succeed(&mut link)?;
                let found = String::from_utf8_lossy(&ran.stderr).matches(expected).count();
                ensure!(found == times, "{expected}: {}", told(&link, &ran));
                let _ = std::fs::remove_file(place.folder.path.join("program"));
            }
        }
    }
    Ok(())
}

#[test]
fn options_that_conflict_are_refused_or_explained() -> Result<()> {
    let place = Place::create("conflicts", &["clang", "ld.lld"])?;
    place.compile(&["-flto=thin"])?;
    let clang = place.folder.toolchain.tool("clang")?;
    let clang = clang.to_str().context("UTF-8")?;
    let line =
        ["--", clang, "-fuse-ld=lld", "main.o", "f.o", "-Wl,--thinlto-cache-dir=cache", "-o", "program"];
    let link = |options: &[&str]| place.distlto(&[&["link"], options, &line].concat());
    let output = capture(&mut link(&["-q", "-v"])?)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.code() == Some(2) && said.contains("cannot be used with"), "{output:?}");
    for options in [&[][..], &["--plain-shards"]] {
        for (verbose, times) in [(&["-v"][..], 1), (&[], 0)] {
            let output = succeed(&mut link(&[options, verbose].concat())?)?;
            let said = String::from_utf8(output.stderr)?;
            ensure!(said.matches("--thinlto-cache-dir has no effect").count() == times, "{said}");
            ensure!(!place.folder.path.join("cache").exists(), "the linker has made a cache");
            std::fs::remove_file(place.folder.path.join("program"))?;
        }
    }
    let note = ("note", "--thinlto-cache-dir has no effect");
    expect(&mut place.distlto(&[&["doctor"][..], &line].concat())?, 0, &[note])?;
    Ok(())
}
