//! The record that every run leaves: against its schema, against what was really run, and for links that end in any way.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use distlto_record::action::{ActionRecord, ActionStatus, EngineTimes};
use distlto_record::progress::recorded::Recorded;
use distlto_record::progress::text::human;
use distlto_record::progress::{ProgressEvent, ProgressStep};
use distlto_record::report::Measured;
use distlto_record::report::summary::Summary;
use distlto_record::run::{self, RunRecord};
use distlto_record::trace;
use distlto_record::why::{Change, ChangeKind};
use distlto_tests::distlto;
use distlto_tests::project::{Misbehaviour, Project};
use distlto_tests::run::{capture, fail, succeed};
use distlto_tests::store;
use serde_json::Value;

/// `leaf` is imported by nobody, `shared` by `a` and `b`.
const SOURCES: [(&str, &str); 5] = [
    (
        "main.c",
        "#include <stdio.h>\nint a(int), b(int), leaf(int);\n\
         int main(void) { printf(\"%d\\n\", a(1) + b(2) + leaf(3)); return 0; }\n",
    ),
    ("a.c", "int shared(int);\n__attribute__((noinline)) int a(int x) { return shared(x) + 1; }\n"),
    ("b.c", "int shared(int);\n__attribute__((noinline)) int b(int x) { return shared(x) + 2; }\n"),
    ("shared.c", "int shared(int x) { return x * 100; }\n"),
    ("leaf.c", "__attribute__((noinline)) int leaf(int x) { return x * 7; }\n"),
];

fn state(project: &Project) -> Result<PathBuf> {
    distlto::state_dir(&project.path(&project.output))
}

/// Has a schema refuse what it does not describe, so that nothing is written that is not.
fn close(schema: &mut Value) {
    if schema.get("properties").is_some() && schema["type"] == "object" {
        schema["additionalProperties"] = false.into();
    }
    match schema {
        Value::Object(members) => members.values_mut().for_each(close),
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// The records of a state directory, the oldest first; each is what its schema says.
fn records(state: &Path) -> Result<Vec<RunRecord>> {
    let schema = include_str!("../../docs/run-record.schema.json");
    let mut schema = serde_json::from_str(schema)?;
    close(&mut schema);
    let schema = jsonschema::validator_for(&schema).context("the schema is one")?;
    let mut found = Vec::new();
    for path in run::list(state)? {
        let value: Value = serde_json::from_slice(&fs::read(&path)?)?;
        if let Err(error) = schema.validate(&value) {
            anyhow::bail!("{}: {error} at {}", path.display(), error.instance_path());
        }
        found.push(run::read(&path)?);
    }
    Ok(found)
}

fn last(project: &Project) -> Result<RunRecord> {
    records(&state(project)?)?.pop().context("a record")
}

/// Whether an object is in the store.
fn is_stored(project: &Project, digest: &str) -> Result<bool> {
    let hex = digest.split('/').next().unwrap_or_default();
    Ok(store::blob(&store::of(&project.folder.path)?, hex).is_file())
}

fn of<'r>(record: &'r RunRecord, label: &str) -> Result<&'r ActionRecord> {
    record.actions.iter().find(|action| action.label == label).with_context(|| format!("no action {label}"))
}

fn labels(record: &RunRecord, result: ActionStatus) -> BTreeSet<&str> {
    let found = record.actions.iter().filter(|action| action.result == result);
    found.map(|action| action.label.as_str()).collect()
}

fn digest(path: &Path) -> Result<String> {
    let path = path.to_str().context("UTF-8")?;
    let said = succeed(Command::new("sha256sum").arg(path))?.stdout;
    let hex = String::from_utf8(said)?.split(' ').next().context("a digest")?.to_owned();
    Ok(format!("{hex}/{}", fs::metadata(path)?.len()))
}

