//! Buck2's rules without Buck2: `rules/buck2` and `examples/buck2` are evaluated by the interpreter that Buck2 uses, and
//! the actions that they declare are run for real, each in a directory that holds its declared inputs only.
//!
//! `cargo xtask test --buck2` does the same with Buck2 itself.

mod build;
mod guide;
mod programs;
mod project;
mod render;
mod rules;
mod sandbox;
mod values;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::succeed;
use distlto_tests::toolchain::{NEWEST, Toolchain};

use project::{Built, Project};

const SAID: &str = "9 words, longest quick: dhvpx, fletcher 65256, adler 1541148634\n";

/// The example in a folder of its own.
fn example(name: &str) -> Result<Project> {
    let root = folder(name)?;
    project::copy_example(&root)?;
    let program = fs::canonicalize(distlto::binary()?)?;
    let program = program.to_str().context("the program's path is UTF-8")?;
    Ok(Project {
        root,
        config: BTreeMap::from([("distlto.program".to_owned(), program.to_owned())]),
        path: None,
        rules: fs::read_to_string(project::rules().join("distlto.bzl"))?,
        done: HashMap::new(),
    })
}

fn folder(name: &str) -> Result<PathBuf> {
    let folder = Folder::create(Toolchain { version: NEWEST }, &format!("buck2/{name}"))?;
    Ok(folder.path.join("project"))
}

/// The program as the example has it, built once for all tests.
fn first_build() -> Result<&'static (Project, Built)> {
    static FIRST: OnceLock<Result<(Project, Built), String>> = OnceLock::new();
    let build = || {
        let mut project = example("first")?;
        let built = project.build(":words")?;
        Ok((project, built))
    };
    let first = FIRST.get_or_init(|| build().map_err(|error: anyhow::Error| format!("{error:#}")));
    first.as_ref().map_err(|error| anyhow!("{error}"))
}

/// A copy of the example in which the program is built.
fn built_example(name: &str) -> Result<Project> {
    let (first, _) = first_build()?;
    let root = folder(name)?;
    sandbox::copy(&first.root, &root)?;
    Ok(Project { root, ..first.clone() })
}

impl Project {
    fn edit(&self, file: &str, from: &str, to: &str) -> Result<()> {
        let path = self.root.join(file);
        let text = fs::read_to_string(&path)?;
        ensure!(text.contains(from), "{file} does not hold {from}");
        fs::write(path, text.replacen(from, to, 1)).context("cannot edit")
    }
}

/// What the built program prints.
fn say(built: &Built) -> Result<String> {
    let program = built.outputs.first().context("a binary has an output")?;
    Ok(String::from_utf8(succeed(&mut Command::new(program))?.stdout)?)
}

/// The inputs of one action that lie below a part of their path.
fn inputs<'a>(built: &'a Built, action: &str, part: &str) -> Result<Vec<&'a str>> {
    let inputs = built.inputs.get(action).with_context(|| format!("{action} is no part of the build"))?;
    Ok(inputs.iter().filter_map(|input| Some(input.split_once(part)?.1)).collect())
}

#[test]
fn example_program() -> Result<()> {
    let (_, built) = first_build()?;
    assert_eq!(say(built)?, SAID);
    let backends = [
        "own-checksum/libchecksum.a(adler.o)",
        "own-checksum/libchecksum.a(fletcher.o)",
        "own-text/text/letters.cpp.o",
        "own-text/text/longest.cpp.o",
        "own-text/text/split.cpp.o",
        "words/app/main.cpp.o",
        "words/app/report.cpp.o",
    ];
    assert_eq!(
        built.ran_of("distlto_opt"),
        backends,
        "every loaded module, no unused member, no machine code"
    );
    assert!(built_example("unchanged")?.build(":words")?.ran.is_empty(), "nothing has changed");
    Ok(())
}

#[test]
fn import_of_one_member_reads_that_member_alone() -> Result<()> {
    let (_, built) = first_build()?;
    let members = |module: &str| {
        inputs(built, &format!("words: distlto_opt words/app/{module}.cpp.o"), "libchecksum.a(")
    };
    assert_eq!(members("main")?, ["adler.o).bc"]);
    assert_eq!(members("report")?, ["fletcher.o).bc"]);
    Ok(())
}

#[test]
fn edit_runs_the_backends_it_concerns() -> Result<()> {
    let mut project = built_example("edit")?;
    project.edit("checksum/adler.cpp", "a = 1", "a = 2")?;
    let built = project.build(":words")?;
    let concerned = ["own-checksum/libchecksum.a(adler.o)", "words/app/main.cpp.o"];
    assert_eq!(built.ran_of("distlto_opt"), concerned);
    assert_ne!(say(&built)?, SAID);

    project.edit("checksum/adler.cpp", "a = 2", "a = 1")?;
    let built = project.build(":words")?;
    assert_eq!(built.ran_of("distlto_opt"), concerned);
    assert_eq!(say(&built)?, SAID);

    project.edit("text/letters.cpp", "#include", "// A comment changes no bitcode.\n#include")?;
    let built = project.build(":words")?;
    assert_eq!(built.ran, ["own-text: distlto_compile text/letters.cpp"]);
    Ok(())
}

