//! A served link: members of archives are known by content, what only the linker can do is left to it, and a link ends as
//! every other. That programs and objects are those of lld's own DTLTO is checked for every case of `cases/` by
//! `programs.rs`, and for random programs by `campaign.rs`.

use std::ffi::OsString;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::program::objects;
use distlto_tests::project::{Misbehaviour, Project};
use distlto_tests::run::{capture, fail, succeed, told, wait};
use distlto_tests::toolchain::{NEWEST, Toolchain, repository};

/// C++ with an archive of each kind, and one that is linked whole.
const MIXED: [(&str, &str); 5] = [
    (
        "main.cpp",
        "#include <iostream>\n#include <vector>\nint regular(int); int thin(int); extern std::vector<int> kept;\n\
         int main() { std::cout << regular(1) << ' ' << thin(2) << ' ' << kept.size() << '\\n'; }\n",
    ),
    ("regular.cpp", "int helper(int); int regular(int x) { return helper(x) + 10; }\n"),
    ("helper.cpp", "int helper(int x) { return x * 2; }\n"),
    ("thin.cpp", "int thin(int x) { return x + 100; }\n"),
    (
        "whole.cpp",
        "#include <vector>\nextern std::vector<int> kept;\nstatic bool added = (kept.push_back(7), true);\n",
    ),
];
const KEPT: (&str, &str) =
    ("kept.cpp", "#include <vector>\n__attribute__((init_priority(200))) std::vector<int> kept;\n");
const INPUTS: [&str; 6] =
    ["main.o", "kept.o", "libregular.a", "libthin.a", "-Wl,--whole-archive", "libwhole.a"];

/// Compiles [`MIXED`], archives it, and gives the folder.
fn mixed(name: &str) -> Result<Folder> {
    let folder = Folder::create(Toolchain::from_env()?, &format!("one-lld/{name}"))?;
    for (source, text) in MIXED.iter().chain([&KEPT]) {
        folder.write(source, text)?;
        let object = source.replace(".cpp", ".o");
        let line = format!("%clang++ -O2 -g -flto=thin -fPIC -c {source} -o {object}");
        succeed(&mut folder.command(&line, "")?)?;
    }
    for line in
        ["%ar rcs libregular.a regular.o helper.o", "%ar rcsT libthin.a thin.o", "%ar rcs libwhole.a whole.o"]
    {
        succeed(&mut folder.command(line, "")?)?;
    }
    Ok(folder)
}

/// The link of [`mixed`] with options of `distlto link` and further words for clang.
fn link_mixed(folder: &Folder, options: &[&str], more: &[&str]) -> Result<Command> {
    let mut command = Command::new(distlto::binary()?);
    command.arg("link").args(options).arg("--").arg(folder.toolchain.tool("clang++")?);
    command.args(["-O2", "-g", "-flto=thin", "-fuse-ld=lld"]).args(INPUTS).arg("-Wl,--no-whole-archive");
    command.args(more).current_dir(&folder.path);
    Ok(command)
}

fn says(folder: &Folder, program: &str) -> Result<String> {
    Ok(String::from_utf8(succeed(&mut Command::new(folder.path.join(program)))?.stdout)?)
}

#[test]
fn programs_are_the_linkers_and_nothing_of_llds_stays() -> Result<()> {
    let folder = mixed("same-objects")?;
    for (output, more) in
        [("program", &[][..]), ("library.so", &["-shared"][..]), ("fixed", &["-no-pie", "-Wl,--lto-O3"][..])]
    {
        let mut link = link_mixed(&folder, &[], &[more, &["-o", output]].concat())?;
        succeed(&mut link)?;
        let ours = fs::read(folder.path.join(output))?;
        let kept = distlto::objects(&folder.path.join(output))?;
        ensure!(kept.len() == 6, "{output}: {} objects", kept.len());
        if output != "library.so" {
            ensure!(says(&folder, output)? == "12 102 1\n");
        }
        let words: Vec<_> = link.get_args().skip_while(|word| *word != "--").skip(1).collect();
        succeed(Command::new(words[0]).args(&words[1..]).current_dir(&folder.path))?;
        ensure!(ours == fs::read(folder.path.join(output))?, "{output}: another program than lld's");
    }
    let left: Vec<_> = fs::read_dir(&folder.path)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .filter(|name| name.contains(" at ") || name.contains("native.o") || name.starts_with(".distlto"))
        .collect();
    ensure!(left.is_empty(), "left: {left:?}");
    Ok(())
}

