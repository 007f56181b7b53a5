//! What can be asked of a link when it has ended: `distlto inspect`, `explain` and `diff`, of everything that a link is
//! named by, against what was edited.

use std::fs;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::project::Project;
use distlto_tests::run::{capture, succeed};
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
fn a_link_answers_for_itself() -> Result<()> {
    for more in [&[][..], &["--plain-shards"]] {
        let project = Project::create(if more.is_empty() { "seen" } else { "seen-two" }, &SOURCES)?;
        succeed(&mut project.link_with(more)?)?;
        let told = answer(&project, &["inspect", "program"])?;
        ensure!(told.starts_with("program: 4 modules, "), "{told}");
        ensure!(told.contains(": 4 of 4 backends ran, the objects of 4 differ"), "{told}");
        ensure!(told.contains("no number of workers helps beyond about "), "{told}");
        ensure!(
            told.contains("hub: shared.o is imported by 2 modules; an edit of it runs 3 backends"),
            "{told}"
        );
        let imports = answer(&project, &["inspect", "program", "--imports", "--filter", "shared.o"])?;
        ensure!(imports == "a.o from shared.o\nb.o from shared.o\n", "{imports}");
        let native = answer(&project, &["inspect", "program", "--native"])?;
        ensure!(native.contains("crt1.o  ELF x86-64 object") && !native.contains("a.o  "), "{native}");

        // One edit: what each side says of it.
        project.edit("shared.c", "x * 100", "x * 101")?;
        succeed(&mut project.link_with(more)?)?;
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
        ensure!(told["cpu_us"] == sum && told["wall_us"].as_u64().is_some_and(|wall| wall <= sum), "{told}");
        let text = answer(&project, &["explain", "program", "shared.o", "--edit"])?;
        ensure!(text.starts_with("shared.o: an edit of it runs 3 backends: "), "{text}");

        project.edit("shared.c", "x * 100", "x * 101")?;
        project.options.extend(more);
        let ran = project.relink()?.backends;
        ensure!(ran == expected, "{ran:?} ran, {expected:?} were told");
    }
    Ok(())
}

#[test]
fn functions_are_imported_for_reasons() -> Result<()> {
    let project = Project::create("seen-functions", &SOURCES)?;
    succeed(&mut project.link()?)?;
    let told = json(&project, &["explain", "program", "a.o", "shared.o"])?;
    let why_not = |name: &str| -> Result<Option<String>> {
        let functions = told["functions"].as_array().context("a list")?;
        let one =
            functions.iter().find(|one| one["name"] == name).with_context(|| format!("{name}: {told}"))?;
        ensure!(one["imported"] == one["why_not"].is_null(), "{one}");
        Ok(one["why_not"].as_str().map(str::to_owned))
    };
    ensure!(why_not("shared")?.is_none(), "{told}");
    ensure!(why_not("apart")?.is_some_and(|why| why == "it is noinline"), "{told}");
    ensure!(why_not("may_be_another")?.is_some_and(|why| why.contains("its linkage is weak")), "{told}");
    ensure!(why_not("not_called")?.is_some_and(|why| why == "nothing that is kept needs it"), "{told}");
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

    fs::write(project.path("none.json"), "{\"begun_ms\": [")?;
    fs::write(project.path("empty"), "")?;
    for (words, expected) in [
        (&["inspect", "nowhere"][..], "links-v1/nowhere-"),
        (&["inspect", "none.json"], "is no run record"),
        (&["inspect", "empty"], "is nothing that a link left"),
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
