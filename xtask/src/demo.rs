//! `cargo xtask demo`: libgit2's program built by CMake with distlto as the linker launcher, run, relinked and edited.
//!
//! Does what a user would do and shows the commands. Counts come from the events that links print.

use std::fs;
use std::io::{IsTerminal, stdout};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::available_parallelism;
use std::time::{Instant, SystemTime};

use anyhow::{Result, ensure};

use crate::linked::{link, objects, with_store};
use crate::project::Edit;
use crate::projects;
use crate::shell::{self, find, output, quietly, run};
use crate::{setup, shell::shown};

const GREETING: &str = "hello from a distributed ThinLTO link\n";

/// Builds, runs, relinks, edits and relinks.
pub fn demo() -> Result<()> {
    setup::programs()?;
    let distlto = shell::distlto()?;
    let dir = shell::target().join("demo");
    let program = projects::libgit2(&dir)?;
    program.restore()?;
    shell::remove(&program.build)?;
    // A store of its own: this is to be a first link.
    let cache = dir.join("cache");
    shell::remove(&cache)?;

    heading("A real C program, configured as usual; one variable makes its link distributed");
    program.configure(&[format!("-DCMAKE_C_LINKER_LAUNCHER={};link;--", distlto.display())])?;
    let mut ninja = Command::new("ninja");
    ninja.arg("-C").arg(&program.build);
    with_store(&mut ninja, &cache);
    if !stdout().is_terminal() {
        // Where ninja cannot draw its line again, that would be hundreds of lines.
        println!("compiling some 240 files, and linking them");
        ninja.arg("--quiet");
    }
    run(&mut ninja)?;

    heading("It runs");
    use_program(&program.build.join("git2"), &dir.join("repository"))?;

    let words = program.link_words()?;
    let linker = words.iter().position(|word| word.ends_with("clang-22")).unwrap_or(0);
    let link = |options: &[&str]| {
        let mut command = Command::new(&distlto);
        command.arg("link").args(options).arg("--").args(&words[linker..]).current_dir(&program.build);
        with_store(&mut command, &cache);
        command
    };
    heading("The plan of that link");
    let objects = objects(&cache)?;
    let shown_command = shown(&link(&[]));
    let short: String = shown_command.chars().take(100).collect();
    println!("$ {short} ...");
    summary(&distlto, &program.build, &cache)?;
    let jobs = available_parallelism().map_or(1, usize::from);
    println!(
        "backends run: {} of {0}, {jobs} at a time; {:.1} s with both links",
        objects.len(),
        program.link_seconds()?
    );

    heading("Linked again with nothing changed");
    relink(&mut link(&["--json"]), &program.build, objects.len())?;

    heading("Linked again after an edit of one function's body");
    let variant =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |time| time.subsec_nanos());
    println!("edited: {}", program.edit(Edit::Leaf, variant | 1)?);
    program.compile()?;
    let backends = relink(&mut link(&["--json"]), &program.build, objects.len())?;
    ensure!(backends < objects.len(), "an edit of one function ran every backend again");
    use_program(&program.build.join("git2"), &dir.join("repository"))?;
    Ok(())
}

fn heading(text: &str) {
    println!("\n== {text}");
}

/// Stores and reads an object with the program and checks its name against git's, where git is installed.
fn use_program(git2: &Path, repository: &Path) -> Result<()> {
    shell::remove(repository)?;
    quietly(Command::new(git2).args(["init", "--quiet", "--bare"]).arg(repository).stdout(Stdio::null()))?;
    let text = repository.join("greeting");
    fs::write(&text, GREETING)?;
    let name = output(Command::new(git2).args(["hash-object", "-w", "greeting"]).current_dir(repository))?;
    let name = name.trim();
    let read = output(Command::new(git2).args(["cat-file", "-p", name]).current_dir(repository))?;
    println!("$ git2 hash-object -w greeting\n{name}\n$ git2 cat-file -p {name}\n{}", read.trim_end());
    ensure!(read == GREETING, "git2 stored something else");
    if find("git").is_some() {
        let expected = output(Command::new("git").arg("hash-object").arg(&text))?;
        ensure!(expected.trim() == name, "git names the object {}", expected.trim());
        let read = output(Command::new("git").args(["cat-file", "-p", name]).env("GIT_DIR", repository))?;
        ensure!(read == GREETING, "git reads something else");
        println!("git agrees with both");
    }
    Ok(())
}

/// Runs a link and prints how many backends ran, and whether the program was linked.
fn relink(command: &mut Command, build: &Path, all: usize) -> Result<usize> {
    let before = fs::metadata(build.join("git2"))?.ino();
    let start = Instant::now();
    let ran = link(command)?.ran;
    let wall = start.elapsed().as_secs_f64();
    let is_same = before == fs::metadata(build.join("git2"))?.ino();
    let linked = if is_same { "the program is untouched" } else { "the program is linked anew" };
    println!("backends run: {ran} of {all}; {linked}; {wall:.3} s");
    Ok(ran)
}

/// What distlto itself says of the plan.
fn summary(distlto: &Path, build: &Path, cache: &Path) -> Result<()> {
    let mut command = Command::new(distlto);
    command.args(["plan", "--summary", "git2"]).current_dir(build);
    with_store(&mut command, cache);
    println!("$ {}", shown(&command));
    quietly(&mut command)
}