/// What only the linker's own backends write is left to it.
#[test]
fn remarks_are_those_of_the_linker_alone() -> Result<()> {
    let folder = mixed("remarks")?;
    let remarks = |name: &str| -> Result<Vec<(String, Vec<u8>)>> {
        let all = fs::read_dir(folder.path.join(name))?;
        let read = all.map(|entry| {
            let path = entry?.path();
            Ok((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), fs::read(path)?))
        });
        let mut read = read.collect::<Result<Vec<_>>>()?;
        read.sort();
        Ok(read)
    };
    for name in ["ours", "llds"] {
        fs::create_dir(folder.path.join(name))?;
        let file = format!("-Wl,--opt-remarks-filename,{name}/r.yaml");
        let link = link_mixed(&folder, &[], &["-o", "program", &file])?;
        let mut plain = Command::new(folder.toolchain.tool("clang++")?);
        plain.args(link.get_args().skip_while(|word| *word != "-O2")).current_dir(&folder.path);
        succeed(&mut if name == "ours" { link } else { plain })?;
    }
    let (ours, llds) = (remarks("ours")?, remarks("llds")?);
    ensure!(ours.len() > 6 && ours == llds, "{} files of remarks, lld writes {}", ours.len(), llds.len());
    Ok(())
}

/// A member is edited and others move in the archive: one backend runs, and where it is imported.
#[test]
fn members_are_known_by_content_wherever_they_are() -> Result<()> {
    let folder = mixed("moved-members")?;
    let link = || -> Result<Vec<String>> {
        let output = succeed(&mut link_mixed(&folder, &["-v"], &["-o", "program"])?)?;
        let said = String::from_utf8(output.stderr)?;
        Ok(said.lines().filter(|line| line.contains("] opt ")).map(str::to_owned).collect())
    };
    ensure!(link()?.len() == 6);
    succeed(&mut folder.command("%ar rcs other.a helper.o regular.o", "")?)?;
    fs::rename(folder.path.join("other.a"), folder.path.join("libregular.a"))?;
    let ran = link()?;
    ensure!(ran.is_empty(), "{ran:?} ran for members in another order");
    folder.write("whole.cpp", MIXED[4].1.replace("(7)", "(8)"))?;
    succeed(&mut folder.command("%clang++ -O2 -g -flto=thin -fPIC -c whole.cpp -o whole.o", "")?)?;
    succeed(&mut folder.command("%ar rcs libwhole.a whole.o", "")?)?;
    let ran = link()?;
    ensure!(ran.len() == 1 && ran[0].contains("libwhole.a(whole.o) "), "{ran:?} ran for one member");
    Ok(())
}

/// Equal modules have one key, and each its own object.
#[test]
fn equal_modules_are_linked_again_and_again() -> Result<()> {
    let mut project = project("equal")?;
    let text =
        "int puts(const char *);\nstatic __attribute__((constructor)) void said(void) { puts(\"one\"); }\n";
    fs::write(project.path("same.c"), text)?;
    project.compile("same.c")?;
    fs::copy(project.path("same.o"), project.path("copy.o"))?;
    project.objects.extend(["same.o", "copy.o"].map(str::to_owned));
    for added in ["x + 1", "x + 2", "x + 3"] {
        project.edit("part.c", "x + 1", added)?;
        fs::write(project.path("part.c"), SOURCES[1].1)?;
        succeed(&mut project.link()?)?;
        ensure!(project.say()?.matches("one").count() == 2, "{}", project.say()?);
        ensure!(project.native_objects()?.len() == 4);
    }
    Ok(())
}

