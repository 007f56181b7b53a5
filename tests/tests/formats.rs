//! Links for other formats than ELF: the linker alone is the oracle for the program's bytes.
//!
//! Programs for Windows run under wine; nothing here runs a Mach-O program. The campaigns with `--format` have random programs.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_tests::campaign::formats::{Format, LIBRARY};
use distlto_tests::campaign::windows;
use distlto_tests::distlto;
use distlto_tests::engine;
use distlto_tests::folder::Folder;
use distlto_tests::run::{capture, fail, succeed};
use distlto_tests::store;
use distlto_tests::toolchain::{Toolchain, system_tool};

const MAIN: &str = "int part(int);\nextern int kept;\nint main(void) { return part(3) + kept; }\n";
const PART: &str = "int kept = 4;\nint part(int x) { return x * 7; }\n";

/// A folder with `main.o` and an archive with `part.o`.
fn project(name: &str, format: Format) -> Result<Folder> {
    let folder = Folder::create(Toolchain::from_env()?, name)?;
    folder.write("main.c", MAIN)?;
    folder.write("part.c", PART)?;
    folder.write("libSystem.tbd", LIBRARY)?;
    if format == Format::Coff {
        windows::runtime(&folder.path, folder.toolchain)?;
    }
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
    let ran = |text: &str| text.lines().filter(|line| line.contains("] opt ")).count();
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
    // MinGW's driver has the linker add an ending to the name.
    let program = if format == Format::MinGw { "program.exe" } else { "program" };
    folder.write(program, "the earlier program")?;
    let words = ["link", "--compiler", "./compiler"];
    let (_, said) = fail(&mut link(&folder, format, Some(&words))?)?;
    ensure!(said.contains("is not that of its module: it does not define"), "{said}");
    ensure!(fs::read(folder.path.join(program))? == b"the earlier program", "the program was replaced");
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

/// The linker's line of emcc, in a response file.
#[test]
fn webassembly_is_served_as_emscripten_links_it() -> Result<()> {
    let folder = project("wasm-emscripten", Format::Wasm)?;
    for name in ["main", "part"] {
        let mut clang = tool(&folder, "clang")?;
        clang.args(["--target=wasm32-unknown-emscripten", "-O2", "-flto=thin", "-c", &format!("{name}.c")]);
        succeed(&mut clang)?;
    }
    succeed(tool(&folder, "llvm-ar")?.args(["rcs", "libpart.a", "part.o"]))?;
    let line = "-o program main.o -L. -lpart -mllvm -combiner-global-alias-analysis=false \
        -mllvm -enable-emscripten-sjlj -mllvm -disable-lsr --lto-O3 --import-undefined --strip-debug \
        --export-if-defined=__main_argc_argv --export-if-defined=main --export-table -z stack-size=5242880 \
        --initial-memory=16777216 --max-memory=16777216 --stack-first --table-base=1 --no-entry";
    folder.write("emscripten.rsp", line)?;
    succeed(tool(&folder, "wasm-ld")?.arg("@emscripten.rsp"))?;
    let program = folder.path.join("program");
    let expected = fs::read(&program)?;
    fs::remove_file(&program)?;
    let mut command = Command::new(distlto::binary()?);
    command.args(["link", "-v", "--"]).arg(folder.toolchain.tool("wasm-ld")?).arg("@emscripten.rsp");
    store::give(command.current_dir(&folder.path));
    let said = String::from_utf8_lossy(&succeed(&mut command)?.stderr).into_owned();
    ensure!(said.contains("2 of 2 backends were out of date") && !said.contains("itself"), "{said}");
    ensure!(fs::read(&program)? == expected, "other bytes than the linker's");
    Ok(())
}

#[test]
fn graphs_of_other_formats_make_the_linkers_program() -> Result<()> {
    has_a_graph("macho-graph", Format::Macho)?;
    has_a_graph("wasm-graph", Format::Wasm)
}

#[test]
fn an_object_of_another_module_fails_the_link() -> Result<()> {
    refuses_another_object("macho-refused", Format::Macho)?;
    refuses_another_object("wasm-refused", Format::Wasm)?;
    refuses_another_object("coff-refused", Format::Coff)?;
    refuses_another_object("mingw-refused", Format::MinGw)
}

/// The linker's own words of a link for MSVC.
const DIRECT: [&str; 6] =
    ["/nodefaultlib", "/entry:start", "/subsystem:console", "/brepro", "support.obj", "kernel32.lib"];
/// Imports a function, by call and by address, and data of the same link (LLVM 220370, 220371).
const IMPORTING: &str = "__declspec(dllimport) int part(int);\n__declspec(dllimport) extern int kept;\n\
    int main(void) { int (*volatile taken)(int) = part; return part(3) + taken(1) + kept; }\n";

/// The command that links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caller {
    /// clang with the options of GNU's driver.
    Driver,
    /// clang with those of MSVC's.
    ClangCl,
    /// The linker itself, with a response file.
    Linker,
}

