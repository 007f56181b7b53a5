//! Objects that a linker has compiled itself: kept, found by the next link, refused when they are damaged, with what they
//! read and printed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::{fail, succeed, told};
use distlto_tests::toolchain::Toolchain;

/// Modules that import from each other.
const COUNT: usize = 6;

struct Link {
    folder: Folder,
    options: Vec<String>,
}

impl Link {
    fn create(name: &str, options: &[&str]) -> Result<Self> {
        let folder = Folder::create(Toolchain::from_env()?, &format!("kept/{name}"))?;
        let link = Self { folder, options: options.iter().map(|&option| option.to_owned()).collect() };
        for number in 0..COUNT {
            let next = (number + 1) % COUNT;
            link.module(
                number,
                &format!(
                    "int f{next}(int); int f{number}(int x) {{ return x < 1 ? {number} : f{next}(x - 1); }}"
                ),
            )?;
        }
        link.folder.write("main.c", "int f0(int); int main(void) { return f0(3) + f0(4); }\n")?;
        link.compile("main")?;
        Ok(link)
    }

    fn module(&self, number: usize, text: &str) -> Result<()> {
        self.folder.write(&format!("m{number}.c"), text)?;
        self.compile(&format!("m{number}"))
    }

    fn compile(&self, name: &str) -> Result<()> {
        let line = format!("%clang -O2 -flto=thin -c {name}.c -o {name}.o");
        succeed(&mut self.folder.command(&line, "")?).map(drop)
    }

    fn words(&self, output: &str) -> Result<Vec<String>> {
        let clang = self.folder.toolchain.tool("clang")?.display().to_string();
        let words = [clang, "-O2".into(), "-flto=thin".into(), "-fuse-ld=lld".into(), "main.o".into()];
        let modules = (0..COUNT).map(|number| format!("m{number}.o"));
        let end = ["-o".to_owned(), output.to_owned()];
        Ok(words.into_iter().chain(modules).chain(self.options.iter().cloned()).chain(end).collect())
    }

    fn cache(&self) -> PathBuf {
        self.folder.path.join("cache")
    }

    /// Links; returns how many backends were out of date, and what was said.
    fn link(&self) -> Result<(usize, String)> {
        self.link_with(&[])
    }

    fn link_with(&self, options: &[&str]) -> Result<(usize, String)> {
        let mut command = Command::new(distlto::binary()?);
        command
            .args(["link", "-v"])
            .args(options)
            .arg("--")
            .args(self.words("P")?)
            .current_dir(&self.folder.path);
        command.env("XDG_CACHE_HOME", self.cache());
        let output = succeed(&mut command)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if said.contains("nothing to do") {
            return Ok((0, said));
        }
        let end = said.find(" backends were out of date").with_context(|| told(&command, &output))?;
        let line = said[..end].rsplit('\n').next().unwrap_or_default();
        let count = line.rsplit("; ").next().and_then(|words| words.split(' ').next());
        Ok((count.unwrap_or_default().parse()?, said))
    }

    /// The program that the linker makes alone.
    fn alone(&self) -> Result<Vec<u8>> {
        let words = self.words("alone")?;
        succeed(Command::new(&words[0]).args(&words[1..]).current_dir(&self.folder.path))?;
        Ok(fs::read(self.folder.path.join("alone"))?)
    }

    fn is_as_alone(&self) -> Result<()> {
        ensure!(fs::read(self.folder.path.join("P"))? == self.alone()?, "the program is not the linker's");
        Ok(())
    }

    /// The objects in the store.
    fn objects(&self) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
        let mut objects = BTreeMap::new();
        for folder in fs::read_dir(self.cache().join("distlto/results-v1/blobs"))? {
            for file in fs::read_dir(folder?.path())? {
                let path = file?.path();
                objects.insert(path.clone(), fs::read(&path)?);
            }
        }
        Ok(objects)
    }
}

fn overwrite(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))?;
    Ok(fs::write(path, bytes)?)
}

