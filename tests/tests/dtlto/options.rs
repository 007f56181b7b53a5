//! What the distributor's options do, wherever they come from: link options, the environment, a make jobserver.

use std::fs;
use std::io::Write;

use anyhow::{Context, Result, ensure};
use distlto_tests::run::{fail, succeed};
use serde_json::Value;

use super::small::{Small, utf8};

fn events(small: &Small, log: &str) -> Result<Vec<Value>> {
    let text = fs::read_to_string(small.path(log))?;
    text.lines().map(|line| serde_json::from_str(line).with_context(|| line.to_owned())).collect()
}

fn named<'a>(events: &'a [Value], name: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["event"] == name).collect()
}

/// The most jobs that ran at once, by the log's order.
fn most_at_once(events: &[Value]) -> usize {
    let (mut running, mut most) = (0, 0);
    for event in events {
        match event["event"].as_str() {
            Some("start") => running += 1,
            Some("finish") => running -= 1,
            _ => {}
        }
        most = most.max(running);
    }
    most
}

/// Each link says what it ran, with times, and several append to one file.
#[test]
fn a_log_holds_what_several_links_ran() -> Result<()> {
    let small = Small::create("log")?;
    let links =
        (0..3).map(|_| Ok(small.link(&["--log,runs.json,-j,2"])?.args(["-o", "out/program"]).spawn()?));
    for link in links.collect::<Result<Vec<_>>>()? {
        ensure!(link.wait_with_output()?.status.success());
    }
    let events = events(&small, "runs.json")?;
    for (name, count) in [("plan", 3), ("start", 9), ("finish", 9), ("summary", 3)] {
        ensure!(named(&events, name).len() == count, "{name}: {events:#?}");
    }
    let processes: std::collections::BTreeSet<_> =
        events.iter().map(|event| event["process"].as_u64()).collect();
    ensure!(processes.len() == 3 && !processes.contains(&None), "{processes:?}");
    for event in &events {
        ensure!(event["program"] == "out/program" && event["version"] == 1, "{event}");
        ensure!(event["time_ms"].as_u64().is_some_and(|time| time > 1_600_000_000_000), "{event}");
    }
    let label = |event: &Value| event["label"].as_str().map(str::to_owned);
    ensure!(named(&events, "start").iter().any(|event| label(event).is_some_and(|label| label == "main.o")));
    Ok(())
}

/// A shard does not say that a function whose address a module takes is in the link.
#[test]
fn completed_shards_make_the_program_of_lld_in_process() -> Result<()> {
    let small = Small::create("completed")?;
    small.folder.write(
        "a.c",
        "int b(int);\nint (*volatile chosen)(int);\nint a(int x) { return x + (chosen == b); }\n",
    )?;
    succeed(&mut small.folder.command("%clang -O2 -flto=thin -c a.c -o a.o", "")?)?;
    succeed(&mut small.folder.command("%ar rcs liba.a a.o b.o", "")?)?;
    let line = "%clang -O2 -flto=thin -fuse-ld=lld main.o liba.a -o out/program";
    succeed(&mut small.folder.command(line, "")?)?;
    let alone = fs::read(small.path("out/program"))?;
    succeed(&mut small.link(&[])?)?;
    ensure!(fs::read(small.path("out/program"))? != alone, "lld's DTLTO makes the program of lld in process");
    let mut link = small.link(&["--complete-shards"])?;
    let (_, said) = fail(&mut link)?;
    ensure!(
        said.contains("out/program.resolution.txt is not there") && said.contains("--save-temps=resolution"),
        "{said}"
    );
    succeed(link.arg("-Wl,--save-temps=resolution"))?;
    ensure!(fs::read(small.path("out/program"))? == alone, "another program than that of lld in process");
    ensure!(!small.path("out/program.resolution.txt").exists(), "{:?}", small.beside_output()?);
    Ok(())
}

