//! How a link ends when it is not alone, is stopped, or cannot write: the earlier program stays, nothing is left running
//! or lying about, and the exit code is the documented one.

mod ignored;
mod limits;
mod messages;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use distlto_executor::execute::process::GRACE;
use distlto_tests::distlto;
use distlto_tests::project::{Misbehaviour, Project};
use distlto_tests::run::{capture, fail, succeed, told};
use distlto_tests::terminal;

const SOURCES: [(&str, &str); 2] = [
    (
        "main.c",
        "#include <stdio.h>\nint part(int);\nint main(void) { printf(\"%d\\n\", part(1)); return 0; }\n",
    ),
    ("part.c", "__attribute__((noinline)) int part(int x) { return x + 1; }\n"),
];

/// A backend that says it runs, writes a part of its object, and stays for a minute.
const SLOW: Misbehaviour =
    Misbehaviour { name: "slow", script: "echo half > \"$out\"; echo $$ > tools/running; exec sleep 60" };

fn wait_for(path: &Path) -> Result<String> {
    let start = Instant::now();
    loop {
        if let Ok(text) = fs::read_to_string(path)
            && text.ends_with('\n')
        {
            return Ok(text.trim().to_owned());
        }
        ensure!(start.elapsed() < Duration::from_secs(300), "{} never came", path.display());
        sleep(Duration::from_millis(10));
    }
}

/// A project whose link hangs in the backend of `part.o`, with an old program in place.
fn hanging(name: &str) -> Result<Project> {
    let project = Project::create(name, &SOURCES)?;
    succeed(&mut project.link()?)?;
    project.misbehave("part.o", SLOW)?;
    project.edit("part.c", "x + 1", "x + 2")?;
    Ok(project)
}

fn signalled(name: &str, signal: &str, expected: Option<i32>) -> Result<()> {
    let project = hanging(name)?;
    let told = project.path("told");
    let mut link = project.link()?.stdout(Stdio::null()).stderr(fs::File::create(&told)?).spawn()?;
    let backend = wait_for(&project.path("tools/running"))?;
    succeed(Command::new("kill").args([signal, &link.id().to_string()]))?;
    let status = link.wait()?;
    let said = fs::read_to_string(&told)?;
    ensure!(expected.is_none() || said.starts_with("distlto: 0 done, 1 interrupted in "), "{name}: {said}");
    ensure!(status.code() == expected, "{name}: ended with {status}, expected exit code {expected:?}");
    let start = Instant::now();
    while Path::new("/proc").join(&backend).exists() {
        ensure!(start.elapsed() < Duration::from_secs(30), "{name}: the backend runs on");
        sleep(Duration::from_millis(10));
    }
    ensure!(project.say()? == "2\n", "{name}: the old program is not in place");
    if expected.is_some() {
        ensure!(project.temporaries()?.is_empty(), "{name}: left: {:?}", project.temporaries()?);
    }
    project.behave()?;
    project.relink()?;
    ensure!(project.say()? == "3\n", "{name}: the next link is wrong");
    ensure!(project.temporaries()?.is_empty(), "{name}: left by the next link: {:?}", project.temporaries()?);
    Ok(())
}

#[test]
fn an_interrupted_link_leaves_nothing_behind() -> Result<()> {
    signalled("interrupted", "-INT", Some(130))
}

#[test]
fn a_terminated_link_leaves_nothing_behind() -> Result<()> {
    signalled("terminated", "-TERM", Some(143))
}

#[test]
fn a_killed_link_takes_its_backends_along_and_is_swept_by_the_next() -> Result<()> {
    signalled("killed", "-KILL", None)
}

/// As [`SLOW`], with a child of its own, and both ignore what asks them to end.
const STUBBORN: Misbehaviour = Misbehaviour {
    name: "stubborn",
    script: "trap '' TERM INT HUP; echo half > \"$out\"; sleep 60 &\necho $$ $! > tools/running; wait",
};

