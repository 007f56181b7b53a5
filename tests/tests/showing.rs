//! What a run shows: events against their schema, a trace by the rules of its format, a line on a terminal of its own, and
//! little where no terminal is.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use distlto_tests::project::{FORKED, Misbehaviour, Project};
use distlto_tests::run::{capture, succeed};
use distlto_tests::terminal;
use distlto_tests::toolchain::Toolchain;
use serde_json::Value;

const FAILS: Misbehaviour = Misbehaviour { name: "fails", script: "echo why >&2\nexit 3" };
const SLOW: Misbehaviour = Misbehaviour { name: "slow", script: "sleep 1.5\n\"$clang\" \"$@\"" };

fn events(text: &[u8]) -> Result<Vec<Value>> {
    let schema = include_str!("../../docs/progress-events.schema.json");
    let schema = jsonschema::validator_for(&serde_json::from_str(schema)?).context("the schema is one")?;
    let events: Vec<Value> =
        std::str::from_utf8(text)?.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    for event in &events {
        if let Err(error) = schema.validate(event) {
            anyhow::bail!("{error}\n{event}");
        }
    }
    Ok(events)
}

fn named<'e>(events: &'e [Value], name: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["event"] == name).collect()
}

#[test]
fn events_follow_their_schema_and_the_summary_is_last() -> Result<()> {
    let project = Project::create("show-events", &FORKED)?;
    let told = events(&succeed(&mut project.link_with(&["--json"])?)?.stdout)?;
    ensure!(named(&told, "finish").len() == 4 && named(&told, "start").len() == 4, "{told:?}");
    let phases: Vec<_> = named(&told, "phase").iter().map(|event| event["name"].as_str()).collect();
    ensure!(phases.contains(&Some("thin link")) && phases.contains(&Some("final link")), "{phases:?}");
    let summary = told.last().context("events")?;
    ensure!(summary["event"] == "summary" && named(&told, "summary").len() == 1, "{told:?}");
    ensure!(summary["done"] == 4 && summary["ran"] == 4 && summary["cached"] == 0, "{summary}");
    let expensive = summary["expensive"].as_array().context("a list")?;
    let of_a = expensive.iter().find(|one| one["label"] == "a.o").context("a.o")?;
    ensure!(of_a["imports"][0]["module"] == "shared.o", "a.c calls what shared.c defines: {of_a}");

    let told = events(&succeed(&mut project.link_with(&["--json"])?)?.stdout)?;
    let names: Vec<_> = told.iter().map(|event| event["event"].as_str().unwrap_or_default()).collect();
    ensure!(names == ["plan", "summary"] && told[1]["done"] == 0, "nothing to do is told: {told:?}");

    let remarks = "-Wl,--opt-remarks-filename,remarks.yaml";
    let told = events(&succeed(project.link_with(&["--json"])?.arg(remarks))?.stdout)?;
    let [note] = named(&told, "note")[..] else { anyhow::bail!("{told:?}") };
    let why = note["text"].as_str().context("a text")?;
    ensure!(why.ends_with("only the linker's own backends write: the linker links by itself"), "{why}");

    project.misbehave("a.o", FAILS)?;
    project.edit("a.c", "+ 1", "+ 3")?;
    let output = capture(&mut project.link_with(&["--json"])?)?;
    let told = events(&output.stdout)?;
    ensure!(output.status.code() == Some(1), "{output:?}");
    ensure!(
        named(&told, "fail")[0]["label"] == "a.o" && named(&told, "summary")[0]["failed"] == 1,
        "{told:?}"
    );
    Ok(())
}

