//! What build systems find out about a compiler by asking it is the same for a compiler that is wrapped.
//!
//! libtool and CMake link something with `-v` and read from what is printed which libraries a compiler adds by itself.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::run::succeed;
use distlto_tests::toolchain::system_tool;

use super::{Pair, without_random_names};

/// What a generated file says of a compiler's own libraries.
fn lines(file: &Path, names: &[&str]) -> Result<BTreeSet<String>> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let lines = text.lines().filter(|line| names.iter().any(|name| line.starts_with(name)));
    Ok(lines.map(str::to_owned).collect())
}

impl Pair {
    /// The compiler, and a name of distlto's for it.
    fn compilers(&self) -> Result<[String; 2]> {
        let compiler = self.plain.toolchain.tool("clang++")?;
        let name = compiler.file_name().context("a tool has a name")?.to_string_lossy();
        let wrapped = self.served.path.with_file_name(format!("distlto-{name}"));
        if !wrapped.exists() {
            symlink(distlto::binary()?, &wrapped)?;
        }
        Ok([compiler.display().to_string(), wrapped.display().to_string()])
    }
}

/// The command of libtool's test for libraries that a compiler adds (`_LT_SYS_HIDDEN_LIBDEPS`), and like ones.
#[test]
fn a_verbose_link_of_a_library_prints_the_same() -> Result<()> {
    let pair = Pair::create("libtool-command")?;
    pair.write("x.cpp", "class Foo { public: Foo(void) { a = 0; } private: int a; };\nFoo foo;\n")?;
    pair.both("%clang++ -fPIC -c x.cpp -o native.o")?;
    pair.both("%clang++ -fPIC -flto=thin -c x.cpp -o x.o")?;
    for words in [
        "-shared -v native.o",
        "-shared -v -flto=thin -fuse-ld=lld x.o",
        "-shared -v -flto=thin -fuse-ld=lld x.o -o libx.so",
        "-v -shared -nostdlib native.o",
        "-shared -v -fPIC -flto=thin -fuse-ld=lld x.cpp -o libx.so",
    ] {
        let ended = pair.same_but(&format!("$link %clang++ {words}"), without_random_names)?;
        ensure!(ended.code == Some(0) && ended.stderr.contains("-L/"), "{words}: {ended:?}");
    }
    Ok(())
}

#[test]
fn libtool_finds_the_libraries_of_a_compiler() -> Result<()> {
    let pair = Pair::create("libtool")?;
    for tool in ["libtoolize", "autoreconf", "automake"] {
        system_tool(tool)?;
    }
    pair.write(
        "configure.ac",
        "AC_INIT([p], [1])\nAM_INIT_AUTOMAKE([foreign])\nAC_CONFIG_MACRO_DIR([m4])\nAC_PROG_CXX\nLT_INIT\n\
         AC_CONFIG_FILES([Makefile])\nAC_OUTPUT\n",
    )?;
    pair.write("Makefile.am", "lib_LTLIBRARIES = libp.la\nlibp_la_SOURCES = p.cpp\n")?;
    pair.write("p.cpp", "#include <string>\nstd::string p(int x) { return std::to_string(x); }\n")?;
    pair.both("mkdir m4")?;
    pair.both("autoreconf -fi")?;
    let mut found = Vec::new();
    for (folder, compiler) in pair.folders().into_iter().zip(pair.compilers()?) {
        let mut configure = Command::new("sh");
        configure.args(["configure", "--disable-static", "CXXFLAGS=-O2 -flto=thin", "LDFLAGS=-fuse-ld=lld"]);
        configure.arg(format!("CXX={compiler}")).current_dir(&folder.path);
        succeed(&mut configure)?;
        let names = ["predep", "postdep", "compiler_lib_search", "archive_cmds", "predeps", "postdeps"];
        found.push(lines(&folder.path.join("libtool"), &names)?);
        succeed(Command::new("make").current_dir(&folder.path).env_remove("MAKEFLAGS"))?;
        let mut readelf = Command::new(folder.toolchain.tool("llvm-readelf")?);
        let said = succeed(readelf.arg("-d").arg(folder.path.join(".libs/libp.so.0.0.0")))?;
        let said = String::from_utf8(said.stdout)?;
        ensure!(said.contains("libstdc++"), "a library of C++ without its runtime:\n{said}");
    }
    let is_named = |line: &String| line.starts_with("postdeps=") && line.contains("-lstdc++");
    ensure!(found[0].iter().any(is_named) && found[0] == found[1], "{found:?}");
    Ok(())
}

#[test]
fn cmake_finds_the_libraries_of_a_compiler() -> Result<()> {
    let pair = Pair::create("cmake")?;
    let cmake = system_tool("cmake")?;
    pair.write(
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.20)\nproject(p CXX)\nadd_executable(P p.cpp)\n",
    )?;
    pair.write("p.cpp", "#include <string>\nint main() { return int(std::to_string(7).size()) - 1; }\n")?;
    let [compiler, wrapped] = pair.compilers()?;
    let link = distlto::binary()?.display();
    let launcher = format!("-DCMAKE_CXX_LINKER_LAUNCHER={link};link;--");
    let ways = [
        (&pair.plain, compiler.clone(), None),
        (&pair.served, wrapped, None),
        (&pair.served, compiler, Some(launcher)),
    ];
    let mut found = Vec::new();
    for (number, (folder, compiler, launcher)) in ways.into_iter().enumerate() {
        let build = format!("build-{number}");
        let mut configure = Command::new(&cmake);
        configure.args(["-G", "Ninja", "-B", &build, "-DCMAKE_CXX_FLAGS=-O2 -flto=thin"]);
        configure
            .args(["-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld", &format!("-DCMAKE_CXX_COMPILER={compiler}")]);
        succeed(configure.args(launcher).current_dir(&folder.path))?;
        let files = folder.glob(&format!("{build}/CMakeFiles/*/CMakeCXXCompiler.cmake"), "")?;
        let file: PathBuf = folder.path.join(&files[0]);
        found.push(lines(
            &file,
            &["set(CMAKE_CXX_IMPLICIT_", "set(CMAKE_CXX_COMPILER_ID ", "set(CMAKE_CXX_ABI"],
        )?);
        succeed(Command::new(&cmake).args(["--build", &build]).current_dir(&folder.path))?;
        succeed(Command::new(folder.path.join(&build).join("P")).current_dir(&folder.path))?;
    }
    let is_named = |line: &String| line.contains("IMPLICIT_LINK_LIBRARIES") && line.contains("stdc++");
    ensure!(found[0].iter().any(is_named), "{:?}", found[0]);
    ensure!(found[0] == found[1] && found[0] == found[2], "{found:#?}");
    Ok(())
}
