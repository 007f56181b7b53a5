//! Links that fail, and what earlier ones have left: nothing half-written, nothing stale, the linker's own exit code.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::rule::{INDEX, Rule, below};

const MAIN: &str = "int f(void); int main(void) { return f(); }";
const F: &str = "int f(void) { return 3; }";

fn small(name: &str) -> Result<Rule> {
    let mut rule = Rule::create(name)?;
    rule.object("main.o", MAIN, true)?;
    rule.object("f.o", F, true)?;
    Ok(rule)
}

fn refused(rule: &Rule, output: &Output, code: i32, says: &[&str]) -> Result<()> {
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(code), "{:?}: {said}", output.status);
    for part in says {
        ensure!(said.contains(part), "no {part:?} in: {said}");
    }
    for file in ["out/link-plan.json", "out/final", "out/0/main.o.opt.plan", "out/1/f.o.opt.plan"] {
        ensure!(!rule.path(file).exists(), "{file} is there");
    }
    Ok(())
}

#[test]
fn a_failing_linker_keeps_its_exit_code_and_its_words() -> Result<()> {
    let mut rule = small("failing")?;
    rule.object("twice.o", F, true)?;
    refused(&rule, &rule.try_run()?, 1, &["duplicate symbol: f", "the thin link failed"])?;
    let script = rule.folder.write("seven", "#!/bin/sh\necho what it says\nexit 7\n")?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    rule.driver = vec![script.display().to_string()];
    let output = rule.try_run()?;
    refused(&rule, &output, 7, &["the thin link failed"])?;
    ensure!(output.stdout == b"what it says\n", "{:?}", output.stdout);
    Ok(())
}

#[test]
fn a_linker_that_writes_nothing_is_no_success() -> Result<()> {
    let mut rule = small("silent")?;
    rule.driver = vec!["true".to_owned()];
    refused(&rule, &rule.try_run()?, 7, &["the linker wrote no", "index"])
}

#[test]
fn a_missing_argument_file_is_named() -> Result<()> {
    let rule = small("no-argument-file")?;
    let mut command = rule.command()?;
    fs::remove_file(rule.path("app.thinlto_index_argsfile"))?;
    let output = command.output()?;
    refused(&rule, &output, 3, &["cannot read the link's argument file app.thinlto_index_argsfile"])
}

/// clang compiles such an input to an object of its own and links that: the planner would plan a link without it.
#[test]
fn what_the_driver_keeps_from_the_linker_is_refused() -> Result<()> {
    let mut rule = small("compiled-by-driver")?;
    rule.object("lost.bc", "__attribute__((constructor)) void lost(void) {}", true)?;
    let says = ["lost.bc never reaches the linker", "meta.json lists it", "a name that ends in `.o`"];
    refused(&rule, &rule.try_run()?, 3, &says)
}

#[test]
fn bad_meta_files_are_refused_before_the_link() -> Result<()> {
    let rule = small("bad-meta")?;
    for (text, says) in [
        (&b"[{\"pre_flags\": ["[..], "meta.json is no JSON: [0].pre_flags (line 1, column 16): EOF"),
        (
            b"[{\"pre_flags\": [], \"post_flags\": [], \"linkables\": [{\"type\": \"rlib\"}]}]",
            "[0].linkables[0] (line 1, column ",
        ),
        (b"[\"\xff\"]", "meta.json is not UTF-8 at byte 2"),
    ] {
        let mut command = rule.command()?;
        rule.folder.write("meta.json", text)?;
        refused(&rule, &command.output()?, 3, &[says])?;
        ensure!(!rule.path(INDEX).exists(), "the link has run");
    }
    Ok(())
}

#[test]
fn an_import_out_of_an_opaque_archive_says_what_to_set() -> Result<()> {
    let mut rule = Rule::create("opaque-bitcode")?;
    rule.object("main.o", MAIN, true)?;
    rule.compile("member.o", F, true)?;
    rule.archive("libopaque.a", &["member.o"])?;
    rule.opaque("libopaque.a", &["libopaque.a"]);
    let says =
        ["main.o imports libopaque.a(member.o at", "libopaque.a holds bitcode", "`supports_lto = True`"];
    refused(&rule, &rule.try_run()?, 3, &says)
}