/// What can be said of every record of a link that has ended well, whatever it ran.
fn check(project: &Project, record: &RunRecord) -> Result<()> {
    ensure!(record.exit_code == Some(0) && record.failure.is_none(), "{record:?}");
    ensure!(record.output.as_deref() == Some("program"), "{:?}", record.output);
    ensure!(record.state.as_deref() == state(project)?.to_str(), "{:?}", record.state);
    ensure!(record.command_line.iter().any(|word| word == "leaf.o"), "{:?}", record.command_line);
    ensure!(Path::new(&record.directory) == project.folder.path.canonicalize()?, "{}", record.directory);
    let roles: Vec<_> = record.tools.iter().map(|tool| tool.role.as_str()).collect();
    ensure!(roles == ["linker", "compiler"], "{roles:?}");
    ensure!(record.tools.iter().all(|tool| tool.identity.iter().any(|line| line.starts_with("file "))));
    let graph = record.graph.as_ref().context("a graph")?;
    ensure!(graph.digest == digest(&project.path(&graph.file))?, "the plan is not the one that is named");
    let phases: Vec<_> = record.phases.iter().map(|phase| phase.name.as_str()).collect();
    ensure!(phases.contains(&"thin link") && phases.contains(&"final link"), "{phases:?}");
    ensure!(record.actions.len() == SOURCES.len(), "every module has an action: {record:?}");
    for action in &record.actions {
        let shard = project.path(action.shard.as_ref().context("a shard")?);
        ensure!(shard.is_file() && action.module.is_some(), "{action:?}");
        ensure!(action.instructions.is_some_and(|counts| counts.own > 0), "{action:?}");
        let output = action.outputs.first().context("an object")?;
        let after = output.after.as_ref().context("what was written")?;
        ensure!(is_stored(project, after)?, "{action:?} is not in the store");
        let ran = action.result == ActionStatus::Done;
        ensure!(ran != action.why.is_empty(), "what runs has a reason: {action:?}");
        ensure!(ran == (action.start_us.is_some() && !action.command.is_empty()), "{action:?}");
        ensure!(action.end_us.unwrap_or(0) <= record.wall_us, "{action:?}");
    }
    Ok(())
}

fn changes(action: &ActionRecord) -> Vec<Change> {
    let mut why = action.why.clone();
    why.sort_by_key(|change| format!("{change}"));
    why
}

#[test]
fn a_link_and_an_edit_are_told_with_their_reasons() -> Result<()> {
    let mut project = Project::create("record/edit", &SOURCES)?;
    succeed(&mut project.link()?)?;
    let first = last(&project)?;
    check(&project, &first)?;
    ensure!(labels(&first, ActionStatus::Done).len() == SOURCES.len(), "{first:?}");
    ensure!(
        first.actions.iter().all(|action| action.why == [Change::of(ChangeKind::FirstTime)]),
        "{first:?}"
    );

    // Nothing to do, and nothing to tell.
    succeed(&mut project.link()?)?;
    ensure!(records(&state(&project)?)?.len() == 1, "a link that did nothing left a record");

    project.edit("shared.c", "x * 100", "x * 200")?;
    project.forget()?;
    succeed(&mut project.link()?)?;
    let second = last(&project)?;
    check(&project, &second)?;
    let ran = project.ran()?.backends;
    let told = labels(&second, ActionStatus::Done);
    ensure!(told.iter().copied().eq(ran.iter().map(String::as_str)), "ran {ran:?}, told {told:?}");
    ensure!(labels(&second, ActionStatus::Kept) == BTreeSet::from(["leaf.o", "main.o"]), "{second:?}");
    ensure!(changes(of(&second, "shared.o")?).contains(&Change::of(ChangeKind::Module)), "{second:?}");
    let import = Change::named(ChangeKind::Import, "shared.o");
    ensure!(changes(of(&second, "a.o")?).contains(&import), "{:?}", of(&second, "a.o")?.why);
    for label in ["a.o", "b.o", "leaf.o"] {
        let output = |record: &RunRecord| Ok::<_, anyhow::Error>(of(record, label)?.outputs[0].clone());
        let (before, after) = (output(&first)?, output(&second)?);
        ensure!(before.after == after.before, "{label} was {before:?}, then {after:?}");
        ensure!((after.before == after.after) == (label == "leaf.o"), "{label}: {after:?}");
    }

    project.flags.push("-Wl,--lto-O1".to_owned());
    succeed(&mut project.link()?)?;
    let third = last(&project)?;
    check(&project, &third)?;
    let what: BTreeSet<_> =
        third.actions.iter().flat_map(|action| &action.why).map(Change::to_string).collect();
    ensure!(what.contains("the compiler's flags changed"), "{what:?}");
    Ok(())
}

