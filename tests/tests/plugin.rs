//! The DTLTO plugin in a C program that does a linker's part: real thin links, real programs, and compilers that fail.
//!
//! The host itself checks that a call changes nothing of its process and leaves no child, thread or descriptor. No
//! released linker loads plugins, so the oracles are the driver's own ThinLTO link and the interface's commands, run
//! one at a time.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::plugin::{self, Host, Object};
use distlto_tests::project::{Misbehaviour, Project};
use distlto_tests::run::{capture, succeed, told};
use distlto_tests::third_party;
use distlto_tests::toolchain::{NEWEST, Toolchain};
use object::{Object as _, ObjectSymbol};

const NEW: Toolchain = Toolchain { version: NEWEST };

const LUA_AND_ZSTD: &str = r#"
#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"
#include "zstd.h"
#include <stdlib.h>
static int pack(lua_State *state) {
  size_t size, packed;
  const char *text = lua_tolstring(state, 1, &size);
  char *room = malloc(ZSTD_compressBound(size)), *back = malloc(size + 1);
  packed = ZSTD_compress(room, ZSTD_compressBound(size), text, size, 7);
  lua_pushinteger(state, (lua_Integer)packed);
  lua_pushlstring(state, back, ZSTD_decompress(back, size, room, packed));
  free(room);
  free(back);
  return 2;
}
int main(void) {
  lua_State *state = luaL_newstate();
  luaL_openlibs(state);
  lua_register(state, "pack", pack);
  return luaL_dostring(state, "local t = {} for i = 1, 5000 do t[i] = tostring(i * 7 % 1000) end "
                              "local text = table.concat(t, ',') local size, back = pack(text) "
                              "print(#text, size, back == text, string.format('%5.2f', math.pi))");
}
"#;

/// Compiles sources in one run of clang, each to an object in `dir`.
fn compile(folder: &Folder, dir: &str, flags: &[String], sources: &[String]) -> Result<Vec<String>> {
    let place = folder.path.join(dir);
    fs::create_dir_all(&place)?;
    let mut clang = Command::new(NEW.tool("clang")?);
    clang.args(["-O2", "-flto=thin", "-w", "-c"]).args(flags).args(sources).current_dir(place);
    succeed(&mut clang)?;
    folder.glob(&format!("{dir}/*.o"), "")
}

/// Lua's modules as objects and zstd's as a regular archive: what the driver's link of both is given.
fn lua_and_zstd(folder: &Folder) -> Result<Vec<String>> {
    let sources = |name: &str| -> Result<String> {
        third_party::sources(name)?.into_os_string().into_string().ok().context("cargo's paths are UTF-8")
    };
    let (lua, zstd) = (sources("lua-src")? + "/lua-5.4.9", sources("zstd-sys")? + "/zstd/lib");
    let flags = |rest: &[&str]| -> Vec<String> {
        let given = [format!("-I{lua}"), format!("-I{zstd}"), "-DXXH_NAMESPACE=ZSTD_".to_owned()];
        given.into_iter().chain(rest.iter().map(|&flag| flag.to_owned())).collect()
    };
    let mut zstd_sources = Vec::new();
    for pattern in ["common/*.c", "compress/*.c", "decompress/*.c", "decompress/*.S", "dictBuilder/*.c"] {
        zstd_sources.extend(folder.glob(&format!("{zstd}/{pattern}"), "")?);
    }
    let members = compile(folder, "zstd", &flags(&[]), &zstd_sources)?;
    let mut ar = Command::new(NEW.tool("llvm-ar")?);
    succeed(ar.args(["rcs", "libzstd.a"]).args(&members).current_dir(&folder.path))?;
    let lua_sources = folder.glob(&format!("{lua}/*.c"), "")?;
    let mut words = compile(folder, "lua", &flags(&["-DLUA_USE_POSIX"]), &lua_sources)?;
    let main = folder.write("main.c", LUA_AND_ZSTD)?;
    words.extend(compile(folder, "main", &flags(&[]), &[main.display().to_string()])?);
    words.extend(["libzstd.a", "-lm", "-pthread"].map(str::to_owned));
    Ok(words)
}

fn program_output(program: &Path) -> Result<String> {
    let mut command = Command::new(program);
    Ok(String::from_utf8(succeed(&mut command)?.stdout)?)
}

