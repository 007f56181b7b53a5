//! Shards of a first link in two steps are kept while its backends run. No backend starts before the thin link has ended well, and
//! each reads the shard that lld's own thin link writes, whole: told by the fake clang, which looks at it as it starts.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use distlto_tests::project::{Misbehaviour, Project};
use distlto_tests::run::{fail, succeed};

const MODULES: usize = 40;

/// Writes down what the shard of each backend holds as it starts, and whether its import list is there.
const LOOK: Misbehaviour = Misbehaviour {
    name: "look",
    script: r#"for word in "$@"; do case "$word" in -fthinlto-index=*) shard=${word#*=} ;; esac; done
    echo "$module $(cksum < "$shard")" >> tools/shards
    [ -f "${shard%.thinlto.bc}.imports" ] || echo "$module has no import list" >> tools/shards
    "$clang" "$@" || exit 1"#,
};

/// lld's shards, each cut short, written in pieces over the time of several backends, and some written anew.
const SLOWLY: &str = r#"
    "$linker" "$@" || exit 1
    for whole in $(find "$prefix" -name '*.thinlto.bc'); do mv "$whole" "$whole.whole"; head -c 200 "$whole.whole" > "$whole"; done
    sleep 0.3
    for whole in $(find "$prefix" -name '*.whole'); do tail -c +201 "$whole" >> "${whole%.whole}"; done
    sleep 0.1
    for whole in $(find "$prefix" -name 'm1*.whole'); do cat "$whole" > "${whole%.whole}"; done
    find "$prefix" -name '*.whole' -delete
    echo 'the thin link ends' >> tools/log"#;

fn project(name: &str) -> Result<Project> {
    let sources: Vec<(String, String)> = (0..MODULES)
        .map(|at| {
            let next = (at + 7) % MODULES;
            let main = if at == 0 {
                "#include <stdio.h>\nint main(void) { printf(\"%d\\n\", f0(50)); return 0; }\n"
            } else {
                ""
            };
            let text = format!(
                "int f{next}(int);\nint f{at}(int x) {{ return x <= 0 ? {at} : f{next}(x - 1) + {at}; }}\n{main}"
            );
            (format!("m{at}.c"), text)
        })
        .collect();
    let sources: Vec<(&str, &str)> =
        sources.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let mut project = Project::create(name, &sources)?;
    project.options = vec!["--two-step"];
    Ok(project)
}

/// What the program says when lld links it by itself.
fn expected(project: &Project) -> Result<String> {
    succeed(&mut project.plain_link()?)?;
    let said = project.say()?;
    fs::remove_file(project.path("program"))?;
    Ok(said)
}

/// The checksum of each module's shard as lld writes it.
fn shards_of_lld(project: &Project) -> Result<BTreeMap<String, String>> {
    fs::create_dir_all(project.path("oracle"))?;
    let mut thin = project.plain_link()?;
    thin.args(["-Wl,--thinlto-index-only", "-Wl,--thinlto-prefix-replace=;oracle/", "-o", "oracle/program"]);
    succeed(&mut thin)?;
    project
        .objects
        .iter()
        .map(|object| {
            let shard = fs::File::open(project.path(&format!("oracle/{object}.thinlto.bc")))?;
            let sum = Command::new("cksum").stdin(shard).output()?;
            Ok((object.clone(), String::from_utf8(sum.stdout)?.trim().to_owned()))
        })
        .collect()
}

/// What the backends found.
fn shards_seen(project: &Project) -> Result<BTreeMap<String, String>> {
    let text = fs::read_to_string(project.path("tools/shards"))?;
    text.lines()
        .map(|line| {
            let (module, sum) = line.split_once(' ').context("a line names its module")?;
            Ok((module.to_owned(), sum.to_owned()))
        })
        .collect()
}