#[test]
fn a_dry_run_foretells_and_leaves_nothing() -> Result<()> {
    let project = Project::create("show-dry-run", &FORKED)?;
    let ask = |more: &[&str]| -> Result<String> {
        let words: Vec<&str> = ["--dry-run"].iter().chain(more).copied().collect();
        Ok(String::from_utf8(succeed(&mut project.link_with(&words)?)?.stdout)?)
    };
    for more in [&[][..], &["--plain-shards"]] {
        let first = ask(more)?;
        ensure!(first.contains("4 of 4 backends would run, for about "), "{first}");
        ensure!(first.contains("a.o: there is no record of an earlier run\n"), "{first}");
    }
    ensure!(
        !project.path("program").exists()
            && !distlto_tests::distlto::state_dir(&project.path("program"))?.exists(),
        "a dry run leaves something"
    );

    succeed(&mut project.link()?)?;
    ensure!(ask(&[])? == "nothing would run: program is up to date\n", "after a link");
    project.edit("a.c", "+ 1", "+ 3")?;
    let edited = ask(&[])?;
    ensure!(edited.contains("  a.o: its module changed"), "{edited}");
    ensure!(
        edited.contains("1 of 4 backends would run") && edited.contains("; the linker took "),
        "{edited}"
    );
    let told: Value = serde_json::from_str(&ask(&["--json"])?)?;
    ensure!(told["backends"] == 4 && told["would_run"][0]["label"] == "a.o", "{told}");

    // A link that the linker refuses, and one that is none of ours.
    let mut refused = project.link_with(&["--dry-run"])?;
    let refused = capture(refused.arg("-Wl,--no-such-option"))?;
    ensure!(!refused.status.success() && !refused.stderr.is_empty(), "{refused:?}");
    let mut other = Command::new(distlto_tests::distlto::binary()?);
    let other = succeed(other.args(["link", "--dry-run", "--", "true"]))?;
    ensure!(other.stdout.starts_with(b"the command would run as it is"), "{other:?}");
    Ok(())
}

/// `main.cpp` imports from `b.cpp`, whose variable a native object may define first.
const DEFINED_TWICE: [(&str, &str); 2] = [
    (
        "main.cpp",
        "extern \"C\" int printf(const char *, ...);\nint b(int);\nint main() { printf(\"%d\\n\", b(1)); }\n",
    ),
    ("b.cpp", "inline int shared = 5;\nint b(int x) { return x + shared++; }\n"),
];
const NATIVE: &str = "inline int shared = 5;\nint *use() { return &shared; }\n";

/// Its linker asks for nothing, and goes on to its end.
#[test]
fn a_dry_run_writes_no_output_of_a_link_without_backends() -> Result<()> {
    let project = Project::create(
        "dry-run-lazy",
        &[("main.c", "int main(void) { return 0; }\n"), ("unused.c", "int unused;\n")],
    )?;
    let mut compile = Command::new(project.folder.toolchain.tool("clang")?);
    succeed(compile.args(["-c", "main.c"]).current_dir(&project.folder.path))?;
    let mut words = project.linker_words()?;
    let first = words.iter().position(|word| word == "main.o").context("an object")?;
    words.insert(first + 1, "-Wl,--start-lib".to_owned());
    words.push("-Wl,--end-lib,--Map=program.map,--dependency-file=program.d".to_owned());
    let before = fs::read_dir(&project.folder.path)?.count();
    let mut command = Command::new(distlto_tests::distlto::binary()?);
    succeed(command.args(["link", "--dry-run", "--"]).args(&words).current_dir(&project.folder.path))?;
    ensure!(fs::read_dir(&project.folder.path)?.count() == before, "something was written");
    Ok(())
}

#[test]
fn a_dry_run_finds_an_object_that_was_made_from_another_shard() -> Result<()> {
    let mut project = Project::create("show-dry-run-shard", &DEFINED_TWICE)?;
    let clang = Toolchain::from_env()?.tool("clang")?;
    let native = |text: &str| -> Result<()> {
        project.folder.write("native.cpp", text)?;
        let mut command = Command::new(&clang);
        command.args(["-O2", "-std=c++17", "-c", "native.cpp"]).current_dir(&project.folder.path);
        succeed(&mut command).map(drop)
    };
    native(NATIVE)?;
    project.objects.push("native.o".to_owned());
    ensure!(project.relink()?.backends.len() == 2, "not all backends ran");
    // The shard of main.cpp changes, and the linker's key of its object does not.
    project.objects.rotate_right(1);
    ensure!(project.relink()?.backends == ["b.cpp.o"], "another backend ran");
    native(&NATIVE.replace("use", "user"))?;
    let foretold = succeed(&mut project.link_with(&["--dry-run"])?)?;
    let foretold = String::from_utf8(foretold.stdout)?;
    ensure!(foretold.starts_with("0 of 2 backends would run"), "{foretold}");
    ensure!(project.relink()?.backends.is_empty(), "a backend ran");
    Ok(())
}