#[test]
fn further_file_leaves_the_other_backends_alone() -> Result<()> {
    let mut project = built_example("further-file")?;
    fs::write(project.root.join("text/another.cpp"), "int another() { return 1; }\n")?;
    let built = project.build(":words")?;
    assert_eq!(
        built.ran,
        ["own-text: distlto_compile text/another.cpp", "words: distlto_thin_link ", "words: distlto_link "],
        "a file that is not used concerns no backend"
    );
    Ok(())
}

#[test]
fn archive_before_another_leaves_its_backends_alone() -> Result<()> {
    let mut project = built_example("further-archive")?;
    fs::write(project.root.join("early.c"), "int early(void) { return 1; }\n")?;
    let archive = "genrule(\n    name = \"early-archive\",\n    srcs = [\"early.c\"],\n    out = \"libearly.a\",\n    \
         cmd = \"clang-22 -flto=thin -fPIC -c early.c -o $TMP/early.o && llvm-ar-22 rcs $OUT $TMP/early.o\",\n)\n\
         distlto_prebuilt_library(name = \"early\", archive = \":early-archive\")\n\n";
    let place = "distlto_binary(\n    name = \"words\",";
    project.edit("BUCK", place, &format!("{archive}{place}"))?;
    project.edit(
        "BUCK",
        "deps = [\n        \":own-checksum\"",
        "deps = [\n        \":early\",\n        \":own-checksum\"",
    )?;
    let built = project.build(":words")?;
    let own: Vec<_> = built.ran.iter().filter(|action| action.starts_with("words: ")).collect();
    assert_eq!(own, ["words: distlto_thin_link ", "words: distlto_link "]);
    Ok(())
}

#[test]
fn shared_library() -> Result<()> {
    let mut project = built_example("shared")?;
    let built = project.build(":words-shared")?;
    assert_eq!(say(&built)?, SAID);
    assert_eq!(
        built.ran_of("distlto_opt").len(),
        8,
        "five modules behind the library, its own, and two of the program"
    );
    assert!(built.outputs.iter().any(|output| output.ends_with("libown-all.so")), "{:?}", built.outputs);
    Ok(())
}

/// Archives without members, of machine code only, linked unopened and as a whole; spaces in names; a link of one file;
/// bitcode that is named as sources are.
#[test]
fn odd_inputs() -> Result<()> {
    let mut project = example("odd")?;
    for (file, text) in [
        ("BUCK", include_str!("buck2/odd.txt")),
        ("native.c", "int native(void) { return 1; }\n"),
        ("spaced.c", "int spaced(void) { return 2; }\n"),
        (
            "loud.c",
            "#include <stdio.h>\n__attribute__((constructor)) static void loud(void) { puts(\"whole\"); }\n",
        ),
        ("said.c", "#include <stdio.h>\n__attribute__((constructor)) static void say(void) { puts(WHO); }\n"),
        ("lone.c", "#include <stdio.h>\nint main(void) { puts(\"lone\"); return 0; }\n"),
        (
            "two words.c",
            "#include <stdio.h>\nint native(void), spaced(void);\n\
             int main(void) { printf(\"%d\\n\", native() + spaced()); return 0; }\n",
        ),
    ] {
        fs::write(project.root.join(file), text)?;
    }
    for (target, text) in [
        (":unpacked", "whole\n3\n"),
        (":unopened", "whole\n3\n"),
        (":lone", "lone\n"),
        (":sourcelike", "input.bc\nm.bc\nf.s\nlone\n"),
    ] {
        assert_eq!(say(&project.build(target)?)?, text, "{target}");
    }
    Ok(())
}

/// The sandbox must notice what a rule forgets, or the tests above show nothing.
#[test]
fn undeclared_import_is_an_error() -> Result<()> {
    let mut project = built_example("undeclared")?;
    ensure!(project.rules.contains("hidden = [inputs, link.flags]"), "the rule names imports otherwise");
    project.rules =
        project.rules.replace("hidden = [inputs, link.flags]", "hidden = [inputs[:2], link.flags]");
    let error = format!("{:#}", project.build(":words").err().context("a backend ran without its imports")?);
    ensure!(error.contains("distlto_opt"), "{error}");
    Ok(())
}