/// No temporary lies anywhere below.
fn is_clean(dir: &Path) -> Result<()> {
    let mut waiting = vec![dir.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            ensure!(!path.to_string_lossy().contains(".distlto-tmp-"), "{} is left", path.display());
            if path.is_dir() && !path.is_symlink() {
                waiting.push(path);
            }
        }
    }
    Ok(())
}

/// Two threads call at the same time, each twice; the same objects come out as of a serial run, and programs work.
#[test]
fn a_real_program_from_two_threads_twice() -> Result<()> {
    let folder = Folder::create(NEW, "plugin/lua and zstd")?;
    let words = lua_and_zstd(&folder)?;
    let clang = NEW.tool("clang")?;
    let linked = words.iter().map(String::as_str).chain(["-o", "plain"]);
    let mut plain = Command::new(&clang);
    succeed(plain.args(["-O2", "-flto=thin", "-fuse-ld=lld"]).args(linked).current_dir(&folder.path))?;
    let expected = program_output(&folder.path.join("plain"))?;
    ensure!(expected.contains("true"), "the plain program says {expected}");

    let linker = plugin::linker_words(&clang, &words, &folder.path)?;
    let temporary = folder.path.join("temporary");
    fs::create_dir(&temporary)?;
    let mut host = Host::new(&format!("distlto:compiler={},jobs=2", clang.display()), linker, &folder.path)?;
    host.rounds = 2;
    host.threads = true;
    host.outputs = vec!["out 1".to_owned(), "out 2".to_owned()];
    host.environment.push(("TMPDIR", temporary.clone().into()));
    let (said, objects) = host.links()?;
    ensure!(!said.contains("error of") && !said.contains("warning of"), "{said}");
    let [first, second] = ["out 1", "out 2"].map(|out| of(&objects, out));
    ensure!(first.len() >= 50 && first.len() == second.len(), "{} and {}", first.len(), second.len());
    let members = first.iter().filter(|object| object.module.starts_with("libzstd.a(")).count();
    ensure!(members > 10, "only {members} modules have an identifier that is no path");

    let alone = folder.path.join("alone");
    plugin::modules_in_place(&first, &alone)?;
    for (one, two) in first.iter().zip(&second) {
        ensure!(one.module == two.module);
        let expected = plugin::compile_alone(&clang, one, &alone)?;
        for object in [one, two] {
            ensure!(fs::read(&object.native)? == expected, "{}: another object", object.native.display());
        }
    }
    for out in ["out 1", "out 2"] {
        ensure!(program_output(&folder.path.join(out).join("program"))? == expected);
    }
    is_clean(&folder.path)?;
    ensure!(fs::read_dir(&temporary)?.next().is_none(), "a private directory is left");
    Ok(())
}

fn of(objects: &[Object], output: &str) -> Vec<Object> {
    objects.iter().filter(|object| object.output == output).cloned().collect()
}

const SOURCES: &[(&str, &str)] = &[
    (
        "main.c",
        "#include <stdio.h>\nint part(int);\nint main(void) { printf(\"%d\\n\", part(1)); return 0; }\n",
    ),
    ("part.c", "int other(int);\nint part(int x) { return other(x) + 1; }\n"),
    ("other.c", "int other(int x) { return x * 10; }\n"),
];

/// A small program whose compiler can be made to misbehave, and its host.
fn small(name: &str) -> Result<(Project, Host)> {
    let project = Project::create(&format!("plugin {name}"), SOURCES)?;
    let words: Vec<String> = project.objects.iter().cloned().chain(["-o".into(), "program".into()]).collect();
    let dir = &project.folder.path;
    let linker = plugin::linker_words(&NEW.tool("clang")?, &words, dir)?;
    let host = Host::new("distlto:compiler=tools/clang", linker, dir)?;
    project.forget()?;
    Ok((project, host))
}

/// The command that a message offers.
fn repeat_of(told: &str) -> Result<&str> {
    let line = told.lines().find_map(|line| line.trim_start().strip_prefix("repeat: "));
    line.with_context(|| format!("no command to repeat in\n{told}"))
}

