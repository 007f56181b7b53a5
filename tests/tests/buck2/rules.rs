//! What distlto's own rules offer beside the link itself: names, headers, tests, run paths, resources, debug information.
//!
//! The build file is `rules.txt`. Programs are run and say what they found.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_tests::run::succeed;

use super::project::Project;
use super::{example, say};

const SOURCES: [(&str, &str); 16] = [
    ("BUCK", include_str!("rules.txt")),
    ("other/BUCK", "export_file(name = \"same.c\", src = \"same.c\", visibility = [\"PUBLIC\"])\n"),
    (
        "same.c",
        "#include <stdio.h>\nint other(void), a(int), said(void);\nint main(void) { printf(\"%d\\n\", other() + a(1) + said()); return 0; }\n",
    ),
    ("other/same.c", "int other(void) { return 100; }\n"),
    ("größe/größe.h", "int o(int);\n"),
    ("größe/ä.c", "#include \"größe/größe.h\"\nint a(int x) { return o(x) + 10; }\n"),
    ("größe/ö.c", "int o(int x) { return x + 1; }\n"),
    ("said.c", "int said(void) { return 1000; }\n"),
    ("data/one.txt", "one\n"),
    ("listed.c", "#include \"read.h\"\nint listed(void) { return READ; }\n"),
    ("read.h", "#define READ 3\n"),
    ("unread.h", "#define UNREAD 4\n"),
    (
        "listed-test.c",
        "#include \"in place.h\"\nint listed(void);\nint main(void) { return listed() - EXPECTED; }\n",
    ),
    ("in place.h", "#define EXPECTED 3\n"),
    ("named.c", "int named(void) { return 7; }\n"),
    ("inner.c", "int named(void);\nint inner(void) { return named() * 2; }\n"),
];

const MORE: [(&str, &str); 3] = [
    ("outer.c", "int inner(void);\nint outer(void) { return inner() + 1; }\n"),
    (
        "run-paths.c",
        "#include <stdio.h>\nint outer(void);\nint main(void) { printf(\"%d\\n\", outer()); return 0; }\n",
    ),
    ("data/two.txt", "two\n"),
];

fn project(name: &str) -> Result<Project> {
    let project = example(name)?;
    for (file, text) in SOURCES.iter().chain(&MORE) {
        let path = project.root.join(file);
        fs::create_dir_all(path.parent().context("a file lies in a directory")?)?;
        fs::write(path, text)?;
    }
    Ok(project)
}

#[test]
fn sources_of_one_name_and_names_that_are_not_ascii() -> Result<()> {
    let mut project = project("names")?;
    let built = project.build(":same")?;
    assert_eq!(say(&built)?, "1112\n");
    // LLVM garbles other names in shards.
    let (a, o) = ("same/gr_246__223_e/_228_.c.o", "same/gr_246__223_e/_246_.c.o");
    let backends = ["said/said.c.o", a, o, "same/same.c-2.o", "same/same.c.o"];
    assert_eq!(built.ran_of("distlto_opt"), backends);
    Ok(())
}

#[test]
fn resources_are_found_beside_the_program() -> Result<()> {
    let mut project = project("resources")?;
    let built = project.build(":same")?;
    let list = built.outputs.iter().find(|output| output.ends_with("same.resources.json"));
    let list = list.with_context(|| format!("no list among {:?}", built.outputs))?;
    let list: serde_json::Value = serde_json::from_slice(&fs::read(list)?)?;
    let folder = built.outputs[0].parent().context("a program lies in a directory")?;
    for (name, text) in [("data/one.txt", "one\n"), ("two", "two\n")] {
        let place = list[name].as_str().with_context(|| format!("{name} is not in {list}"))?;
        assert_eq!(fs::read_to_string(folder.join(place))?, text);
    }
    Ok(())
}

#[test]
fn a_library_of_the_prelude_is_refused_with_what_to_do() -> Result<()> {
    let error = project("foreign")?.build(":mixed").err().context("a cxx_library was linked")?;
    let error = format!("{error:#}");
    for part in [":foreign", "is no library of distlto's rules", "enable_distributed_thinlto = True"] {
        ensure!(error.contains(part), "no {part:?} in {error}");
    }
    Ok(())
}

#[test]
fn a_header_that_was_not_read_compiles_nothing() -> Result<()> {
    let mut project = project("headers")?;
    assert_eq!(project.build(":listed-test")?.ran_of("distlto_compile"), ["listed-test.c", "listed.c"]);
    project.edit("unread.h", "4", "5")?;
    assert!(project.build(":listed-test")?.ran.is_empty(), "nobody includes the header");
    project.edit("in place.h", "3", "(1 + 2)")?;
    assert_eq!(project.build(":listed-test")?.ran, ["listed-test: distlto_compile listed-test.c"]);
    project.edit("read.h", "3", "4")?;
    let built = project.build(":listed-test")?;
    assert_eq!(built.ran_of("distlto_compile"), ["listed.c"]);
    let status = Command::new(&built.outputs[0]).status()?;
    assert_eq!(status.code(), Some(1));
    Ok(())
}

#[test]
fn a_test_is_a_program_with_arguments() -> Result<()> {
    let mut project = project("test")?;
    let command = project.command(":listed-test")?;
    assert!(command[0].ends_with("/listed-test"), "{command:?}");
    assert_eq!(command[1..], ["--quick"]);
    succeed(&mut Command::new(&project.build(":listed-test")?.outputs[0]))?;
    Ok(())
}

#[test]
fn shared_libraries_are_found_by_the_names_in_them() -> Result<()> {
    let mut project = project("run-paths")?;
    let built = project.build(":run-paths")?;
    assert_eq!(say(&built)?, "15\n");
    // The program needs only the library that it calls: that one finds the next by itself.
    let needed = succeed(Command::new("llvm-readelf-22").arg("-d").arg(&built.outputs[0]))?.stdout;
    let needed = String::from_utf8(needed)?;
    assert!(needed.contains("[libouter.so]") && !needed.contains("[libinner.so]"), "{needed}");
    Ok(())
}

/// All that a debugger needs is in the program or in one file.
#[test]
fn debug_information_is_split_off() -> Result<()> {
    for (mode, dwo_names) in [("none", 0), ("split", 7)] {
        let mut project = example(&format!("debug-{mode}"))?;
        let flags = format!("cxx_compiler_flags = [\"-O2\", \"-g\"],\n    split_debug_mode = \"{mode}\",");
        project.edit("toolchains/BUCK", "cxx_compiler_flags = [\"-O2\"],", &flags)?;
        project.edit("BUCK", "clang++-{0} -O2", "clang++-{0} -g -O2")?;
        let built = project.build(":words")?;
        assert_eq!(say(&built)?, super::SAID, "{mode}");
        let dump = |file: &std::path::Path| -> Result<String> {
            let mut dump = Command::new("llvm-dwarfdump-22");
            Ok(String::from_utf8(succeed(dump.arg("--debug-info").arg(file))?.stdout)?)
        };
        let program = dump(&built.outputs[0])?;
        assert_eq!(program.matches("DW_AT_dwo_name").count(), dwo_names, "{mode}: {program}");
        if mode == "split" {
            let packed = project.build(":words[dwp]")?;
            let text = dump(&packed.outputs[0])?;
            for name in ["main.cpp", "letters.cpp", "adler.cpp"] {
                assert!(text.contains(name), "{name} is not in {text}");
            }
        }
    }
    Ok(())
}
