//! A build in the shape of Linux's Kbuild, upstream's way and with `rules/kbuild`: which backends run after an edit, and
//! whether the native objects are the same. And graphs of builds that record flags.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use distlto_tests::example::Example;
use distlto_tests::toolchain::repository;

/// The modules of `vmlinux`.
const MODULES: &[&str] = &["init/main", "kernel/async", "kernel/time", "lib/string"];

/// What of a build's output says that a backend ran.
fn backends(said: &str) -> Vec<&str> {
    let ran = |line: &str| line.trim().strip_prefix("cc ")?.strip_suffix(".thinlto-native.o").map(str::len);
    let mut found: Vec<&str> =
        said.lines().filter(|line| ran(line).is_some()).map(|line| &line.trim()[3..]).collect();
    found.iter_mut().for_each(|name| *name = name.trim_end_matches(".thinlto-native.o"));
    found.sort_unstable();
    found
}

fn edit(example: &Example, file: &str, from: &str, to: &str) -> Result<()> {
    let path = example.dir.join(file);
    let text = fs::read_to_string(&path)?;
    ensure!(text.contains(from), "{file} has no {from}");
    Ok(fs::write(&path, text.replace(from, to))?)
}

/// The native objects of all modules, and the program.
fn made(example: &Example) -> Result<BTreeMap<String, Vec<u8>>> {
    let objects = MODULES.iter().map(|name| format!("{name}.thinlto-native.o"));
    objects
        .chain(["vmlinux".to_owned()])
        .map(|name| Ok((name.clone(), fs::read(example.dir.join(&name))?)))
        .collect()
}

fn rules() -> Result<String> {
    let rules = repository().join("rules/kbuild/distlto-kbuild.mk");
    Ok(format!("MAKEFILES={}", rules.to_str().context("paths are UTF-8")?))
}

#[test]
fn an_edit_compiles_what_it_changes() -> Result<()> {
    let upstream = Example::copy_for("kbuild", "kbuild-upstream")?;
    ensure!(backends(&upstream.run("make", &[])?) == MODULES);
    edit(&upstream, "kernel/time.c", "21", "22")?;
    ensure!(
        backends(&upstream.run("make", &[])?) == MODULES,
        "upstream compiles all modules after each edit"
    );

    let rules = rules()?;
    let linker = "LD=distlto-ld.lld-22".to_owned();
    for (number, (name, way)) in
        [("with the rules", &rules), ("with the linker alone", &linker)].into_iter().enumerate()
    {
        let ours = Example::copy_for("kbuild", &format!("kbuild-{number}"))?;
        let make = || ours.run("make", &[way.as_str()]);
        ensure!(backends(&make()?) == MODULES, "{name}");
        ensure!(!make()?.contains("  "), "{name}: a second build runs something");
        edit(&ours, "kernel/time.c", "21", "22")?;
        let said = make()?;
        ensure!(backends(&said) == ["init/main", "kernel/async", "kernel/time"], "{name}: {said}");
        ensure!(made(&ours)? == made(&upstream)?, "{name}: the objects are others than upstream's");
        let module = |example: &Example| fs::read(example.dir.join("drivers/disk.o"));
        // The rules compile each object with its own flags, lld in process does not.
        let alike = module(&ours)? == module(&upstream)?;
        ensure!(alike == (way == &linker), "{name}: a module of several objects");
        edit(&ours, "lib/string.c", "length++", "length += 1")?;
        let said = make()?;
        ensure!(backends(&said).len() <= 2, "{name}: {said}");
        let program = ours.run("./vmlinux", &[])?;
        ensure!(program == "work 43, time 22, length 6, entry 42\n", "{name}: {program}");
    }
    Ok(())
}

#[test]
fn a_kernel_module_of_several_objects_is_linked_with_their_own_flags() -> Result<()> {
    let example = Example::copy_for("kbuild", "kbuild-module")?;
    let rules = rules()?;
    example.run("make", &[&rules, "drivers/disk.o"])?;
    let symbols = example.run("llvm-nm-22", &["drivers/disk.o"])?;
    ensure!(symbols.contains("T disk_read") && symbols.contains("T queue_push"), "{symbols}");
    edit(&example, "drivers/queue.c", "* 2", "* 3")?;
    example.run("make", &[&rules, "drivers/disk.o"])?;
    let said = example.run("make", &[&rules, "drivers/disk.o"])?;
    ensure!(!said.contains("  "), "{said}");
    Ok(())
}