/// A link for Windows.
struct Windows {
    folder: Folder,
    format: Format,
    by: Caller,
    inputs: [&'static str; 2],
}

impl Windows {
    /// The link by the linker alone, or by distlto with these words.
    fn link(&self, words: &[&str], more: &[&str]) -> Result<Command> {
        let name = match self.by {
            Caller::Driver if self.format == Format::MinGw => "clang++",
            Caller::Driver => "clang",
            Caller::ClangCl => "clang-cl",
            Caller::Linker => "lld-link",
        };
        let linker = self.folder.toolchain.tool(name)?;
        let mut command = match words {
            [] => Command::new(linker),
            _ => {
                let mut command = Command::new(distlto::binary()?);
                command.args(words).arg("--").arg(linker);
                command
            }
        };
        command.current_dir(&self.folder.path);
        store::give(&mut command);
        match self.by {
            Caller::Driver => {
                command.arg(self.format.target()).args(self.inputs).args(self.format.link_words()).args(more);
                command.args(["-o", "program.exe"]);
            }
            Caller::ClangCl => {
                command.args([self.format.target(), "/clang:-flto=thin", "-fuse-ld=lld"]);
                command.args(self.inputs).args(["-o", "program.exe", "/link"]).args(DIRECT).args(more);
            }
            Caller::Linker => {
                let all = [&DIRECT[..], &self.inputs, more, &["/out:program.exe"]].concat();
                self.folder.write("line.rsp", all.join("\r\n"))?;
                command.arg("@line.rsp");
            }
        }
        Ok(command)
    }

    fn files(&self) -> Result<BTreeSet<OsString>> {
        let entries = fs::read_dir(&self.folder.path)?;
        Ok(entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<_, _>>()?)
    }

    /// Links by distlto: the program is the linker's own. Returns what was printed, and the exit code of the program.
    fn served(&self, more: &[&str]) -> Result<(String, Option<i32>)> {
        let program = self.folder.path.join("program.exe");
        succeed(&mut self.link(&[], more)?)?;
        let expected = fs::read(&program)?;
        let before = self.files()?;
        fs::remove_file(&program)?;
        let ended = succeed(&mut self.link(&["link", "-v"], more)?)?;
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        ensure!(fs::read(&program)? == expected, "other bytes than the linker's\n{said}");
        ensure!(self.files()? == before, "other files than the linker's: {:?}", self.files()?);
        ensure!(!said.contains("itself") && !said.contains("LNK4217"), "{said}");
        Ok((said, windows::run(&program)?.status.code()))
    }

