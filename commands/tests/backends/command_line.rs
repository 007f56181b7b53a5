//! `distlto-opt` as a program: flags from a link line, targets, split debug information, exit codes.

use std::process::{Command, Output};

use distlto_executor::run::{NoHooks, run};

use super::common::{Link, VERSIONS};

/// Runs `distlto-opt` on `a.o` with more options, and a compiler with its arguments.
fn opt(link: &Link, options: &[&str], compiler: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_distlto-opt"))
        .args(["--out", "out/a.o", "--input", "a.o", "--index", "a.o.thinlto.bc"])
        .args(options)
        .arg("--")
        .args(compiler)
        .current_dir(link.place.path())
        .output()
        .unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn good(output: &Output) {
    assert!(output.status.success(), "{}", stderr(output));
}

#[test]
fn arguments_after_the_compiler_are_verbatim() {
    for version in VERSIONS {
        let link = Link::new(version);
        let bare = ["-c", "-O3", "-fno-pic", "-ffunction-sections", "a.o", "-fthinlto-index=a.o.thinlto.bc"];
        link.tool(&[&[link.clang.as_str()], &bare[..], &["-o", "bare.o"]].concat());
        good(&opt(&link, &[], &[&link.clang, "-c", "-O3", "-fno-pic", "-ffunction-sections"]));
        assert_eq!(link.read("out/a.o"), link.read("bare.o"));
    }
}

#[test]
fn flags_of_the_link_line_give_the_object_of_lld() {
    // What lld itself compiles for these flags is the oracle.
    let link = Link::new(22);
    for flags in [
        "-O3 -pie",
        "-O2\n-no-pie\n-Wl,--lto-O1",
        "\"-shared\" -march=x86-64-v3",
        "-Wl,-mllvm,-inline-threshold=0 -O2",
    ] {
        link.write("flags", flags);
        let driver =
            format!("clang-22 -fuse-ld=lld -flto=thin {} -nostdlib -Wl,-e,main", flags.replace('\n', " "));
        let link_with = |option: &str| {
            link.tool(&[
                "sh",
                "-c",
                &format!("{driver} -Wl,{option} -Wl,--thinlto-jobs=1 a.o b.o -o program"),
            ]);
        };
        link_with("--thinlto-index-only");
        link_with("--lto-obj-path=lto.o");
        good(&opt(&link, &["--args", "flags"], &["clang-22"]));
        // lld numbers the modules' objects from 1; 0 is the regular LTO object.
        assert!(link.read("out/a.o") == link.read("lto.o1"), "{flags}");
    }
}

#[test]
fn a_whole_linker_command_is_read_too() {
    let link = Link::new(22);
    link.write("flags", "ld.lld-22 -pie --lto-O3 a.o b.o -o program");
    good(&opt(&link, &["--args", "flags", "--verbose"], &["clang-22"]));
    link.write("flags", "ld.lld-22 a.o --lto-newpm-passes=instcombine");
    let output = opt(&link, &["--args", "flags"], &["clang-22"]);
    assert_eq!(output.status.code(), Some(6), "{}", stderr(&output));
    assert!(stderr(&output).contains("--lto-newpm-passes"), "{}", stderr(&output));
}

#[test]
fn the_target_is_that_of_the_module() {
    let link = Link::new(22);
    let cross = ["--target=aarch64-linux-gnu", "-ffreestanding", "-O2", "-flto=thin", "-c"];
    for name in ["a", "b"] {
        let (source, object) = (format!("{name}.c"), format!("{name}.o"));
        link.tool(&[&["clang-22"], &cross[..], &[&source, "-o", &object]].concat());
    }
    link.thin_link(22, &["a.o", "b.o"]);
    good(&opt(&link, &[], &["clang-22", "-O2"]));
    let object = link.read("out/a.o");
    assert_eq!(object[18..20], [0xb7, 0], "EM_AARCH64");
    let output =
        opt(&link, &["--target", "x86_64-linux-gnu"], &["clang-22", "-O2", "--target=aarch64-linux-gnu"]);
    good(&output);
    let output = opt(&link, &["--target", "x86_64-linux-gnu"], &[&link.compiler("cp b.o \"$out\"")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(link.read("out/a.o") == object);
}

#[test]
fn split_debug_information_is_named_by_its_place() {
    for version in VERSIONS {
        let link = Link::new(version);
        for name in ["a", "b"] {
            let (source, object) = (format!("{name}.c"), format!("{name}.o"));
            link.tool(&[
                &link.clang,
                "-g",
                "-gsplit-dwarf",
                "-O2",
                "-flto=thin",
                "-c",
                &source,
                "-o",
                &object,
            ]);
        }
        link.thin_link(version, &["a.o", "b.o"]);
        link.tool(&["mkdir", "bare"]);
        let bare = ["-c", "-O2", "-gsplit-dwarf", "a.o", "-fthinlto-index=a.o.thinlto.bc", "-o", "out/a.o"];
        link.tool(&["mkdir", "-p", "out"]);
        link.tool(&[&[link.clang.as_str()], &bare[..]].concat());
        link.tool(&["mv", "out/a.o", "out/a.dwo", "bare"]);
        // With and without the option by which the driver names the file itself.
        for flags in [&["-O2", "-gsplit-dwarf"][..], &["-O2"]] {
            good(&opt(&link, &["--dwo", "out/a.dwo"], &[&[link.clang.as_str()], flags].concat()));
            assert_eq!(link.read("out/a.o"), link.read("bare/a.o"));
            assert_eq!(link.read("out/a.dwo"), link.read("bare/a.dwo"));
            link.tool(&["rm", "out/a.o", "out/a.dwo"]);
        }
        assert_eq!(link.temporaries().len(), 0);
    }
}

#[test]
fn the_exit_code_is_the_compilers_own_or_that_of_the_errors_class() {
    let link = Link::new(22);
    let failing = opt(&link, &[], &[&link.compiler("echo error: why >&2; exit 9")]);
    assert_eq!(failing.status.code(), Some(9), "{}", stderr(&failing));
    assert!(stderr(&failing).contains("  repeat: /"), "{}", stderr(&failing));
    assert_eq!(opt(&link, &[], &[&link.compiler("kill -SEGV $$")]).status.code(), Some(139));
    assert_eq!(opt(&link, &[], &["true"]).status.code(), Some(1));
    assert_eq!(opt(&link, &[], &["no-such-clang"]).status.code(), Some(7));
    assert_eq!(opt(&link, &["--nonsense"], &["true"]).status.code(), Some(2));
    assert_eq!(opt(&link, &["--dwo", "a.txt"], &["true"]).status.code(), Some(2));
    assert_eq!(opt(&link, &["--imports", "none"], &["true"]).status.code(), Some(4));
    link.write("imports", "b.o\nmissing.o\n");
    let missing = opt(&link, &["--imports", "imports"], &["clang-22"]);
    assert!(stderr(&missing).contains("missing.o"), "{}", stderr(&missing));
    link.write("a.o", "text");
    assert_eq!(opt(&link, &[], &["true"]).status.code(), Some(3));
}

#[test]
fn a_compiler_that_gets_a_response_file_gets_the_same_words() {
    // Longer than any system's limit for a command.
    let link = Link::new(22);
    let mut words =
        ["clang-22", "-c", "-O2", "-fPIC", "-Wno-unused-command-line-argument"].map(str::to_owned).to_vec();
    words.extend((0..60_000).map(|n| format!("-DODD_{n}=a \"b\" \\ 'c'")));
    let mut graph = distlto_planner::graph::ActionGraph::new();
    let short = super::common::add_opt(&mut graph, "clang-22", "a.o");
    let mut action = graph.action(short).clone();
    action.prefix = Some(graph.prefix(words));
    let long = graph.add(action);
    let cancel = distlto_executor::cancel::Cancel::new().unwrap();
    let [short, long] = [short, long].map(|id| {
        let report = run(&graph, &[id], &link.options(&cancel), &NoHooks);
        assert!(
            report.is_success(),
            "{:?}",
            report.failures().map(|(_, f)| f.cause.to_string()).collect::<Vec<_>>()
        );
        link.read("out/a.o")
    });
    assert_eq!(short, long);
}

#[test]
fn without_importing_by_dev_null() {
    let link = Link::new(22);
    let output = Command::new(env!("CARGO_BIN_EXE_distlto-opt"))
        .args(["--out", "out/a.o", "--input", "a.o", "--index", "/dev/null", "--", "clang-22", "-O2"])
        .current_dir(link.place.path())
        .output()
        .unwrap();
    good(&output);
}
