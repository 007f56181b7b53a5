//! `distlto run`: a graph that `distlto link` saved, one that `distlto-index` wrote and one by hand; what is out of date, and
//! what is wrong with a graph.

use std::fs;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::project::Project;
use distlto_tests::run::{capture, succeed};
use serde_json::Value;

const SOURCES: [(&str, &str); 4] = [
    (
        "main.c",
        "#include <stdio.h>\nint a(int), b(int);\nint main(void) { printf(\"%d\\n\", a(1) + b(2)); return 0; }\n",
    ),
    ("a.c", "int shared(int);\n__attribute__((noinline)) int a(int x) { return shared(x) + 1; }\n"),
    ("b.c", "__attribute__((noinline)) int b(int x) { return x + 2; }\n"),
    ("shared.c", "int shared(int x) { return x * 100; }\nint other(int x) { return x * 7; }\n"),
];

const ALL: [&str; 4] = ["a.o", "b.o", "main.o", "shared.o"];

fn distlto_run(project: &Project, words: &[&str]) -> Result<Command> {
    let mut command = Command::new(distlto::binary()?);
    command.arg("run").args(words).current_dir(&project.folder.path);
    Ok(command)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A project whose graph is saved, without anything that the link made.
fn cleaned(name: &str) -> Result<Project> {
    let project = Project::create(name, &SOURCES)?;
    succeed(&mut project.index()?)?;
    fs::copy(project.path("program.distlto/index/graph.json"), project.path("graph.json"))?;
    fs::remove_dir_all(project.path("program.distlto"))?;
    project.forget()?;
    Ok(project)
}

#[test]
fn a_saved_graph_links_a_cleaned_tree_and_then_nothing() -> Result<()> {
    let project = cleaned("run-saved")?;
    succeed(&mut distlto_run(&project, &["graph.json"])?)?;
    let ran = project.ran()?;
    // The linker runs twice: for its thin link, and for the program.
    ensure!(ran.backends == ALL && ran.links == 2, "{ran:?}");
    ensure!(project.say()? == "103\n" || project.say()? == "105\n", "{}", project.say()?);

    project.forget()?;
    let output = succeed(&mut distlto_run(&project, &["-v", "graph.json"])?)?;
    ensure!(project.ran()? == Default::default() && said(&output).contains("nothing to do"), "{output:?}");

    project.edit("b.c", "x + 2", "x + 9")?;
    succeed(&mut distlto_run(&project, &["graph.json"])?)?;
    let ran = project.ran()?;
    ensure!(ran.backends == ["b.o"] && ran.links == 2, "others read what they read before: {ran:?}");
    Ok(())
}

/// By a graph and by an index directory.
#[test]
fn a_dry_run_after_a_run_has_nothing_to_do() -> Result<()> {
    let project = cleaned("run-dry")?;
    let mut index = Command::new(distlto::binary()?);
    let link = project.link()?;
    index.arg("index").args(link.get_args().skip(1)).current_dir(&project.folder.path);
    succeed(&mut index)?;
    for (graph, from, to) in [("graph.json", "x + 2", "x + 3"), ("program.distlto", "x + 3", "x + 4")] {
        succeed(&mut distlto_run(&project, &[graph])?)?;
        let dry_run = || {
            let mut plan = Command::new(distlto::binary()?);
            let output = succeed(plan.args(["plan", "--dry-run", graph]).current_dir(&project.folder.path))?;
            Ok::<_, anyhow::Error>(String::from_utf8(output.stdout)?)
        };
        let nothing = dry_run()?;
        ensure!(nothing == "0 of 6 actions would run\n", "{graph}: {nothing}");
        project.edit("b.c", from, to)?;
        let edited = dry_run()?;
        ensure!(edited.contains("opt b.o: its module changed"), "{graph}: {edited}");
        succeed(&mut distlto_run(&project, &[graph])?)?;
        ensure!(dry_run()? == nothing, "{graph}: after an edit");
    }
    Ok(())
}

#[test]
fn one_target_is_made_with_what_it_needs() -> Result<()> {
    let project = cleaned("run-target")?;
    succeed(&mut distlto_run(&project, &["graph.json", "a.o"])?)?;
    let ran = project.ran()?;
    ensure!(ran.backends == ["a.o"] && ran.links == 1, "{ran:?}");
    let output = capture(&mut distlto_run(&project, &["graph.json", "elsewhere/program"])?)?;
    ensure!(output.status.code() == Some(2) && said(&output).contains("it has program"), "{output:?}");
    Ok(())
}

#[test]
fn a_graph_that_no_longer_holds_is_refused_and_an_index_directory_is_followed() -> Result<()> {
    let project = cleaned("run-stale")?;
    succeed(&mut distlto_run(&project, &["graph.json"])?)?;
    project.forget()?;
    project.edit(
        "b.c",
        "int b(int x) { return x + 2; }",
        "int other(int); int b(int x) { return other(x); }",
    )?;
    // The text has the attribute before it.
    let output = capture(&mut distlto_run(&project, &["graph.json"])?)?;
    ensure!(output.status.code() == Some(3), "{output:?}");
    ensure!(
        said(&output).contains("graph.json is out of date: b.o also reads shared.o"),
        "{}",
        said(&output)
    );
    ensure!(project.ran()?.links == 1, "nothing is linked by a graph that does not hold");

    succeed(&mut distlto_run(&project, &["program.distlto"])?)?;
    ensure!(project.ran()?.links == 3 && project.say()? == "115\n", "{}", project.say()?);
    project.forget()?;
    project.edit(
        "b.c",
        "int other(int); int b(int x) { return other(x); }",
        "int b(int x) { return x + 2; }",
    )?;
    succeed(&mut distlto_run(&project, &["program.distlto"])?)?;
    let ran = project.ran()?;
    // The store has the object of the first run.
    ensure!(ran.backends.is_empty() && project.say()? == "105\n", "{ran:?}");
    Ok(())
}

/// The saved graph with its backends alone, as one would write by hand.
fn backends_alone(project: &Project) -> Result<()> {
    let mut graph: Value = serde_json::from_slice(&fs::read(project.path("graph.json"))?)?;
    graph["actions"].as_array_mut().context("actions")?.retain(|action| action["kind"] == "opt");
    fs::write(project.path("hand.json"), serde_json::to_vec(&graph)?)?;
    Ok(())
}

#[test]
fn a_graph_by_hand_is_as_good_and_recorded_hashes_are_compared() -> Result<()> {
    let project = Project::create("run-hand", &SOURCES)?;
    succeed(&mut project.index()?)?;
    fs::copy(project.path("program.distlto/index/graph.json"), project.path("graph.json"))?;
    backends_alone(&project)?;
    project.forget()?;
    succeed(&mut distlto_run(&project, &["--state", "state", "hand.json"])?)?;
    ensure!(project.ran()?.backends == ALL && project.path("state/actions.log").exists());

    // No thin link has seen this module.
    project.edit("shared.c", "x * 100", "x * 200")?;
    let output = capture(&mut distlto_run(&project, &["--state", "state", "-k", "hand.json"])?)?;
    ensure!(output.status.code() == Some(3) || output.status.code() == Some(1), "{output:?}");
    ensure!(said(&output).contains("shared.o"), "{}", said(&output));
    succeed(&mut distlto_run(&project, &["--state", "state", "--no-verify-hashes", "hand.json"])?)?;
    Ok(())
}

#[test]
fn what_is_wrong_is_said_before_anything_runs() -> Result<()> {
    let project = cleaned("run-wrong")?;
    fs::write(project.path("half.json"), &fs::read(project.path("graph.json"))?[..400])?;
    for (graph, text) in [("half.json", "not an action graph"), ("none.json", "does not exist")] {
        let output = capture(&mut distlto_run(&project, &[graph])?)?;
        ensure!(output.status.code() == Some(3) && said(&output).contains(text), "{output:?}");
    }
    fs::remove_file(project.path("shared.o"))?;
    let output = capture(&mut distlto_run(&project, &["graph.json"])?)?;
    ensure!(output.status.code() == Some(3) && said(&output).contains("shared.o, which "), "{output:?}");
    ensure!(project.ran()? == Default::default(), "nothing ran");
    Ok(())
}

/// LLVM cannot spell such a name in the shards of those who import from the module: the linker compiles them, in both links.
#[test]
fn what_the_linker_compiles_itself_is_in_no_graph() -> Result<()> {
    let mut project = Project::create("run-odd", &SOURCES)?;
    fs::rename(project.path("shared.o"), project.path("sh\u{e4}red.o"))?;
    project.objects.iter_mut().for_each(|object| *object = object.replace("shared", "sh\u{e4}red"));
    succeed(&mut project.plain_link()?)?;
    let expected = fs::read(project.path("program"))?;
    fs::remove_file(project.path("program"))?;
    succeed(&mut project.index()?)?;
    succeed(&mut distlto_run(&project, &["program.distlto"])?)?;
    ensure!(fs::read(project.path("program"))? == expected, "another program than lld's");
    Ok(())
}
