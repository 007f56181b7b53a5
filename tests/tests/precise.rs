//! Objects that are kept although shard or imports changed, since what is compiled is the same: against what the compiler was
//! really run for, and against fresh links.
//!
//! `cargo xtask campaign precise` does the same with random edits of real programs, here with a few.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_record::action::{ActionRecord, ActionStatus};
use distlto_record::run;
use distlto_tests::distlto;
use distlto_tests::project::Project;
use distlto_tests::run::succeed;
use serde_json::Value;

/// `shared` is imported by two modules and `apart`, in the same one, by none. `counted` needs a local.
const SOURCES: [(&str, &str); 4] = [
    (
        "main.c",
        "#include <stdio.h>\nint a(int), b(int);\nint main(void) { printf(\"%d\\n\", a(1) + b(2)); return 0; }\n",
    ),
    (
        "a.c",
        "int shared(int), apart(int);\n__attribute__((noinline)) int a(int x) { return shared(x) + apart(x); }\n",
    ),
    ("b.c", "int shared(int);\n__attribute__((noinline)) int b(int x) { return shared(x) + 2; }\n"),
    (
        "shared.c",
        "__attribute__((noinline)) int apart(int x) { return x * 7; }\nint shared(int x) { return x * 100 + apart(x); }\n",
    ),
];

const EXACT: &str = "--exact-names";

/// A link in which the linker compiles.
fn link(project: &Project, options: &[&str]) -> Result<Command> {
    let mut command = Command::new(distlto::binary()?);
    command
        .arg("link")
        .args(options)
        .arg("--")
        .args(project.linker_words()?)
        .current_dir(&project.folder.path);
    Ok(command)
}

/// Links, which must succeed, and gives the modules whose backends ran, sorted.
fn relink(project: &Project, options: &[&str]) -> Result<Vec<String>> {
    succeed(link(project, options)?.env_remove("DISTLTO_CACHE").env_remove("DISTLTO_STATE"))?;
    with_result(project, |action| action.result == ActionStatus::Done)
}

/// The modules of the last run with such a result, sorted: a linker asks in any order.
fn with_result(project: &Project, is: impl Fn(&ActionRecord) -> bool) -> Result<Vec<String>> {
    let files = run::list(&distlto::state_dir(&project.path("program"))?)?;
    let run = run::read(files.last().context("the link left a record")?)?;
    let mut labels: Vec<String> =
        run.actions.into_iter().filter(|action| is(action)).map(|action| action.label).collect();
    labels.sort();
    Ok(labels)
}

/// The modules that a dry run says may not have to be compiled, sorted.
fn may_be_kept(project: &Project, options: &[&str]) -> Result<Vec<String>> {
    let words: Vec<&str> = options.iter().copied().chain(["--dry-run", "--json"]).collect();
    let output = succeed(link(project, &words)?.env_remove("DISTLTO_CACHE").env_remove("DISTLTO_STATE"))?;
    let told: Value = serde_json::from_slice(&output.stdout)?;
    let all = told["would_run"].as_array().context("a list")?;
    let kept = all.iter().filter(|backend| backend["may_be_kept"] == true);
    let mut labels: Vec<String> = kept.filter_map(|one| Some(one["label"].as_str()?.to_owned())).collect();
    labels.sort();
    Ok(labels)
}

/// The objects of a link from nothing.
fn is_fresh(project: &Project, options: &[&str]) -> Result<()> {
    let (objects, program) = (project.native_objects()?, fs::read(project.path("program"))?);
    distlto::forget(&project.path("program"))?;
    relink(project, options)?;
    ensure!(project.native_objects()? == objects, "objects are others than those of a link from nothing");
    ensure!(
        fs::read(project.path("program"))? == program,
        "the program is another than that of a link from nothing"
    );
    Ok(())
}

/// The modules whose objects the last run kept after an import step with its time on record.
fn stepped(project: &Project) -> Result<Vec<String>> {
    with_result(project, |action| {
        action.result == ActionStatus::SameImports && action.took.import_cpu_us.is_some()
    })
}