#[test]
fn an_object_that_is_lost_is_told_as_such() -> Result<()> {
    let project = Project::create("record/lost", &SOURCES)?;
    succeed(&mut project.link()?)?;
    let objects = project.native_objects()?;
    let (_, lost) = objects.iter().find(|(path, _)| path.ends_with("leaf.o.o")).context("leaf")?;
    let (_, spoilt) = objects.iter().find(|(path, _)| path.ends_with("a.o.o")).context("a")?;
    fs::remove_file(project.stored(lost)?)?;
    let spoilt = project.stored(spoilt)?;
    fs::remove_file(&spoilt)?;
    fs::write(spoilt, "spoilt")?;
    fs::remove_file(project.path("program"))?;
    succeed(&mut project.link()?)?;
    let record = last(&project)?;
    check(&project, &record)?;
    let why = |label: &str| Ok::<_, anyhow::Error>(of(&record, label)?.why.first().map(|change| change.what));
    ensure!(why("leaf.o")? == Some(ChangeKind::OutputMissing), "{record:?}");
    ensure!(why("a.o")? == Some(ChangeKind::OutputMissing), "{record:?}");
    ensure!(labels(&record, ActionStatus::Done).len() == 2, "{record:?}");
    Ok(())
}

#[test]
fn summary_and_trace_are_functions_of_the_file() -> Result<()> {
    let project = Project::create("record/functions", &SOURCES)?;
    let said = succeed(&mut project.link_with(&["-v", "--trace", "trace.json", "-j2"])?)?;
    let said = String::from_utf8(said.stderr)?;
    let record = last(&project)?;
    let summary = Summary::of(&record, record.wall_us);
    ensure!(said.contains(&summary.sentence("program")), "{} is not in {said}", summary.sentence("program"));
    let longest = summary.expensive.first().context("a backend")?;
    ensure!(said.contains(&format!("{:>8}  {}", human(longest.wall), longest.label)), "{longest:?}: {said}");
    // Phases that ended with the record, and those of the command itself, are the same.
    let of_file: Value = serde_json::from_slice(&trace::to_bytes(&record, record.wall_us))?;
    let written: Value = serde_json::from_slice(&fs::read(project.path("trace.json"))?)?;
    ensure!(of_file == written, "the trace of the file is another one");
    Ok(())
}

const FAILS: Misbehaviour = Misbehaviour { name: "fails", script: "echo why >&2\nexit 3" };

#[test]
fn a_failed_backend_is_told_with_what_it_said_and_what_did_not_start() -> Result<()> {
    let project = Project::create("record/fails", &SOURCES)?;
    project.misbehave("leaf.o", FAILS)?;
    let (code, said) = fail(&mut project.link_with(&["-j1"])?)?;
    let record = last(&project)?;
    ensure!(record.exit_code.map(i32::from) == Some(code), "{record:?}");
    let action = of(&record, "leaf.o")?;
    let failure = action.failure.as_ref().context("why it failed")?;
    ensure!(action.result == ActionStatus::Failed && failure.stderr == "why\n", "{action:?}");
    ensure!(failure.cause.class == "distlto::failed" && said.contains(&failure.cause.text), "{said}");
    ensure!(said.contains(&failure.repeat), "{failure:?} is not what was said: {said}");
    ensure!(action.outputs[0].after.is_none(), "{action:?}");
    let (failed, left) = (record.counts.failed, record.counts.not_started);
    ensure!(failed == 1 && labels(&record, ActionStatus::NotStarted).len() == left, "{record:?}");
    ensure!(record.counts.done == labels(&record, ActionStatus::Done).len(), "{record:?}");

    project.behave()?;
    succeed(&mut project.link()?)?;
    let record = last(&project)?;
    check(&project, &record)?;
    ensure!(of(&record, "leaf.o")?.why == [Change::of(ChangeKind::FirstTime)], "{record:?}");
    Ok(())
}

#[test]
fn a_link_that_fails_before_any_backend_is_told() -> Result<()> {
    let project = Project::create("record/no-thin-link", &SOURCES)?;
    succeed(&mut project.link()?)?;
    fs::remove_file(project.path("leaf.o"))?;
    let (code, said) = fail(&mut project.link()?)?;
    let record = last(&project)?;
    ensure!(record.exit_code.map(i32::from) == Some(code), "{record:?}");
    ensure!(record.actions.is_empty() && record.graph.is_none(), "{record:?}");
    let failure = record.failure.as_ref().context("why it failed")?;
    ensure!(failure.text.contains("ended with exit"), "{failure:?}");
    ensure!(said.contains("leaf.o"), "{said}");
    Ok(())
}

/// A backend that says it runs and stays for a minute.
const SLOW: Misbehaviour = Misbehaviour { name: "slow", script: "echo $$ > tools/running; exec sleep 60" };

