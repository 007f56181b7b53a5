//! `distlto-opt` in place of Buck2's opt tool for linkers of type gnu: recorded commands, flags, compilers, debug
//! information, and what must not pass.
//!
//! `buck2/` holds the commands and the file of link flags of one real run.

use std::fs;

use super::common::{Link, VERSIONS, good, stderr};

const COMMANDS: &str = include_str!("buck2/commands.txt");
const ARGS_FILE: &str = include_str!("buck2/app.lto_opt_argsfile");

/// Options that every command has.
const FORM: [&str; 6] = ["--out", "out/a.opt.o", "--input", "a.o", "--index", "a.o.thinlto.bc"];

/// A command of Buck2's form on `a.o`, with a file of link flags.
fn words<'a>(options: &[&'a str], compiler: &[&'a str]) -> Vec<&'a str> {
    [&FORM[..], options, &["--args", "args", "--"], compiler].concat()
}

/// What clang itself makes of `a.o` with these flags in the same place, since debug information names it.
fn bare(link: &Link, flags: &[&str]) -> Vec<u8> {
    fs::create_dir_all(link.path("out")).unwrap();
    let words = ["-x", "ir", "-c", "a.o", "-fthinlto-index=a.o.thinlto.bc", "-o", "out/a.opt.o"];
    link.tool(&[&[link.clang.as_str()], flags, &words].concat());
    let object = link.read("out/a.opt.o");
    fs::remove_file(link.path("out/a.opt.o")).unwrap();
    object
}

#[test]
fn recorded_commands_compile_a_program() {
    let link = Link::new(22);
    let commands: Vec<Vec<&str>> = COMMANDS.lines().map(|line| line.split(' ').collect()).collect();
    let value = |command: &[&'static str], option: &str| -> &'static str {
        command[command.iter().position(|word| *word == option).expect("an option of every command") + 1]
    };
    // Each module calls the next one; the first is the program.
    for (number, command) in commands.iter().enumerate() {
        let next = (number + 1) % commands.len();
        let body = match number {
            0 => "int main(void) { return f1(2) == 26 ? 0 : 1; }".to_owned(),
            _ if next == 0 => format!("int f{number}(int x) {{ return x; }}"),
            _ => format!("int f{number}(int x) {{ return f{next}(x) + 2; }}"),
        };
        let input = value(command, "--input");
        fs::create_dir_all(link.path(input).parent().unwrap()).unwrap();
        link.write("source.c", format!("int f{next}(int);\n{body}\n"));
        link.tool(&["clang-22", "-O2", "-flto=thin", "-fPIE", "-c", "source.c", "-o", input]);
    }
    link.write("unused.c", "int unused(void) { return 1; }");
    link.tool(&["clang-22", "-O2", "-flto=thin", "-c", "unused.c", "-o", "lazy.o"]);
    let inputs: Vec<_> = commands.iter().map(|command| value(command, "--input")).collect();
    link.thin_link(22, &[&["-pie"], &inputs[..], &["--start-lib", "lazy.o", "--end-lib"]].concat());
    let mut objects = Vec::new();
    for command in &commands {
        let (input, index) = (value(command, "--input"), value(command, "--index"));
        let (args, out) = (value(command, "--args"), value(command, "--out"));
        for file in [index, args] {
            fs::create_dir_all(link.path(file).parent().unwrap()).unwrap();
        }
        if index != format!("{input}.thinlto.bc") {
            fs::rename(link.path(&format!("{input}.thinlto.bc")), link.path(index)).unwrap();
        }
        link.write(args, ARGS_FILE);
        good(&link.distlto_opt(command));
        link.tool(&[
            "clang++-22",
            "-O2",
            "-ffunction-sections",
            "-fdata-sections",
            "-gno-split-dwarf",
            "-o",
            "bare.o",
            "-x",
            "ir",
            "-c",
            input,
            &format!("-fthinlto-index={index}"),
        ]);
        assert!(link.read(out) == link.read("bare.o"), "{out}");
        objects.push(out);
    }
    link.tool(&[&["clang-22", "-fuse-ld=lld"], &objects[..], &["-o", "program"]].concat());
    link.tool(&["./program"]);
    // A member that no module loads has a stub of a shard, and is compiled all the same.
    let stub = ["--out", "lazy.opt.o", "--input", "lazy.o", "--index", "lazy.o.thinlto.bc"];
    let args = value(&commands[0], "--args");
    good(&link.distlto_opt(&[&stub[..], &["--split-dwarf=none", "--args", args, "--", "clang-22"]].concat()));
    link.tool(&["sh", "-c", "test -s lazy.opt.o && llvm-nm-22 lazy.opt.o"]);
}

#[test]
fn link_flags_give_the_object_that_clang_makes_of_their_meaning() {
    let base = ["-ffunction-sections", "-fdata-sections"];
    for version in VERSIONS {
        let link = Link::new(version);
        link.write("an odd profile", "first:10:1\n 1: 5\n");
        for (file, meaning) in [
            ("clang++-22\n-flto=thin\n", &["-O2"][..]),
            ("-pie\n", &["-O2", "-fPIC"]),
            ("-O3\n-march=x86-64-v3\n-no-pie", &["-O3", "-fno-pic"]),
            ("-Xlinker\n-mllvm\n-Xlinker\n-inline-threshold=0\n", &["-O2", "-mllvm", "-inline-threshold=0"]),
            (
                "-Wl,-mllvm,-inline-threshold=0\n-static",
                &["-O2", "-mllvm", "-inline-threshold=0", "-fno-pic"],
            ),
            ("-Wl,--lto-O3\n-Wl,-plugin-opt,jobs=2\n-Wl,-z,now", &["-O3"]),
            ("-Wl,-plugin-opt,O0\n-Wl,-plugin-opt,-function-sections", &["-O0"]),
            (
                "-fprofile-sample-use=an odd profile\n-L\n/a b\n",
                &["-O2", "-fprofile-sample-use=an odd profile"],
            ),
            (
                "\"-Wl,-plugin-opt,sample-profile=an odd profile\"",
                &["-O2", "-fprofile-sample-use=an odd profile"],
            ),
            ("-fuse-ld=lld -fwhole-program-vtables -fsanitize=cfi", &["-O2"]),
            ("-fno-function-sections", &["-O2", "-fno-function-sections"]),
        ] {
            link.write("args", file);
            let bare = bare(&link, &[&base[..], meaning].concat());
            good(&link.distlto_opt(&words(&["--split-dwarf", "none"], &[&link.clang])));
            assert!(link.read("out/a.opt.o") == bare, "{file} with clang {version}");
        }
    }
}

#[test]
fn wrappers_that_are_told_the_compiler_are_left_out() {
    let link = Link::new(22);
    link.write("args", "-O1");
    let bare = bare(&link, &["-O1", "-ffunction-sections", "-fdata-sections"]);
    let real = format!("--cc={}", link.clang);
    let wrapper = link.compiler("echo \"$@\" > seen; exec \"$@\"");
    for compiler in [
        &["no-such-wrapper", real.as_str(), "--log-fbcc=False", "--show-flags"][..],
        &["no-such-wrapper", real.as_str(), "--fbcc-create-external-debug-info=/a.dwo", "-Wall"],
        &["/usr/bin/env", "clang-22"],
        &["env", "LANG=C", "clang-22"],
        &[wrapper.as_str(), "clang-22"],
        &["clang-22", "--target=x86_64-pc-linux-gnu"],
        &["clang-22", "-flto=thin", "-fsplit-lto-unit", "-fwhole-program-vtables", "-nostdinc", "-O3"],
    ] {
        good(&link.distlto_opt(&words(&[], compiler)));
        assert!(link.read("out/a.opt.o") == bare, "{compiler:?}");
        fs::remove_file(link.path("out/a.opt.o")).unwrap();
    }
    assert!(String::from_utf8(link.read("seen")).unwrap().starts_with("clang-22 -c "));
    assert_eq!(link.distlto_opt(&words(&[], &["fbcc", "--cc="])).status.code(), Some(2));
}

#[test]
fn debug_prints_a_command_that_does_the_same() {
    let link = Link::new(22);
    link.write("args", "-O3\n-mllvm -inline-threshold=1");
    let output = link.distlto_opt(&words(&["--split-dwarf=none", "--debug"], &["clang-22"]));
    good(&output);
    assert!(!link.path("out").exists(), "nothing was compiled");
    let line = String::from_utf8(output.stdout).unwrap();
    good(&link.distlto_opt(&words(&["--split-dwarf=none"], &["clang-22"])));
    let object = link.read("out/a.opt.o");
    fs::remove_file(link.path("out/a.opt.o")).unwrap();
    link.tool(&["sh", "-c", &line]);
    assert!(link.read("out/a.opt.o") == object, "{line}");
}

#[test]
fn debug_information_goes_where_it_is_asked_for() {
    for version in VERSIONS {
        let link = Link::new(version);
        for name in ["a", "b"] {
            let (source, object) = (format!("{name}.c"), format!("{name}.o"));
            link.tool(&[&link.clang, "-g", "-O2", "-flto=thin", "-c", &source, "-o", &object]);
        }
        link.thin_link(version, &["a.o", "b.o"]);
        link.write("args", "-pie");
        let base = ["-O2", "-ffunction-sections", "-fdata-sections", "-fPIC"];
        for (options, mode) in [
            (&["--split-dwarf=none"][..], "-gno-split-dwarf"),
            (&["--split-dwarf", "single"], "-gsplit-dwarf=single"),
            (&["--split-dwarf", "split", "--dwo", "out/a.opt.dwo"], "-gsplit-dwarf=split"),
        ] {
            let object = bare(&link, &[&base[..], &[mode]].concat());
            let split = fs::read(link.path("out/a.opt.dwo"));
            fs::remove_dir_all(link.path("out")).unwrap();
            good(&link.distlto_opt(&words(options, &[&link.clang])));
            assert!(link.read("out/a.opt.o") == object, "{mode} of clang {version}");
            assert_eq!(fs::read(link.path("out/a.opt.dwo")).ok(), split.ok(), "{mode} of clang {version}");
            fs::remove_dir_all(link.path("out")).unwrap();
        }
        // In a place that clang would not choose.
        let dwo = link.clang.replace("clang", "debug information of ");
        good(&link.distlto_opt(&words(&["--split-dwarf=split", "--dwo", &dwo], &[&link.clang])));
        assert!(!link.read(&dwo).is_empty() && !link.path("out/a.opt.dwo").exists());
        link.tool(&["sh", "-c", &format!("llvm-dwarfdump-22 out/a.opt.o | grep -q '_dwo_name.*\"{dwo}\"'")]);
    }
}

#[test]
fn debug_information_that_no_compiler_writes_is_an_empty_file() {
    let link = Link::new(22);
    link.write("args", "-O2");
    link.write("a.opt.dwo", "of an earlier run");
    let object = bare(&link, &["-O2"]);
    link.write("made.o", &object);
    let compiler = link.compiler("cp made.o \"$out\"");
    good(&link.distlto_opt(&words(&["--split-dwarf=split", "--dwo", "a.opt.dwo"], &[&compiler])));
    assert!(link.read("out/a.opt.o") == object);
    assert_eq!(link.read("a.opt.dwo"), b"");
}

/// Runs Buck2's form and expects a failure that leaves nothing.
#[track_caller]
fn fails(link: &Link, words: &[&str], code: i32, text: &str) {
    let output = link.distlto_opt(words);
    assert_eq!(output.status.code(), Some(code), "{words:?}: {}", stderr(&output));
    assert!(stderr(&output).contains(text), "{words:?}: {}", stderr(&output));
    assert!(!link.path("out/a.opt.o").exists(), "{words:?}");
    assert_eq!(link.temporaries().len(), 0, "{words:?}");
}

#[test]
fn wrong_words_and_flags_are_named() {
    let link = Link::new(22);
    let none = words(&["--split-dwarf=none"], &["clang-22"]);
    fails(&link, &none, 4, "args");
    for (file, code, text) in [
        (&b"-O2\n-Xlinker\n"[..], 2, "-Xlinker"),
        (b"-Wl,-plugin-opt,nonsense", 6, "nonsense"),
        (b"-Wl,--lto-newpm-passes=instcombine", 6, "--lto-newpm-passes"),
        (b"-Wl,--lto-Ofast", 2, "--lto-Ofast"),
        (b"-r", 6, "-r"),
        (b"-fprofile-sample-use=\xff\xfe", 2, "not UTF-8"),
        (b"-fprofile-sample-use=no such profile", 1, "no such profile"),
        (b"-Wl,-plugin-opt=sample-profile=none.prof", 4, "none.prof"),
        (b"-Wl,-mllvm,-no-such-option", 1, "no-such-option"),
    ] {
        link.write("args", file);
        fails(&link, &none, code, text);
        if code != 1 {
            let output = link.distlto_opt(&none);
            assert!(file != b"-r" || stderr(&output).contains("args: "), "{}", stderr(&output));
        }
    }
    link.write("args", b"\xff.o\n-Wl,-rpath,\xff");
    assert_eq!(link.distlto_opt(&none).status.code(), Some(2), "an option of the linker is text");
    link.write("args", b"dir\xff/x.o\n-L\xff\n");
    good(&link.distlto_opt(&none));
    fs::remove_dir_all(link.path("out")).unwrap();
    let split = ["--split-dwarf=split"];
    fails(&link, &words(&split, &["clang-22"]), 2, "--dwo");
    fails(&link, &words(&["--split-dwarf=none", "--dwo", "a.dwo"], &["clang-22"]), 2, "split-dwarf=split");
    fails(&link, &words(&["--split-dwarf=half"], &["clang-22"]), 2, "single");
    fails(&link, &words(&["--compiler", "clang-22"], &["clang-22"]), 2, "--shared-args");
    fails(
        &link,
        &words(&["--shared-args", "args", "--compiler", "cc"], &["clang-22"]),
        2,
        "cannot be used with",
    );
    fails(&link, &words(&["--codegen-only"], &["clang-22"]), 2, "cannot be used with");
    fails(&link, &[&FORM[..], &["--codegen-only", "--", "clang-22"]].concat(), 2, "--shared-args");
    fails(&link, &words(&[], &[]), 2, "COMPILER");
}

#[test]
fn nothing_broken_passes() {
    for version in VERSIONS {
        let link = Link::new(version);
        link.write("args", "-O2");
        let all = words(&["--split-dwarf=none"], &[&link.clang]);
        let shard = link.read("a.o.thinlto.bc");
        let other = link.read("b.o");
        fs::remove_file(link.path("a.o.thinlto.bc")).unwrap();
        fails(&link, &all, 4, "a.o.thinlto.bc");
        for content in [&b""[..], &shard[..shard.len() / 2], b"text"] {
            link.write("a.o.thinlto.bc", content);
            fails(&link, &all, 3, "a.o.thinlto.bc");
        }
        link.write("a.o.thinlto.bc", &shard);
        fs::remove_file(link.path("b.o")).unwrap();
        fails(&link, &all, 4, "b.o");
        link.write("b.o", b"");
        fails(&link, &all, 3, "b.o");
        link.write("b.o", other);
        let spelled: Vec<_> = all.iter().map(|&word| if word == "a.o" { "./a.o" } else { word }).collect();
        fails(&link, &spelled, 3, "./a.o");
        let with = |compiler: &str, code: i32, text: &str| {
            let compiler = link.compiler(compiler);
            fails(&link, &words(&["--split-dwarf=none"], &[&compiler]), code, text);
        };
        with(": > \"$out\"", 1, "empty");
        with("echo 'Error running ThinLTO backend: no' >&2; cp b.o \"$out\"", 1, "ThinLTO backend");
        with("cp b.o \"$out\"", 1, "bitcode");
        with("exit 7", 7, "exit code 7");
        with("kill -KILL $$", 137, "SIGKILL");
    }
}