/// Whether a process runs. One that nobody has waited for does not.
fn runs(process: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(process).join("stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[test]
fn a_second_ctrl_c_ends_at_once_what_ignores_the_first() -> Result<()> {
    let project = hanging("ctrl-c")?;
    project.misbehave("part.o", STUBBORN)?;
    let (mut keys, theirs) = terminal::open(80)?;
    let link = project.link()?;
    // The terminal's Ctrl-C reaches the processes in front of it, which are those of a session that it is the terminal of.
    let mut session = Command::new("setsid");
    session.arg("--ctty").arg(link.get_program()).args(link.get_args()).current_dir(&project.folder.path);
    session.stdin(theirs.try_clone()?).stdout(Stdio::null()).stderr(theirs);
    distlto_tests::store::give(&mut session);
    let mut link = session.spawn().context("setsid of util-linux is needed")?;
    let running = wait_for(&project.path("tools/running"))?;
    let (backend, child) = running.split_once(' ').context("two processes")?;

    let first = Instant::now();
    keys.write_all(b"\x03")?;
    sleep(Duration::from_millis(300));
    ensure!(link.try_wait()?.is_none() && runs(backend) && runs(child), "the first Ctrl-C does not ask");
    keys.write_all(b"\x03")?;
    let status = link.wait()?;
    ensure!(first.elapsed() < GRACE, "ended after {:?}, when the first had killed too", first.elapsed());
    ensure!(status.code() == Some(130), "ended with {status}");
    // A killed process that is not our child ends a moment after the signal.
    sleep(Duration::from_millis(100));
    ensure!(!runs(backend) && !runs(child), "one of the processes {running} runs on");
    ensure!(project.say()? == "2\n", "the old program is not in place");
    ensure!(project.temporaries()?.is_empty(), "left: {:?}", project.temporaries()?);
    project.behave()?;
    project.relink()?;
    ensure!(project.say()? == "3\n", "the next link is wrong");
    Ok(())
}

/// The driver removes the program of a linker that has failed. One that ends before its greeting is unknown to distlto.
#[test]
fn a_linker_that_nobody_knows_leaves_the_earlier_program() -> Result<()> {
    let project = Project::create("unknown-linker", &SOURCES)?;
    succeed(&mut project.link()?)?;
    project.edit("part.c", "x + 1", "x + 2")?;
    let temporaries = project.path("temporaries");
    fs::create_dir(&temporaries)?;
    for (end, more) in [("kill -KILL $$", &[][..]), ("kill -INT $$", &["more.c"]), ("exit 1", &["more.c"])] {
        project.folder.write("tools/ld.lld", format!("#!/bin/sh\n{end}\n"))?;
        project.folder.write("more.c", "int more;\n")?;
        let mut link = project.link()?;
        let output = fail(link.args(more).env("TMPDIR", &temporaries))?;
        ensure!(project.say()? == "2\n", "{end}: the old program is not in place: {output:?}");
        let left = fs::read_dir(&temporaries)?.count();
        ensure!(left == 0, "{end}: the driver leaves {left} of its own files");
    }
    Ok(())
}

#[test]
fn a_second_link_of_one_output_is_refused_at_once() -> Result<()> {
    let project = hanging("busy")?;
    let mut first = project.link()?.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    wait_for(&project.path("tools/running"))?;
    let (code, said) = fail(&mut project.link()?)?;
    ensure!(code == 5 && said.contains("another link"), "exit code {code}:\n{said}");
    succeed(Command::new("kill").arg(first.id().to_string()))?;
    first.wait()?;
    project.behave()?;
    project.relink()?;
    ensure!(project.say()? == "3\n");
    Ok(())
}

#[test]
fn many_links_at_once_make_one_whole_program() -> Result<()> {
    let project = Project::create("race", &SOURCES)?;
    let spawn = || -> Result<_> { Ok(project.link()?.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?) };
    let links = (0..6).map(|_| spawn()).collect::<Result<Vec<_>>>()?;
    let mut won = 0;
    for link in links {
        let output = link.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => won += 1,
            Some(5) => {}
            other => anyhow::bail!("a link ended with {other:?}:\n{said}"),
        }
    }
    ensure!(won > 0, "every link found another one in its way");
    ensure!(project.say()? == "2\n");
    Ok(())
}

/// Files may not grow beyond 4 KiB, which is what a full disk looks like to a writer that does not die of it.
#[test]
fn a_full_disk_leaves_the_old_program() -> Result<()> {
    let project = Project::create("full", &SOURCES)?;
    succeed(&mut project.link()?)?;
    project.edit("part.c", "x + 1", "x + 2")?;
    let link = project.link()?;
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\""]);
    limited.arg(link.get_program()).args(link.get_args()).current_dir(&project.folder.path);
    let (code, said) = fail(&mut limited)?;
    ensure!(code != 101 && !said.contains("panicked"), "a panic:\n{said}");
    ensure!(!said.is_empty(), "nothing is said");
    ensure!(project.say()? == "2\n", "the old program is not in place");
    project.relink()?;
    ensure!(project.say()? == "3\n", "the next link is wrong");
    Ok(())
}

