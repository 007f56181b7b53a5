//! What can be asked of a link when it has ended: `distlto inspect`, `explain` and `diff`, of everything that a link is
//! named by, against what was edited.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::SystemTime;

use anyhow::{Context, Result, bail, ensure};
use distlto_tests::distlto;
use distlto_tests::project::Project;
use distlto_tests::run::{capture, fail, succeed};
use distlto_tests::store;
use serde_json::Value;

const SOURCES: [(&str, &str); 4] = [
    (
        "main.c",
        "#include <stdio.h>\nint a(int), b(int);\nint main(void) { printf(\"%d\\n\", a(1) + b(2)); return 0; }\n",
    ),
    ("a.c", "int shared(int);\n__attribute__((noinline)) int a(int x) { return shared(x) + 1; }\n"),
    ("b.c", "int shared(int);\n__attribute__((noinline)) int b(int x) { return shared(x) + 2; }\n"),
    (
        "shared.c",
        "__attribute__((weak)) int may_be_another(int x) { return x; }\n\
         __attribute__((noinline)) int apart(int x) { return x * 7; }\n\
         int not_called(int x) { return x * 9; }\n\
         int shared(int x) { return x * 100 + apart(x) + may_be_another(x); }\n",
    ),
];

fn ask(project: &Project, words: &[&str]) -> Result<Output> {
    let mut command = Command::new(distlto::binary()?);
    capture(command.args(words).current_dir(project.path(".")).env_remove("DISTLTO_STATE"))
}

fn answer(project: &Project, words: &[&str]) -> Result<String> {
    let output = ask(project, words)?;
    ensure!(output.status.success() && output.stderr.is_empty(), "{words:?}: {output:?}");
    Ok(String::from_utf8(output.stdout)?)
}

fn json(project: &Project, words: &[&str]) -> Result<Value> {
    let words: Vec<&str> = words.iter().chain(&["--json"]).copied().collect();
    Ok(serde_json::from_str(&answer(project, &words)?)?)
}

#[test]
fn a_link_that_none_has_finished_is_described_as_such() -> Result<()> {
    let project = Project::create("seen-unfinished", &SOURCES)?;
    let bad = project.path("bad").display().to_string();
    fs::write(&bad, "#!/bin/sh\nexit 1\n")?;
    fs::set_permissions(&bad, fs::Permissions::from_mode(0o755))?;
    fail(&mut project.link_with(&["-j1", "--compiler", &bad])?)?;
    let modules = "the modules are those that its linker asked for until then\n";
    let describes = |note: &str| -> Result<()> {
        let said = answer(&project, &["inspect", "program"])?;
        ensure!(
            said.ends_with(&format!("\n{note}: {modules}")) && !said.contains("workers"),
            "{note}: {said}"
        );
        Ok(())
    };
    describes("no link of it has ended well")?;
    let said = answer(&project, &["inspect", "program"])?;
    ensure!(
        said.contains(", imports not known\nthe last link took ")
            && said.contains(", failed with exit code 1; its longest chain: "),
        "{said}"
    );
    let state = distlto::state_dir(&project.path("program"))?;
    let own = std::process::id();
    fs::write(state.join("lock"), own.to_string())?;
    describes(&format!("its first link runs, by process {own}"))?;
    fs::remove_dir_all(state.join("runs"))?;
    describes(&format!("its first link runs, by process {own}"))
}