#[test]
fn an_object_is_kept_that_imports_the_same() -> Result<()> {
    {
        let (project, ways) = (Project::create("precise", &SOURCES)?, &[]);
        ensure!(relink(&project, ways)?.len() == 4, "everything runs at first");
        project.edit("shared.c", "x * 7", "x * 9")?;
        ensure!(may_be_kept(&project, ways)? == ["a.o", "b.o"], "only imports of those changed");
        let ran = relink(&project, ways)?;
        ensure!(ran == ["shared.o"], "nobody imports what was edited: {ran:?}");
        ensure!(stepped(&project)? == ["a.o", "b.o"], "what their steps took is on record");
        ensure!(project.say()? == "338\n", "{}", project.say()?);
        project.edit("shared.c", "x * 100", "x * 101")?;
        let ran = relink(&project, ways)?;
        ensure!(ran == ["a.o", "b.o", "shared.o"], "two import what was edited: {ran:?}");
        ensure!(project.say()? == "341\n", "{}", project.say()?);
        is_fresh(&project, ways)?;
    }
    Ok(())
}

/// Files of two modules, of which the backend compiles the first.
#[test]
fn an_object_of_a_split_unit_is_kept_too() -> Result<()> {
    let base = "struct Base { virtual int of(int); };\nint shared(int), apart(int);\n";
    let derived = |name: &str, body: &str| {
        format!(
            "{base}struct {name} : Base {{ int of(int x) override {{ {body} }} }};\nBase *make{name}() {{ static {name} one; return &one; }}\n"
        )
    };
    let main = "#include <stdio.h>\nBase *makeA(), *makeB();\n\
                int main() { printf(\"%d\\n\", makeA()->of(1) + makeB()->of(2)); return 0; }\n";
    let shared = "__attribute__((noinline)) int apart(int x) { return x * 7; }\n\
                  int shared(int x) { return x * 100 + apart(x); }\nint Base::of(int x) { return apart(x); }\n";
    let sources = [
        ("main.cc", format!("{base}{main}")),
        ("a.cc", derived("A", "return shared(x) + apart(x);")),
        ("b.cc", derived("B", "return shared(x) + 2;")),
        ("shared.cc", format!("{base}{shared}")),
    ];
    let mut project = Project::create("precise-split", &[])?;
    let compile = |project: &Project, source: &str| -> Result<()> {
        let flags =
            ["-O2", "-flto=thin", "-fwhole-program-vtables", "-fvisibility=hidden", "-fno-rtti", "-c"];
        let mut command = Command::new(project.folder.toolchain.tool("clang")?);
        succeed(command.args(flags).arg(source).current_dir(&project.folder.path)).map(drop)
    };
    for (source, text) in &sources {
        project.folder.write(source, text.clone())?;
        compile(&project, source)?;
        project.objects.push(source.replace(".cc", ".o"));
    }
    ensure!(relink(&project, &[])?.len() == 4, "everything runs at first");
    ensure!(project.say()? == "330\n", "{}", project.say()?);
    project.folder.write("shared.cc", sources[3].1.replace("x * 7", "x * 9"))?;
    compile(&project, "shared.cc")?;
    let may = may_be_kept(&project, &[])?;
    ensure!(may.contains(&"a.o".to_owned()) && may.contains(&"b.o".to_owned()), "{may:?}");
    let ran = relink(&project, &[])?;
    ensure!(ran == ["shared.o"], "nobody imports what was edited: {ran:?}");
    ensure!(project.say()? == "338\n", "{}", project.say()?);
    is_fresh(&project, &[])
}