#[test]
fn a_compiler_that_fails_is_told_with_module_and_command() -> Result<()> {
    let (project, host) = small("fails")?;
    for how in [
        Misbehaviour { name: "did not write", script: "exit 0" },
        Misbehaviour { name: "wrote an empty", script: ": > \"$out\"; exit 0" },
        Misbehaviour {
            name: "exit code 3: fatal error: cannot",
            script: "echo 'fatal error: cannot' >&2; exit 3",
        },
        Misbehaviour { name: "SIGSEGV", script: "kill -SEGV $$" },
        Misbehaviour {
            name: "truncated",
            script: "\"$clang\" \"$@\"; head -c 200 \"$out\" > x; mv x \"$out\"; exit 0",
        },
        Misbehaviour { name: "bitcode", script: "cp part.o \"$out\"; exit 0" },
    ] {
        project.misbehave("part.o", how)?;
        let said = host.fails()?;
        // The compiler's own words come first.
        ensure!(said.matches("error of out: distlto: ").count() == 1, "{}:\n{said}", how.name);
        ensure!(
            said.lines().any(|line| line.contains(": part.o: ") && line.contains(how.name)),
            "{}:\n{said}",
            how.name
        );
        ensure!(said.contains("\n  help: "), "{}: no remedy:\n{said}", how.name);
        ensure!(said.contains("result of out: 1"), "{}:\n{said}", how.name);
        is_clean(&project.folder.path)?;
        let part = project.path("out").join("1.native.o");
        ensure!(!part.exists(), "{}: a refused object is in place", how.name);
        project.behave()?;
        succeed(Command::new("sh").args(["-c", repeat_of(&said)?]))?;
        ensure!(part.exists(), "{}: the command does not compile the module", how.name);
    }
    let (_, objects) = host.links()?;
    ensure!(objects.len() == 3);
    ensure!(program_output(&project.path("out/program"))? == "11\n");
    Ok(())
}

#[test]
fn a_compiler_that_the_system_killed_is_tried_again_and_told() -> Result<()> {
    let (project, host) = small("killed")?;
    project.misbehave(
        "part.o",
        Misbehaviour {
            name: "killed once",
            script: "[ -e tools/killed ] || { : > tools/killed; kill -KILL $$; }\n\"$clang\" \"$@\"",
        },
    )?;
    let output = succeed(&mut host.command()?)?;
    let said = plugin::text(&output);
    let warnings: Vec<_> = said.lines().filter(|line| line.starts_with("warning of out: ")).collect();
    ensure!(
        warnings.len() == 1 && warnings[0].contains("part.o: ") && warnings[0].contains("tried again"),
        "{said}"
    );
    ensure!(program_output(&project.path("out/program"))? == "11\n");
    is_clean(&project.folder.path)
}

#[test]
fn a_missing_shard_is_told_with_its_module() -> Result<()> {
    let (_, mut host) = small("shard")?;
    host.remove = Some("out/part.o.thinlto.bc".to_owned());
    let said = host.fails()?;
    ensure!(said.contains("error of out: distlto: the linker's jobs: 1 of the files"), "{said}");
    ensure!(said.contains("\"out/part.o.thinlto.bc\", for module \"part.o\""), "{said}");
    Ok(())
}

/// A member of an archive has an identifier that is no path; its failure can be repeated by hand all the same.
#[test]
fn the_failure_of_an_archive_member_can_be_repeated() -> Result<()> {
    let (project, mut host) = small("member")?;
    let dir = &project.folder.path;
    let mut ar = Command::new(NEW.tool("llvm-ar")?);
    succeed(ar.args(["rcs", "lib it's.a", "part.o", "other.o"]).current_dir(dir))?;
    let words = ["main.o", "lib it's.a", "-o", "program"].map(str::to_owned);
    host.linker = plugin::linker_words(&NEW.tool("clang")?, &words, dir)?;
    // The fake compiler tells modules by their suffix, which an identifier of a member does not have.
    project.misbehave("main.o", Misbehaviour { name: "fails", script: "exit 4" })?;
    let said = host.fails()?;
    ensure!(said.contains("main.o: the command failed with exit code 4"), "{said}");
    project.behave()?;
    let repeat = repeat_of(&said)?.to_owned();
    ensure!(repeat.contains("ln -s"), "{repeat}");
    let object = dir.join("out/0.native.o");
    ensure!(!object.exists());
    succeed(Command::new("sh").args(["-c", &repeat]).env("TMPDIR", dir))?;
    ensure!(object.exists(), "the command does not compile the module: {repeat}");
    // The compilations run elsewhere, and find what the options name relatively all the same.
    project.folder.write("p/part.prof", "part:100:10\n 1: 10\n")?;
    host.environment.push(("DISTLTO_DTLTO_OPTIONS", "arg=-fprofile-sample-use=p/part.prof,arg=-w".into()));
    let (_, objects) = host.links()?;
    ensure!(objects.iter().any(|object| object.module.starts_with("lib it's.a(part.o at ")), "{objects:?}");
    ensure!(program_output(&project.path("out/program"))? == "11\n");
    host.remove = Some("out/members/2.bitcode".to_owned());
    let said = host.fails()?;
    ensure!(said.contains("lib it's.a(") && said.contains("out/members/2.bitcode"), "{said}");
    Ok(())
}