#[test]
fn a_link_answers_for_itself() -> Result<()> {
    for more in [&[][..], &["--plain-shards"]] {
        let project = Project::create(if more.is_empty() { "seen" } else { "seen-two" }, &SOURCES)?;
        succeed(&mut project.link_with(more)?)?;
        let told = answer(&project, &["inspect", "program"])?;
        ensure!(told.starts_with("program: 4 modules, "), "{told}");
        ensure!(
            told.contains("; its longest chain: ")
                && told.contains("thin link ")
                && told.contains("\n4 of 4 backends ran\n"),
            "no object was there before: {told}"
        );
        ensure!(told.contains("\nmore than ") && told.contains(" would not help: "), "{told}");
        ensure!(
            told.contains("\n2 modules import from shared.o: an edit of it may run 3 backends"),
            "{told}"
        );
        let imports = answer(&project, &["inspect", "program", "--imports", "--filter", "shared.o"])?;
        ensure!(imports == "a.o from shared.o\nb.o from shared.o\n", "{imports}");
        let native = answer(&project, &["inspect", "program", "--native"])?;
        ensure!(native.contains("crt1.o  ELF x86-64 object") && !native.contains("a.o  "), "{native}");

        // One edit: what each side says of it.
        project.edit("shared.c", "x * 100", "x * 101")?;
        succeed(&mut project.link_with(more)?)?;
        let edited = answer(&project, &["inspect", "program"])?;
        ensure!(edited.contains(" backends ran, the objects of 3 differ from those before\n"), "{edited}");
        let shared = answer(&project, &["explain", "program", "shared.o"])?;
        ensure!(shared.contains("its backend ran, since its module changed"), "{shared}");
        ensure!(shared.contains("is imported by a.o\nis imported by b.o\n"), "{shared}");
        let importer = json(&project, &["explain", "program", "a.o"])?;
        let why = importer["last"]["action"]["why"].as_array().context("reasons")?;
        ensure!(why.iter().any(|why| why["what"] == "import" && why["name"] == "shared.o"), "{importer}");
        ensure!(
            importer["imports"][0]["module"] == "shared.o" && importer["imports"][0]["functions"] == 1,
            "{importer}"
        );
        let kept = answer(&project, &["explain", "program", "main.o"])?;
        ensure!(kept.contains("its backend did not have to run"), "{kept}");
        let runs = json(&project, &["diff", "program"])?;
        ensure!(runs["runs"]["ran"][0] == 4 && runs["runs"]["ran"][1] == 3, "{runs}");
        ensure!(runs["modules_gained"] == Value::Array(Vec::new()), "{runs}");
        let text = answer(&project, &["diff", "program"])?;
        ensure!(
            text.starts_with("3 backends ran, the objects of 3 differ; the run before ran 4\n"),
            "{text}"
        );
    }
    Ok(())
}

#[test]
fn a_key_that_missed_is_compared_with_the_nearest_one() -> Result<()> {
    let mut project = Project::create("seen-miss", &SOURCES)?;
    succeed(&mut project.link()?)?;
    let none = json(&project, &["explain", "program", "a.o", "--miss"])?;
    ensure!(none["last"]["nearest"].is_null() && none["last"]["earlier"] == 0, "{none}");
    if !project.folder.toolchain.has_dtlto() {
        // Two steps record no parts of keys, and say so.
        let told = answer(&project, &["explain", "program", "a.o", "--miss"])?;
        ensure!(told.contains("there is nothing to compare with"), "{told}");
        return Ok(());
    }
    project.edit("shared.c", "x * 100", "x * 101")?;
    succeed(&mut project.link()?)?;
    let importer = json(&project, &["explain", "program", "a.o", "--miss"])?;
    let nearest = &importer["last"]["nearest"];
    ensure!(nearest["differs_in"] == serde_json::json!(["imports"]), "{importer}");
    ensure!(nearest["imports"] == serde_json::json!(["shared.o"]) && nearest["runs_ago"] == 1, "{importer}");
    let edited = json(&project, &["explain", "program", "shared.o", "--miss"])?;
    let differs = edited["last"]["nearest"]["differs_in"].as_array().context("parts")?;
    ensure!(differs.contains(&"module".into()) && !differs.contains(&"flags".into()), "{edited}");

    // With other flags the run before is nearest; back to the first content, the first run is, whose key it has again and whose
    // object the store has lost.
    project.flags.push("-Wl,--lto-O1".to_owned());
    succeed(&mut project.link()?)?;
    let flags = json(&project, &["explain", "program", "a.o", "--miss"])?;
    ensure!(flags["last"]["nearest"]["differs_in"] == serde_json::json!(["flags"]), "{flags}");
    project.flags.pop();
    project.edit("shared.c", "x * 101", "x * 100")?;
    fs::remove_dir_all(store::of(&project.folder.path)?.join("results-v1"))?;
    succeed(&mut project.link()?)?;
    let first = json(&project, &["explain", "program", "a.o", "--miss"])?;
    let nearest = &first["last"]["nearest"];
    ensure!(nearest["runs_ago"] == 3 && nearest["key"] == first["last"]["key"], "{first}");
    let told = answer(&project, &["explain", "program", "a.o", "--miss"])?;
    ensure!(told.contains("is that of 3 runs before, whose object is no longer kept"), "{told}");
    Ok(())
}