#[test]
fn a_directory_that_is_a_file_fails_as_the_linker_does() -> Result<()> {
    let mut project = Project::create("no-directory", &SOURCES)?;
    project.folder.write("file", "")?;
    project.output = "file/program".to_owned();
    let (found, plain) = (fail(&mut project.link()?)?, fail(&mut project.plain_link()?)?);
    ensure!(found == plain && plain.1.contains("file/program"), "{found:?}, and the linker {plain:?}");
    Ok(())
}

#[test]
fn the_linkers_own_exit_code_is_kept() -> Result<()> {
    let mut project = Project::create("linker-code", &SOURCES)?;
    project.flags.push("-Wl,--no-such-option".to_owned());
    // The compiler driver removes the program when its linker fails, so this comes first.
    let (plain, _) = fail(&mut project.plain_link()?)?;
    project.flags.clear();
    succeed(&mut project.link()?)?;
    project.flags.push("-Wl,--no-such-option".to_owned());
    let (code, said) = fail(&mut project.link()?)?;
    ensure!(
        code == plain && said.contains("--no-such-option"),
        "exit code {code}, the linker's {plain}:\n{said}"
    );
    ensure!(project.say()? == "2\n", "the old program is not in place");
    Ok(())
}

#[test]
fn a_wrong_command_line_is_exit_code_2() -> Result<()> {
    for arguments in [&["link"][..], &["link", "--no-such-option", "--", "clang"], &["no-such-command"]] {
        let (code, said) = fail(Command::new(distlto::binary()?).args(arguments))?;
        ensure!(code == 2 && said.contains("Usage"), "{arguments:?}: exit code {code}:\n{said}");
    }
    Ok(())
}

#[test]
fn a_linker_that_is_missing_is_exit_code_7() -> Result<()> {
    let (code, said) =
        fail(distlto::link()?.args(["no-such-clang", "-flto=thin", "main.o", "-o", "program"]))?;
    ensure!(code == 7 && said.contains("no-such-clang"), "exit code {code}:\n{said}");
    Ok(())
}

/// Damaged inputs: the message names the file, the old program stays, and nothing panics.
#[test]
fn damaged_inputs_are_named() -> Result<()> {
    let project = Project::create("damaged", &SOURCES)?;
    succeed(&mut project.link()?)?;
    let good = fs::read(project.path("part.o"))?;
    let half = &good[..good.len() / 2];
    for (name, bytes) in
        [("cut", half), ("magic only", &good[..4]), ("empty", &[]), ("text", b"!<arch>\nnonsense\n")]
    {
        fs::write(project.path("part.o"), bytes)?;
        let mut link = project.link()?;
        let output = capture(&mut link)?;
        let said = told(&link, &output);
        let code = output.status.code().context("died of a signal")?;
        ensure!(code != 0 && code != 101, "{name}: {said}");
        ensure!(
            String::from_utf8_lossy(&output.stderr).contains("part.o"),
            "{name}: no file is named: {said}"
        );
        ensure!(project.say()? == "2\n", "{name}: the old program is not in place");
    }
    fs::write(project.path("part.o"), good)?;
    succeed(&mut project.link()?)?;
    Ok(())
}

#[test]
fn a_missing_input_is_named() -> Result<()> {
    let project = Project::create("missing-input", &SOURCES)?;
    fs::remove_file(project.path("part.o"))?;
    let (code, said) = fail(&mut project.link()?)?;
    ensure!(said.contains("part.o"), "exit code {code}:\n{said}");
    Ok(())
}