#[test]
fn a_listed_module_without_files_is_an_error() -> Result<()> {
    for broken in ["", "f.o.thinlto.bc", "f.o.imports", "main.o.thinlto.bc"] {
        let mut rule = small("missing-files")?;
        rule.driver = vec!["true".to_owned()];
        let listing = format!("{}\n{}\n", below("main.o"), below("f.o"));
        rule.folder.write(&below("index"), &listing)?;
        rule.folder.write(&below("index.full"), &listing)?;
        for (module, imports) in [("main.o", "f.o\n"), ("f.o", "")] {
            rule.folder.write(&below(&format!("{module}.thinlto.bc")), "shard")?;
            rule.folder.write(&below(&format!("{module}.imports")), imports)?;
        }
        if broken.is_empty() {
            ensure!(rule.try_run()?.status.success(), "a whole directory is refused");
            continue;
        }
        fs::remove_file(rule.path(&below(broken))).context("no such file")?;
        refused(&rule, &rule.try_run()?, 3, &[&format!("{broken} is missing")])?;
    }
    Ok(())
}

#[test]
fn what_an_earlier_link_left_is_not_taken_for_this_ones() -> Result<()> {
    for removes_index in [true, false] {
        let rule = small("stale")?;
        rule.run()?;
        ensure!(rule.json("out/1/f.o.opt.plan")?["is_bc"] == json!(true));
        ensure!(rule.path(&below("f.o.imports")).exists());
        rule.compile("f.o", F, false)?;
        // What Buck2 does before it runs an action again: `index` is the only declared file of the directory.
        for file in ["out/0", "out/1", "out/link-plan.json", "out/final"] {
            let path = rule.path(file);
            if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
        }
        if removes_index {
            // An interrupted planner leaves shards too.
            rule.folder.write(&below("f.o.thinlto.bc"), "an old shard")?;
            fs::remove_file(rule.path(&below("index")))?;
        }
        rule.run()?;
        ensure!(rule.json("out/1/f.o.opt.plan")? == json!({"is_bc": false}));
        ensure!(fs::metadata(rule.path("out/1/f.o.thinlto.bc"))?.len() == 0);
        ensure!(rule.json("out/link-plan.json")? == json!({"index": {"0": 1}, "non_lto_objects": {"1": 1}}));
        ensure!(rule.lines("out/final")? == ["", "out/0/main.o.opt.o", "f.o"]);
    }
    Ok(())
}

#[test]
fn outputs_that_are_there_already_are_written_where_they_differ() -> Result<()> {
    let mut rule = small("again")?;
    rule.run()?;
    let plan = fs::read(rule.path("out/0/main.o.opt.plan"))?;
    rule.folder.write("out/0/main.o.opt.plan", "left over")?;
    rule.folder.write("out/0/main.o.thinlto.bc", "left over")?;
    rule.folder.write("out/link-plan.json", "left over")?;
    rule.run()?;
    ensure!(fs::read(rule.path("out/0/main.o.opt.plan"))? == plan);
    ensure!(fs::metadata(rule.path("out/0/main.o.thinlto.bc"))?.len() > 100);
    ensure!(rule.json("out/link-plan.json")?["index"] == json!({"0": 1, "1": 1}));
    // FullLTO bitcode has no backend: it is linked as it is, and the linker compiles it.
    let clang = rule.folder.toolchain.tool("clang")?;
    let mut full = std::process::Command::new(clang);
    full.args(["-O2", "-flto", "-c", "sources/f.o.c", "-o", "f.o"]).current_dir(&rule.folder.path);
    distlto_tests::run::succeed(&mut full)?;
    rule.more.push("-O2".to_owned());
    rule.run()?;
    ensure!(rule.json("out/1/f.o.opt.plan")? == json!({"is_bc": false}));
    ensure!(rule.lines("out/final")? == ["", "out/0/main.o.opt.o", "f.o"]);
    Ok(())
}