/// Its plan is there to look at: what would run, and what imports what. To run it takes another one.
#[test]
fn the_plan_of_a_link_by_lld_is_shown_and_not_run() -> Result<()> {
    let folder = mixed("plan")?;
    succeed(&mut link_mixed(&folder, &[], &["-o", "program"])?)?;
    let record = distlto::state_dir(&folder.path.join("program"))?;
    let record = record.to_str().context("UTF-8")?;
    let ask = |words: &[&str]| -> Result<Command> {
        let mut command = Command::new(distlto::binary()?);
        command.args(words).current_dir(&folder.path);
        Ok(command)
    };
    let said =
        |words: &[&str]| -> Result<String> { Ok(String::from_utf8(succeed(&mut ask(words)?)?.stdout)?) };
    let summary = said(&["plan", record])?;
    ensure!(summary.contains("modules        6"), "{summary}");
    let graph = said(&["plan", "--dot", "-", record])?;
    ensure!(graph.contains("libregular.a(helper.o)"), "{graph}");
    for words in
        [&["plan", "--ninja", "build.ninja", record][..], &["plan", "--dry-run", record], &["run", record]]
    {
        let (code, said) = fail(&mut ask(words)?)?;
        ensure!(code == 2 && said.contains("distlto index"), "exit code {code}:\n{said}");
    }
    Ok(())
}

/// LLVM cannot spell such names in a shard.
#[test]
fn a_member_with_an_odd_name_is_kept() -> Result<()> {
    let folder = mixed("odd-member")?;
    fs::rename(folder.path.join("helper.o"), folder.path.join("h\u{e9}lper.o"))?;
    fs::remove_file(folder.path.join("libregular.a"))?;
    succeed(&mut folder.command("%ar rcs libregular.a regular.o h\u{e9}lper.o", "")?)?;
    let output = succeed(&mut link_mixed(&folder, &["-v"], &["-o", "program"])?)?;
    let said = String::from_utf8(output.stderr)?;
    ensure!(said.contains("6 of 6 backends were out of date"), "{said}");
    ensure!(says(&folder, "program")? == "12 102 1\n");
    Ok(())
}

const SOURCES: [(&str, &str); 2] = [
    (
        "main.c",
        "#include <stdio.h>\nint part(int);\nint main(void) { printf(\"%d\\n\", part(1)); return 0; }\n",
    ),
    ("part.c", "__attribute__((noinline)) int part(int x) { return x + 1; }\n"),
];

fn project(name: &str) -> Result<Project> {
    Project::create(&format!("one-lld-{name}"), &SOURCES)
}

/// As lld before version 15, or one that is a static program.
#[test]
fn a_linker_that_cannot_ask_links_by_itself() -> Result<()> {
    let project = project("cannot-ask")?;
    let option = b"--thinlto-emit-index-files";
    let mut linker = fs::read(project.folder.toolchain.tool("ld.lld")?)?;
    let places: Vec<usize> = linker
        .windows(option.len())
        .enumerate()
        .filter(|(_, bytes)| bytes == option)
        .map(|(at, _)| at)
        .collect();
    ensure!(!places.is_empty(), "this lld has no {}", String::from_utf8_lossy(option));
    places.iter().for_each(|at| linker[at + option.len() - 1] = b'z');
    let place = project.path("tools/ld.lld");
    fs::write(&place, linker)?;
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755))?;
    for (added, says) in [("x + 1", "2\n"), ("x + 2", "3\n")] {
        project.edit("part.c", "x + 1", added)?;
        let said = String::from_utf8(succeed(&mut project.link_with(&["-v"])?)?.stderr)?;
        ensure!(said.contains("ld.lld cannot ask for objects; link with -fuse-ld=lld"), "{said}");
        ensure!(project.say()? == says && !distlto::state_dir(&project.path("program"))?.exists());
    }
    Ok(())
}

#[test]
fn without_the_library_a_linker_links_by_itself() -> Result<()> {
    let project = project("no-library")?;
    let output = succeed(project.link()?.env("DISTLTO_HOOK", "off"))?;
    let said = String::from_utf8(output.stderr)?;
    ensure!(said == "distlto: warning: the hook is off: the linker links by itself\n", "{said}");
    ensure!(project.say()? == "2\n" && !distlto::state_dir(&project.path("program"))?.exists());
    Ok(())
}

