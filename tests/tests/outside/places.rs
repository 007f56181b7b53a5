//! Places where distlto cannot work: the linker links, and one line names the cause.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::run::{capture, succeed, told};
use distlto_tests::toolchain::Toolchain;
use tempfile::TempDir;

use super::{copied_to, programs};

/// Modules, one of which has `main`.
const MODULES: usize = 31;

/// A folder with objects to link.
struct Objects {
    folder: TempDir,
    clang: String,
}

impl Objects {
    fn compile() -> Result<Self> {
        let clang = Toolchain::from_env()?.tool("clang")?.to_str().context("UTF-8")?.to_owned();
        let objects = Self { folder: tempfile::tempdir()?, clang };
        let sum: String = (1..MODULES).map(|n| format!(" + f{n}({n})")).collect();
        let calls: String = (1..MODULES).map(|n| format!("int f{n}(int); ")).collect();
        fs::write(objects.path("f0.c"), format!("{calls} int main(void) {{ return 0{sum}; }}\n"))?;
        for n in 1..MODULES {
            fs::write(objects.path(&format!("f{n}.c")), format!("int f{n}(int x) {{ return x > {n}; }}\n"))?;
        }
        let mut compiler = Command::new(&objects.clang);
        compiler.args(["-O2", "-flto=thin", "-c"]).args((0..MODULES).map(|n| format!("f{n}.c")));
        succeed(compiler.current_dir(objects.folder.path()))?;
        Ok(objects)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A link with paths from the root, which needs no working directory.
    fn line(&self) -> Vec<String> {
        let objects = (0..MODULES).map(|n| self.path(&format!("f{n}.o")).to_string_lossy().into_owned());
        let output = self.path("P").to_string_lossy().into_owned();
        let words = [&self.clang, "-flto=thin", "-fuse-ld=lld", "-o", &output];
        words.into_iter().map(str::to_owned).chain(objects).collect()
    }

    /// Links by a command that is followed by the line; says what distlto has said.
    fn link(&self, mut command: Command) -> Result<String> {
        let _ = fs::remove_file(self.path("P"));
        command.args(self.line());
        let output = capture(&mut command)?;
        ensure!(output.status.success(), "{}", told(&command, &output));
        ensure!(Command::new(self.path("P")).status()?.success(), "{}", told(&command, &output));
        said(&command, &output)
    }
}

/// What distlto has said of a link: all but what LLVM says of a system without /proc.
fn said(command: &Command, output: &Output) -> Result<String> {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines: Vec<&str> = said.lines().filter(|line| !line.starts_with("Can't read /proc/")).collect();
    let is_own = |line: &&str| line.starts_with("distlto: ");
    ensure!(output.stdout.is_empty() && lines.iter().all(is_own), "{}", told(command, output));
    Ok(lines.join("\n"))
}

/// That a link by itself was announced in one line, which names the cause.
fn by_itself(said: &str, cause: &str) -> Result<()> {
    let lines: Vec<&str> = said.lines().collect();
    let is_it = |line: &str| line.contains(cause) && line.ends_with("the linker links by itself");
    ensure!(lines.len() == 1 && is_it(lines[0]), "not one line of {cause:?}: {said}");
    Ok(())
}

/// `distlto link --` with places of its own.
fn link(places: &[(&str, &Path)]) -> Result<Command> {
    let mut command = Command::new(distlto::binary()?);
    command
        .args(["link", "--"])
        .env_remove("HOME")
        .env_remove("XDG_CACHE_HOME")
        .env_remove("XDG_RUNTIME_DIR");
    command.env_remove("DISTLTO_CACHE").env("DISTLTO_LEDGER", "off").envs(places.iter().copied());
    Ok(command)
}

/// The same in a mount namespace that has these mounts and the whole system, which can be written nowhere else.
fn link_within(mounts: &[&str]) -> Result<Command> {
    let link = link(&[])?;
    let mut command = Command::new("bwrap");
    command.args(["--ro-bind", "/", "/"]).args(mounts).arg(link.get_program()).args(link.get_args());
    for (name, value) in link.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Ok(command)
}

#[test]
fn a_temporary_folder_may_be_missing() -> Result<()> {
    let objects = Objects::compile()?;
    let home = objects.path("home");
    fs::create_dir(&home)?;
    fs::write(objects.path("file"), "")?;
    for place in ["missing", "file"] {
        let place = objects.path(place);
        // In the user's cache folder there is room.
        let said = objects.link(link(&[("TMPDIR", &place), ("HOME", &home)])?)?;
        ensure!(!said.contains("by itself"), "{said}");
        by_itself(&objects.link(link(&[("TMPDIR", &place)])?)?, "a directory for temporary files")?;
        fs::remove_dir_all(home.join(".cache"))?;
    }
    Ok(())
}

#[test]
fn a_system_may_be_read_only() -> Result<()> {
    let objects = Objects::compile()?;
    let folder = objects.folder.path().to_str().context("UTF-8")?;
    let mounts = ["--dev", "/dev", "--proc", "/proc", "--bind", folder, folder];
    by_itself(&objects.link(link_within(&mounts)?)?, "Read-only file system")
}

#[test]
fn a_system_may_have_no_proc_and_no_dev() -> Result<()> {
    let objects = Objects::compile()?;
    let folder = objects.folder.path().to_str().context("UTF-8")?;
    let bind = ["--bind", folder, folder];
    let without_proc = [&["--dev", "/dev", "--tmpfs", "/proc"][..], &bind].concat();
    by_itself(&objects.link(link_within(&without_proc)?)?, "/proc")?;
    let without_dev = [&["--proc", "/proc", "--tmpfs", "/dev", "--tmpfs", "/run"][..], &bind].concat();
    let mut command = link_within(&without_dev)?;
    command.env("XDG_RUNTIME_DIR", "/run");
    objects.link(command).map(drop)
}

#[test]
fn there_may_be_few_open_files() -> Result<()> {
    let objects = Objects::compile()?;
    for limit in [20, 32] {
        let mut command = Command::new("prlimit");
        command.arg(format!("--nofile={limit}")).arg(distlto::binary()?).args(["link", "--"]);
        by_itself(&objects.link(command)?, "RLIMIT_NOFILE")?;
    }
    Ok(())
}

#[test]
fn the_working_directory_may_be_gone() -> Result<()> {
    let objects = Objects::compile()?;
    let mut command = Command::new("bash");
    let script = "mkdir \"$0\"; cd \"$0\"; rmdir \"$0\"; exec \"$@\"";
    command.args(["-c", script]).arg(objects.path("gone")).arg(distlto::binary()?).args(["link", "--"]);
    by_itself(&objects.link(command)?, "the working directory")
}

#[test]
fn a_command_of_distlto_may_be_within_another() -> Result<()> {
    let objects = Objects::compile()?;
    for body in ["x > 1", "x > 2"] {
        fs::write(objects.path("f1.c"), format!("int f1(int x) {{ return {body}; }}\n"))?;
        succeed(
            Command::new(&objects.clang)
                .args(["-O2", "-flto=thin", "-c", "f1.c"])
                .current_dir(objects.folder.path()),
        )?;
        let mut command = Command::new(distlto::binary()?);
        command.arg(distlto::binary()?);
        let said = objects.link(command)?;
        ensure!(said.matches("1 link").count() <= 1 && !said.contains("by itself"), "{said}");
    }
    Ok(())
}

/// Some start a driver without the functions that the inherited library replaces.
#[test]
fn any_program_may_start_the_driver() -> Result<()> {
    let objects = Objects::compile()?;
    let starters: [&[&str]; 6] = [
        &["start"],
        &["hello-static"],
        &["hello-musl"],
        &["execs", "system-call"],
        &["execs", "vfork"],
        &["env", "A=b"],
    ];
    for words in starters {
        let mut command = Command::new(distlto::binary()?);
        command.args(["link", "-v", "--"]);
        let own = programs()?.join(words[0]);
        command.arg(if own.exists() { own } else { words[0].into() }).args(&words[1..]);
        let output = capture(command.args(objects.line()))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(said.contains(&format!(": {MODULES} modules, ")), "{words:?}: {}", told(&command, &output));
    }
    Ok(())
}

#[test]
fn an_installation_may_have_any_path() -> Result<()> {
    let objects = Objects::compile()?;
    let program = copied_to(&objects.path("a b:c$LIB"))?;
    let home = objects.path("home of:me");
    fs::create_dir(&home)?;
    for place in ["HOME", "TMPDIR"] {
        let mut command = Command::new(&program);
        command
            .arg0("distlto")
            .args(["link", "--require", "--"])
            .env_remove("XDG_CACHE_HOME")
            .env_remove("HOME");
        command.env(place, if place == "HOME" { home.as_path() } else { objects.folder.path() });
        let said = objects.link(command)?;
        ensure!(!said.contains("by itself"), "{said}");
    }
    Ok(())
}