#[test]
fn options_of_the_name_and_of_the_environment() -> Result<()> {
    let (project, mut host) = small("options")?;
    project.misbehave("main.o", Misbehaviour { name: "fails", script: "exit 1" })?;
    host.name = "distlto:compiler=tools/clang,jobs=1,keep-going".to_owned();
    let said = host.fails()?;
    ensure!(said.matches("error of out: ").count() == 1, "{said}");
    ensure!(project.ran()?.backends == ["main.o", "other.o", "part.o"], "{:?}", project.ran()?);
    project.forget()?;
    host.name = "distlto:compiler=tools/clang,jobs=1".to_owned();
    let said = host.fails()?;
    ensure!(said.contains("1 of 3 backends failed, 2 not started"), "{said}");
    project.behave()?;

    host.name = "distlto:verbose,log=out/log".to_owned();
    host.environment
        .push(("DISTLTO_DTLTO_OPTIONS", "compiler=tools/clang,arg=-Rpass=inline,arg=-DA=b,,c".into()));
    let mut command = host.command()?;
    let output = capture(&mut command)?;
    ensure!(output.status.success(), "{}", told(&command, &output));
    let said = plugin::text(&output);
    ensure!(said.contains("[3/3] opt ") && said.contains("-DA=b,c -c -x ir"), "{said}");
    ensure!(said.contains("inlined into") && !said.contains("warning of out: "), "{said}");
    let log = fs::read_to_string(project.path("out/log"))?;
    let events: Vec<serde_json::Value> = log.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    ensure!(events.iter().filter(|event| event["event"] == "finish").count() == 3, "{log}");
    host.name = "distlto:keep-going".to_owned();
    let output = succeed(&mut host.command()?)?;
    let said = plugin::text(&output);
    ensure!(said.contains("warning of out: distlto: ") && said.contains("inlined into"), "{said}");
    ensure!(!said.contains("opt main.o"), "{said}");

    host.environment.clear();
    for (name, mistake) in [
        ("distlto:jbos=1", "\"jbos=1\" is not known"),
        ("distlto:compiler=tools/missing", "\"tools/missing\" was not found"),
        ("distlto:compiler=no-such-clang", "\"no-such-clang\" was not found in PATH"),
        ("distlto:compiler=tools/clang,log=gone/log", "gone/log"),
    ] {
        host.name = name.to_owned();
        let said = host.fails()?;
        ensure!(said.contains(mistake) && said.contains("help: "), "{name}:\n{said}");
    }
    Ok(())
}

/// The clang of the linker's own installation is the one that reads its bitcode.
#[test]
fn the_compiler_is_the_one_beside_the_linker() -> Result<()> {
    let (project, mut host) = small("beside")?;
    host.name = "distlto".to_owned();
    // A link's own place counts, not that of links to it.
    let installed = project.path("tools/host");
    fs::copy(&host.program, &installed)?;
    fs::create_dir(project.path("bin"))?;
    host.program = project.path("bin/ld");
    symlink(&installed, &host.program)?;
    host.links()?;
    ensure!(project.ran()?.backends == ["main.o", "other.o", "part.o"], "{:?}", project.ran()?);

    fs::remove_file(project.path("tools/clang"))?;
    host.environment.push(("PATH", "/nowhere".into()));
    let said = host.fails()?;
    ensure!(said.contains("no clang was found beside"), "{said}");
    fs::create_dir(project.path("path"))?;
    symlink(NEW.tool("clang")?, project.path("path/clang"))?;
    host.environment = vec![("PATH", project.path("path").into()), ("DISTLTO_HOOK", "off".into())];
    host.links()?;
    ensure!(program_output(&project.path("out/program"))? == "11\n");
    Ok(())
}