#[test]
fn an_untold_link_is_silent_and_a_verbose_one_is_not() -> Result<()> {
    let small = Small::create("verbose")?;
    let output = succeed(&mut small.link(&[])?)?;
    ensure!(
        output.stdout.is_empty() && output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    for (verbose, commands) in [("-v", 0), ("-vv", 3)] {
        let said = String::from_utf8(succeed(&mut small.link(&[verbose])?)?.stderr)?;
        ensure!(said.lines().filter(|line| line.starts_with("+ cd ")).count() == commands, "{said}");
        ensure!(said.contains("[3/3] opt "), "{said}");
    }
    let output = succeed(&mut small.link(&["-v"])?)?;
    let said = String::from_utf8(output.stderr)?;
    ensure!(said.contains("distlto-distribute: out/program: 3 backends in "), "{said}");
    Ok(())
}

/// What lld does not tell the compilers is said, with the option that mends it; with that option it is not.
#[test]
fn what_lld_leaves_out_is_said() -> Result<()> {
    let small = Small::create("left-out")?;
    let link = |arguments: &[&str]| -> Result<String> {
        let output = succeed(small.link(&[])?.args(["-Wl,-mllvm,-inline-threshold=7"]).args(arguments))?;
        Ok(String::from_utf8(output.stderr)?)
    };
    let said = link(&[])?;
    let warning = said.strip_prefix("distlto: warning: -mllvm").and_then(|rest| rest.split_once("; add "));
    let (_, mending) = warning.with_context(|| format!("no remedy in\n{said}"))?;
    let mending = shlex::split(mending.trim()).context("words for a shell")?;
    ensure!(mending.iter().all(|word| word.starts_with("-Wl,")), "{mending:?} are no words for a driver");
    let said = link(&mending.iter().map(String::as_str).collect::<Vec<_>>())?;
    ensure!(said.is_empty(), "{said}");
    let said = link(&["-Xthinlto-distributor=--quiet"])?;
    ensure!(said.is_empty(), "{said}");
    // lld itself, started by this test.
    let distributor = distlto_tests::distlto::distributor()?.display();
    let clang = small.folder.toolchain.tool("clang")?;
    let line = format!("%lld --thinlto-distributor={distributor} -e main -shared -mllvm -inline-threshold=7");
    let mut direct = small.folder.command(&line, "")?;
    direct.arg(format!("--thinlto-remote-compiler={}", clang.display()));
    let output = succeed(direct.args(["main.o", "liba.a", "-o", "out/program"]))?;
    let said = String::from_utf8(output.stderr)?;
    ensure!(said.contains("; add --thinlto-remote-compiler-arg=-mllvm "), "{said}");
    Ok(())
}

/// What a compiler warns of is passed on.
#[test]
fn warnings_are_passed_on() -> Result<()> {
    let small = Small::create("warnings")?;
    small.compiler("echo \"warning: about $module\" >&2")?;
    let output = succeed(&mut small.link_with_script(&[])?)?;
    let said = String::from_utf8(output.stderr)?;
    ensure!(said.lines().filter(|line| line.starts_with("warning: about ")).count() == 3, "{said}");
    Ok(())
}

#[test]
fn a_dry_run_prints_commands_and_starts_nothing() -> Result<()> {
    let small = Small::create("dry-run-link")?;
    small.compiler("echo \"$module\" >> ran")?;
    let output = small.link_with_script(&["--dry-run"])?.output()?;
    let printed = String::from_utf8(output.stdout)?;
    // lld misses its objects.
    ensure!(!output.status.success() && printed.lines().count() == 3, "{printed}");
    ensure!(printed.lines().all(|line| line.contains("compiler -c ")), "{printed}");
    ensure!(!small.path("ran").exists() && small.beside_output()?.is_empty());
    Ok(())
}

/// The environment's options come first, so those of the link win.
#[test]
fn options_come_from_the_environment_too() -> Result<()> {
    let small = Small::create("environment")?;
    let mut link = small.link(&["-j,1"])?;
    succeed(link.env("DISTLTO_DISTRIBUTE_OPTIONS", "-j 3 --log 'runs of.json'"))?;
    let plan = events(&small, "runs of.json")?;
    ensure!(plan[0]["jobs"] == 1, "{}", plan[0]);
    let (_, said) = fail(small.link(&[])?.env("DISTLTO_DISTRIBUTE_OPTIONS", "--no-such-option"))?;
    ensure!(said.contains("--no-such-option"), "{said}");
    Ok(())
}

/// With no token to be had from make, one job runs at a time.
#[test]
fn jobs_share_the_slots_of_make() -> Result<()> {
    let small = Small::create("jobserver")?;
    succeed(&mut small.folder.command("mkfifo slots", "")?)?;
    let mut slots = fs::File::options().read(true).write(true).open(small.path("slots"))?;
    let flags = format!(" -j4 --jobserver-auth=fifo:{}", utf8(&small.path("slots"))?);
    small.compiler("sleep 0.1")?;
    let link = |log: &str| -> Result<usize> {
        let mut link = small.link_with_script(&[&format!("-j,4,--log,{log}")])?;
        succeed(link.env("MAKEFLAGS", &flags))?;
        Ok(most_at_once(&events(&small, log)?))
    };
    ensure!(link("none")? == 1, "jobs ran without a slot");
    slots.write_all(b"++")?;
    ensure!(link("two")? == 3, "two slots and the own one were not used");
    // The slots were given back.
    ensure!(link("again")? == 3, "the slots are lost");
    Ok(())
}