#[test]
fn a_link_without_thinlto_runs_as_it_is() -> Result<()> {
    let project = project("native")?;
    let clang = project.folder.toolchain.tool("clang")?;
    for (source, _) in SOURCES {
        let object = source.replace(".c", ".o");
        let mut compile = Command::new(&clang);
        succeed(compile.args(["-c", source, "-o", &object]).current_dir(&project.folder.path))?;
    }
    succeed(&mut project.link()?)?;
    ensure!(project.say()? == "2\n");
    ensure!(!distlto::state_dir(&project.path("program"))?.exists(), "state is kept for nothing");
    Ok(())
}

#[test]
fn a_failed_link_keeps_the_program_and_the_linkers_exit_code() -> Result<()> {
    let project = project("failed")?;
    succeed(&mut project.link()?)?;
    project.edit("main.c", "part(1)", "missing(1)").ok();
    fs::write(project.path("main.c"), "int missing(void); int main(void) { return missing(); }\n")?;
    project.compile("main.c")?;
    let (code, said) = fail(&mut project.link()?)?;
    ensure!(code == 1 && said.contains("undefined symbol: missing"), "exit code {code}:\n{said}");
    ensure!(project.say()? == "2\n", "the old program is gone");
    ensure!(project.temporaries()?.is_empty());
    Ok(())
}

#[test]
fn an_empty_object_fails_the_link() -> Result<()> {
    let project = project("empty-object")?;
    let empty = Misbehaviour { name: "empty", script: ": > \"$out\"" };
    project.misbehave("part.o", empty)?;
    let (code, said) = fail(&mut project.link()?)?;
    ensure!(code != 101 && said.contains("part.o"), "exit code {code}:\n{said}");
    ensure!(!project.path("program").exists());
    Ok(())
}

/// A member of an archive is a temporary of the linker's, and so is what it imports from.
#[test]
fn a_failed_backend_can_be_repeated() -> Result<()> {
    let folder = mixed("repeated")?;
    let clang = folder.toolchain.tool("clang")?;
    let fails = "if [ -e broken ]; then case \"$*\" in *regular.o*) echo 'it fails' >&2; exit 3 ;; esac; fi";
    let script = folder.write("cc", format!("#!/bin/sh\n{fails}\nexec {} \"$@\"\n", clang.display()))?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    folder.write("broken", "")?;
    let link = || link_mixed(&folder, &["--compiler=./cc"], &["-o", "program"]);
    let (_, said) = fail(&mut link()?)?;
    let lines: Vec<_> = said.lines().filter_map(|line| line.trim_start().strip_prefix("repeat: ")).collect();
    let [line] = lines[..] else { anyhow::bail!("not one command to repeat it:\n{said}") };
    // Where the linker is gone, and from another directory.
    let repeat = || {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir("/");
        shell
    };
    let (code, again) = fail(&mut repeat())?;
    ensure!(code == 3 && again == "it fails\n", "exit code {code}:\n{again}");
    fs::remove_file(folder.path.join("broken"))?;
    succeed(&mut repeat())?;
    let output = folder.path.join("program");
    let made = objects(&distlto::state_dir(&output)?.join("objects"))?;
    let made = made.iter().find(|(place, _)| place.to_string_lossy().contains("regular.o"));
    let (place, object) = made.context("the command has made no object")?;
    succeed(&mut link()?)?;
    let linked = distlto::objects(&output)?;
    let same = linked.iter().find(|(other, _)| place.ends_with(other));
    ensure!(
        same.is_some_and(|(_, linked)| linked == object),
        "the object is another one when it is repeated"
    );
    Ok(())
}