#[test]
fn what_an_edit_would_run_is_what_it_runs() -> Result<()> {
    for more in [&[][..], &["--plain-shards"]] {
        let mut project = Project::create("seen-edit", &SOURCES)?;
        succeed(&mut project.link_with(more)?)?;
        let told = json(&project, &["explain", "program", "shared.o", "--edit"])?;
        let backends = told["backends"].as_array().context("backends")?;
        ensure!(backends[0]["module"] == "shared.o" && backends[0]["functions"].is_null(), "{told}");
        ensure!(backends[1..].iter().all(|one| one["functions"] == 1 && one["cpu_us"].is_u64()), "{told}");
        let mut expected: Vec<&str> = backends.iter().filter_map(|one| one["module"].as_str()).collect();
        expected.sort_unstable();
        let sum: u64 = backends.iter().filter_map(|one| one["cpu_us"].as_u64()).sum();
        let took: Vec<u64> = backends.iter().filter_map(|one| one["took_us"].as_u64()).collect();
        let bounds = took.iter().copied().max().unwrap_or(u64::MAX)..=took.iter().sum();
        let is_between = told["wall_us"].as_u64().is_some_and(|wall| bounds.contains(&wall));
        ensure!(told["cpu_us"] == sum && is_between, "{told}");
        let text = answer(&project, &["explain", "program", "shared.o", "--edit"])?;
        ensure!(text.starts_with("shared.o: an edit of it runs 3 backends: "), "{text}");

        project.edit("shared.c", "x * 100", "x * 101")?;
        project.options.extend(more);
        let ran = project.relink()?.backends;
        ensure!(ran == expected, "{ran:?} ran, {expected:?} were told");
    }
    Ok(())
}

/// Sources of a project with a call at whose end LLVM's limit is 70 instructions: `far` has more, and fewer than 100.
/// `again` is another name of `shared`.
fn sources_of_a_chain() -> Vec<(&'static str, String)> {
    let mut sources: Vec<_> = SOURCES.map(|(name, text)| (name, text.to_owned())).into();
    let [_, a, _, shared] = &mut sources[..] else { unreachable!("there are four") };
    a.1 = a.1.replace("int shared(int)", "int shared(int), again(int)").replace("+ 1", "+ again(x)");
    shared.1 = shared.1.replace("int shared", "int far(int);\nint shared");
    shared.1 = shared.1.replace("apart(x)", "apart(x) + far(x)");
    shared.1.push_str("int again(int x) __attribute__((alias(\"shared\")));\n");
    let lines: String =
        (1..24).map(|number| format!("  x = x * {number}7 + other(x ^ {number});\n")).collect();
    sources.push(("far.c", format!("int other(int);\nint far(int x) {{\n{lines}  return x;\n}}\n")));
    sources.push(("other.c", "int other(int x) { return x / 3; }\n".to_owned()));
    sources
}

/// A function that LLVM refuses, as its own printout of a thin link has it: name, reason, limit and size.
type Refused = (String, String, u64, u64);

