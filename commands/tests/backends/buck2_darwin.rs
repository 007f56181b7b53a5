//! `distlto-opt` in place of Buck2's opt tool for linkers of type darwin, on Mach-O modules and a thin link of ld64.lld.

use std::fs;
use std::process::Output;

use super::common::{Link, good, stderr};

const TARGET: &str = "--target=arm64-apple-macos13";

/// What the linker has to find of the system.
const SYSTEM: &str = "--- !tapi-tbd
tbd-version: 4
targets: [ arm64-macos ]
install-name: '/usr/lib/libSystem.B.dylib'
exports:
  - targets: [ arm64-macos ]
    symbols: [ dyld_stub_binder ]
...
";

/// `a.o` imports from `b.o`.
fn mac() -> Link {
    let link = Link::new(22);
    for name in ["a", "b"] {
        let (source, object) = (format!("{name}.c"), format!("{name}.o"));
        link.tool(&["clang-22", TARGET, "-O2", "-flto=thin", "-c", &source, "-o", &object]);
    }
    link.write("System.tbd", SYSTEM);
    let lld = ["ld64.lld-22", "-arch", "arm64", "-platform_version", "macos", "13", "13"];
    let files = ["--thinlto-index-only=index", "-o", "program", "a.o", "b.o", "System.tbd"];
    link.tool(&[&lld[..], &files].concat());
    link.write("shared", "-O2");
    link
}

fn opt(link: &Link, options: &[&str], compiler: &[&str]) -> Output {
    let form = ["--input", "a.o", "--index", "a.o.thinlto.bc", "--shared-args", "shared", "--compiler"];
    link.distlto_opt(&[&form[..], compiler, &["--out", "out/a.o"], options].concat())
}

/// What clang itself makes of it.
fn bare(link: &Link, flags: &[&str]) -> Vec<u8> {
    let words = ["-x", "ir", "-c", "a.o", "-fno-lto", "-fthinlto-index=a.o.thinlto.bc", "-o", "bare.o"];
    link.tool(&[&["clang-22", TARGET], flags, &words].concat());
    link.read("bare.o")
}

#[test]
fn objects_are_those_of_clang() {
    let link = mac();
    let bare = bare(&link, &["-O2"]);
    link.tool(&["sh", "-c", "llvm-objdump-22 -h bare.o | grep -q 'file format mach-o arm64'"]);
    for (shared, compiler, options) in [
        ("-O2", &["clang-22"][..], &[][..]),
        ("-O2\n--target=arm64-apple-macos13\n", &["clang-22"], &[]),
        ("-O2\n-flto=thin", &["/usr/bin/env", "clang-22"], &[]),
        ("-O0", &["clang-22"], &["--", "-O2"]),
        ("-O2", &["clang-22"], &["--", "-target", "arm64-apple-macos13"]),
        ("-O2", &["clang-22"], &["--extra-outputs-args", "extra"]),
    ] {
        link.write("shared", shared);
        link.write("extra", "--serialize-diagnostics diagnostics");
        good(&opt(&link, options, compiler));
        assert!(link.read("out/a.o") == bare, "{shared} {compiler:?} {options:?}");
        fs::remove_file(link.path("out/a.o")).unwrap();
    }
    assert!(!link.read("diagnostics").is_empty());
    good(&opt(&link, &["--generate-cgdata"], &["clang-22"]));
    let output = opt(&link, &["--read-cgdata", "merged"], &["clang-22"]);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
}

#[test]
fn a_printed_command_does_the_same() {
    let link = mac();
    let output = opt(&link, &["--print-command", "--", "-mllvm", "-inline-threshold=0"], &["clang-22"]);
    good(&output);
    assert!(!link.path("out").exists(), "nothing was compiled");
    let line = String::from_utf8(output.stdout).unwrap();
    assert!(line.contains(" @shared -o out/a.o -x ir -c a.o "), "{line}");
    fs::create_dir(link.path("out")).unwrap();
    link.tool(&["sh", "-c", &line]);
    assert!(link.read("out/a.o") == bare(&link, &["-O2", "-mllvm", "-inline-threshold=0"]));
}

#[test]
fn what_private_compilers_write_besides_is_checked_too() {
    let link = mac();
    bare(&link, &["-O2"]);
    let backend = ["clang-22", TARGET, "-O2", "-c", "-x", "ir", "a.o", "-fthinlto-index=a.o.thinlto.bc"];
    link.tool(&[&backend[..], &["-emit-llvm", "-o", "optimised.bc"]].concat());
    // Clangs that know the options are not released.
    let words = "for word; do case $word in -save-precodegen-ir=*) ir=${word#*=};; esac; done";
    let compiler =
        link.compiler(&format!("{words}\necho \"$@\" > words\ncp bare.o \"$out\"; cp optimised.bc \"$ir\""));
    good(&opt(&link, &["--save-precodegen-ir", "ir/a.bc", "--generate-cgdata"], &[&compiler]));
    assert!(link.read("out/a.o") == link.read("bare.o") && link.read("ir/a.bc") == link.read("optimised.bc"));
    // The second round compiles what the first one wrote, which is no module of the shard.
    let form = ["--input", "ir/a.bc", "--index", "a.o.thinlto.bc", "--shared-args", "shared"];
    let second = ["--codegen-only", "--read-cgdata", "merged", "--compiler", &compiler, "--out", "out/2.o"];
    let words = [&form[..], &second].concat();
    assert_eq!(link.distlto_opt(&words).status.code(), Some(4), "no merged data");
    link.write("merged", "data");
    let simple = link.compiler("echo \"$@\" > words; cp bare.o \"$out\"");
    assert_eq!(simple, compiler);
    good(&link.distlto_opt(&words));
    let said = String::from_utf8(link.read("words")).unwrap();
    assert!(said.contains(" -fthinlto-codegen-only -fcodegen-data-use=merged"), "{said}");
    for write in [":", ": > \"$ir\""] {
        fs::remove_dir_all(link.path("out")).unwrap();
        let compiler = link.compiler(&format!(
            "for word; do case $word in -save-precodegen-ir=*) ir=${{word#*=}};; esac; done\ncp bare.o \"$out\"; {write}"
        ));
        let output = opt(&link, &["--save-precodegen-ir", "ir/a.bc"], &[&compiler]);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(!link.path("out/a.o").exists());
    }
}

#[test]
fn failures_are_failures() {
    let link = mac();
    let fails = |options: &[&str], compiler: &str, code: i32, text: &str| {
        let output = opt(&link, options, &[compiler]);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert!(stderr(&output).contains(text), "{}", stderr(&output));
        assert!(!link.path("out/a.o").exists() && link.temporaries().is_empty());
    };
    // As the stock tool has it, an argument without use is a mistake.
    fails(&["--", "-lSystem"], "clang-22", 1, "unused-command-line-argument");
    fails(&["--codegen-only"], "clang-22", 1, "-fthinlto-codegen-only");
    fails(&[], "no-such-clang", 7, "no-such-clang");
    fails(&[], &link.compiler("exit 5"), 5, "exit code 5");
    fails(&[], &link.compiler(": > \"$out\""), 1, "empty");
    link.tool(&["clang-22", "-c", "b.c", "-o", "elf.o"]);
    fails(&[], &link.compiler("cp elf.o \"$out\""), 1, "Mach-O aarch64");
    link.write("a.o.thinlto.bc", "");
    fails(&[], "clang-22", 3, "a.o.thinlto.bc");
    fs::remove_file(link.path("shared")).unwrap();
    fails(&[], "clang-22", 4, "shared");
}