/// Damages all objects of a link, and links again after an edit of one module, which leaves the others kept.
fn refuses(name: &str, damage: impl Fn(&[(PathBuf, Vec<u8>)]) -> Result<()>) -> Result<()> {
    let link = Link::create(name, &[])?;
    ensure!(link.link()?.0 == COUNT + 1, "not all backends ran");
    link.is_as_alone()?;
    let objects: Vec<_> = link.objects()?.into_iter().collect();
    ensure!(objects.len() == COUNT + 1, "{} objects", objects.len());
    damage(&objects)?;
    fs::remove_file(link.folder.path.join("P"))?;
    let (ran, said) = link.link()?;
    ensure!(ran == COUNT + 1, "{ran} backends ran: {said}");
    ensure!(said.contains("damaged cache entry removed"), "{said}");
    link.is_as_alone()?;
    fs::remove_file(link.folder.path.join("P"))?;
    let (ran, said) = link.link()?;
    ensure!(ran == 0 && !said.contains("damaged"), "{ran} backends ran: {said}");
    link.is_as_alone()
}

#[test]
fn an_object_with_another_bit_is_refused() -> Result<()> {
    refuses("flipped", |objects| {
        objects.iter().try_for_each(|(path, bytes)| {
            let mut bytes = bytes.clone();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            overwrite(path, &bytes)
        })
    })
}

#[test]
fn an_object_with_another_end_is_refused() -> Result<()> {
    refuses("truncated", |objects| {
        objects.iter().try_for_each(|(path, bytes)| overwrite(path, &bytes[..bytes.len() / 2]))
    })
}

#[test]
fn an_object_of_another_module_is_refused() -> Result<()> {
    refuses("swapped", |objects| {
        let others = objects.iter().cycle().skip(1);
        objects.iter().zip(others).try_for_each(|((path, _), (_, other))| overwrite(path, other))
    })
}

#[test]
fn an_edit_runs_the_backends_whose_key_it_changes() -> Result<()> {
    let link = Link::create("edit", &[])?;
    link.link()?;
    link.module(2, "int f3(int); int f2(int x) { return x < 1 ? 77 : f3(x - 1); }")?;
    let (ran, said) = link.link()?;
    ensure!((1..=COUNT + 1).contains(&ran), "{ran} backends ran: {said}");
    link.is_as_alone()?;
    // The earlier objects are still there.
    link.module(2, "int f3(int); int f2(int x) { return x < 1 ? 2 : f3(x - 1); }")?;
    ensure!(link.link()?.0 == 0, "an earlier object was not found");
    link.is_as_alone()
}

/// Levels that a shard does not describe, and options that no compiler has.
#[test]
fn each_level_and_option_makes_the_linkers_program() -> Result<()> {
    let options = [
        &["-Wl,--lto-O0"][..],
        &["-Wl,--lto-O1"],
        &["-Wl,--lto-O3", "-Wl,--lto-CGO0"],
        &["-Wl,--lto-O0", "-Wl,--lto-CGO3"],
        &["-Wl,--lto-newpm-passes=default<O1>"],
        &["-Wl,-mllvm,-inline-threshold=0"],
        &["-Wl,-mllvm,-exception-model=sjlj"],
        &["-nostdlib", "-no-pie", "-r"],
    ];
    let mut link = Link::create("options", &[])?;
    for options in options {
        let options = options.iter().map(|&option| option.to_owned()).collect();
        link.options = options;
        // The settings differ, so no object of the link before counts.
        ensure!(link.link()?.0 == COUNT + 1, "{:?}: an object of other options", link.options);
        link.is_as_alone()?;
        fs::remove_file(link.folder.path.join("P"))?;
        ensure!(link.link()?.0 == 0, "{:?}: its own objects are not found", link.options);
        link.is_as_alone()?;
    }
    Ok(())
}