    /// Links, links again, and links after an edit of `main`. `codes` are those of the program before and after it.
    fn check(&self, main: &str, codes: [i32; 2]) -> Result<()> {
        let ran = |said: &str| -> Vec<String> {
            let ended = said.lines().filter(|line| line.contains("] opt "));
            ended.filter(|line| !line.contains("(from the cache)")).map(str::to_owned).collect()
        };
        self.folder.write("main.c", main)?;
        compile(&self.folder, self.format, "main")?;
        let (said, code) = self.served(&[])?;
        ensure!(ran(&said).len() == 2 && code == Some(codes[0]), "{code:?}\n{said}");
        let (said, _) = self.served(&[])?;
        ensure!(ran(&said).is_empty(), "{said}");
        let said = succeed(&mut self.link(&["link", "-v"], &[])?)?.stderr;
        let said = String::from_utf8_lossy(&said);
        ensure!(said.contains("nothing to do"), "{said}");
        self.folder.write("main.c", main.replace("part(3)", "part(4)"))?;
        compile(&self.folder, self.format, "main")?;
        let before = self.files()?;
        let said = succeed(&mut self.link(&["link", "--dry-run"], &[])?)?.stdout;
        let said = String::from_utf8_lossy(&said);
        ensure!(
            said.contains("main.o: its module changed") && said.contains("1 of 2 backends would run"),
            "{said}"
        );
        ensure!(self.files()? == before, "a dry run leaves files: {:?}", self.files()?);
        let (said, code) = self.served(&[])?;
        ensure!(matches!(&ran(&said)[..], [one] if one.contains("opt main.o")), "{said}");
        ensure!(code == Some(codes[1]), "{code:?}\n{said}");
        Ok(())
    }
}

fn windows(name: &str, format: Format, by: Caller, inputs: [&'static str; 2]) -> Result<Windows> {
    Ok(Windows { folder: project(name, format)?, format, by, inputs })
}

/// Who runs the actions of a graph.
#[derive(Debug, Clone, Copy)]
enum Runner {
    Run,
    Ninja,
}

impl Windows {
    /// Runs a graph, and returns how many backends ran.
    fn run_graph(&self, by: Runner) -> Result<usize> {
        let tool = |name: &str| -> Result<Command> {
            let mut command = Command::new(name);
            let path = env::var_os("PATH").unwrap_or_default();
            let path = [distlto::directory()?.to_owned()].into_iter().chain(env::split_paths(&path));
            command.env("PATH", env::join_paths(path)?).current_dir(&self.folder.path);
            store::give(&mut command);
            Ok(command)
        };
        let plan = |option: &str, file: &str| -> Result<()> {
            let mut plan = tool("distlto")?;
            plan.args(["plan", "graph", option, file]);
            succeed(&mut plan).map(drop)
        };
        let mut command = match by {
            Runner::Run => tool("distlto")?,
            Runner::Ninja => tool(&system_tool("ninja")?.to_string_lossy())?,
        };
        match by {
            Runner::Run => command.args(["run", "-vv", "graph"]),
            Runner::Ninja => {
                plan("--ninja", "link.ninja")?;
                command.args(["-v", "-f", "link.ninja"])
            }
        };
        let ended = succeed(&mut command)?;
        let [out, error] =
            [ended.stdout, ended.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        let backends = match by {
            Runner::Run => error
                .lines()
                .filter(|line| line.starts_with("+ "))
                .filter(|line| line.contains(" ir "))
                .count(),
            _ => out.lines().filter(|line| line.contains("distlto-opt ")).count(),
        };
        ensure!(!error.contains("LNK4217") && !error.contains("itself"), "{error}");
        Ok(backends)
    }

    /// Makes a graph and runs it, before and after an edit of `main`. `codes` are those of the program.
    fn check_graph(&self, by: Runner, codes: [i32; 2]) -> Result<()> {
        let program = self.folder.path.join("program.exe");
        for (edit, (code, backends)) in codes.into_iter().zip([2, 1]).enumerate() {
            if edit > 0 {
                self.folder.write("main.c", IMPORTING.replace("part(3)", "part(4)"))?;
                compile(&self.folder, self.format, "main")?;
            }
            succeed(&mut self.link(&[], &[])?)?;
            let expected = fs::read(&program)?;
            fs::remove_file(&program)?;
            if edit == 0 {
                let before = self.files()?;
                succeed(&mut self.link(&["index", "--index", "graph"], &[])?)?;
                let mut after = self.files()?;
                ensure!(after.remove(OsStr::new("graph")) && after == before, "other files: {after:?}");
            }
            let before = self.files()?;
            let ran = self.run_graph(by)?;
            ensure!(ran == backends, "{by:?}, edit {edit}: {ran} backends");
            ensure!(fs::read(&program)? == expected, "{by:?}, edit {edit}: other bytes than the linker's");
            ensure!(windows::run(&program)?.status.code() == Some(code), "{by:?}, edit {edit}");
            let more = self
                .files()?
                .difference(&before)
                .map(|name| name.to_string_lossy().into_owned())
                .collect::<Vec<_>>();
            let is_own = |name: &String| name.starts_with("program.exe") || name.starts_with("link.");
            ensure!(more.iter().all(is_own), "{by:?}: other files: {more:?}");
        }
        Ok(())
    }
}

/// A link of two modules that imports a symbol of its own.
fn importing(name: &str, format: Format, by: Caller, inputs: [&'static str; 2]) -> Result<Windows> {
    let link = windows(name, format, by, inputs)?;
    link.folder.write("main.c", IMPORTING)?;
    compile(&link.folder, format, "main")?;
    Ok(link)
}

#[test]
fn graphs_for_windows_make_the_linkers_program() -> Result<()> {
    for by in [Runner::Run, Runner::Ninja] {
        let name = |format: &str| format!("{format}-graph-{by:?}").to_lowercase();
        importing(&name("coff"), Format::Coff, Caller::Driver, OBJECTS)?.check_graph(by, [32, 39])?;
        importing(&name("mingw"), Format::MinGw, Caller::Driver, OBJECTS)?.check_graph(by, [32, 39])?;
    }
    Ok(())
}

/// Members of archives have one name in each link, and those of two archives of one name differ.
#[test]
fn graphs_for_windows_have_members_of_archives() -> Result<()> {
    for (name, format) in [("coff-graph-members", Format::Coff), ("mingw-graph-members", Format::MinGw)] {
        let link = windows(name, format, Caller::Driver, ["main.o", "libpart.a"])?;
        for (folder, name) in [("x", "more"), ("y", "most")] {
            let source = format!("int {name}(int x) {{ return x * 3; }}\n");
            link.folder.write(&format!("{folder}/part.c"), &source)?;
            compile(&link.folder, format, &format!("{folder}/part"))?;
            let ar = ["rcs", &format!("{folder}/libpart.a"), &format!("{folder}/part.o")];
            succeed(tool(&link.folder, "llvm-ar")?.args(ar))?;
        }
        let main = "int part(int), more(int), most(int);\nextern int kept;\n\
            int main(void) { return part(3) + kept + more(2) + most(1); }\n";
        link.folder.write("main.c", main)?;
        compile(&link.folder, format, "main")?;
        let more = ["x/libpart.a", "y/libpart.a"];
        succeed(&mut link.link(&[], &more)?)?;
        let program = link.folder.path.join("program.exe");
        let expected = fs::read(&program)?;
        fs::remove_file(&program)?;
        succeed(&mut link.link(&["index", "--index", "graph"], &more)?)?;
        let ran = link.run_graph(Runner::Run)?;
        let graph = fs::read_to_string(link.folder.path.join("graph/graph.json"))?;
        for label in ["libpart.a(part.o)", "x/libpart.a(part.o)", "y/libpart.a(part.o)"] {
            ensure!(graph.contains(&format!("\"label\":\"{label}\"")), "{label}: {graph}");
        }
        ensure!(ran == 4 && fs::read(&program)? == expected, "{name}: {ran} backends, or other bytes");
        ensure!(windows::run(&program)?.status.code() == Some(34), "{name}");
    }
    Ok(())
}

/// The objects of an earlier thin link make no program.
#[test]
fn a_graph_for_windows_that_is_out_of_date_makes_no_program() -> Result<()> {
    for (name, format) in [("coff-graph-stale", Format::Coff), ("mingw-graph-stale", Format::MinGw)] {
        let link = windows(name, format, Caller::Driver, ARCHIVE)?;
        succeed(&mut link.link(&["index", "--index", "graph"], &[])?)?;
        link.run_graph(Runner::Run)?;
        let program = link.folder.write("program.exe", "the earlier program")?;
        link.folder.write("main.c", MAIN.replace("part(3)", "part(4)"))?;
        compile(&link.folder, format, "main")?;
        let before = link.files()?;
        let (_, said) = fail(&mut link.link(&["link", "--graph", "graph/graph.json"], &[])?)?;
        ensure!(said.contains("is out of date: the object of main.o is another one now"), "{said}");
        ensure!(!said.contains("distributor"), "{said}");
        ensure!(fs::read(&program)? == b"the earlier program", "{name}: the program was replaced");
        ensure!(link.files()? == before, "{name}: other files: {:?}", link.files()?);
    }
    Ok(())
}

const ARCHIVE: [&str; 2] = ["main.o", "libpart.a"];
const OBJECTS: [&str; 2] = ["main.o", "part.o"];

#[test]
fn a_driver_for_msvc_is_served() -> Result<()> {
    windows("coff-driver", Format::Coff, Caller::Driver, ARCHIVE)?.check(MAIN, [25, 32])
}

#[test]
fn clang_cl_is_served() -> Result<()> {
    windows("coff-clang-cl", Format::Coff, Caller::ClangCl, ARCHIVE)?.check(MAIN, [25, 32])
}

/// It is told not to take its options for MSVC's.
#[test]
fn clang_cl_can_be_the_compiler() -> Result<()> {
    let link = windows("coff-compiler", Format::Coff, Caller::Linker, ARCHIVE)?;
    link.folder.write("main.c", MAIN)?;
    compile(&link.folder, link.format, "main")?;
    let clang_cl = link.folder.toolchain.tool("clang-cl")?;
    let compiler = clang_cl.to_str().context("UTF-8")?;
    let [alone, served] = [&[][..], &["link", "--compiler", compiler]].map(|words| -> Result<Vec<u8>> {
        succeed(&mut link.link(words, &[])?)?;
        Ok(fs::read(link.folder.path.join("program.exe"))?)
    });
    ensure!(alone? == served?, "the program is not that of the linker alone");
    Ok(())
}

#[test]
fn lld_link_with_a_response_file_is_served() -> Result<()> {
    windows("coff-direct", Format::Coff, Caller::Linker, ARCHIVE)?.check(MAIN, [25, 32])
}

#[test]
fn mingws_linker_is_served() -> Result<()> {
    windows("mingw-driver", Format::MinGw, Caller::Driver, ARCHIVE)?.check(MAIN, [25, 32])
}

#[test]
fn imports_of_the_same_link_are_local() -> Result<()> {
    windows("coff-imports", Format::Coff, Caller::Linker, OBJECTS)?.check(IMPORTING, [32, 39])?;
    windows("mingw-imports", Format::MinGw, Caller::Driver, OBJECTS)?.check(IMPORTING, [32, 39])
}

/// Straight-line code and loops, which the linker vectorises from the second level on.
#[test]
fn backends_for_windows_optimise_as_the_linker() -> Result<()> {
    let source = "struct pair { long long a, b; };\nstruct pair *volatile to, *volatile from;\nint part(int);\n\
        static int sums[64];\n\
        __attribute__((noinline)) static void fill(struct pair *restrict x, const struct pair *restrict y) {\n\
          x->a = y->a ^ 17;\n  x->b = y->b ^ 18;\n}\n\
        int main(void) {\n  static struct pair x, y;\n  to = &x;\n  from = &y;\n  fill(to, from);\n\
          for (int i = 0; i < 64; i++) sums[i] += (sums[63 - i] ^ i) * 3;\n\
          return (int)x.a + part(1) + sums[part(0)];\n}\n";
    for (name, format) in [("coff-levels", Format::Coff), ("mingw-levels", Format::MinGw)] {
        let link = windows(name, format, Caller::Driver, OBJECTS)?;
        link.folder.write("main.c", source)?;
        compile(&link.folder, format, "main")?;
        for level in 1..4 {
            let option = match format {
                Format::MinGw => format!("-Wl,--lto-O{level}"),
                _ => format!("-Wl,/opt:lldlto={level}"),
            };
            let (said, code) = link.served(&[&option])?;
            ensure!(code == Some(24), "level {level}: {code:?}\n{said}");
        }
    }
    Ok(())
}

/// The first link runs backends on an engine. The second one has another store, and finds their objects there.
fn runs_on_an_engine(
    folder: &Folder,
    program: &str,
    link: impl Fn(&[&str]) -> Result<Command>,
) -> Result<()> {
    let program = folder.path.join(program);
    succeed(&mut link(&[])?)?;
    let expected = fs::read(&program)?;
    for (store, expected_text) in
        [("first", "of them on the engine"), ("second", "2 backends (2 from the cache)")]
    {
        fs::remove_file(&program)?;
        let words =
            ["link", "-v", "-j1", "--remote", engine::url()?, "--remote-fallback=never", "--cache", store];
        let mut command = link(&words)?;
        // Nothing is dropped since a machine is slow.
        command.env("DISTLTO_REMOTE_UPLOAD_TIME", "10m");
        let said = String::from_utf8_lossy(&succeed(&mut command)?.stderr).into_owned();
        ensure!(said.contains(expected_text), "{said}");
        ensure!(fs::read(&program)? == expected, "{store}: other bytes than the linker's\n{said}");
    }
    Ok(())
}

#[test]
fn backends_of_other_formats_run_on_an_engine() -> Result<()> {
    for (name, format) in [("macho-engine", Format::Macho), ("wasm-engine", Format::Wasm)] {
        let folder = project(name, format)?;
        let by = |words: &[&str]| link(&folder, format, (!words.is_empty()).then_some(words));
        runs_on_an_engine(&folder, "program", by)?;
    }
    for (name, format) in [("coff-engine", Format::Coff), ("mingw-engine", Format::MinGw)] {
        let made = windows(name, format, Caller::Driver, ARCHIVE)?;
        runs_on_an_engine(&made.folder, "program.exe", |words| made.link(words, &[]))?;
    }
    Ok(())
}

#[test]
fn backends_for_windows_have_the_options_of_the_link() -> Result<()> {
    let link = windows("coff-options", Format::Coff, Caller::Linker, ARCHIVE)?;
    let events = |expected: &[&str]| -> Result<()> {
        let ended = succeed(&mut link.link(&["link", "--cache", "kept", "-j1", "--json"], &[])?)?;
        let events = String::from_utf8_lossy(&ended.stdout);
        ensure!(expected.iter().all(|text| events.contains(text)), "{events}");
        Ok(())
    };
    events(&["\"ran\":2", "\"lane\":0"])?;
    ensure!(link.folder.path.join("kept/results-v1").is_dir(), "the backends have not used --cache");
    events(&["\"ran\":0"])
}

/// A path of such an option may be no text.
#[test]
fn backends_for_windows_have_paths_byte_for_byte() -> Result<()> {
    let cache = OsStr::from_bytes(b"kept-\xff");
    for (name, format) in [("coff-bytes", Format::Coff), ("mingw-bytes", Format::MinGw)] {
        let link = windows(name, format, Caller::Driver, ARCHIVE)?;
        let line = link.link(&["link"], &[])?;
        let mut command = Command::new(distlto::binary()?);
        command.arg("link").arg("--cache").arg(cache).args(line.get_args().skip(1));
        command.current_dir(&link.folder.path);
        store::give(&mut command);
        succeed(&mut command)?;
        let kept = link.folder.path.join(cache).join("results-v1");
        ensure!(kept.is_dir(), "{name}: the backends have not used --cache: {:?}", link.files()?);
    }
    Ok(())
}

/// Drivers remove the program when their linker fails.
#[test]
fn a_failed_backend_leaves_the_earlier_program_for_windows() -> Result<()> {
    for (name, format) in [("coff-failed", Format::Coff), ("mingw-failed", Format::MinGw)] {
        let link = windows(name, format, Caller::Driver, ARCHIVE)?;
        let script = link.folder.write("compiler", "#!/bin/sh\nexit 9\n")?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
        let program = link.folder.write("program.exe", "the earlier program")?;
        let before = link.files()?;
        let (_, said) = fail(&mut link.link(&["link", "--compiler", "./compiler"], &[])?)?;
        ensure!(said.contains("the command failed with exit code 9"), "{said}");
        ensure!(fs::read(&program)? == b"the earlier program", "{name}: the program was replaced");
        ensure!(link.files()? == before, "{name}: other files: {:?}", link.files()?);
    }
    Ok(())
}

#[test]
fn lld_link_makes_an_archive_by_itself() -> Result<()> {
    let link = windows("coff-library", Format::Coff, Caller::Linker, ARCHIVE)?;
    let mut command = Command::new(distlto::binary()?);
    command.args(["link", "-v", "--"]).arg(link.folder.toolchain.tool("lld-link")?);
    command.args(["/lib", "main.o", "part.o", "/out:both.lib"]).current_dir(&link.folder.path);
    let said = succeed(&mut command)?.stderr;
    ensure!(String::from_utf8_lossy(&said).contains("it makes a library"));
    ensure!(link.folder.path.join("both.lib").is_file(), "there is no archive");
    Ok(())
}

#[test]
fn links_for_windows_that_only_their_linker_can_make_are_left_alone() -> Result<()> {
    let link = windows("coff-alone", Format::Coff, Caller::Linker, ARCHIVE)?;
    for (words, why) in [
        (&["/thinlto-distributor:/bin/false", "/thinlto-remote-compiler:/bin/false"][..], "of its own"),
        (&["/lldsavetemps"], "only the linker's own backends write"),
        (&["/dwodir:split"], "a distributor does not split debug information"),
    ] {
        let ended = capture(&mut link.link(&["link", "-v"], words)?)?;
        let said = String::from_utf8_lossy(&ended.stderr);
        ensure!(said.contains(why) && said.contains("links by itself"), "{said}");
        // It is the user's distributor that fails.
        ensure!(ended.status.success() == (words.len() == 1), "{said}");
    }
    Ok(())
}
