//! Variables that the tools read: each changes the program, and all that they ask for are known.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use anyhow::{Result, ensure};
use distlto_tests::run::succeed;

use super::{Link, WAYS, in_every_way};

#[test]
fn variables_of_the_linker_and_the_driver() -> Result<()> {
    for (name, one, other) in
        // Behind `#` clang does not print what it changes.
        [
            ("LLD_VERSION", "1", "2"),
            ("CCC_OVERRIDE_OPTIONS", "#+-Wl,--defsym=one=1", "#+-Wl,--defsym=other=1"),
        ]
    {
        in_every_way(&format!("variable-{name}"), |mut link| {
            link.set(name, one);
            link.changed_by(|link| {
                link.set(name, other);
                Ok(())
            })
        })
        .map_err(|error| error.context(name))?;
    }
    Ok(())
}

/// Two directories with something of one name in them; the variable says which counts.
fn directories(
    name: &str,
    variable: &str,
    fill: impl Fn(&Link, &str, u32) -> Result<()>,
    with: impl Fn(Link) -> Link,
    rest: &str,
) -> Result<()> {
    in_every_way(name, |link| {
        for (directory, value) in [("one", 1), ("two", 2)] {
            fs::create_dir(link.path(directory))?;
            fill(&link, directory, value)?;
        }
        let mut link = with(link);
        let value = |link: &Link, directory: &str| format!("{}{rest}", link.path(directory).display());
        link.set(variable, value(&link, "one"));
        link.changed_by(|link| {
            link.set(variable, value(link, "two"));
            Ok(())
        })
    })
}

fn linker(link: &Link, directory: &str, value: u32) -> Result<()> {
    let text = format!("LLD_VERSION={value} exec '{}' \"$@\"\n", link.tool("ld.lld")?);
    link.script(&format!("{directory}/ld.lld"), &text)
}

#[test]
fn where_the_driver_finds_the_linker() -> Result<()> {
    directories("variable-COMPILER_PATH", "COMPILER_PATH", linker, |link| link, "")
}

#[test]
fn where_the_driver_finds_libraries() -> Result<()> {
    let library = |link: &Link, directory: &str, value: u32| {
        link.native("g", &format!("int g(void) {{ return {value}; }}\n"))?;
        link.archive(&format!("{directory}/libtwin.a"), "rcs", &["g.o"])
    };
    directories(
        "variable-LIBRARY_PATH",
        "LIBRARY_PATH",
        library,
        |link| link.with(&["-ltwin", "-Wl,-u,g"]),
        "",
    )
}

#[test]
fn which_tool_a_name_stands_for() -> Result<()> {
    let compiler = |link: &Link, directory: &str, value: u32| {
        let text = format!(
            "#include <stdlib.h>\n#include <unistd.h>\n\
             int main(int count, char **words) {{\n  char **all = calloc(count + 2, sizeof *all);\n  \
             for (int at = 0; at < count; at++) all[at] = words[at];\n  \
             all[count] = \"-Wl,--defsym=by{value}=1\";\n  return execv(\"{}\", all);\n}}\n",
            link.tool("clang")?
        );
        let source = format!("wrapper{value}.c");
        link.write(&source, &text)?;
        let mut compile = Command::new(link.tool("clang")?);
        compile.args([&source, "-o", "wrapper"]).current_dir(&link.folder.path);
        succeed(&mut compile)?;
        Ok(fs::rename(link.path("wrapper"), link.path(directory).join("clang"))?)
    };
    let rest = format!(":{}", std::env::var("PATH")?);
    directories("variable-PATH", "PATH", compiler, |link| link.by("clang"), &rest)
}

/// A library that has the linker see another `LLD_VERSION`.
fn meddling(link: &Link, place: &str, value: u32) -> Result<()> {
    let text = "#include <stdlib.h>\n\
                __attribute__((constructor)) static void set(void) { setenv(\"LLD_VERSION\", VERSION, 1); }\n";
    link.write("meddle.c", text)?;
    let mut command = Command::new(link.folder.toolchain.tool("clang")?);
    command.args(["-shared", "-fPIC", "meddle.c", "-o", place, &format!("-DVERSION=\"{value}\"")]);
    succeed(command.current_dir(&link.folder.path)).map(drop)
}

#[test]
fn a_library_that_is_preloaded() -> Result<()> {
    in_every_way("variable-LD_PRELOAD", |mut link| {
        meddling(&link, "one.so", 1)?;
        meddling(&link, "two.so", 2)?;
        link.set("LD_PRELOAD", link.path("one.so").display().to_string());
        link.changed_by(|link| {
            link.set("LD_PRELOAD", link.path("two.so").display().to_string());
            Ok(())
        })?;
        link.changed_by(|link| {
            fs::remove_file(link.path("two.so"))?;
            meddling(link, "two.so", 3)
        })
    })
}

/// What a compiler asks the environment for and what decides nothing: messages, crashes, statistics, temporary places; where it
/// looks for programs; and what only compilations of sources ask.
const HARMLESS: &[&str] = &[
    "CC_LOG_DIAGNOSTICS",
    "CC_PRINT_HEADERS",
    "CC_PRINT_HEADERS_FORMAT",
    "CC_PRINT_INTERNAL_STAT",
    "CC_PRINT_OPTIONS",
    "CC_PRINT_PROC_STAT",
    "CLANG_CRASH_DIAGNOSTICS_DIR",
    "FORCE_CLANG_DIAGNOSTICS_CRASH",
    "LLVM_IGNORED_ENV_VAR",
    "NO_COLOR",
    "PATH",
    "PWD",
    "TEMP",
    "TEMPDIR",
    "TMP",
    "TMPDIR",
    "TERM",
    "COLUMNS",
    "COLORTERM",
    "HOME",
    "LLVM_DISABLE_SYMBOLIZATION",
];

/// Every variable that a backend asks for is known, by a library that writes down what `getenv` is asked.
#[test]
fn what_a_backend_asks_for_is_known() -> Result<()> {
    let link = Link::new("getenv", WAYS[0])?;
    link.write("ask.c", include_str!("getenv.c"))?;
    let mut command = Command::new(link.folder.toolchain.tool("clang")?);
    succeed(command.args(["-shared", "-fPIC", "ask.c", "-o", "ask.so"]).current_dir(&link.folder.path))?;
    let mut backend = Command::new(link.folder.toolchain.tool("clang")?);
    backend.args(["-c", "-O2", "-x", "ir", "f.o", "-fthinlto-index=/dev/null", "-o", "native.o"]);
    backend.current_dir(&link.folder.path).env("LD_PRELOAD", link.path("ask.so"));
    succeed(backend.env("ASKED_LOG", link.path("asked")))?;
    let asked = fs::read_to_string(link.path("asked"))?;
    let asked: BTreeSet<&str> = asked.lines().collect();
    ensure!(asked.contains("CCC_OVERRIDE_OPTIONS"), "the library was not asked: {asked:?}");
    let known: BTreeSet<&str> = distlto_executor::variables::all().map(|(name, _)| name).collect();
    let unknown: Vec<_> =
        asked.iter().filter(|name| !known.contains(*name) && !HARMLESS.contains(name)).collect();
    ensure!(unknown.is_empty(), "tools ask for {unknown:?}");
    Ok(())
}