/// A compiler of the user's has no import steps either.
#[test]
fn without_import_steps_whatever_imports_from_what_changed_runs() -> Result<()> {
    for option in [EXACT, "--backend-arg=-w"] {
        let project = Project::create("precise-off", &SOURCES)?;
        relink(&project, &[option])?;
        project.edit("shared.c", "x * 7", "x * 9")?;
        ensure!(may_be_kept(&project, &[option])?.is_empty(), "{option}: no import step is performed");
        let words = [option, "-v"];
        let output =
            succeed(link(&project, &words)?.env_remove("DISTLTO_CACHE").env_remove("DISTLTO_STATE"))?;
        let ran = with_result(&project, |action| action.result == ActionStatus::Done)?;
        ensure!(ran == ["a.o", "b.o", "shared.o"], "{ran:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(said.contains(": 3 backends (2 for imports, 1 for own code) in "), "{said}");
    }
    Ok(())
}

/// An object that is not what it was when its key was recorded never serves.
#[test]
fn an_object_that_something_else_changed_is_made_again() -> Result<()> {
    let project = Project::create("precise-damaged", &SOURCES)?;
    relink(&project, &[])?;
    project.edit("shared.c", "x * 7", "x * 9")?;
    let objects = project.native_objects()?;
    let object = |name: &str| objects.iter().find(|(path, _)| path.ends_with(name)).context("an object");
    let place = project.stored(&object("a.o.o")?.1)?;
    fs::remove_file(&place)?;
    fs::write(&place, &object("b.o.o")?.1)?;
    let ran = relink(&project, &[])?;
    ensure!(ran == ["a.o", "shared.o"], "{ran:?}");
    is_fresh(&project, &[])
}

#[test]
fn locals_that_are_imported_have_stable_names() -> Result<()> {
    let mut sources = SOURCES;
    sources[3].1 = "static int calls;\n__attribute__((noinline)) int apart(int x) { return x * 7; }\n\
                    int shared(int x) { return x * 100 + ++calls; }\n";
    let project = Project::create("precise-names", &sources)?;
    relink(&project, &[EXACT])?;
    ensure!(relink(&project, &[])?.len() == 4, "other names are other objects");
    project.edit("shared.c", "x * 7", "x * 11")?;
    let ran = relink(&project, &[])?;
    ensure!(ran == ["shared.o"], "{ran:?}");
    let symbols =
        succeed(Command::new(project.folder.toolchain.tool("llvm-nm")?).arg(project.path("program")))?;
    let symbols = String::from_utf8(symbols.stdout)?;
    ensure!(symbols.contains("calls.llvm.shared_c"), "{symbols}");
    is_fresh(&project, &[])
}

/// Pairs of sources that LLVM spells alike, in folders of their own where they have one name.
const ALIKE: [(&str, &str); 12] = [
    ("one/same.c", "two/same.c"),
    ("one/x-y.c", "two/x_y.c"),
    ("one/x.y.c", "two/x-y.c"),
    ("one/x y.c", "two/x_y.c"),
    ("one/x+y.c", "two/x=y.c"),
    ("one/x@y.c", "two/x#y.c"),
    ("one/x\u{e9}.c", "two/x__.c"),
    ("one/\u{e9}.c", "two/\u{e8}.c"),
    ("one/x\u{2014}.c", "two/x___.c"),
    ("one/x,y.c", "two/x;y.c"),
    ("one/_.c", "two/+.c"),
    ("one/x'y.c", "two/x(y.c"),
];

#[test]
fn sources_that_are_spelled_alike_have_the_linkers_names() -> Result<()> {
    for (number, (one, two)) in ALIKE.iter().enumerate() {
        let mut project = Project::create("precise-alike", &SOURCES)?;
        let clang = project.folder.toolchain.tool("clang")?;
        for (path, function) in [(one, "from_one"), (two, "from_two")] {
            let (folder, name) = path.split_once('/').context("a folder")?;
            let text = format!("static int calls;\nint {function}(void) {{ return ++calls; }}\n");
            project.folder.write(path, text)?;
            let object = format!("{folder}.o");
            let mut command = Command::new(&clang);
            command.args(["-O2", "-flto=thin", "-c", "-o", &format!("../{object}")]);
            command.arg(name).current_dir(project.path(folder));
            succeed(&mut command)?;
            project.objects.push(object);
        }
        let caller =
            "int from_one(void), from_two(void);\nint calls_both(void) { return from_one() * from_two(); }\n";
        project.folder.write("both.c", caller)?;
        let mut command = Command::new(&clang);
        succeed(command.args(["-O2", "-flto=thin", "-c", "both.c"]).current_dir(&project.folder.path))?;
        project.objects.push("both.o".to_owned());
        let words: Vec<String> =
            project.linker_words()?.into_iter().chain(["-u".into(), "calls_both".into()]).collect();
        let program = project.path("program");
        for edit in 0..2 {
            let mut lld = Command::new(&words[0]);
            succeed(lld.args(&words[1..]).current_dir(&project.folder.path))?;
            let by_lld = fs::read(&program)?;
            let mut command = Command::new(distlto::binary()?);
            command.args(["link", "-vv", "--"]).args(&words).current_dir(&project.folder.path);
            let output = succeed(command.env_remove("DISTLTO_CACHE").env_remove("DISTLTO_STATE"))?;
            let said = String::from_utf8_lossy(&output.stderr);
            ensure!(fs::read(&program)? == by_lld, "pair {number}, edit {edit}: another program");
            let note = "locals have the linker's default names: ";
            let why = said.lines().find(|line| line.contains(note)).unwrap_or_default();
            ensure!(why.contains("one.o") && why.contains("two.o"), "pair {number}, edit {edit}: {said}");
            // The first link finds them as it asks; the second one knows.
            let begun = said.matches("--thinlto-emit-index-files").count();
            ensure!(begun == 2 - edit, "pair {number}, edit {edit}: the linker began {begun} times");
            let mut inspect = Command::new(distlto::binary()?);
            inspect.args(["inspect", "program"]).current_dir(&project.folder.path);
            let output = succeed(inspect.env_remove("DISTLTO_CACHE").env_remove("DISTLTO_STATE"))?;
            let said = String::from_utf8_lossy(&output.stdout);
            ensure!(said.contains(note), "{said}");
            if edit == 0 {
                project.edit("shared.c", "x * 7", "x * 9")?;
            }
        }
        ensure!(project.say()? == "338\n", "pair {number}: {}", project.say()?);
    }
    Ok(())
}

/// Their promoted locals are global symbols, and other links may have sources of one name.
#[test]
fn outputs_that_are_linked_again_have_the_linkers_names() -> Result<()> {
    let project = Project::create("precise-partial", &SOURCES[..1])?;
    let (folder, toolchain) = (&project.folder, project.folder.toolchain);
    let compile = |words: &[&str]| {
        let mut command = Command::new(toolchain.tool("clang")?);
        succeed(command.args(["-O2", "-flto=thin"]).args(words).current_dir(&folder.path)).map(drop)
    };
    for (name, function) in [("one", "a"), ("two", "b")] {
        let counter = "static int calls;\nint next(int x) { return x + ++calls; }\n"
            .replace("next", &format!("next_{name}"));
        folder.write(&format!("{name}/same.c"), counter)?;
        let user = format!("int next_{name}(int);\nint {function}(int x) {{ return next_{name}(x); }}\n");
        folder.write(&format!("{name}/user.c"), user)?;
        let mut command = Command::new(toolchain.tool("clang")?);
        command.args(["-O2", "-flto=thin", "-c", "same.c", "user.c"]).current_dir(project.path(name));
        succeed(&mut command)?;
        let mut command = Command::new(distlto::binary()?);
        command.args(["link", "--"]).arg(toolchain.tool("ld.lld")?).args(["-r", "-o", &format!("{name}.o")]);
        command.args(["same.o", "user.o"].map(|object| format!("{name}/{object}")));
        succeed(command.current_dir(&folder.path))?;
    }
    compile(&["-fuse-ld=lld", "main.o", "one.o", "two.o", "-o", "program"])?;
    ensure!(project.say()? == "5\n", "{}", project.say()?);
    Ok(())
}

/// As clang before 16.
#[test]
fn a_compiler_that_knows_no_stable_names_does_without() -> Result<()> {
    let project = Project::create("precise-no-names", &SOURCES)?;
    let clang = project.folder.toolchain.tool("clang")?;
    let text = format!(
        "#!/bin/sh\ncase \"$*\" in *-use-source-filename-for-promoted-locals*) exit 1;; esac\nexec {} \"$@\"\n",
        clang.display()
    );
    let script = project.folder.write("old-clang.new", text)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    // A script that is being written cannot be run.
    fs::rename(script, project.path("old-clang"))?;
    let compiler = format!("--compiler={}", project.path("old-clang").display());
    for ways in [&["-v"][..], &["-v", "--plain-shards"]] {
        let options: Vec<&str> = ways.iter().copied().chain([compiler.as_str()]).collect();
        let output = succeed(&mut project.link_with(&options)?)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(said.contains("old-clang knows no -use-source-filename-for-promoted-locals"), "{said}");
        ensure!(project.say()? == "330\n", "{}", project.say()?);
    }
    Ok(())
}

/// Rust and C++, edited at random; every object that was kept is compiled anyway and compared.
#[test]
fn objects_of_a_real_program_that_are_kept_are_those_of_backends() -> Result<()> {
    let mut campaign = distlto::xtask();
    let words = "campaign precise --program rust-and-cpp --count 4 --seed 1 --distlto";
    campaign.args(words.split(' '));
    let output = succeed(campaign.arg(distlto::binary()?))?;
    let told = String::from_utf8_lossy(&output.stdout);
    let all = told.lines().find(|line| line.starts_with("all ")).context("the campaign prints a sum")?;
    let counts: Vec<&str> = all.split_whitespace().collect();
    // Edits, then backends that were out of date, that ran, and whose objects were kept.
    ensure!(counts.len() > 4 && counts[1] == "4", "unexpected counts: {all}");
    ensure!(counts[4] != "0", "nothing was kept, so nothing was compared: {told}");
    ensure!(told.contains("\n0 objects differ"), "{told}");
    Ok(())
}
