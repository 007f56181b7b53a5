//! What bitcode says of its functions holds in the object, whatever processor the link or the compiler names: compared
//! with what ld.lld's own ThinLTO generates, and looked up in the code.

use std::fs;
use std::process::Command;

use super::common::{Link, good, stderr};

/// Functions with attributes that a compiler has defaults for.
const ATTRIBUTES: &str = r#"
declare i32 @use(i32)
declare double @sqrt(double)
define i32 @framed(i32 %n) "frame-pointer"="all" { %r = call i32 @use(i32 %n)
  %s = add i32 %r, 1
  ret i32 %s }
define i32 @frameless(i32 %n) "frame-pointer"="none" { %r = call i32 @use(i32 %n)
  %s = add i32 %r, 1
  ret i32 %s }
define i32 @unwound(i32 %n) uwtable { %r = call i32 @use(i32 %n)
  %s = add i32 %r, 1
  ret i32 %s }
define i32 @not_unwound(i32 %n) nounwind { %r = call i32 @use(i32 %n)
  %s = add i32 %r, 1
  ret i32 %s }
define double @root(double %x) { %r = call double @sqrt(double %x)
  ret double %r }
"#;

/// Functions that differ in what they name.
const SILENT: &str = "define <8 x float> @silent(<8 x float> %a, <8 x float> %b) {
  %m = fmul <8 x float> %a, %b
  %s = fadd <8 x float> %m, %a
  ret <8 x float> %s }";
const BASELINE: &str =
    "define <8 x float> @baseline(<8 x float> %a, <8 x float> %b) \"target-cpu\"=\"x86-64\" {
  %m = fmul <8 x float> %a, %b
  ret <8 x float> %m }";
const HASWELL: &str =
    "define <8 x float> @haswell(<8 x float> %a, <8 x float> %b) \"target-cpu\"=\"haswell\" {
  %m = fmul <8 x float> %a, %b
  ret <8 x float> %m }";

/// A link with a module of assembly in place of `a.o`, thin-linked as a shared library.
struct Assembled {
    link: Link,
    version: u32,
}

impl Assembled {
    fn new(version: u32, functions: &[&str]) -> Self {
        let link = Link::new(version);
        let wide = if version >= 18 { "-i128:128" } else { "" };
        let head = format!(
            "target datalayout = \"e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64{wide}-f80:128-n8:16:32:64-S128\"
             target triple = \"x86_64-pc-linux-gnu\"\n"
        );
        link.write("a.ll", head + &functions.join("\n"));
        let opt = format!("opt-{version}");
        link.tool(&[&opt, "-module-summary", "-module-hash", "a.ll", "-o", "a.o"]);
        link.thin_link(version, &["-shared", "a.o", "b.o"]);
        Self { link, version }
    }

    /// The object that ld.lld compiles by itself.
    fn by_lld(&self, options: &[&str]) -> Vec<u8> {
        let lld = format!("ld.lld-{}", self.version);
        let words = ["-shared", "--thinlto-jobs=1", "--lto-obj-path=lto.o", "a.o", "b.o", "-o", "x.so"];
        self.link.tool(&[&[lld.as_str()], options, &words].concat());
        self.link.read("lto.o1")
    }

    /// The same by the command that Buck2 runs.
    fn by_us(&self, flags: &str, compiler: &[&str]) -> std::process::Output {
        let _ = fs::remove_dir_all(self.link.path("out"));
        self.link.write("args", format!("-shared\n{flags}"));
        let form = ["--out", "out/a.o", "--input", "a.o", "--index", "a.o.thinlto.bc", "--split-dwarf=none"];
        self.link.distlto_opt(&[&form[..], &["--args", "args", "--", &self.link.clang], compiler].concat())
    }

    #[track_caller]
    fn agrees(&self, flags: &str, compiler: &[&str], options: &[&str]) {
        good(&self.by_us(flags, compiler));
        let what = format!("{flags} {compiler:?} with LLVM {}", self.version);
        assert!(self.link.read("out/a.o") == self.by_lld(options), "{what}:\n{}", self.code());
    }