/// What a toolchain of the prelude is given that has everything else already, and no more.
#[test]
fn toolchain_that_one_has_takes_four_attributes() -> Result<()> {
    let project = example("own-toolchain")?;
    let file = project.root.join("toolchains/BUCK");
    let text = "load(\"@distlto//:toolchain.bzl\", \"distlto_thin_lto\")\n\
        load(\"@prelude//cxx:cxx_toolchain.bzl\", \"cxx_toolchain_inheriting_target_platform\")\n\
        cxx_toolchain_inheriting_target_platform(name = \"mine\", **distlto_thin_lto(name = \"lto\", distlto = \"/bin/d\"))\n";
    fs::write(file, text)?;
    let targets = project.foreign()?;
    let mine = targets.iter().find(|target| target.name == "mine").context("the toolchain is declared")?;
    let expected = serde_json::json!({
        "internal_tools": ":lto", "lto_mode": "thin", "requires_objects": true, "supports_distributed_thinlto": true,
    });
    assert_eq!(mine.attributes, expected);
    let internal = targets.iter().find(|target| target.name == "lto").context("its tools are declared")?;
    assert_eq!(
        (internal.kind.as_str(), &internal.attributes["dist_lto"]),
        ("cxx_internal_tools", &":lto-tools".into())
    );
    Ok(())
}

/// The project's file names the cells by which the example loads its rules.
#[test]
fn example_builds_where_it_is_checked_out() -> Result<()> {
    let root = distlto_tests::toolchain::repository();
    let config = fs::read_to_string(root.join(".buckconfig"))?;
    let cells =
        config.split_once("[cells]\n").and_then(|(_, rest)| rest.split_once("\n[")).context("cells")?.0;
    let cells: BTreeMap<&str, &str> = cells.lines().filter_map(|line| line.split_once(" = ")).collect();
    assert_eq!((cells["root"], cells["example"]), (".", "examples/buck2"));
    ensure!(!root.join("examples/buck2/distlto").exists(), "the example holds a copy of the rules");
    let mut loads = 0;
    for file in ["BUCK", "toolchains/BUCK"] {
        let text = fs::read_to_string(root.join("examples/buck2").join(file))?;
        for load in text.lines().filter_map(|line| line.strip_prefix("load(\"@")) {
            let (cell, file) =
                load.split_once("//:").or(load.split_once("//")).context("a cell and a file")?;
            let place = cells.get(cell).with_context(|| format!("no cell {cell}"))?;
            let file = file.split('"').next().unwrap_or_default();
            ensure!(cell == "prelude" || root.join(place).join(file).is_file(), "{place} has no {file}");
            loads += 1;
        }
    }
    ensure!(loads > 2, "nothing is loaded");
    for spec in config.lines().filter_map(|line| line.split_once("target:")).map(|(_, spec)| spec) {
        let cell = spec.split("//").next().unwrap_or_default();
        ensure!(cells.contains_key(cell), "the platform is that of targets in {cell}, which is no cell");
    }
    Ok(())
}

#[test]
fn toolchain_swaps_the_tools() -> Result<()> {
    let mut project = example("toolchain")?;
    // The example's default: a name of PATH.
    project.config.clear();
    let targets = project.foreign()?;
    let of =
        |kind: &str| targets.iter().find(|target| target.kind == kind).with_context(|| format!("no {kind}"));
    let tools = of("dist_lto_tools")?;
    for (attribute, subcommand) in [
        ("planner", "index"),
        ("opt", "opt"),
        ("prepare", "prepare"),
        ("copy", "copy"),
        ("archive_mapper", "archive-mapper"),
        ("compiler_stats_merger", "compiler-stats-merger"),
    ] {
        let given = &tools.attributes[attribute];
        let labels: Vec<_> = match given.as_object() {
            Some(by_linker) => {
                assert_eq!(by_linker.keys().collect::<Vec<_>>(), ["darwin", "gnu"]);
                by_linker.values().collect()
            }
            None => vec![given],
        };
        for label in labels {
            let label = label.as_str().context("a label")?;
            assert_eq!(
                project.command(&format!("toolchains//{label}"))?,
                ["/usr/bin/env", "distlto", subcommand]
            );
        }
    }
    let internal = of("cxx_internal_tools")?;
    assert_eq!(internal.attributes["dist_lto"], format!(":{}", tools.name));
    let cxx = of("cxx_toolchain_inheriting_target_platform")?;
    assert_eq!(cxx.attributes["internal_tools"], format!(":{}", internal.name));
    // What the prelude asks of a toolchain before it links with these tools.
    for (attribute, value) in [("lto_mode", "thin"), ("linker_type", "gnu"), ("compiler_type", "clang")] {
        assert_eq!(cxx.attributes[attribute], value);
    }
    for attribute in ["supports_distributed_thinlto", "requires_objects"] {
        assert_eq!(cxx.attributes[attribute], true);
    }
    let compiler = cxx.attributes["cxx_compiler"].as_str().context("a label")?;
    assert_eq!(project.command(&format!("toolchains//{compiler}"))?, ["clang++-22"]);
    let dwp = cxx.attributes["dwp"].as_str().context("a label")?;
    assert_eq!(project.command(&format!("toolchains//{dwp}"))?, ["llvm-dwp-22"]);
    Ok(())
}