/// The rules of the Trace Event Format for what we write, and what a person expects to see.
fn check_trace(text: &[u8]) -> Result<Vec<Value>> {
    let trace: Value = serde_json::from_slice(text)?;
    let all = trace["traceEvents"].as_array().context("the object form of the format")?.clone();
    let mut last = 0;
    let mut lanes: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    let mut jobs = None;
    for event in &all {
        ensure!(event["pid"].is_u64() && event["tid"].is_u64() && event["name"].is_string(), "{event}");
        let phase = event["ph"].as_str().context("a phase")?;
        if phase == "M" {
            ensure!(event["args"]["name"].is_string() || event["args"]["sort_index"].is_u64(), "{event}");
            continue;
        }
        let at = event["ts"].as_u64().context("a time")?;
        ensure!(at >= last, "not sorted: {event}");
        last = at;
        match phase {
            "X" => {
                let end = at + event["dur"].as_u64().context("a duration")?;
                let open = lanes.entry(event["tid"].as_u64().unwrap_or_default()).or_default();
                while open.last().is_some_and(|&(_, end)| end <= at && (end, end) != (at, at + 1)) {
                    open.pop();
                }
                ensure!(open.last().is_none_or(|&(_, outer)| end <= outer), "spans overlap: {event}");
                open.push((at, end));
            }
            "C" => {
                let values = event["args"].as_object().context("values")?;
                ensure!(!values.is_empty() && values.values().all(Value::is_u64), "{event}");
                if event["name"] == "jobs" {
                    jobs = event["args"]["running"].as_u64();
                }
            }
            other => anyhow::bail!("an event of another kind: {other}"),
        }
    }
    ensure!(jobs.is_none_or(|running| running == 0), "jobs run at the end: {jobs:?}");
    Ok(all)
}

fn spans<'e>(events: &'e [Value], category: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["ph"] == "X" && event["cat"] == category).collect()
}

#[test]
fn a_trace_has_every_backend_on_a_worker_and_the_links_beside() -> Result<()> {
    let project = Project::create("show-trace", &FORKED)?;
    succeed(&mut project.link_with(&["--trace", "trace.json", "-j2"])?)?;
    let events = check_trace(&fs::read(project.path("trace.json"))?)?;
    let mut modules: Vec<_> =
        spans(&events, "opt").iter().filter_map(|span| span["args"]["module"].as_str()).collect();
    modules.sort_unstable();
    ensure!(modules == ["a.o", "b.o", "main.o", "shared.o"], "{modules:?}");
    let beside: Vec<_> = spans(&events, "link").iter().filter_map(|span| span["name"].as_str()).collect();
    ensure!(beside.contains(&"thin link") && beside.contains(&"final link"), "{beside:?}");
    ensure!(spans(&events, "opt").iter().all(|span| (1..=2).contains(&span["tid"].as_u64().unwrap_or(0))));
    for name in ["verify", "compile", "check and commit"] {
        let count = spans(&events, "phase").iter().filter(|span| span["name"] == name).count();
        ensure!(count == 4, "{count} spans of {name}");
    }
    Ok(())
}