#[test]
fn a_terminated_link_leaves_nothing_behind() -> Result<()> {
    let project = project("terminated")?;
    succeed(&mut project.link()?)?;
    let slow =
        Misbehaviour { name: "slow", script: "echo half > \"$out\"; echo $$ > tools/running; exec sleep 60" };
    project.misbehave("part.o", slow)?;
    project.edit("part.c", "x + 1", "x + 2")?;
    let mut link = project.link()?.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let running = project.path("tools/running");
    wait("the backend", || fs::read_to_string(&running).is_ok_and(|text| text.ends_with('\n')))?;
    let backend = fs::read_to_string(&running)?.trim().to_owned();
    let (code, said) = fail(&mut project.link()?)?;
    ensure!(code == 5, "a second link of one output: exit code {code}\n{said}");
    succeed(Command::new("kill").args(["-TERM", &link.id().to_string()]))?;
    let status = link.wait()?;
    ensure!(status.code() == Some(143), "ended with {status}");
    wait("the end of the backend", || !Path::new("/proc").join(&backend).exists())?;
    ensure!(project.say()? == "2\n", "the old program is gone");
    ensure!(project.temporaries()?.is_empty(), "left: {:?}", project.temporaries()?);
    project.behave()?;
    succeed(&mut project.link()?)?;
    Ok(())
}

#[test]
fn what_dtlto_leaves_out_reaches_backends_or_is_left_to_the_linker() -> Result<()> {
    let mut project = project("left-out")?;
    project.flags = vec!["-no-pie".to_owned(), "-Wl,--lto-newpm-passes=default<O1>".to_owned()];
    let said = String::from_utf8(succeed(&mut project.link_with(&["-v"])?)?.stderr)?;
    let is_said = said.contains("--lto-newpm-passes") && said.contains("the linker links by itself");
    ensure!(is_said && !distlto::state_dir(&project.path("program"))?.exists(), "{said}");
    ensure!(project.say()? == "2\n");
    project.flags = vec!["-no-pie".to_owned(), "-Wl,-mllvm,-inline-threshold=7".to_owned()];
    let output = succeed(&mut project.link_with(&["-vv"])?)?;
    let said = String::from_utf8_lossy(&output.stderr);
    let backend = said.lines().find(|line| line.contains("-fthinlto-index=") && line.contains("part.o"));
    let backend = backend.with_context(|| format!("no backend's command in\n{said}"))?;
    ensure!(backend.contains("-fno-pic") && backend.contains("-mllvm -inline-threshold=7"), "{backend}");
    ensure!(project.say()? == "2\n");
    Ok(())
}

#[test]
fn options_of_ours_reach_the_compiler() -> Result<()> {
    let mut project = project("options")?;
    project.flags = vec!["-Wl,--thinlto-jobs=3".to_owned(), "-Wl,--dependency-file=program.d".to_owned()];
    let options = ["-vv", "-j", "1", "--backend-arg=-DFROM_US"];
    let output = succeed(&mut project.link_with(&options)?)?;
    let said = String::from_utf8_lossy(&output.stderr);
    let backend = said.lines().find(|line| line.contains("-fthinlto-index=")).unwrap_or_default();
    ensure!(backend.contains("-DFROM_US"), "{said}");
    let dependencies = fs::read_to_string(project.path("program.d"))?;
    ensure!(dependencies.starts_with("program:"), "{dependencies}");
    Ok(())
}

#[test]
fn a_stand_in_is_started_by_the_linker_too() -> Result<()> {
    let project = project("stand-in")?;
    let plain = project.plain_link()?;
    symlink(distlto::binary()?, project.path("distlto-clang-22"))?;
    let mut link = Command::new(project.path("distlto-clang-22"));
    link.args(plain.get_args()).current_dir(&project.folder.path).env("DISTLTO_LINK_OPTIONS", "-vv");
    let output = capture(&mut link)?;
    let said = told(&link, &output);
    ensure!(output.status.success() && said.contains("--thinlto-emit-index-files"), "{said}");
    ensure!(project.say()? == "2\n");
    Ok(())
}

/// A block of the page, by the language after its fence.
fn block(language: &str) -> Result<String> {
    let page = fs::read_to_string(repository().join("docs/dtlto.md"))?;
    let (_, rest) = page.split_once(&format!("```{language}\n")).with_context(|| format!("no {language}"))?;
    Ok(rest.split("```").next().unwrap_or_default().to_owned())
}

