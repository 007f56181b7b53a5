//! Saved jobs: equal for equal links, and their objects, compiled again at another place, are those of the link.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::run::{fail, succeed};
use distlto_tests::toolchain::helper;
use serde_json::Value;

use super::small::{Small, utf8};

/// Every file below a directory with its content.
fn files(directory: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory_) = waiting.pop() {
        for entry in fs::read_dir(directory_)? {
            let path = entry?.path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                let name = path.strip_prefix(directory)?.to_string_lossy().into_owned();
                found.insert(name, fs::read(&path)?);
            }
        }
    }
    Ok(found)
}

/// A link that keeps the objects of a serial run in `kept` and saves its job.
fn link_and_save(small: &Small, save: &str) -> Result<Command> {
    let distributor = utf8(distlto::distributor()?)?;
    let options = format!("{},--then,{distributor},--save-job,{save}", utf8(&small.path("kept"))?);
    small.link_by(&helper("distlto-test-distributor")?, &[&options])
}

/// Moves a saved job, runs it there by its script, and compares each object with the one that was kept.
fn replays(small: &Small, saved: &str, jobs: usize) -> Result<()> {
    let place = small.path("moved/elsewhere");
    fs::create_dir_all(place.parent().context("a parent")?)?;
    fs::rename(small.path(saved), &place)?;
    // Nothing of the link may be looked at again.
    for name in ["main.o", "a.o", "b.o", "liba.a"] {
        fs::remove_file(small.path(name))?;
    }
    let mut script = Command::new(place.join("replay.sh"));
    script.env("DISTLTO_DISTRIBUTE", distlto::distributor()?).current_dir("/");
    succeed(&mut script)?;
    let job: Value = serde_json::from_slice(&fs::read(place.join("job.json"))?)?;
    let list = job["jobs"].as_array().context("a list of jobs")?;
    ensure!(list.len() == jobs, "{} jobs are saved", list.len());
    for (number, job) in list.iter().enumerate() {
        let object = place.join(job["outputs"][0].as_str().context("an object")?);
        let kept = small.path("kept").join(format!("{number}.o"));
        ensure!(fs::read(&object)? == fs::read(&kept)?, "{} is another object", object.display());
    }
    Ok(())
}

#[test]
fn equal_links_save_the_same_and_it_can_be_replayed_elsewhere() -> Result<()> {
    let small = Small::create("saved")?;
    for name in ["first", "second"] {
        succeed(&mut link_and_save(&small, name)?)?;
    }
    let (first, second) = (files(&small.path("first"))?, files(&small.path("second"))?);
    ensure!(first.keys().any(|name| name.starts_with("out/liba.a(a.o at ")), "{:?}", first.keys());
    ensure!(first.len() == 9, "{:?}", first.keys());
    ensure!(first == second, "two equal links save different jobs");
    // The link's own temporaries, and one more link into the same directory.
    succeed(&mut link_and_save(&small, "second")?)?;
    ensure!(files(&small.path("second"))? == first, "saving again changes what is saved");
    ensure!(small.beside_output()? == ["program"], "{:?}", small.beside_output()?);
    replays(&small, "first", 3)
}

/// Absolute paths and paths above the working directory are inside of what is saved.
#[test]
fn files_from_elsewhere_are_saved_too() -> Result<()> {
    let small = Small::create("saved-elsewhere")?;
    fs::create_dir(small.path("sub"))?;
    let distributor = utf8(distlto::distributor()?)?;
    let options = format!("{},--then,{distributor},--save-job,../%o.saved", utf8(&small.path("kept"))?);
    let helper = helper("distlto-test-distributor")?;
    let line = "%clang -O2 -flto=thin -fuse-ld=lld -g ../main.o %work/a.o ../sub/../b.o -o %work/out/program";
    let mut link = small.folder.command(line, "")?;
    link.arg(format!("-fthinlto-distributor={}", utf8(&helper)?));
    link.arg(format!("-Xthinlto-distributor={options}"));
    succeed(link.current_dir(small.path("sub")))?;
    ensure!(small.say()? == "11\n");
    let saved = files(&small.path("program.saved"))?;
    let text = String::from_utf8_lossy(&saved["job.json"]).into_owned();
    let path = utf8(&small.folder.path)?;
    let absolute = [format!("\"{path}"), format!("={path}"), "\"../".to_owned()];
    ensure!(!absolute.iter().any(|start| text.contains(start)), "a path leads out of the directory:\n{text}");
    fs::remove_dir_all(small.path("sub"))?;
    replays(&small, "program.saved", 3)
}

/// A failure is repeated where the job is saved, since lld removes the files of the link.
#[test]
fn a_failure_can_be_repeated_where_it_is_saved() -> Result<()> {
    let small = Small::create("saved-failure")?;
    small.compiler("case \"$module\" in *main.o) echo 'it fails' >&2; exit 1 ;; esac")?;
    let (_, said) = fail(&mut small.link_with_script(&["--save-job,saved"])?)?;
    ensure!(said.contains("replay.sh"), "{said}");
    let line = said.lines().find_map(|line| line.trim_start().strip_prefix("repeat: "));
    let (code, again) = fail(Command::new("sh").args(["-c", line.context("a command")?]))?;
    ensure!(code == 1 && again == "it fails\n", "exit code {code}:\n{again}");
    Ok(())
}

#[test]
fn a_directory_of_others_is_not_replaced() -> Result<()> {
    let small = Small::create("saved-taken")?;
    small.folder.write("mine/notes", "precious")?;
    let (_, said) = fail(&mut small.link(&["--save-job,mine"])?)?;
    ensure!(said.contains("mine holds") && said.contains("%o"), "{said}");
    succeed(&mut small.link(&["--save-job,saved"])?)?;
    let (_, said) = fail(small.link(&["--save-job,saved"])?.args(["-o", "out/other"]))?;
    ensure!(said.contains("out/program") && said.contains("out/other"), "{said}");
    ensure!(fs::read_to_string(small.path("mine/notes"))? == "precious");
    Ok(())
}
