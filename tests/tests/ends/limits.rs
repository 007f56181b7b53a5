//! Where the system has few processes, threads or open files for a user: fewer run at once, down to one, and only then there is
//! an error, which names the limit.
//!
//! Such limits do not hold for root, and count all that a user runs, so each test is another user, for which it has to be root.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::run::{capture, succeed, told};
use distlto_tests::toolchain::Toolchain;
use tempfile::TempDir;

/// Modules beside the one with `main`.
const PARTS: usize = 6;
const RESULT: &str = "24\n";
const LIMIT: i32 = 8;

/// A user without a name, with modules to link in a folder, and programs that it may run.
struct Limited {
    user: u32,
    folder: TempDir,
    clang: PathBuf,
}

impl Limited {
    fn new() -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let user = (1 << 24) + std::process::id() * 16 + COUNT.fetch_add(1, Ordering::Relaxed);
        let clang = Toolchain::from_env()?.tool("clang")?;
        let limited = Self { user, folder: tempfile::tempdir()?, clang };
        fs::create_dir(limited.path("programs"))?;
        // The folder that it was built in may be closed to others.
        let built = distlto::binary()?;
        for name in ["distlto", "libdistlto_hook.so"] {
            fs::copy(built.with_file_name(name), limited.path("programs").join(name))?;
        }
        let calls: String = (0..PARTS).map(|n| format!("int f{n}(int); ")).collect();
        let sum: String = (0..PARTS).map(|n| format!(" + f{n}({n})")).collect();
        fs::write(
            limited.path("main.c"),
            format!(
                "#include <stdio.h>\n{calls}\nint main(void) {{ printf(\"%d\\n\", 0{sum}); return 0; }}\n"
            ),
        )?;
        for n in 0..PARTS {
            let text =
                format!("__attribute__((noinline)) int f{n}(int x) {{ return x + {n} - {}; }}\n", n / 2);
            fs::write(limited.path(&format!("f{n}.c")), text)?;
        }
        let mut compile = Command::new(&limited.clang);
        compile.args(["-O2", "-flto=thin", "-c", "main.c"]).args((0..PARTS).map(|n| format!("f{n}.c")));
        succeed(compile.current_dir(limited.folder.path()))?;
        fs::create_dir(limited.path("nowhere"))?;
        limited.give(limited.folder.path())?;
        limited.give(&limited.path("nowhere"))?;
        Ok(limited)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn give(&self, path: &Path) -> Result<()> {
        chown(path, Some(self.user), Some(self.user)).context("this test has to be root, to be another user")
    }

    fn objects() -> impl Iterator<Item = String> {
        std::iter::once("main".to_owned()).chain((0..PARTS).map(|n| format!("f{n}"))).map(|name| name + ".o")
    }

    /// A folder of the user's with the objects.
    fn place(&self, name: &str) -> Result<PathBuf> {
        let place = self.path(name);
        fs::create_dir(&place)?;
        for object in Self::objects() {
            fs::copy(self.path(&object), place.join(&object))?;
        }
        self.give(&place)?;
        Ok(place)
    }

    /// distlto as that user within a limit, which is an option of prlimit(1).
    fn distlto(&self, limit: &str, place: &Path, words: &[&str]) -> Result<(Command, Output)> {
        let user = self.user;
        let mut command = Command::new("setpriv");
        command.args([
            &format!("--reuid={user}"),
            &format!("--regid={user}"),
            "--clear-groups",
            "prlimit",
            limit,
        ]);
        command.arg(self.path("programs/distlto")).args(words).current_dir(place);
        command.env("HOME", self.path("nowhere")).env("XDG_CACHE_HOME", self.path("nowhere"));
        command.env("TMPDIR", self.path("nowhere")).env_remove("MAKEFLAGS");
        let output = capture(&mut command)?;
        Ok((command, output))
    }