#[test]
fn every_backend_reads_the_whole_shard_of_a_thin_link_that_has_ended() -> Result<()> {
    let project = project("first-slow")?;
    let (says, shards) = (expected(&project)?, shards_of_lld(&project)?);
    project.replace_thin_link(SLOWLY)?;
    project.misbehave("", LOOK)?;
    project.forget()?;
    succeed(&mut project.link()?)?;
    ensure!(shards_seen(&project)? == shards, "the backends did not see lld's shards");
    ensure!(project.say()? == says);
    let log = fs::read_to_string(project.path("tools/log"))?;
    ensure!(
        log.starts_with("asked\nthe thin link ends\nbackend "),
        "a backend ran before the thin link's end:\n{log}"
    );
    ensure!(!project.path("program.distlto/scratch").exists(), "the thin link's directory is left");
    let state = project.path("program.distlto/shards");
    for object in &project.objects {
        ensure!(state.join(format!("{object}.thinlto.bc")).is_file(), "the shard of {object} is not kept");
    }
    project.behave()?;
    ensure!(project.relink()?.backends.is_empty(), "a second link runs backends");
    Ok(())
}

#[test]
fn no_backend_runs_after_a_thin_link_that_failed_or_was_killed_at_its_end() -> Result<()> {
    let project = project("first-fails")?;
    let says = expected(&project)?;
    for (end, code) in [("exit 3", 3), ("kill -9 $$", 1)] {
        project.replace_thin_link(&format!("\"$linker\" \"$@\"; {end}"))?;
        project.forget()?;
        let (found, said) = fail(&mut project.link()?)?;
        ensure!(found == code, "{end}: exit code {found}:\n{said}");
        ensure!(project.ran()?.backends.is_empty(), "{end}: a backend ran");
        ensure!(!project.path("program").exists(), "{end}: a program was written");
    }
    project.replace_thin_link("exec \"$linker\" \"$@\"")?;
    let ran = project.relink()?;
    ensure!(ran.backends.len() == MODULES, "{ran:?}");
    ensure!(project.say()? == says);
    Ok(())
}

/// The thin link's directory may be gone and half of the shards may not be there: the next link finds its way.
#[test]
fn a_first_link_that_is_killed_is_finished_by_the_next() -> Result<()> {
    let project = project("first-killed")?;
    let (says, shards) = (expected(&project)?, shards_of_lld(&project)?);
    for after in [1, 5, 20] {
        let _ = fs::remove_dir_all(project.path("program.distlto"));
        project.misbehave("", LOOK)?;
        project.forget()?;
        let mut link = project.link()?.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let start = Instant::now();
        while project.ran()?.backends.len() < after {
            ensure!(start.elapsed() < Duration::from_secs(300), "{after} backends never ran");
            sleep(Duration::from_millis(1));
        }
        link.kill()?;
        link.wait()?;
        succeed(&mut project.link()?)?;
        ensure!(shards_seen(&project)? == shards, "killed after {after}: a backend saw another shard");
        ensure!(project.say()? == says, "killed after {after}: {}", project.say()?);
        ensure!(project.temporaries()?.is_empty(), "{:?}", project.temporaries()?);
        ensure!(
            project.relink()?.backends.is_empty(),
            "killed after {after}: all was done, yet backends ran"
        );
    }
    Ok(())
}

#[test]
fn a_shard_that_is_gone_is_kept_again_and_only_its_module_compiled() -> Result<()> {
    let project = project("first-gone")?;
    let says = expected(&project)?;
    project.relink()?;
    fs::remove_file(project.path("program.distlto/shards/m3.o.thinlto.bc"))?;
    fs::remove_file(project.path("program.distlto/objects/m3.o.o"))?;
    fs::remove_file(project.path("program.distlto/shards/m5.o.thinlto.bc"))?;
    project.edit("m9.c", "x <= 0", "x <= 0 || x == 77")?;
    let ran = project.relink()?;
    ensure!(ran.backends.contains(&"m3.o".to_owned()), "the object is gone, yet {ran:?}");
    ensure!(!ran.backends.contains(&"m5.o".to_owned()), "its shard came back as it was, yet {ran:?}");
    ensure!(project.say()? == says);
    Ok(())
}