    /// The code of our object.
    fn code(&self) -> String {
        let mut command = Command::new("llvm-objdump-22");
        command.args(["-d", "--no-show-raw-insn", "out/a.o"]).current_dir(self.link.place.path());
        let output = command.output().expect("apt-get install llvm-22");
        String::from_utf8(output.stdout).unwrap()
    }

    fn code_of(&self, function: &str) -> String {
        let code = self.code();
        let (_, code) = code.split_once(&format!("<{function}>:")).expect("a function of the object");
        code.split("\n\n").next().unwrap_or_default().to_owned()
    }
}

#[test]
fn attributes_of_functions_hold() {
    for version in [22, 19, 16, 14] {
        let assembled = Assembled::new(version, &[ATTRIBUTES, SILENT, BASELINE, HASWELL]);
        assembled.agrees("", &[], &[]);
        assert!(assembled.code_of("framed").contains("movq\t%rsp, %rbp"));
        assert!(!assembled.code_of("frameless").contains("movq\t%rsp, %rbp"));
        assert!(assembled.code_of("haswell").contains("vmulps"));
        assert!(!assembled.code_of("baseline").contains("vmulps"));
        // Nobody's wish for all functions: the bitcode says it for each.
        let contrary =
            ["-fno-omit-frame-pointer", "-fno-math-errno", "-frounding-math", "-fasynchronous-unwind-tables"];
        assembled.agrees(&contrary.join("\n"), &contrary, &[]);
    }
}

#[test]
fn a_processor_of_the_link_is_for_functions_that_name_none() {
    let haswell = ["-plugin-opt=mcpu=haswell"];
    for version in [22, 19, 16, 14] {
        // Clang's own attributes leave nothing to say.
        let link = Link::new(version);
        let compiled = Assembled { link, version };
        compiled.link.thin_link(version, &["-shared", "a.o", "b.o"]);
        compiled.agrees("-march=haswell", &[], &haswell);
        let silent = Assembled::new(version, &[SILENT, HASWELL]);
        for (flags, compiler) in
            [("-march=haswell", &[][..]), ("-Wl,-plugin-opt,mcpu=haswell", &[]), ("", &["-march=haswell"])]
        {
            silent.agrees(flags, compiler, &haswell);
            assert!(silent.code_of("silent").contains("vmulps"), "{flags}");
        }
        let named = Assembled::new(version, &[BASELINE, HASWELL]);
        named.agrees("-march=haswell", &["-march=x86-64-v3"], &haswell);
        assert!(!named.code_of("baseline").contains("vmulps"));
        // Clang would compile both for haswell.
        let mixed = Assembled::new(version, &[SILENT, BASELINE]);
        let output = mixed.by_us("-march=haswell", &[]);
        assert_eq!(output.status.code(), Some(6), "{}", stderr(&output));
        for text in ["a.o", "-march=haswell", "x86-64"] {
            assert!(stderr(&output).contains(text), "{}", stderr(&output));
        }
        mixed.agrees("", &[], &[]);
    }
}

#[test]
fn imported_functions_keep_their_processor() {
    let assembled = Assembled::new(
        22,
        &[SILENT, "define i32 @main() { %r = call i32 @kernel(i32 3) ret i32 %r } declare i32 @kernel(i32)"],
    );
    let link = &assembled.link;
    let source = "#![no_std] #[panic_handler] fn p(_: &core::panic::PanicInfo) -> ! { loop {} }
        #[unsafe(no_mangle)] pub extern \"C\" fn kernel(x: i32) -> i32 { x.wrapping_mul(5) }";
    link.write("b.rs", source);
    let rustc = ["rustc", "--edition=2024", "-O", "--crate-type=lib", "-Cpanic=abort", "-Clinker-plugin-lto"];
    link.tool(
        &[&rustc[..], &["--target=x86_64-unknown-linux-gnu", "--emit=obj", "b.rs", "-o", "b.o"]].concat(),
    );
    link.thin_link(22, &["-shared", "a.o", "b.o"]);
    let output = assembled.by_us("-march=haswell", &[]);
    assert_eq!(output.status.code(), Some(6), "{}", stderr(&output));
    assert!(assembled.by_us("", &[]).status.success());
    assert!(link.read("out/a.o") == assembled.by_lld(&[]), "{}", assembled.code());
}