/// A copy of an example, with distlto's programs in `PATH`.
struct Example {
    dir: PathBuf,
    path: OsString,
}

impl Example {
    fn copy(name: &str) -> Result<Self> {
        let folder = Folder::create(Toolchain { version: NEWEST }, &format!("one-lld/page-{name}"))?;
        let dir = folder.path.join(name);
        succeed(Command::new("cp").arg("-r").arg(repository().join("examples").join(name)).arg(&dir))?;
        let tools = distlto::distributor()?.parent().context("a program has a directory")?;
        let search = env::var_os("PATH").context("PATH is set")?;
        let path = env::join_paths([tools.to_owned()].into_iter().chain(env::split_paths(&search)))?;
        Ok(Self { dir, path })
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        // A relative path would be looked for in the test's own directory.
        let program = if program.contains('/') { self.dir.join(program) } else { program.into() };
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.dir).env("PATH", &self.path).env("MAKEFLAGS", "");
        let output = succeed(command.env("DISTLTO_DISTRIBUTE_OPTIONS", "-v"))?;
        Ok(String::from_utf8([output.stdout, output.stderr].concat())?)
    }
}

#[test]
fn the_pages_lines_for_cmake() -> Result<()> {
    let example = Example::copy("cmake")?;
    let file = example.dir.join("CMakeLists.txt");
    let text = fs::read_to_string(&file)?;
    let project = "project(shapes CXX)\n";
    ensure!(text.contains(project));
    let text = text.replace(project, &format!("{project}{}", block("cmake")?));
    // The page's lines stand by themselves.
    let text = text.replace("target_link_options(shapes PRIVATE -fuse-ld=lld)\n", "");
    fs::write(&file, text.replace("target_link_options(report PRIVATE -fuse-ld=lld)\n", ""))?;
    example.run("cmake", &["-G", "Ninja", "-B", "build", "-DCMAKE_CXX_COMPILER=clang++-22"])?;
    let said = example.run("cmake", &["--build", "build"])?;
    ensure!(said.contains("shapes: 4 backends"), "{said}");
    ensure!(example.run("build/shapes", &[])? == "2 shapes, area 21\n");
    Ok(())
}

#[test]
fn the_pages_lines_for_make() -> Result<()> {
    let example = Example::copy("make")?;
    let head = "CC = clang-22\nAR = llvm-ar-22\nCFLAGS = -O2 -flto=thin\n\nall: program\n";
    let tail = "\nlibparts.a: count.o table.o\n\t$(AR) rcs $@ $^\n";
    fs::write(example.dir.join("Makefile"), format!("{head}{}{tail}", block("make")?))?;
    let said = example.run("make", &["-j3"])?;
    ensure!(said.contains("program: 3 backends"), "{said}");
    ensure!(example.run("./program", &[])? == "10 words, \"be\" 2 times\n");
    Ok(())
}

#[test]
fn the_example_of_a_distributor_works() -> Result<()> {
    let distributor = distlto::directory()?.join("examples/distributor");
    let folder = mixed("example")?;
    let launcher = folder.write("launcher", "#!/bin/sh\necho launched >> launches\nexec \"$@\"\n")?;
    fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755))?;
    let mut plain = Command::new(folder.toolchain.tool("clang++")?);
    plain.args(["-O2", "-flto=thin", "-fuse-ld=lld", "-o", "program"]).args(INPUTS);
    plain.arg("-Wl,--no-whole-archive").current_dir(&folder.path);
    plain.arg(format!("-fthinlto-distributor={}", distributor.display()));
    plain.arg(format!("-Xthinlto-distributor=2,{}", launcher.display()));
    succeed(&mut plain)?;
    ensure!(says(&folder, "program")? == "12 102 1\n");
    let launches = fs::read_to_string(folder.path.join("launches"))?.lines().count();
    ensure!(launches >= 6, "{launches} launches of 6 backends");
    Ok(())
}
