//! Something else in the place of a file that distlto keeps: a named pipe or a directory. It is never waited for, and
//! either put right or left alone, with a warning; the link goes on. Which files there are is read from the state of a real link.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use distlto_tests::distlto;
use distlto_tests::project::Project;
use distlto_tests::run::{succeed, told};
use distlto_tests::store;

const SOURCES: [(&str, &str); 2] = [
    (
        "main.c",
        "#include <stdio.h>\nint part(int);\nint main(void) { printf(\"%d\\n\", part(1)); return 0; }\n",
    ),
    ("part.c", "__attribute__((noinline)) int part(int x) { return x + 1; }\n"),
];

/// Runs a command that may hang if distlto is wrong.
fn bounded(command: &mut Command) -> Result<Output> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let start = Instant::now();
    while child.try_wait()?.is_none() {
        if start.elapsed() > Duration::from_secs(120) {
            child.kill()?;
            bail!("{command:?} waits for ever");
        }
        sleep(Duration::from_millis(5));
    }
    child.wait_with_output().context("output")
}

fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        match fs::symlink_metadata(&path)?.file_type() {
            kind if kind.is_dir() => found.extend(files(&path)?),
            kind if kind.is_file() => found.push(path),
            _ => {}
        }
    }
    found.sort();
    Ok(found)
}

fn pipe(path: &Path) -> Result<()> {
    succeed(Command::new("mkfifo").arg(path)).map(drop)
}

fn directory(path: &Path) -> Result<()> {
    // Not empty, so that no rename replaces it.
    fs::create_dir(path)?;
    Ok(fs::write(path.join("kept"), "by somebody")?)
}

/// Puts `what` in the place of each file in turn; the command has to end by itself, and well.
fn replaced(
    project: &Project,
    below: &Path,
    command: &dyn Fn() -> Result<Command>,
    what: fn(&Path) -> Result<()>,
) -> Result<()> {
    let all = files(below)?;
    ensure!(!all.is_empty(), "nothing below {}", below.display());
    let safe = project.path("safe");
    for path in all {
        // The run before may have removed what it does not need.
        if !path.is_file() {
            continue;
        }
        fs::rename(&path, &safe)?;
        what(&path)?;
        // So that there is something to do.
        fs::remove_file(project.path("program"))?;
        let mut command = command()?;
        let output = bounded(&mut command)?;
        let shown = path.strip_prefix(&project.folder.path)?.display().to_string();
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success() && !said.contains("error:"), "{shown}: {}", told(&command, &output));
        let found = fs::symlink_metadata(&path);
        let odd = found.is_ok_and(|found| found.is_dir() || found.file_type().is_fifo());
        if odd {
            succeed(Command::new("rm").arg("-r").arg(&path))?;
            fs::rename(&safe, &path)?;
        } else {
            fs::remove_file(&safe)?;
        }
        ensure!(project.say()? == "2\n", "{shown}: the program is wrong");
    }
    succeed(&mut command()?)?;
    Ok(())
}

/// In links with a compiler of their own, and in those whose linker compiles and opens kept objects by itself.
fn in_the_store(name: &str, what: fn(&Path) -> Result<()>) -> Result<()> {
    let project = Project::create(name, &SOURCES)?;
    let by_linker = || {
        let mut command = distlto::link()?;
        command.args(project.linker_words()?).current_dir(&project.folder.path);
        store::give(&mut command);
        Ok(command)
    };
    let by_compiler = || project.link();
    for link in [&by_compiler as &dyn Fn() -> Result<Command>, &by_linker] {
        succeed(&mut link()?)?;
        replaced(&project, &store::of(&project.folder.path)?, link, what)?;
    }
    Ok(())
}

#[test]
fn a_pipe_in_the_place_of_a_file_of_the_store() -> Result<()> {
    in_the_store("odd-state/pipe", pipe)
}

#[test]
fn a_directory_in_the_place_of_a_file_of_the_store() -> Result<()> {
    in_the_store("odd-state/directory", directory)
}

/// The cache puts right what it finds, and says so.
#[test]
fn a_pipe_in_the_place_of_a_file_of_the_cache() -> Result<()> {
    let project = Project::create("odd-state/cache", &SOURCES)?;
    let cache = project.path("cache");
    let link = || {
        // Without state everything is asked of the cache.
        let record = store::record_in(&cache, &project.path("program"));
        if record.exists() {
            fs::remove_dir_all(record)?;
        }
        project.link_with(&["--cache", "cache"])
    };
    succeed(&mut link()?)?;
    replaced(&project, &cache, &link, pipe)?;
    ensure!(
        files(&cache)?.iter().all(|path| fs::symlink_metadata(path).is_ok_and(|found| found.is_file())),
        "the cache keeps a pipe"
    );
    Ok(())
}

/// No rename replaces a directory that holds something, and nothing of somebody's is removed.
#[test]
fn a_directory_in_the_place_of_a_file_of_the_cache() -> Result<()> {
    let project = Project::create("odd-state/cache-directory", &SOURCES)?;
    let cache = project.path("cache");
    let link = || project.link_with(&["--cache", "cache"]);
    succeed(&mut link()?)?;
    replaced(&project, &cache, &link, directory)
}

#[test]
fn a_pipe_where_history_is_to_be_kept() -> Result<()> {
    let project = Project::create("odd-state/history", &SOURCES)?;
    pipe(&project.path("history"))?;
    let mut link = project.link_with(&["--history", "history"])?;
    let output = bounded(&mut link)?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}", told(&link, &output));
    ensure!(said.contains("history: it is not a regular file but a named pipe"), "{said}");
    ensure!(fs::symlink_metadata(project.path("history"))?.file_type().is_fifo(), "the pipe was replaced");
    Ok(())
}

/// As after a crash: the object has its size, its time and its header, and zeros for the rest.
#[test]
fn an_object_of_zeros_is_compiled_again() -> Result<()> {
    let project = Project::create("odd-state/zeros", &SOURCES)?;
    let compiled = project.relink()?;
    for (_, bytes) in project.native_objects()? {
        let path = project.stored(&bytes)?;
        let modified = fs::metadata(&path)?.modified()?;
        let damaged: Vec<u8> =
            bytes.iter().enumerate().map(|(at, &byte)| if at < 64 { byte } else { 0 }).collect();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644))?;
        fs::write(&path, damaged)?;
        fs::File::options().write(true).open(&path)?.set_modified(modified)?;
    }
    fs::remove_file(project.path("program"))?;
    let again = project.relink()?;
    ensure!(again == compiled, "{again:?} ran, and at first {compiled:?}");
    ensure!(project.say()? == "2\n", "the program is wrong");
    Ok(())
}
