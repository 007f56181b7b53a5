//! The store: what checkouts share, what an archive of it carries, and what is said of a record.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::{capture, succeed, told};
use distlto_tests::store;
use distlto_tests::toolchain::Toolchain;

const SOURCES: [(&str, &str); 3] = [
    ("main.c", "int a(int), b(int);\nint main(void) { return a(1) + b(2); }\n"),
    ("a.c", "int b(int);\n__attribute__((noinline)) int a(int x) { return b(x) + 1; }\n"),
    ("b.c", "int b(int x) { return x * 2; }\n"),
];

/// A program in a checkout of its own, of which each link uses one store.
struct Checkout {
    folder: Folder,
    cache: PathBuf,
}

impl Checkout {
    fn create(name: &str, cache: &Path) -> Result<Self> {
        let folder = Folder::create(Toolchain::from_env()?, &format!("store/{name}"))?;
        for (name, text) in SOURCES {
            folder.write(name, text)?;
        }
        let mut clang = Command::new(folder.toolchain.tool("clang")?);
        clang.args(["-O2", "-flto=thin", "-c", "main.c", "a.c", "b.c"]).current_dir(&folder.path);
        succeed(&mut clang)?;
        Ok(Self { folder, cache: cache.to_owned() })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path.join(name)
    }

    fn distlto(&self, words: &[&str]) -> Result<Command> {
        let mut command = Command::new(distlto::binary()?);
        command.args(words).current_dir(&self.folder.path).env("XDG_CACHE_HOME", &self.cache);
        Ok(command)
    }

    /// Links, and says how many backends were out of date.
    fn link(&self) -> Result<usize> {
        let mut command = self.distlto(&["link", "-v", "--"])?;
        command.arg(self.folder.toolchain.tool("clang")?);
        command.args(["-O2", "-flto=thin", "-fuse-ld=lld", "main.o", "a.o", "b.o", "-o", "P"]);
        let output = succeed(&mut command)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let end = said.find(" of 3 backends were out of date").with_context(|| told(&command, &output))?;
        Ok(said[..end].rsplit(' ').next().unwrap_or_default().parse()?)
    }

    fn said(&self, words: &[&str]) -> Result<String> {
        Ok(String::from_utf8(succeed(&mut self.distlto(words)?)?.stdout)?)
    }
}

fn empty(name: &str) -> Result<PathBuf> {
    let folder = Folder::create(Toolchain::from_env()?, &format!("store/{name}"))?;
    Ok(folder.path.join(store::CACHE))
}

#[test]
fn another_checkout_runs_no_backend_and_nothing_lies_beside_a_program() -> Result<()> {
    let cache = empty("shared")?;
    let [one, other] = ["one", "the-other-one"].map(|name| Checkout::create(name, &cache));
    let (one, other) = (one?, other?);
    ensure!(one.link()? == 3, "the first link runs all");
    ensure!(other.link()? == 0, "the second checkout compiles what the first has compiled");
    ensure!(fs::read(one.path("P"))? == fs::read(other.path("P"))?, "another program");
    for checkout in [one, other] {
        let mut names: Vec<_> = fs::read_dir(&checkout.folder.path)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<Result<_>>()?;
        names.sort();
        ensure!(names == [".cache", "P", "a.c", "a.o", "b.c", "b.o", "main.c", "main.o"], "{names:?}");
    }
    Ok(())
}

#[test]
fn an_archive_carries_objects_to_another_machine() -> Result<()> {
    let [here, there] = [empty("here")?, empty("there")?];
    let one = Checkout::create("exports", &here)?;
    one.link()?;
    let said = one.said(&["cache", "export", "objects.tar"])?;
    ensure!(said.contains("exported 6 files"), "{said}");
    let other = Checkout::create("imports", &there)?;
    let archive = one.path("objects.tar").display().to_string();
    let said = other.said(&["cache", "import", &archive])?;
    ensure!(said.contains("imported 6 files"), "{said}");
    ensure!(other.link()? == 0, "what was imported is not found");
    let shown: serde_json::Value = serde_json::from_str(&other.said(&["cache", "show", "--json"])?)?;
    ensure!(shown["cache"]["links"]["records"] == 1 && shown["cache"]["files"] == 3, "{shown}");
    // Of another file nothing is taken.
    let mut import = other.distlto(&["cache", "import", "main.o"])?;
    let output = capture(&mut import)?;
    ensure!(output.status.code() == Some(4), "{}", told(&import, &output));
    let said = other.said(&["cache", "prune", "--max-age", "0s"])?;
    ensure!(said.contains("removed the records of 1 link"), "{said}");
    Ok(())
}

/// Nobody observes a compiler behind a script: it may read any file of its folder.
#[test]
fn no_checkout_gets_what_an_unobserved_compiler_read_in_another() -> Result<()> {
    let text = "__asm__(\".globl data\\n.section .rodata\\ndata: .incbin \\\"data.bin\\\"\\n.text\\n\");\nint b(int x) { return x * 2; }\n";
    {
        let option = "--compiler=./cc";
        let cache = empty(&format!("unseen{option}"))?;
        for data in ["here", "there", "here", "there"] {
            let checkout = Checkout::create(&format!("unseen-{data}"), &cache)?;
            checkout.folder.write("b.c", text)?;
            checkout.folder.write("data.bin", data)?;
            let clang = checkout.folder.toolchain.tool("clang")?;
            let script =
                checkout.folder.write("cc", format!("#!/bin/sh\nexec {} \"$@\"\n", clang.display()))?;
            fs::set_permissions(script, Permissions::from_mode(0o755))?;
            let mut compile = Command::new(&clang);
            succeed(compile.args(["-O2", "-flto=thin", "-c", "b.c"]).current_dir(&checkout.folder.path))?;
            let mut link = checkout.distlto(&["link", option, "--"])?;
            link.arg(&clang).args(["-flto=thin", "-fuse-ld=lld", "main.o", "a.o", "b.o", "-o", "P"]);
            succeed(&mut link)?;
            let program = fs::read(checkout.path("P"))?;
            let has = |part: &str| program.windows(part.len()).any(|window| window == part.as_bytes());
            ensure!(has(data), "{option}: the program of {data} has other data");
        }
    }
    Ok(())
}

#[test]
fn a_record_says_whether_it_is_of_the_program() -> Result<()> {
    let cache = empty("told")?;
    let checkout = Checkout::create("inspected", &cache)?;
    checkout.link()?;
    let record = store::record_in(&cache.join("distlto"), &checkout.path("P"));
    let says = |words: &str, expected: bool| -> Result<()> {
        let said = checkout.said(&["inspect", "P"])?;
        ensure!(said.contains("3 modules") && said.contains(words) == expected, "{words}: {said}");
        Ok(())
    };
    says("this is about", false)?;
    // The test's own process is no link, and its number is one.
    fs::write(record.join("lock"), std::process::id().to_string())?;
    says("a link of it runs, by process ", true)?;
    let mut ended = Command::new("true").spawn()?;
    ended.wait()?;
    fs::write(record.join("lock"), ended.id().to_string())?;
    says("its last link was killed", true)?;
    fs::write(record.join("lock"), "")?;
    fs::write(checkout.path("P"), "another")?;
    says("P is another file by now", true)?;
    fs::remove_file(checkout.path("P"))?;
    says("P is gone", true)
}
