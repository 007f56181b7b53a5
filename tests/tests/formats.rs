//! Links for Mach-O and WebAssembly: the linker alone is the oracle for the program's bytes.
//!
//! Nothing here runs a Mach-O program. The campaigns with `--format` have random programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use anyhow::{Result, ensure};
use distlto_tests::campaign::formats::{Format, LIBRARY};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::{fail, succeed};
use distlto_tests::store;
use distlto_tests::toolchain::Toolchain;

const MAIN: &str = "int part(int);\nextern int kept;\nint main(void) { return part(3) + kept; }\n";
const PART: &str = "int kept = 4;\nint part(int x) { return x * 7; }\n";

/// A folder with `main.o` and an archive with `part.o`.
fn project(name: &str, format: Format) -> Result<Folder> {
    let folder = Folder::create(Toolchain::from_env()?, name)?;
    folder.write("main.c", MAIN)?;
    folder.write("part.c", PART)?;
    folder.write("libSystem.tbd", LIBRARY)?;
    compile(&folder, format, "main")?;
    compile(&folder, format, "part")?;
    Ok(folder)
}

fn tool(folder: &Folder, name: &str) -> Result<Command> {
    let mut command = Command::new(folder.toolchain.tool(name)?);
    command.current_dir(&folder.path);
    Ok(command)
}

fn compile(folder: &Folder, format: Format, name: &str) -> Result<()> {
    let object = format!("{name}.o");
    let mut clang = tool(folder, "clang")?;
    clang.args([format.target(), "-O2", "-flto=thin", "-c", &format!("{name}.c"), "-o", &object]);
    succeed(&mut clang)?;
    if name == "part" {
        succeed(tool(folder, "llvm-ar")?.args(["rcs", "libpart.a", &object]))?;
    }
    Ok(())
}

/// A link by distlto with these words before it, or one by the linker alone.
fn link(folder: &Folder, format: Format, distlto: Option<&[&str]>) -> Result<Command> {
    let clang = folder.toolchain.tool("clang")?;
    let mut command = match distlto {
        Some(words) => {
            let mut command = Command::new(distlto::binary()?);
            command.args(words).arg("--").arg(clang);
            command
        }
        None => Command::new(clang),
    };
    command.current_dir(&folder.path).arg(format.target()).args(format.link_words());
    store::give(&mut command);
    command.args(["main.o", "libpart.a", "-o", "program"]);
    Ok(command)
}

/// The linker's own program.
fn alone(folder: &Folder, format: Format) -> Result<Vec<u8>> {
    succeed(&mut link(folder, format, None)?)?;
    let program = folder.path.join("program");
    let bytes = fs::read(&program)?;
    fs::remove_file(program)?;
    Ok(bytes)
}

fn is_served(name: &str, format: Format) -> Result<()> {
    let folder = project(name, format)?;
    let ran = |text: &str| text.lines().filter(|line| line.starts_with("+ ")).count();
    let served = || -> Result<String> {
        let ended = succeed(&mut link(&folder, format, Some(&["link", "-v"]))?)?;
        Ok(String::from_utf8_lossy(&ended.stderr).into_owned())
    };
    let expected = alone(&folder, format)?;
    let said = served()?;
    ensure!(ran(&said) == 2 && !said.contains("itself"), "{said}");
    ensure!(fs::read(folder.path.join("program"))? == expected, "other bytes than the linker's");
    let said = served()?;
    ensure!(ran(&said) == 0 && said.contains("nothing to do"), "{said}");
    folder.write("main.c", MAIN.replace("+ kept", "- kept"))?;
    compile(&folder, format, "main")?;
    let expected = alone(&folder, format)?;
    let said = served()?;
    ensure!(ran(&said) == 1 && said.contains("opt main.o"), "{said}");
    ensure!(fs::read(folder.path.join("program"))? == expected, "other bytes after an edit");
    Ok(())
}

