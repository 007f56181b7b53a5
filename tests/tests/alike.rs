//! Links in which a second link that stands for the first would show: a served link and a graph that Ninja, make or distlto runs make
//! the linker's own program, byte for byte, at first and again.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::succeed;
use distlto_tests::toolchain::{Toolchain, system_tool};

const MAIN: &str = "#include <stdio.h>\nint part(int), member(int);\n\
                    __attribute__((weak)) int chosen(void) { return 1; }\n\
                    __attribute__((constructor)) static void begin(void) { puts(\"main begins\"); }\n\
                    int main(void) { printf(\"%d %d\\n\", part(1) + member(2), chosen()); return 0; }\n";
const PART: &str = "#include <stdio.h>\nint chosen(void) { return 2; }\n\
                    __attribute__((noinline)) int part(int x) { return x * 3 + chosen(); }\n\
                    __attribute__((constructor)) static void begin(void) { puts(\"part begins\"); }\n";
const MEMBER: &str = "#include <stdio.h>\n__attribute__((noinline)) int member(int x) { return x + 7; }\n\
                      __attribute__((constructor)) static void begin(void) { puts(\"member begins\"); }\n\
                      int dropped(void) { return 0; }\n";
const NATIVE: &str = "#include <stdio.h>\n__attribute__((weak)) int chosen(void) { return 3; }\n\
                      __attribute__((constructor)) static void begin(void) { puts(\"native begins\"); }\n";

/// Three modules, one of them in an archive, and an object of machine code.
fn folder(name: &str) -> Result<Folder> {
    let folder = Folder::create(Toolchain::from_env()?, &format!("alike/{name}"))?;
    for (name, text, flags) in [
        ("main", MAIN, "-flto=thin"),
        ("part", PART, "-flto=thin"),
        ("member", MEMBER, "-flto=thin"),
        ("native", NATIVE, "-g0"),
    ] {
        folder.write(&format!("{name}.c"), text)?;
        let words = format!("%clang -O2 -fPIC -ffunction-sections {flags} -c {name}.c -o {name}.o");
        succeed(&mut folder.command(&words, "")?)?;
    }
    succeed(&mut folder.command("%ar rcs libmember.a member.o", "")?)?;
    Ok(folder)
}

struct Link<'f> {
    folder: &'f Folder,
    output: &'static str,
    words: Vec<String>,
}

impl Link<'_> {
    fn command(&self, program: &Path, words: &[&str]) -> Result<Command> {
        let mut command = Command::new(program);
        command.args(words).current_dir(&self.folder.path).env("PATH", distlto::search_path()?);
        Ok(command)
    }

    /// Links, and gives what was made.
    fn made(&self, program: &Path, words: &[&str]) -> Result<Vec<u8>> {
        succeed(&mut self.command(program, words)?)?;
        Ok(fs::read(self.folder.path.join(self.output))?)
    }

    /// Makes the link in all ways, twice.
    fn is_alike(&self) -> Result<()> {
        let clang = self.folder.toolchain.tool("clang")?;
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let expected = self.made(&clang, &words)?;
        let clang = clang.to_string_lossy();
        let line = [&["--", &clang][..], &words].concat();
        let distlto = distlto::binary()?;
        let is = |made: Vec<u8>, what: &str| {
            ensure!(made == expected, "{what} makes another program than the linker");
            fs::remove_file(self.folder.path.join(self.output))?;
            Ok(())
        };
        for _ in 0..2 {
            is(self.made(distlto, &[&["link"], &line[..]].concat())?, "a served link")?;
        }
        for _ in 0..2 {
            succeed(&mut self.command(distlto, &[&["index", "--index", "graph"], &line[..]].concat())?)?;
            is(self.made(distlto, &["run", "graph"])?, "distlto run")?;
            let file = "graph/link.ninja";
            succeed(&mut self.command(distlto, &["plan", "graph", "--ninja", file])?)?;
            is(self.made(&system_tool("ninja")?, &["-f", file])?, "ninja")?;
        }
        Ok(())
    }
}

fn check(folder: &Folder, output: &'static str, more: &str) -> Result<()> {
    let line = "-O2 -flto=thin -fuse-ld=lld native.o main.o part.o libmember.a";
    let words = format!("{line} {more} -o {output}").split(' ').map(str::to_owned).collect();
    Link { folder, output, words }.is_alike()
}

#[test]
fn an_option_whose_value_is_the_output() -> Result<()> {
    check(&folder("soname")?, "libx.so", "-shared -Wl,-soname,libx.so")
}

#[test]
fn a_script_that_sorts_objects_by_their_names() -> Result<()> {
    let folder = folder("script")?;
    folder.write("order.ld", "SECTIONS { .text : { *part.o(.text*) *native.o(.text*) *(.text*) } }\n")?;
    check(&folder, "program", "-Wl,-T,order.ld")
}

#[test]
fn a_version_script_that_names_what_lto_drops() -> Result<()> {
    let folder = folder("versions")?;
    folder.write("versions", "V1 { global: part; dropped; local: *; };\n")?;
    check(&folder, "libx.so", "-shared -Wl,--version-script=versions -Wl,--gc-sections")
}

#[test]
fn a_directory_with_a_percent_sign() -> Result<()> {
    check(&folder("100%25 %s")?, "program", "-Wl,--build-id")
}

#[test]
fn constructors_and_copies_in_the_linkers_order() -> Result<()> {
    check(&folder("order")?, "program", "-Wl,--wrap=part -Wl,--defsym=__wrap_part=member")
}
