//! The state of many links in one directory: outputs of one name have folders of their own, nothing lies beside an output,
//! links at once do not mix, and an output that is moved or removed is linked again without a backend.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use distlto_tests::distlto;
use distlto_tests::project::{Project, Ran};
use distlto_tests::run::{capture, fail, succeed, told};

const MAIN: &str =
    "#include <stdio.h>\nint part(int);\nint main(void) { printf(\"%d\\n\", part(1)); return 0; }\n";

/// A program `program` in a folder of its own that says `number`.
fn project(name: &str, number: usize) -> Result<Project> {
    let part = format!("__attribute__((noinline)) int part(int x) {{ return x + {}; }}\n", number - 1);
    Project::create(name, &[("main.c", MAIN), ("part.c", &part)])
}

fn link(project: &Project, state: &Path, options: &[&str]) -> Result<Command> {
    let mut link = project.link_with(options)?;
    link.env("DISTLTO_STATE", state);
    Ok(link)
}

/// Links, and says what that ran.
fn relink(project: &Project, state: &Path) -> Result<Ran> {
    project.forget()?;
    succeed(&mut link(project, state, &[])?)?;
    project.ran()
}

fn names(directory: &Path) -> Result<BTreeSet<String>> {
    let names = fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    names.collect()
}

/// An empty directory for state.
fn empty(path: PathBuf) -> Result<PathBuf> {
    fs::create_dir_all(&path)?;
    fs::remove_dir_all(&path)?;
    Ok(path)
}

/// Everything of a project but what links make.
fn beside(project: &Project) -> Result<BTreeSet<String>> {
    let mut names = names(&project.folder.path)?;
    names.remove("program");
    Ok(names)
}

#[test]
fn outputs_of_one_name_share_a_directory_and_nothing_else() -> Result<()> {
    let projects =
        (1..=4).map(|number| project(&format!("elsewhere/{number}"), number)).collect::<Result<Vec<_>>>()?;
    let state = empty(projects[0].folder.path.with_file_name("elsewhere-state"))?;
    let before = projects.iter().map(beside).collect::<Result<Vec<_>>>()?;
    // All at once, into a directory that none of them finds there.
    let links = projects
        .iter()
        .map(|project| Ok(link(project, &state, &[])?.stdout(Stdio::null()).spawn()?))
        .collect::<Result<Vec<_>>>()?;
    for (number, mut link) in links.into_iter().enumerate() {
        ensure!(link.wait()?.success(), "link {number} failed");
    }
    let folders = names(&state)?;
    ensure!(folders.len() == projects.len(), "{folders:?}");
    ensure!(folders.iter().all(|name| name.starts_with("program-") && name.len() == 20), "{folders:?}");
    for (number, project) in projects.iter().enumerate() {
        ensure!(project.say()? == format!("{}\n", number + 1), "program {number} is another's");
        ensure!(relink(project, &state)? == Ran::default(), "program {number} is linked twice");
        ensure!(beside(project)? == before[number], "something lies beside program {number}");
    }
    projects[2].edit("part.c", "x + 2", "x + 12")?;
    let ran = relink(&projects[2], &state)?;
    ensure!(ran == Ran { backends: vec!["part.o".to_owned()], links: 1 }, "{ran:?}");
    ensure!(projects[2].say()? == "13\n" && projects[3].say()? == "4\n", "the wrong program changed");
    ensure!(names(&state)? == folders, "folders came or went");
    Ok(())
}

/// As libtool and install rules do, and as `make clean` does.
#[test]
fn an_output_that_is_gone_is_linked_again() -> Result<()> {
    let project = project("elsewhere-moved", 2)?;
    let state = empty(project.path("state"))?;
    relink(&project, &state)?;
    fs::rename(project.path("program"), project.path("moved"))?;
    let ran = relink(&project, &state)?;
    ensure!(ran == Ran { backends: Vec::new(), links: 1 }, "after a move: {ran:?}");
    fs::remove_file(project.path("program"))?;
    let ran = relink(&project, &state)?;
    ensure!(ran == Ran { backends: Vec::new(), links: 1 }, "after a removal: {ran:?}");
    ensure!(project.say()? == "2\n", "the program is wrong");
    Ok(())
}

/// The plan of an output is found by the name of the output.
#[test]
fn plans_are_found_where_the_state_is() -> Result<()> {
    let project = project("elsewhere-plan", 2)?;
    let state = empty(project.path("state"))?;
    relink(&project, &state)?;
    let plan = |words: &[&str]| {
        let mut command = Command::new(distlto::binary()?);
        command.arg("plan").args(words).arg("program.distlto").current_dir(&project.folder.path);
        Ok::<_, anyhow::Error>(command)
    };
    for mut command in [plan(&["--state", "state"])?, {
        let mut command = plan(&[])?;
        command.env("DISTLTO_STATE", &state);
        command
    }] {
        let output = succeed(&mut command)?;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(said.contains("modules        2"), "{}", told(&command, &output));
    }
    let (code, said) = fail(&mut plan(&[])?)?;
    ensure!(code == 3 && said.contains("program.distlto does not exist"), "{said}");
    Ok(())
}

/// In both ways: where the state lies on another file system, a program cannot be renamed into place.
#[test]
fn state_may_lie_on_another_file_system() -> Result<()> {
    let project = project("elsewhere-far", 2)?;
    let memory = tempfile::tempdir_in("/dev/shm")?;
    for options in [&[][..], &["--plain-shards"]] {
        let before = beside(&project)?;
        let mut command = link(&project, memory.path(), options)?;
        let output = capture(&mut command)?;
        ensure!(output.status.success(), "{}", told(&command, &output));
        ensure!(project.say()? == "2\n", "the program is wrong");
        ensure!(beside(&project)? == before, "something lies beside the program");
        ensure!(project.temporaries()?.is_empty(), "left: {:?}", project.temporaries()?);
        fs::remove_file(project.path("program"))?;
    }
    Ok(())
}

/// Nothing can be linked there, and the linker itself says so, for clang and for lld alone.
#[test]
fn an_output_in_no_directory_fails_as_without_distlto() -> Result<()> {
    let mut project = project("elsewhere-nowhere", 2)?;
    project.output = "nowhere/x".to_owned();
    let expected = fail(&mut project.plain_link()?)?;
    ensure!(expected.1.contains("nowhere/x"), "{}", expected.1);
    let state = project.path("state");
    let before = names(&project.folder.path)?;
    for options in [&[][..], &["--plain-shards"], &["--state", "state"]] {
        let found = fail(&mut project.link_with(options)?)?;
        ensure!(found == expected, "{options:?}: {found:?}, and without distlto {expected:?}");
        ensure!(names(&project.folder.path)? == before, "{options:?}: something was made");
    }
    ensure!(!state.exists(), "state of nothing");
    Ok(())
}