/// The graph's last action is the linker, answered from the objects.
fn has_a_graph(name: &str, format: Format) -> Result<()> {
    let folder = project(name, format)?;
    let expected = alone(&folder, format)?;
    succeed(&mut link(&folder, format, Some(&["index", "--index", "graph"]))?)?;
    let mut run = Command::new(distlto::binary()?);
    run.args(["run", "graph"]).current_dir(&folder.path);
    store::give(&mut run);
    succeed(&mut run)?;
    ensure!(fs::read(folder.path.join("program"))? == expected, "other bytes than the linker's");
    Ok(())
}

/// A compiler that writes the object of another module.
fn refuses_another_object(name: &str, format: Format) -> Result<()> {
    let folder = project(name, format)?;
    folder.write("other.c", "int other(void) { return 1; }\n")?;
    succeed(tool(&folder, "clang")?.args([format.target(), "-c", "other.c", "-o", "other.native"]))?;
    let script = folder.write(
        "compiler",
        "#!/bin/sh\nfor last; do :; done\ncase \"$*\" in *-fthinlto-index=*) exec cp other.native \"$last\";; esac\n\
         exec clang-22 \"$@\"\n",
    )?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    folder.write("program", "the earlier program")?;
    let words = ["link", "--no-warm", "--compiler", "./compiler"];
    let (_, said) = fail(&mut link(&folder, format, Some(&words))?)?;
    ensure!(said.contains("is not that of its module: it does not define"), "{said}");
    ensure!(fs::read(folder.path.join("program"))? == b"the earlier program", "the program was replaced");
    Ok(())
}

#[test]
fn macho_is_served() -> Result<()> {
    is_served("macho-served", Format::Macho)
}

#[test]
fn webassembly_is_served() -> Result<()> {
    is_served("wasm-served", Format::Wasm)
}

#[test]
fn graphs_of_other_formats_make_the_linkers_program() -> Result<()> {
    has_a_graph("macho-graph", Format::Macho)?;
    has_a_graph("wasm-graph", Format::Wasm)
}

#[test]
fn an_object_of_another_module_fails_the_link() -> Result<()> {
    refuses_another_object("macho-refused", Format::Macho)?;
    refuses_another_object("wasm-refused", Format::Wasm)
}

/// Links for Windows, beside which the others of a build are served.
#[test]
fn links_for_windows_pass_through() -> Result<()> {
    for (target, entry, options) in [
        ("--target=x86_64-pc-windows-msvc", "main", "-Wl,/entry:main,/subsystem:console,/brepro"),
        ("--target=x86_64-w64-mingw32", "mainCRTStartup", "-Wl,--no-insert-timestamp"),
    ] {
        let folder = project("windows", Format::Wasm)?;
        folder.write("main.c", MAIN.replace("main(", &format!("{entry}(")))?;
        for name in ["main", "part"] {
            let source = format!("{name}.c");
            succeed(tool(&folder, "clang")?.args([target, "-O2", "-flto=thin", "-c", &source]))?;
        }
        let words = [target, "-fuse-ld=lld", "-flto=thin", "-nostdlib", options];
        let inputs = ["main.o", "part.o", "-o", "program.exe"];
        let clang = folder.toolchain.tool("clang")?;
        succeed(Command::new(&clang).current_dir(&folder.path).args(words).args(inputs))?;
        let expected = fs::read(folder.path.join("program.exe"))?;
        fs::remove_file(folder.path.join("program.exe"))?;
        let mut served = Command::new(distlto::binary()?);
        served.args(["link", "-v", "--"]).arg(&clang).current_dir(&folder.path).args(words).args(inputs);
        store::give(&mut served);
        let ended = succeed(&mut served)?;
        ensure!(fs::read(folder.path.join("program.exe"))? == expected, "other bytes than the linker's");
        let said = String::from_utf8_lossy(&ended.stderr);
        ensure!(!said.contains("error"), "{said}");
    }
    Ok(())
}