/// Asks the linker itself, by the user's command, and reads all of its printout for one module.
fn refused_by_llvm(project: &Project, module: &str) -> Result<Vec<Refused>> {
    let place = tempfile::tempdir()?;
    let mut link = project.plain_link()?;
    link.args(["-Wl,-mllvm,-print-import-failures", "-Wl,--thinlto-index-only=/dev/null"]);
    link.arg(format!("-Wl,--thinlto-prefix-replace=;{}/", place.path().display()));
    let printed = String::from_utf8(succeed(&mut link)?.stderr)?;
    let (_, printed) = printed
        .split_once(&format!("Missed imports into module {module}\n"))
        .with_context(|| printed.clone())?;
    let lines = printed.lines().take_while(|line| !line.starts_with("Missed imports"));
    let refused = |line: &str| {
        let words: Vec<&str> =
            line.split([' ', ',', '(', ')', ':', '=']).filter(|word| !word.is_empty()).collect();
        let [_, name, "Reason", reason, "Threshold", threshold, "Size", size, ..] = words[..] else {
            bail!("{line}");
        };
        Ok((name.to_owned(), reason.to_owned(), threshold.parse()?, size.parse()?))
    };
    lines.map(refused).collect()
}

/// The files of a project, each with its time and its content.
fn files(project: &Project) -> Result<BTreeMap<PathBuf, (SystemTime, Vec<u8>)>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(&project.folder.path)? {
        let path = entry?.path();
        if path.is_file() {
            found.insert(path.clone(), (fs::metadata(&path)?.modified()?, fs::read(&path)?));
        }
    }
    Ok(found)
}

#[test]
fn functions_are_imported_or_refused_as_llvm_says() -> Result<()> {
    let sources = sources_of_a_chain();
    let sources: Vec<_> = sources.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let mut project = Project::create("seen-functions", &sources)?;
    project.flags = vec!["-Wl,-Map=map".to_owned(), "-Wl,--dependency-file=dependencies".to_owned()];
    succeed(&mut project.link()?)?;
    succeed(&mut project.index()?)?;
    let refused = refused_by_llvm(&project, "a.o")?;
    let of = |name: &str| refused.iter().find(|one| one.0 == name).with_context(|| format!("{refused:?}"));
    let (_, _, threshold, size) = of("far")?;
    ensure!(of("far")?.1 == "TooLarge" && *threshold == 70 && (71..100).contains(size), "{refused:?}");
    ensure!(of("apart")?.1 == "NoInline" && of("may_be_another")?.1 == "InterposableLinkage", "{refused:?}");

    let before = files(&project)?;
    for thing in ["program", "program.distlto/index"] {
        let mut explained = Vec::new();
        for from in ["shared.o", "far.o", "other.o", "main.o", "b.o"] {
            let told = json(&project, &["explain", thing, "a.o", from])?;
            let functions = told["functions"].as_array().context("a list")?;
            ensure!(told["note"].is_null() && told["from"] == from, "{told}");
            ensure!(functions.iter().all(|one| one["imported"] == one["why_not"].is_null()), "{told}");
            explained.extend(functions.iter().cloned());
        }
        let imported = explained.iter().filter(|one| one["imported"] == true);
        let imported: BTreeSet<_> = imported.filter_map(|one| one["name"].as_str()).collect();
        ensure!(imported == ["again", "shared"].into(), "{explained:?}");
        ensure!(explained.len() == 2 + refused.len(), "{explained:?}, and LLVM: {refused:?}");
        for (name, reason, threshold, size) in &refused {
            let one = explained.iter().find(|one| one["name"] == *name).with_context(|| name.clone())?;
            let why = one["why_not"].as_str().context("a reason")?;
            ensure!(one["instructions"] == *size && why.starts_with(&format!("{reason}: ")), "{one}");
            let sizes = format!("TooLarge: {size} instructions, and the limit for this call is {threshold}");
            ensure!(reason != "TooLarge" || why == sizes, "{one}");
        }
        let text = answer(&project, &["explain", thing, "a.o", "far.o"])?;
        let line = format!("  far: TooLarge: {size} instructions, and the limit for this call is 70\n");
        ensure!(
            text.starts_with("a.o imports 0 of 1 functions of far.o\n") && text.contains(&line),
            "{text}"
        );
        let shared = answer(&project, &["explain", thing, "a.o", "shared.o"])?;
        let others = "1 more: no call leads to them, or another module has them too\n";
        ensure!(shared.starts_with("a.o imports 2 of 5 functions") && shared.ends_with(others), "{shared}");
    }
    ensure!(files(&project)? == before, "a question changes the files of the link");
    Ok(())
}