/// The program lies beside the library, in `bin` beside the library's folder, or in `PATH`.
#[test]
fn the_distributor_is_the_one_of_the_installation() -> Result<()> {
    let (project, mut host) = small("installed")?;
    for folder in ["lib", "bin", "path"] {
        fs::create_dir(project.path(folder))?;
    }
    host.library = project.path("lib/libDTLTOdistlto.so");
    fs::copy(plugin::library()?, &host.library)?;
    host.environment.push(("PATH", project.path("path").into()));
    let said = host.fails()?;
    ensure!(
        said.contains("there is no distlto-distribute: looked for ") && said.contains("help: "),
        "{said}"
    );
    for place in ["lib", "../bin", "PATH"] {
        ensure!(said.contains(place), "{said}");
    }
    for place in ["path", "bin", "lib"] {
        let place = project.path(place).join("distlto-distribute");
        symlink(distlto::distributor()?, &place)?;
        host.links()?;
        fs::remove_file(&place)?;
    }
    // A linker's own folder may have a link to the library.
    symlink(distlto::distributor()?, project.path("bin/distlto-distribute"))?;
    fs::create_dir_all(project.path("linker/lib"))?;
    symlink(&host.library, project.path("linker/lib/libDTLTOdistlto.so"))?;
    host.library = project.path("linker/lib/libDTLTOdistlto.so");
    host.links()?;
    Ok(())
}

#[test]
fn compilers_end_with_the_linker() -> Result<()> {
    let (project, host) = small("killed")?;
    let pid = project.path("pid");
    project.misbehave(
        "part.o",
        Misbehaviour { name: "hangs", script: "echo $$ > pid.new; mv pid.new pid; exec sleep 1000" },
    )?;
    let mut linker = host.command()?.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    let compiler = eventually(|| {
        let text = fs::read_to_string(&pid).ok()?;
        Some(PathBuf::from(format!("/proc/{}/stat", text.trim())))
    })
    .context("the compiler never ran")?;
    ensure!(compiler.exists());
    linker.kill()?;
    linker.wait()?;
    // A process that nobody has waited for yet is listed as a zombie.
    let gone = || match fs::read_to_string(&compiler) {
        Ok(stat) if !stat.contains(") Z ") => None,
        _ => Some(()),
    };
    eventually(gone).context("the compiler runs on without its linker")?;
    ensure!(is_clean(&project.folder.path).is_err(), "the linker was killed before it had temporaries");
    project.behave()?;
    host.links()?;
    is_clean(&project.folder.path)
}

fn eventually<T>(look: impl Fn() -> Option<T>) -> Option<T> {
    let end = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end {
        if let Some(found) = look() {
            return Some(found);
        }
        sleep(Duration::from_millis(10));
    }
    None
}

/// Calls that no linker should make; the program says what it expects of each.
#[test]
fn odd_calls_are_refused_in_words() -> Result<()> {
    let folder = Folder::create(NEW, "plugin/odd calls")?;
    let mut program = Command::new(plugin::compiled("odd_calls")?);
    program.arg(plugin::library()?).current_dir(&folder.path).env_remove("DISTLTO_DTLTO_OPTIONS");
    let said = String::from_utf8(succeed(&mut program)?.stdout)?;
    ensure!(said.ends_with("all as expected\n"), "{said}");
    Ok(())
}

#[test]
fn nothing_but_the_interface_is_exported() -> Result<()> {
    let bytes = fs::read(plugin::library()?)?;
    let file = object::File::parse(&*bytes)?;
    let exported: Vec<_> = file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_definition())
        .map(|symbol| symbol.name())
        .collect::<Result<_, _>>()?;
    ensure!(exported == ["dtltoPerformCodegen"], "{exported:?}");
    Ok(())
}
