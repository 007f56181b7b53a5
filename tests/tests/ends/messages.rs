//! What is not read: a message that cannot be written fails nothing, and of what is asked for on standard output a closed pipe
//! wants no more and a full disk is an error.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

use anyhow::{Result, ensure};
use distlto_tests::distlto;
use distlto_tests::project::Project;
use distlto_tests::run::{capture, succeed, told};

use super::SOURCES;

/// Something that takes no bytes.
#[derive(Debug, Clone, Copy)]
enum Taker {
    ClosedPipe,
    FullDisk,
}

impl Taker {
    fn open(self) -> Result<Stdio> {
        Ok(match self {
            Self::ClosedPipe => std::io::pipe()?.1.into(),
            Self::FullDisk => File::options().write(true).open("/dev/full")?.into(),
        })
    }
}

/// Runs a command of which neither messages nor results are taken.
fn unread(command: &mut Command, taker: Taker) -> Result<Option<i32>> {
    let status = command.stdin(Stdio::null()).stdout(taker.open()?).stderr(taker.open()?).status()?;
    Ok(status.code().or_else(|| status.signal().map(|signal| 128 + signal)))
}

#[test]
fn a_link_whose_messages_cannot_be_written_goes_on() -> Result<()> {
    let project = Project::create("unread", &SOURCES)?;
    let mut expected = 2;
    for options in [&["-v"][..], &["-v", "--plain-shards"], &["--json"], &["-q"]] {
        for taker in [Taker::ClosedPipe, Taker::FullDisk] {
            project.edit("part.c", &format!("x + {}", expected - 1), &format!("x + {expected}"))?;
            expected += 1;
            let code = unread(&mut project.link_with(options)?, taker)?;
            ensure!(code == Some(0), "{options:?}, {taker:?}: exit code {code:?}");
            ensure!(project.say()? == format!("{expected}\n"), "{options:?}, {taker:?}: another program");
            // Nothing is to do then.
            let code = unread(&mut project.link_with(options)?, taker)?;
            ensure!(code == Some(0), "{options:?}, {taker:?}: exit code {code:?} of a second link");
        }
    }
    let link = project.link_with(&["-v"])?;
    project.edit("part.c", &format!("x + {}", expected - 1), "x + 1")?;
    let mut closed = Command::new("sh");
    closed.args(["-c", "exec \"$0\" \"$@\" >&- 2>&-"]).arg(link.get_program()).args(link.get_args());
    succeed(closed.current_dir(&project.folder.path))?;
    ensure!(project.say()? == "2\n");
    Ok(())
}

#[test]
fn a_failing_link_keeps_its_exit_code_though_nobody_is_told() -> Result<()> {
    let mut project = Project::create("unread-failure", &SOURCES)?;
    project.flags.push("-Wl,--no-such-option".to_owned());
    for taker in [Taker::ClosedPipe, Taker::FullDisk] {
        let plain = unread(&mut project.plain_link()?, taker)?;
        let code = unread(&mut project.link_with(&["-v"])?, taker)?;
        ensure!(code == plain, "{taker:?}: exit code {code:?}, the linker's {plain:?}");
    }
    // An error of ours.
    for taker in [Taker::ClosedPipe, Taker::FullDisk] {
        let code = unread(distlto::link()?.args(["no-such-clang", "main.o", "-o", "program"]), taker)?;
        ensure!(code == Some(7), "{taker:?}: exit code {code:?}");
    }
    Ok(())
}

#[test]
fn standard_output_that_is_asked_for_and_cannot_be_written_is_an_error() -> Result<()> {
    let project = Project::create("unread-output", &SOURCES)?;
    succeed(&mut project.link()?)?;
    let asked: [&[&str]; 6] = [
        &["--help"],
        &["link", "--help"],
        &["completions", "bash"],
        &["inspect", "program"],
        &["plan", "program.distlto", "--json", "-"],
        &["doctor"],
    ];
    for words in asked {
        let run = |stdout: Stdio| -> Result<Output> {
            let mut command = Command::new(distlto::binary()?);
            command.args(words).current_dir(&project.folder.path).stdin(Stdio::null());
            distlto_tests::store::give(&mut command);
            Ok(command.stdout(stdout).stderr(Stdio::piped()).spawn()?.wait_with_output()?)
        };
        let taken = run(Stdio::piped())?;
        let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(!taken.stdout.is_empty(), "{words:?} prints nothing: {}", said(&taken));
        let closed = run(Taker::ClosedPipe.open()?)?;
        ensure!(
            closed.status.code() == taken.status.code() && said(&closed) == said(&taken),
            "{words:?} into a closed pipe: {}:\n{}",
            closed.status,
            said(&closed)
        );
        let full = run(Taker::FullDisk.open()?)?;
        ensure!(
            full.status.code() == Some(4) && said(&full).contains("cannot write standard output"),
            "{words:?} on a full disk: {}:\n{}",
            full.status,
            said(&full)
        );
    }
    Ok(())
}

#[test]
fn a_message_about_arguments_that_cannot_be_written_is_still_exit_code_2() -> Result<()> {
    for taker in [Taker::ClosedPipe, Taker::FullDisk] {
        let mut command = Command::new(distlto::binary()?);
        let code = unread(command.arg("no-such-command"), taker)?;
        ensure!(code == Some(2), "{taker:?}: exit code {code:?}");
    }
    let mut command = Command::new(distlto::binary()?);
    let output = capture(command.arg("--version"))?;
    ensure!(output.status.success(), "{}", told(&command, &output));
    Ok(())
}