#[test]
fn a_link_that_cannot_be_repeated_says_so_and_has_its_imports() -> Result<()> {
    let project = Project::create("seen-changed", &SOURCES)?;
    succeed(&mut project.link()?)?;
    let says = |expected: &str| -> Result<()> {
        let text = answer(&project, &["explain", "program", "a.o", "shared.o"])?;
        let is_imported = text.starts_with("a.o imports 1 of 4 functions of shared.o\n");
        ensure!(is_imported && text.contains("  shared: imported\n") && text.contains(expected), "{text}");
        let note = json(&project, &["explain", "program", "a.o", "shared.o"])?["note"].clone();
        ensure!(note.as_str().is_some_and(|note| note.contains(expected)), "{note}");
        Ok(())
    };
    project.edit("shared.c", "return x * 100", "x ^= x << 3; return x * 100")?;
    says(
        "LLVM's reasons are not known: a.o or a module that it imports has changed since this link; link again",
    )?;
    fs::remove_file(project.path("b.o"))?;
    says("this link cannot be repeated: ")?;
    says("cannot open b.o: No such file or directory; link again with inputs that stay")?;
    // Objects from the store leave no shards.
    project.edit("shared.c", "x ^= x << 3; return", "return")?;
    project.compile("b.c")?;
    project.forget_link()?;
    ensure!(project.relink()?.backends.is_empty(), "the store has all objects");
    let text = answer(&project, &["explain", "program", "a.o", "shared.o"])?;
    ensure!(text.contains("  apart: NoInline: "), "{text}");
    fs::remove_file(project.path("b.o"))?;
    let output = ask(&project, &["explain", "program", "a.o", "shared.o"])?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.code() == Some(3) && said.contains("cannot open b.o") && said.contains("help: "),
        "{said}"
    );
    Ok(())
}

/// Shards name a member by its file in the link's state, and LLVM by its place in the archive.
#[test]
fn imports_from_members_of_archives_are_seen() -> Result<()> {
    let mut project = Project::create("seen-members", &SOURCES)?;
    let mut archive = Command::new(project.folder.toolchain.tool("llvm-ar")?);
    succeed(archive.args(["rcs", "lib.a", "shared.o"]).current_dir(project.path(".")))?;
    project.objects = ["main.o", "a.o", "b.o", "lib.a"].map(str::to_owned).into();
    succeed(&mut project.link()?)?;
    let importer = json(&project, &["explain", "program", "a.o"])?;
    let import = &importer["imports"][0];
    ensure!(import["module"] == "lib.a(shared.o)" && import["functions"] == 1, "{importer}");
    let edit = json(&project, &["explain", "program", "shared.o", "--edit"])?;
    ensure!(edit["backends"][1]["functions"] == 1 && edit["backends"][2]["functions"] == 1, "{edit}");
    let asked = answer(&project, &["explain", "program", "a.o", "shared.o"])?;
    let imports = "a.o imports 1 of 4 functions of lib.a(shared.o)\n";
    ensure!(asked.starts_with(imports) && asked.contains("  apart: NoInline: "), "{asked}");
    fs::remove_file(project.path("b.o"))?;
    let kept = answer(&project, &["explain", "program", "a.o", "shared.o"])?;
    ensure!(kept.starts_with(imports) && kept.contains("  shared: imported\n"), "{kept}");
    Ok(())
}

