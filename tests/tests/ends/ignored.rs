//! Signals that are ignored when distlto starts, by `nohup` or since a shell has put a job into the background, are ignored by it
//! and by the tools that it starts.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use distlto_tests::project::Project;
use distlto_tests::run::succeed;
use distlto_tests::store;

use super::{SOURCES, wait_for};

/// A backend that says which signals it ignores, and waits until it may go on.
const PATIENT: &str = "sed -n 's/^SigIgn:[[:space:]]*//p' /proc/$$/status > tools/running\n\
                       while [ ! -e tools/go ]; do sleep 0.1; done\n";

/// A project whose link waits in its backends.
fn waiting(name: &str) -> Result<Project> {
    let project = Project::create(name, &SOURCES)?;
    project.folder.write("tools/rule", PATIENT)?;
    Ok(project)
}

/// A link of the project in a shell that ignores these signals.
fn ignoring(project: &Project, signals: &str, options: &[&str]) -> Result<Command> {
    let link = project.link_with(options)?;
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("trap '' {signals}; exec \"$0\" \"$@\"")]);
    shell.arg(link.get_program()).args(link.get_args()).current_dir(&project.folder.path);
    shell.stdin(Stdio::null()).stdout(Stdio::null());
    store::give(&mut shell);
    Ok(shell)
}

#[test]
fn what_was_ignored_stays_ignored() -> Result<()> {
    for (name, signals, options) in [
        ("nohup", &[("HUP", 1)][..], &["-j1"][..]),
        ("background", &[("INT", 2)], &["-j1"]),
        ("daemon", &[("HUP", 1), ("INT", 2), ("TERM", 15)], &["-j1", "--plain-shards"]),
    ] {
        let project = waiting(&format!("ignored-{name}"))?;
        let names: Vec<_> = signals.iter().map(|(name, _)| *name).collect();
        let told = project.path("told");
        let mut link =
            ignoring(&project, &names.join(" "), options)?.stderr(fs::File::create(&told)?).spawn()?;
        let mask = wait_for(&project.path("tools/running"))?;
        let mask = u64::from_str_radix(&mask, 16).context("a mask of signals")?;
        for (signal, number) in signals {
            ensure!(mask & 1 << (number - 1) != 0, "{name}: the compiler does not ignore {signal}: {mask:x}");
            succeed(Command::new("kill").args([&format!("-{signal}"), &link.id().to_string()]))?;
        }
        project.folder.write("tools/go", "")?;
        let status = link.wait()?;
        ensure!(status.success(), "{name}: {status}:\n{}", fs::read_to_string(&told)?);
        ensure!(project.say()? == "2\n", "{name}: another program");
    }
    Ok(())
}

/// One that is not ignored beside one that is.
#[test]
fn what_was_not_ignored_ends_the_link() -> Result<()> {
    let project = waiting("ignored-other")?;
    let mut link = ignoring(&project, "HUP", &[])?.stderr(Stdio::null()).spawn()?;
    wait_for(&project.path("tools/running"))?;
    for signal in ["-HUP", "-INT"] {
        succeed(Command::new("kill").args([signal, &link.id().to_string()]))?;
    }
    let status = link.wait()?;
    ensure!(status.code() == Some(130), "{status}");
    ensure!(project.temporaries()?.is_empty(), "left: {:?}", project.temporaries()?);
    Ok(())
}

/// The one exception, since nobody can wait for a child then.
#[test]
fn an_ignored_end_of_children_is_not_passed_on() -> Result<()> {
    let project = waiting("ignored-children")?;
    project.folder.write("tools/go", "")?;
    succeed(ignoring(&project, "CHLD HUP", &[])?.stderr(Stdio::piped()))?;
    ensure!(project.say()? == "2\n");
    let mask = fs::read_to_string(project.path("tools/running"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).context("a mask of signals")?;
    ensure!(mask & 1 << 16 == 0 && mask & 1 != 0, "the compiler ignores {mask:x}");
    Ok(())
}