#[test]
fn a_file_that_the_assembler_includes_belongs_to_the_object() -> Result<()> {
    let link = Link::create("included", &[])?;
    link.folder.write("data", "first")?;
    link.module(1, "__asm__(\".section .rodata\\n.incbin \\\"data\\\"\\n.text\"); int f2(int); int f1(int x) { return f2(x); }")?;
    link.link()?;
    link.folder.write("data", "second")?;
    // LLVM also looks at the assembly of modules that it imports from.
    let (ran, said) = link.link()?;
    ensure!(ran >= 1, "no backend ran: {said}");
    link.is_as_alone()?;
    fs::remove_file(link.folder.path.join("P"))?;
    ensure!(link.link()?.0 == 0, "the object is not found");
    link.is_as_alone()
}

#[test]
fn warnings_of_a_backend_come_with_its_object() -> Result<()> {
    let link = Link::create("warnings", &[])?;
    // A function's own limit.
    link.folder.write(
        "m1.c",
        "int f2(int); int f1(int x) { volatile int all[99] = {0}; all[x] = f2(x); return all[x]; }",
    )?;
    let line = "%clang -O2 -flto=thin -Wframe-larger-than=10 -c m1.c -o m1.o";
    succeed(&mut link.folder.command(line, "")?)?;
    let (_, first) = link.link()?;
    let is_warned = |said: &str| said.contains("stack frame size") && said.contains("f1");
    ensure!(is_warned(&first), "{first}");
    fs::remove_file(link.folder.path.join("P"))?;
    let (ran, again) = link.link()?;
    ensure!(ran == 0 && is_warned(&again), "{ran} backends ran: {again}");
    link.is_as_alone()
}

/// lld goes on after an error of a backend, and makes an object.
#[test]
fn an_object_of_an_error_is_not_kept() -> Result<()> {
    let link = Link::create("error", &[])?;
    link.module(
        1,
        "int f2(int); int f1(int x) { __asm__ volatile(\"no_such_instruction\"); return f2(x); }",
    )?;
    for _ in 0..2 {
        let mut command = Command::new(distlto::binary()?);
        command.args(["link", "--"]).args(link.words("P")?).current_dir(&link.folder.path);
        let (_, said) = fail(command.env("XDG_CACHE_HOME", link.cache()))?;
        ensure!(said.contains("invalid instruction mnemonic"), "{said}");
        ensure!(!link.folder.path.join("P").exists(), "there is a program");
    }
    link.module(1, "int f2(int); int f1(int x) { return f2(x); }")?;
    link.link()?;
    link.is_as_alone()
}

/// Two programs of one folder share objects, if their settings are equal.
#[test]
fn another_program_finds_the_objects() -> Result<()> {
    let link = Link::create("shared", &[])?;
    link.link()?;
    let mut command = Command::new(distlto::binary()?);
    command.args(["link", "-v", "--"]).args(link.words("other")?).current_dir(&link.folder.path);
    let output = succeed(command.env("XDG_CACHE_HOME", link.cache()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(said.contains("; 0 of 7 backends were out of date"), "{said}");
    ensure!(fs::read(link.folder.path.join("other"))? == link.alone()?, "another program");
    Ok(())
}

/// The limit of a store is for what links no longer use.
#[test]
fn a_link_larger_than_the_store_keeps_its_objects() -> Result<()> {
    let link = Link::create("small-store", &[])?;
    let small = ["--cache-size=4K"];
    let (all, said) = link.link_with(&small)?;
    ensure!(all == COUNT + 1 && said.contains("raise --cache-size"), "{said}");
    link.module(0, "int f1(int); int f0(int x) { return x < 1 ? 7 : f1(x - 1); }")?;
    let (small_ran, said) = link.link_with(&small)?;
    ensure!(said.contains("raise --cache-size"), "{said}");
    let other = Link::create("large-store", &[])?;
    other.link()?;
    other.module(0, "int f1(int); int f0(int x) { return x < 1 ? 7 : f1(x - 1); }")?;
    let (ran, said) = other.link()?;
    ensure!(small_ran == ran && !said.contains("--cache-size"), "{small_ran} of {ran}: {said}");
    Ok(())
}