#[test]
fn a_trace_is_written_of_a_failure() -> Result<()> {
    let project = Project::create("show-trace-failed", &FORKED)?;
    project.misbehave("a.o", FAILS)?;
    let output = capture(&mut project.link_with(&["--trace", "trace.json", "-j1", "-k"])?)?;
    ensure!(output.status.code() == Some(1), "{output:?}");
    let events = check_trace(&fs::read(project.path("trace.json"))?)?;
    let results: Vec<_> = spans(&events, "opt").iter().map(|span| span["args"]["result"].as_str()).collect();
    ensure!(
        results.contains(&Some("failed: distlto::failed")) && results.contains(&Some("done")),
        "{results:?}"
    );

    let output = capture(&mut project.link_with(&["--trace", "nowhere/trace.json"])?)?;
    ensure!(output.status.code() == Some(4), "said before anything runs: {output:?}");
    Ok(())
}

/// Runs a command with standard error on a terminal of so many columns; gives what the terminal was sent.
fn on_terminal(command: &mut Command, columns: u16) -> Result<String> {
    let (mut reader, theirs) = terminal::open(columns)?;
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(theirs).spawn()?;
    // The command holds the other end too.
    command.stderr(Stdio::null());
    let mut sent = Vec::new();
    let mut buffer = [0; 4096];
    // When nobody has the other end any more, reading fails.
    while let Ok(count) = reader.read(&mut buffer)
        && count > 0
    {
        sent.extend_from_slice(&buffer[..count]);
    }
    ensure!(child.wait()?.success(), "{}", String::from_utf8_lossy(&sent));
    Ok(String::from_utf8_lossy(&sent).into_owned())
}

/// What is drawn, without the sequences that move the cursor.
fn drawn(sent: &str) -> Vec<String> {
    let mut text = String::new();
    let mut characters = sent.chars();
    while let Some(c) = characters.next() {
        if c == '\x1b' {
            // A control sequence ends with a letter.
            let _ = characters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            text.push(c);
        }
    }
    text.split(['\r', '\n'])
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.trim_end().to_owned())
        .collect()
}

#[test]
fn a_terminal_shows_what_runs_and_one_line_at_the_end() -> Result<()> {
    let project = Project::create("show-terminal", &FORKED)?;
    project.misbehave("shared.o", SLOW)?;
    let sent = on_terminal(project.link_with(&["-j1"])?.env("TERM", "xterm"), 100)?;
    let lines = drawn(&sent);
    ensure!(lines.iter().any(|line| line.contains("/4 [") && line.contains("shared.o")), "{lines:#?}");
    let last = lines.last().context("lines")?;
    ensure!(last.starts_with("distlto: program: 4 backends in "), "{lines:#?}");
    Ok(())
}

#[test]
fn a_narrow_terminal_gets_narrow_lines() -> Result<()> {
    let project = Project::create("show-narrow", &FORKED)?;
    project.misbehave("shared.o", SLOW)?;
    let lines = drawn(&on_terminal(project.link_with(&["-j1"])?.env("TERM", "xterm"), 24)?);
    let (end, bars) = lines.split_last().context("lines")?;
    ensure!(end.contains("4 backends in "), "{lines:#?}");
    ensure!(bars.iter().any(|line| line.contains("/4")), "{lines:#?}");
    ensure!(bars.iter().all(|line| line.len() < 24), "{lines:#?}");
    Ok(())
}

#[test]
fn a_dumb_terminal_and_none_get_plain_lines() -> Result<()> {
    let project = Project::create("show-dumb", &FORKED)?;
    let sent = on_terminal(project.link()?.env("TERM", "dumb"), 100)?;
    ensure!(!sent.contains('\x1b') && drawn(&sent).len() == 1, "{sent:?}");
    project.edit("a.c", "+ 1", "+ 3")?;
    let output = succeed(&mut project.link()?)?;
    ensure!(output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    project.edit("a.c", "+ 3", "+ 1")?;
    let output = succeed(&mut project.link_with(&["-v"])?)?;
    let said = String::from_utf8(output.stderr)?;
    ensure!(said.contains("opt a.o (") && said.contains("critical path"), "{said}");
    Ok(())
}