#[test]
fn an_interrupted_link_is_told_as_far_as_it_came() -> Result<()> {
    let project = Project::create("record/interrupted", &SOURCES)?;
    project.misbehave("leaf.o", SLOW)?;
    let mut link = project.link()?.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let start = Instant::now();
    while !fs::read_to_string(project.path("tools/running")).unwrap_or_default().ends_with('\n') {
        ensure!(start.elapsed() < Duration::from_secs(300), "no backend ran");
        sleep(Duration::from_millis(10));
    }
    succeed(Command::new("kill").args(["-INT", &link.id().to_string()]))?;
    ensure!(link.wait()?.code() == Some(130));
    let record = last(&project)?;
    ensure!(record.exit_code == Some(130), "{record:?}");
    let action = of(&record, "leaf.o")?;
    ensure!(action.result == ActionStatus::Running && action.end_us.is_some(), "{action:?}");
    ensure!(
        record.failure.as_ref().is_some_and(|cause| cause.class == "distlto::interrupted")
            || record.counts.interrupted > 0,
        "{record:?}"
    );
    Ok(())
}

#[test]
fn two_links_at_once_in_one_folder_do_not_mix() -> Result<()> {
    let projects = [Project::create("record/one", &SOURCES)?, Project::create("record/other", &SOURCES)?];
    let folder = projects[0].folder.path.with_file_name("record-states");
    fs::create_dir_all(&folder)?;
    fs::remove_dir_all(&folder)?;
    let link = |project: &Project| -> Result<Command> {
        let mut link = project.link()?;
        link.env("DISTLTO_STATE", &folder).stdout(Stdio::null());
        Ok(link)
    };
    let running = projects.iter().map(|project| Ok(link(project)?.spawn()?)).collect::<Result<Vec<_>>>()?;
    for mut link in running {
        ensure!(link.wait()?.success());
    }
    let mut places = BTreeSet::new();
    for entry in fs::read_dir(&folder)? {
        let found = records(&entry?.path())?;
        ensure!(found.len() == 1 && found[0].actions.len() == SOURCES.len(), "{found:?}");
        places.insert(found[0].directory.clone());
    }
    ensure!(places.len() == 2, "each link has its own: {places:?}");
    Ok(())
}

#[test]
fn the_last_ten_are_kept_beside_what_is_not_ours() -> Result<()> {
    let project = Project::create("record/ten", &SOURCES[..])?;
    succeed(&mut project.link()?)?;
    let runs = state(&project)?.join(run::FOLDER);
    let oldest = run::list(&state(&project)?)?.pop().context("a record")?;
    let text = fs::read(&oldest)?;
    for number in 0..9 {
        fs::write(runs.join(format!("2001010{number}T000000.000Z-1.json")), &text)?;
    }
    fs::create_dir(runs.join("19990101T000000.000Z-1.json"))?;
    succeed(Command::new("mkfifo").arg(runs.join("19990102T000000.000Z-1.json")))?;
    project.edit("leaf.c", "x * 7", "x * 9")?;
    succeed(&mut project.link()?)?;
    let kept = run::list(&state(&project)?)?;
    ensure!(kept.len() == run::KEPT && kept.contains(&oldest), "{kept:?}");
    ensure!(!runs.join("20010100T000000.000Z-1.json").exists(), "the oldest is not the one that went");
    ensure!(runs.join("19990101T000000.000Z-1.json").is_dir(), "a directory was removed");

    // What lies in the folder's place costs the record and no more.
    fs::remove_dir_all(&runs)?;
    fs::write(&runs, "")?;
    project.edit("leaf.c", "x * 9", "x * 8")?;
    let output = capture(&mut project.link()?)?;
    let said = String::from_utf8(output.stderr)?;
    ensure!(output.status.success(), "{said}");
    ensure!(said.matches("warning: no record of the run was kept").count() == 1, "{said}");
    Ok(())
}

/// The records of a store under keys of linkers, which have a note.
fn served(records: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in fs::read_dir(records)? {
        for record in fs::read_dir(folder?.path())? {
            let path = record?.path();
            if String::from_utf8_lossy(&fs::read(&path)?).contains("\"note\":") {
                found.push(path);
            }
        }
    }
    Ok(found)
}

