//! `docs/buck2.md`, followed word for word in a project of its own.
//!
//! The blocks of the guide are the project's build files. The rules of the prelude are recorded, and distlto's own are
//! run.

use std::collections::{BTreeMap, HashMap};
use std::process::Command;
use std::{env, fs, iter};

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::run::succeed;
use distlto_tests::toolchain::repository;

use super::project::{self, Project};
use super::{folder, say};

const SOURCES: [(&str, &str); 5] = [
    ("text/text.h", "int longest(const char *);\n"),
    (
        "text/longest.cpp",
        "#include \"text/text.h\"\nint longest(const char *text) { return *text ? 5 : 0; }\n",
    ),
    ("checksum/checksum.h", "extern \"C\" int checksum(int);\n"),
    (
        "main.cpp",
        "#include <cstdio>\n#include \"checksum/checksum.h\"\n#include \"text/text.h\"\n\
         int main() { std::printf(\"%d\\n\", checksum(longest(\"words\"))); }\n",
    ),
    ("checksum.c", "int checksum(int x) { return x * 3; }\n"),
];

/// The blocks of the guide that are for a build file.
fn blocks(file: &str) -> Result<Vec<String>> {
    let guide = fs::read_to_string(repository().join("docs/buck2.md"))?;
    let begin = format!("```python\n# {file}\n");
    let blocks = guide.split(&begin).skip(1).filter_map(|rest| rest.split("```").next());
    Ok(blocks.map(str::to_owned).collect())
}

/// A new project with the guide's build files.
fn follow(name: &str) -> Result<Project> {
    let root = folder(name)?;
    for (file, text) in SOURCES {
        let path = root.join(file);
        fs::create_dir_all(path.parent().context("a file lies in a directory")?)?;
        fs::write(path, text)?;
    }
    let at_root = |program: &str, words: &[&str]| {
        succeed(Command::new(program).args(words).current_dir(&root)).map(drop)
    };
    at_root("clang-22", &["-O2", "-flto=thin", "-fPIC", "-c", "checksum.c", "-o", "checksum.o"])?;
    at_root("llvm-ar-22", &["qcs", "libchecksum.a", "checksum.o"])?;
    fs::create_dir(root.join("toolchains"))?;
    for file in ["toolchains/BUCK", "BUCK"] {
        fs::write(root.join(file), blocks(file)?.concat())?;
    }
    let rules = fs::read_to_string(project::rules().join("distlto.bzl"))?;
    Ok(Project { root, config: BTreeMap::new(), path: None, rules, done: HashMap::new() })
}

#[test]
fn a_new_project_builds_by_the_guide() -> Result<()> {
    let mut project = follow("guide")?;
    let program = fs::canonicalize(distlto::binary()?)?;
    let own = program.parent().context("a program lies in a directory")?.to_owned();
    let rest = env::var_os("PATH").context("the tests have a PATH")?;
    project.path = Some(env::join_paths(iter::once(own).chain(env::split_paths(&rest)))?);
    assert_eq!(say(&project.build(":words")?)?, "15\n");
    let graph = project.build(":words[graph]")?.outputs;
    let plan =
        succeed(Command::new(distlto::binary()?).arg("plan").arg(&graph[0]).current_dir(&project.root))?;
    let plan = String::from_utf8(plan.stdout)?;
    ensure!(plan.contains("3 opt, 1 link"), "{plan}");
    let declared = project.foreign()?;
    for (kind, name) in [
        ("cxx_toolchain_inheriting_target_platform", "cxx"),
        // Rules of the prelude look for these names.
        ("noop_test_toolchain", "test"),
        ("remote_test_execution_toolchain", "remote_test_execution"),
        ("system_genrule_toolchain", "genrule"),
        ("system_python_bootstrap_toolchain", "python_bootstrap"),
    ] {
        ensure!(declared.iter().any(|target| (&*target.kind, &*target.name) == (kind, name)), "no {name}");
    }
    Ok(())
}

/// An installation in the project reaches actions whole, and no action needs PATH.
#[test]
fn distlto_may_lie_in_the_project() -> Result<()> {
    let mut project = follow("guide-installation")?;
    let installation = project.root.join("toolchains/distlto-bin");
    let program = fs::canonicalize(distlto::binary()?)?;
    let beside = program.parent().context("a program lies in a directory")?;
    for (from, to) in [
        (program.clone(), "bin/distlto"),
        (beside.join("libdistlto_hook.so"), "lib/distlto/libdistlto_hook.so"),
    ] {
        let to = installation.join(to);
        fs::create_dir_all(to.parent().context("it has a directory")?)?;
        // Each action gets a copy.
        succeed(Command::new("llvm-strip-22").arg(from).arg("-o").arg(to))?;
    }
    project.edit(
        "toolchains/BUCK",
        "name = \"distlto\",",
        "name = \"distlto\", distlto = \"./distlto-bin\",",
    )?;
    assert_eq!(say(&project.build(":words")?)?, "15\n");
    Ok(())
}
