//! Modules that LLVM or its thin link treats in a way of their own: names that are not ASCII, split LTO units.
//!
//! Backends are run by `distlto opt`, and the program by what it has to say.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::run::{capture, succeed};

use super::rule::Rule;

/// Compiles what a link has planned, links it, and gives the program's exit code.
fn finish(rule: &Rule) -> Result<Option<i32>> {
    rule.folder.write("args", "-O2\n")?;
    let clang = rule.folder.toolchain.tool("clang")?;
    for entry in &rule.meta {
        let linkable = &entry["linkables"][0];
        let text = |key: &str| linkable[key].as_str().with_context(|| format!("an object has {key}"));
        let (module, shard) = (text("path")?, text("output")?);
        let mut opt = Command::new(distlto::binary()?);
        opt.args(["opt", "--input", module, "--index", shard, "--split-dwarf=none", "--args", "args"]);
        opt.args(["--out", &shard.replace(".thinlto.bc", ".opt.o"), "--"]).arg(&clang);
        succeed(opt.current_dir(&rule.folder.path))?;
    }
    let mut link = Command::new(&rule.driver[0]);
    succeed(
        link.args(&rule.driver[1..]).args(["@out/final", "-o", "program"]).current_dir(&rule.folder.path),
    )?;
    Ok(capture(&mut Command::new(rule.path("program")))?.status.code())
}

#[test]
fn names_that_are_not_ascii_name_their_modules() -> Result<()> {
    let mut rule = Rule::create("not-ascii")?;
    // LLVM garbles the first two into one and the same name.
    rule.object("größe/ä.o", "int o(void), name(int); int main(void) { return o() + name(1); }", true)?;
    rule.object("größe/ö.o", "int name(int); int o(void) { return name(2); }", true)?;
    rule.object("größe/名前.o", "int plain(void); int name(int x) { return plain() + x; }", true)?;
    rule.object("plain.o", "int plain(void) { return 10; }", true)?;
    rule.run()?;
    let plan = rule.json("out/0/größe/ä.o.opt.plan")?;
    ensure!(
        plan["imports"].as_array().is_some_and(|imports| imports.len() >= 2),
        "nothing is imported: {plan}"
    );
    ensure!(finish(&rule)? == Some(23), "another program");

    // The same shards again, and none is written anew.
    let shard = fs::read(rule.path("out/0/größe/ä.o.thinlto.bc"))?;
    rule.run()?;
    ensure!(fs::read(rule.path("out/0/größe/ä.o.thinlto.bc"))? == shard, "another shard");
    Ok(())
}

const VIRTUAL: &str = "struct A { virtual int f(); }; struct B : A { int f() override; };\n";

fn with_vtables(name: &str, flags: &[&str]) -> Result<Rule> {
    let mut rule = Rule::create(name)?;
    for (object, body) in [
        ("main.o", "A *make(); int main() { return make()->f() - 2; }"),
        ("make.o", "int A::f() { return 1; } int B::f() { return 2; } A *make() { return new B; }"),
    ] {
        rule.object(object, "", true)?;
        rule.folder.write("source.cpp", format!("{VIRTUAL}{body}\n"))?;
        let mut clang = Command::new(rule.folder.toolchain.tool("clang++")?);
        clang.args(["-O2", "-flto=thin", "-fvisibility=hidden", "-fwhole-program-vtables"]).args(flags);
        succeed(clang.args(["-c", "source.cpp", "-o", object]).current_dir(&rule.folder.path))?;
    }
    Ok(rule)
}

#[test]
fn split_units_are_refused_at_once() -> Result<()> {
    let rule = with_vtables("split", &[])?;
    let output = rule.try_run()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(3), "{:?}: {said}", output.status);
    for part in ["is a split LTO unit", "-fno-split-lto-unit"] {
        ensure!(said.contains(part), "no {part:?} in: {said}");
    }
    for file in ["out/link-plan.json", "out/final", "out/0/main.o.opt.plan", "out/1/make.o.opt.plan"] {
        ensure!(!rule.path(file).exists(), "{file} is there");
    }
    Ok(())
}

#[test]
fn vtables_of_the_whole_program_need_no_split_units() -> Result<()> {
    let rule = with_vtables("whole-program-vtables", &["-fno-split-lto-unit"])?;
    rule.run()?;
    ensure!(finish(&rule)? == Some(0), "another program");
    Ok(())
}