/// By a build in another directory, and by a linker that is named without its directory.
#[test]
fn the_linker_is_asked_where_it_ran() -> Result<()> {
    let project = Project::create("seen-elsewhere", &SOURCES)?;
    let objects = project.objects.iter().map(|object| format!("../{object}")).collect::<Vec<_>>().join(" ");
    let linker = project.folder.toolchain.tool("ld.lld")?;
    let name = linker.file_name().and_then(|name| name.to_str()).context("a name")?;
    fs::create_dir(project.path("out"))?;
    let words = "-shared --allow-shlib-undefined -z notext -o library.so";
    let script = format!("cd out && {name} {words} {objects}");
    let mut path = linker.parent().context("a directory")?.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut build = Command::new(distlto::binary()?);
    build.args(["link", "--", "sh", "-c", &script]).current_dir(project.path(".")).env("PATH", path);
    succeed(&mut build)?;
    let text = answer(&project, &["explain", "out/library.so", "a.o", "shared.o"])?;
    ensure!(
        text.contains("  may_be_another: InterposableLinkage: ") && text.contains("  apart: NoInline: "),
        "{text}"
    );
    Ok(())
}

#[test]
fn what_cannot_be_looked_at_is_an_error_that_says_why() -> Result<()> {
    let project = Project::create("seen-errors", &SOURCES)?;
    succeed(&mut project.link()?)?;
    let record = fs::read_dir(distlto::state_dir(&project.path("program"))?.join("runs"))?
        .next()
        .context("a record")??
        .path();
    let record = record.to_str().context("UTF-8")?;
    let told = answer(&project, &["inspect", record])?;
    ensure!(told.starts_with("program: 4 modules, "), "a record alone: {told}");

    fs::write(project.path("none.json"), "{\"begun_ms\": []}")?;
    fs::write(project.path("empty"), "")?;
    for (words, expected) in [
        (&["inspect", "nowhere"][..], "links-v1/nowhere-"),
        (&["inspect", "none.json"], "is no run record"),
        (&["inspect", "empty"], "there is no record of a link of empty"),
        (&["inspect", "tools"], "holds neither"),
        (&["explain", "program", "zzz.o"], "is called zzz.o"),
        (&["explain", "program", "o"], "there is "),
        (&["diff", "program"], "the record of 1 run"),
        (&["diff", "program", "nowhere"], "links-v1/nowhere-"),
    ] {
        let output = ask(&project, words)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            !output.status.success() && said.contains(expected) && said.contains("help: "),
            "{words:?}: {said}"
        );
    }
    Ok(())
}

/// It has not changed: its importer reads it for the first time.
#[test]
fn an_import_that_no_link_had_before() -> Result<()> {
    let main = "#include <stdio.h>\nint g(void);\nint main(void) { printf(\"%d\\n\", g()); return 0; }\n";
    let sources = [
        ("main.c", main),
        ("first.c", "int g(void) { return 1; }\n"),
        ("second.c", "int g(void) { return 2; }\n"),
    ];
    for more in [&[][..], &["--plain-shards"]] {
        let name = if more.is_empty() { "new-import" } else { "new-import-two" };
        let mut project = Project::create(name, &sources)?;
        for other in ["first.o", "second.o"] {
            project.objects = vec!["main.o".to_owned(), other.to_owned()];
            succeed(&mut project.link_with(more)?)?;
        }
        let main = json(&project, &["explain", "program", "main.o"])?;
        let why = main["last"]["action"]["why"].as_array().context("reasons")?;
        let told = |what: &str| why.iter().any(|why| why["what"] == what && why["name"] == "second.o");
        ensure!(told("input-added") && !told("import"), "{main}");
    }
    Ok(())
}