#[test]
fn a_native_object_that_is_gone_or_empty_is_told() -> Result<()> {
    let example = Example::copy_for("kbuild", "kbuild-gone")?;
    let rules = rules()?;
    example.run("make", &[&rules])?;
    let archive = fs::read(example.dir.join("vmlinux.a"))?;
    let arguments = [
        "kbuild-archive",
        "--out",
        "vmlinux.a",
        "--order",
        "builtin.order",
        "--index",
        "vmlinux.thinlto-index",
        "--",
        "llvm-ar-22",
        "cDPrS",
        "--thin",
    ];
    fs::write(example.dir.join("lib/string.thinlto-native.o"), "")?;
    let error = example.run("distlto", &arguments).expect_err("an object is empty").to_string();
    ensure!(error.contains("where the native object of lib/string.o should be"), "{error}");
    fs::remove_file(example.dir.join("lib/string.thinlto-native.o"))?;
    example.run("distlto", &arguments).expect_err("an object is gone");
    ensure!(fs::read(example.dir.join("vmlinux.a"))? == archive, "the archive is another one");
    fs::remove_file(example.dir.join("lib/.string.o.cmd"))?;
    let arguments = [
        "opt",
        "--out",
        "x.o",
        "--input",
        "lib/string.o",
        "--index",
        "lib/string.o.thinlto.bc",
        "--flags-from",
        "lib/.string.o.cmd",
        "--",
        "clang-22",
    ];
    let error = example.run("distlto", &arguments).expect_err("flags are gone").to_string();
    ensure!(error.contains("lib/.string.o.cmd, where the flags of lib/string.o should be"), "{error}");
    Ok(())
}

/// Objects of a build with odd names, each with its recorded flags.
#[test]
fn a_graph_has_the_recorded_flags() -> Result<()> {
    let example = Example::copy_for("kbuild", "kbuild-plan")?;
    example.run("make", &["vmlinux.a"])?;
    let odd = ["a=b #1.o", "b%'x.o", "m: $(id)*.o", "d d/e[1].o"];
    fs::create_dir(example.dir.join("d d"))?;
    for (name, module) in odd.iter().zip(MODULES) {
        fs::copy(example.dir.join(format!("{module}.o")), example.dir.join(name))?;
        let record = Path::new(module).with_file_name(format!(
            ".{}.o.cmd",
            Path::new(module).file_name().context("a module has a name")?.display()
        ));
        let text = fs::read_to_string(example.dir.join(record))?
            .replace(&format!("{module}.o :="), &format!("{name} :="));
        let name = Path::new(name);
        let place = name.with_file_name(format!(".{}.cmd", name.file_name().context("a name")?.display()));
        fs::write(example.dir.join(place), text)?;
    }
    let mut index =
        vec!["--index", "i x", "--flags-from", "kbuild", "--", "ld.lld-22", "-r", "-o", "out 1.o"];
    index.extend(odd);
    example.run("distlto-index", &index)?;
    example.run("distlto", &["plan", "--ninja", "p l.ninja", "i x"])?;
    let build = || example.run("ninja", &["-v", "-f", "p l.ninja"]);
    let built = build()?;
    let compiled = |said: &str| said.matches("distlto-opt --out").count();
    ensure!(compiled(&built) == odd.len(), "{built}");
    ensure!(built.contains("-falign-functions=64") && built.contains("-O3"), "flags of their own: {built}");
    ensure!(compiled(&build()?) == 0, "a second build compiles");
    let symbols = example.run("llvm-nm-22", &["out 1.o"])?;
    ensure!(symbols.contains("T main"), "{symbols}");
    // kernel/time.o, as it was after an edit.
    edit(&example, "kernel/time.c", "21", "22")?;
    example.run("make", &["kernel/time.o"])?;
    fs::copy(example.dir.join("kernel/time.o"), example.dir.join(odd[2]))?;
    let again = build()?;
    ensure!(compiled(&again) == 3, "the edited module and its two importers: {again}");
    Ok(())
}