    /// Links within a limit, which may or must suffice; the error is why it did not as it should.
    fn link(&self, limit: &str, variable: &str, options: &[&str], suffices: Option<bool>) -> Result<()> {
        let place = self.place(&format!("{}{limit}", options.concat()))?;
        let clang = self.clang.to_str().context("UTF-8")?;
        let objects: Vec<_> = Self::objects().collect();
        let line = ["--", clang, "-O2", "-flto=thin", "-fuse-ld=lld", "-o", "program"];
        let mut words = [&["link"][..], options, &line].concat();
        words.extend(objects.iter().map(String::as_str));
        let (command, output) = self.distlto(limit, &place, &words)?;
        let said = told(&command, &output);
        ensure!(!said.contains("panicked"), "a panic: {said}");
        let linked = match output.status.code() {
            Some(0) => {
                let ran = capture(&mut Command::new(place.join("program")))?;
                ensure!(ran.stdout == RESULT.as_bytes(), "another program: {said}");
                true
            }
            Some(LIMIT) => {
                ensure!(said.contains(variable), "no limit is named: {said}");
                ensure!(!place.join("program").exists(), "a program though it failed: {said}");
                false
            }
            // A driver or linker that has met the limit itself.
            Some(_) if said.contains(variable_of_tools(variable)) => {
                ensure!(!place.join("program").exists(), "a program though it failed: {said}");
                false
            }
            _ => anyhow::bail!("neither a program nor an error of the limit: {said}"),
        };
        for entry in fs::read_dir(&place)? {
            let name = entry?.file_name().into_string().unwrap_or_default();
            let is_known = name == "program" || Self::objects().any(|one| one == name);
            ensure!(is_known, "{name} is left: {said}");
        }
        ensure!(suffices.is_none_or(|suffices| suffices == linked), "{limit} with {options:?}: {said}");
        Ok(fs::remove_dir_all(&place)?)
    }
}

/// What tools say that have met the limit.
fn variable_of_tools(variable: &str) -> &'static str {
    if variable == "RLIMIT_NPROC" { "Resource temporarily unavailable" } else { "Too many open files" }
}

#[test]
fn a_link_needs_few_processes() -> Result<()> {
    let limited = Limited::new()?;
    for options in [&["-j4"][..], &["-j1"]] {
        for count in [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 64] {
            // This program, a compiler or linker, a thread of that, and what has ended and is still counted for a moment; a
            // linker that waits for its objects has driver and threads besides.
            let suffices = (count == 1 || count >= 20).then_some(count > 1);
            limited.link(&format!("--nproc={count}"), "RLIMIT_NPROC", options, suffices)?;
        }
    }
    Ok(())
}

#[test]
fn a_link_needs_few_open_files() -> Result<()> {
    let limited = Limited::new()?;
    for options in [&["-j4"][..], &["-j1"]] {
        // With fewer than five not even the libraries of a program can be loaded, and with few the linker links by itself.
        for count in (5..20).chain([24, 25, 28, 40, 64]) {
            let suffices = (count >= 64).then_some(true);
            limited.link(&format!("--nofile={count}"), "RLIMIT_NOFILE", options, suffices)?;
        }
    }
    Ok(())
}

#[test]
fn other_commands_need_few_processes_too() -> Result<()> {
    let limited = Limited::new()?;
    let place = limited.place("others")?;
    let archive = Toolchain::from_env()?.tool("llvm-ar")?;
    succeed(Command::new(archive).args(["rcs", "lib.a"]).args(Limited::objects()).current_dir(&place))?;
    let thin = ["-flto=thin", "-fuse-ld=lld", "-Wl,--thinlto-index-only", "-o", "index"];
    succeed(Command::new(&limited.clang).args(thin).args(Limited::objects()).current_dir(&place))?;
    let clang = limited.clang.to_str().context("UTF-8")?;
    let backend =
        ["opt", "--out", "native.o", "--input", "main.o", "--index", "main.o.thinlto.bc", "--", clang, "-O2"];
    // Which commands, with how many processes they can do their work, and what they write.
    let cases: [(&[&str], u32, &str); 2] = [
        (&["prepare", "--archive", "lib.a", "--objects-out", "members"], 1, "members/main.o"),
        (&backend, 2, "native.o"),
    ];
    for (words, least, written) in cases {
        for count in [1, 2, 3, 4, 6, 12] {
            let (command, output) = limited.distlto(&format!("--nproc={count}"), &place, words)?;
            let said = told(&command, &output);
            let expected = if count < least { LIMIT } else { 0 };
            ensure!(output.status.code() == Some(expected), "{count}: {said}");
            ensure!(expected == 0 || said.contains("RLIMIT_NPROC"), "no limit is named: {said}");
            ensure!(expected != 0 || place.join(written).exists(), "{written} is missing: {said}");
        }
    }
    Ok(())
}