#[test]
fn a_cache_is_told_with_key_and_answer() -> Result<()> {
    let project = Project::create("record/cache", &SOURCES)?;
    let records = store::of(&project.folder.path)?.join("results-v1/records");
    let mut keys = Vec::new();
    for hit in [false, true] {
        succeed(&mut project.link()?)?;
        let record = last(&project)?;
        check(&project, &record)?;
        let answers = record.actions.iter().map(|action| action.cache.as_ref());
        let answers = answers.collect::<Option<Vec<_>>>().context("each was looked for")?;
        ensure!(answers.iter().all(|answer| answer.hit == hit), "{answers:?}");
        let mut found: Vec<_> = answers.iter().map(|answer| answer.key.clone()).collect();
        found.sort();
        keys.push(found);
        // What is found by a linker's key is not looked for by content.
        fs::remove_dir_all(state(&project)?)?;
        for key in served(&records)? {
            fs::remove_file(key)?;
        }
    }
    ensure!(keys[0] == keys[1], "a key stands for what decides the object");
    Ok(())
}

#[test]
fn a_graph_that_is_run_and_a_distributor_leave_records_too() -> Result<()> {
    let project = Project::create("record/graph", &SOURCES)?;
    succeed(&mut project.index()?)?;
    fs::copy(project.path("program.distlto/index/graph.json"), project.path("graph.json"))?;
    let run_graph = || -> Result<()> {
        let mut command = Command::new(distlto::binary()?);
        command.args(["run", "graph.json"]).current_dir(&project.folder.path);
        succeed(&mut command).map(drop)
    };
    run_graph()?;
    let state = distlto::state_dir(&project.path("graph.json"))?;
    let found = records(&state)?;
    let record = found.last().context("a record")?;
    let graph = record.graph.as_ref().context("a graph")?;
    ensure!(graph.file == "graph.json" && graph.digest == digest(&project.path("graph.json"))?, "{graph:?}");
    let kinds: BTreeSet<_> = record.actions.iter().map(|action| action.kind.name()).collect();
    ensure!(kinds == BTreeSet::from(["link", "opt", "thin-link"]), "{kinds:?}");
    run_graph()?;
    ensure!(records(&state)?.len() == found.len(), "nothing to do is told");
    project.edit("leaf.c", "x * 7", "x * 9")?;
    run_graph()?;
    let record = records(&state)?.pop().context("a record")?;
    let leaf = of(&record, "leaf.o")?;
    ensure!(
        leaf.result == ActionStatus::Done && leaf.why.contains(&Change::of(ChangeKind::Module)),
        "{leaf:?}"
    );
    ensure!(
        labels(&record, ActionStatus::Done) == BTreeSet::from(["leaf.o", "program"]),
        "no other ran: {record:?}"
    );

    let folder = project.path("states");
    let distributor = distlto::distributor()?;
    let mut link = Command::new(project.folder.toolchain.tool("clang")?);
    link.args(["-O2", "-flto=thin", "-fuse-ld=lld", "-o", "program"]).args(&project.objects);
    link.arg(format!("-fthinlto-distributor={}", distributor.display()));
    link.env("DISTLTO_STATE", &folder).current_dir(&project.folder.path);
    succeed(&mut link)?;
    let place = fs::read_dir(&folder)?.next().context("a state")??.path();
    let record = records(&place)?.pop().context("a record")?;
    ensure!(record.program.starts_with("distlto-distribute ") && record.exit_code == Some(0), "{record:?}");
    ensure!(
        record.actions.iter().all(|action| action.why == [Change::of(ChangeKind::Requested)]),
        "{record:?}"
    );
    Ok(())
}

#[test]
fn what_ran_elsewhere_names_its_worker() -> Result<()> {
    let project = Project::create("record/elsewhere", &SOURCES)?;
    succeed(&mut project.link()?)?;
    let record = last(&project)?;
    ensure!(
        record.actions.iter().all(|action| action.worker.is_none()),
        "this machine has no name: {record:?}"
    );
    let begun = Instant::now();
    let mut recorded = Recorded::new(begun);
    let kind = of(&record, "a.o")?.kind;
    let step = ProgressStep { id: 0, kind, label: "a.o", cost: 1, lane: 0, command: "clang" };
    recorded.report(ProgressEvent::Started(step), begun);
    let times = EngineTimes { queued_us: 5, running_us: 7, ..EngineTimes::default() };
    recorded.report(ProgressEvent::ExecutedBy(step, "machine-3", times), begun);
    recorded.report(ProgressEvent::Finished(step, Measured::default(), ""), Instant::now());
    run::write(&state(&project)?, &RunRecord { actions: recorded.run.actions, ..record })?;
    ensure!(of(&last(&project)?, "a.o")?.worker.as_deref() == Some("machine-3"));
    Ok(())
}
