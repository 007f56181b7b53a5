//! How a link ends that is killed: the distributor and its compilers end with lld, and nothing is left lying about.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::run::succeed;

use super::small::{Small, utf8};

/// A backend that says that it runs, writes a part of its object, and stays for a minute.
const SLOW: &str = "echo half > \"$out\"; echo \"$PPID $$\" > running; exec sleep 60";

/// What a link consists of, by process number.
struct Running {
    driver: Child,
    linker: String,
    distributor: String,
    compiler: String,
}

impl Running {
    fn start(small: &Small, mut link: Command) -> Result<Self> {
        let driver = link.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let text = small.wait_for("running")?;
        let (distributor, compiler) = text.trim().split_once(' ').context("two process numbers")?;
        let name = small.beside_output()?.into_iter().find(|name| name.ends_with(".dist-file.json"));
        let linker = name.and_then(|name| Some(name.split('.').rev().nth(2)?.to_owned()));
        let linker = linker.context("the job file's name holds the linker's process number")?;
        Ok(Self { driver, linker, distributor: distributor.to_owned(), compiler: compiler.to_owned() })
    }

    /// Waits until everything has ended, which is long before it would by itself.
    fn all_end(&mut self, others: &[&str]) -> Result<()> {
        let start = Instant::now();
        let processes: Vec<&str> = [&*self.linker, &*self.distributor, &*self.compiler]
            .into_iter()
            .chain(others.iter().copied())
            .collect();
        while let Some(left) = processes.iter().find(|process| is_alive(process)) {
            ensure!(start.elapsed() < Duration::from_secs(30), "process {left} of {processes:?} is left");
            sleep(Duration::from_millis(5));
        }
        ensure!(!self.driver.wait()?.success(), "a link that was killed is no success");
        Ok(())
    }
}

fn is_alive(process: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(process).join("stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
}

fn kill(signal: &str, process: &str) -> Result<()> {
    succeed(Command::new("kill").args([signal, process])).map(drop)
}

/// The next link works, and nothing of the killed one is left beside its program.
fn the_next_link_is_clean(small: &Small) -> Result<()> {
    succeed(&mut small.link(&[])?)?;
    ensure!(small.say()? == "11\n", "the next link is wrong");
    let left = small.beside_output()?;
    ensure!(left == ["program"], "left by the next link: {left:?}");
    Ok(())
}

fn slow(name: &str) -> Result<Small> {
    let small = Small::create(name)?;
    small.compiler(SLOW)?;
    Ok(small)
}

fn with_its_linker(name: &str, signal: &str) -> Result<()> {
    let small = slow(name)?;
    let mut running = Running::start(&small, small.link_with_script(&["-j,1"])?)?;
    kill(signal, &running.linker)?;
    running.all_end(&[])?;
    let left = small.beside_output()?;
    ensure!(left.is_empty(), "left by the killed link: {left:?}");
    the_next_link_is_clean(&small)
}

#[test]
fn a_distributor_ends_with_its_terminated_linker() -> Result<()> {
    with_its_linker("terminated", "-TERM")
}

#[test]
fn a_distributor_ends_with_its_killed_linker_and_cleans_up_after_it() -> Result<()> {
    with_its_linker("killed", "-KILL")
}

#[test]
fn a_distributor_behind_a_script_ends_with_the_linker() -> Result<()> {
    let small = slow("behind-script")?;
    let distributor = utf8(distlto::distributor()?)?;
    small.script("wrapper", &format!("echo $$ > wrapper.pid\n'{distributor}' \"$@\"\n"))?;
    let mut link = small.link_by(&small.path("wrapper"), &["-j,1"])?;
    link.arg(format!("-Wl,--thinlto-remote-compiler={}", utf8(&small.path("compiler"))?));
    let mut running = Running::start(&small, link)?;
    let wrapper = small.wait_for("wrapper.pid")?;
    kill("-KILL", &running.linker)?;
    running.all_end(&[wrapper.trim()])?;
    the_next_link_is_clean(&small)
}

/// What a killed distributor and a killed linker leave together goes with the next link; what users have beside the
/// program stays, whatever it is called.
#[test]
fn what_both_leave_is_swept_by_the_next_link() -> Result<()> {
    let small = slow("both-killed")?;
    let mut running = Running::start(&small, small.link_with_script(&["-j,1"])?)?;
    kill("-STOP", &running.linker)?;
    kill("-KILL", &running.distributor)?;
    kill("-KILL", &running.linker)?;
    running.all_end(&[])?;
    let left = small.beside_output()?;
    ensure!(left.len() > 4, "lld leaves its temporaries when it is killed, but here are {left:?}");
    let users = ["main.1.4.native.o", "liba.a(a.o at 8).2.1A.o", "a.o", ".distlto-tmp-mine"];
    for name in users {
        small.folder.write(&format!("out/{name}"), "")?;
    }
    succeed(&mut small.link(&[])?)?;
    let mut expected: Vec<String> = users.iter().map(|&name| name.to_owned()).collect();
    expected.push("program".to_owned());
    expected.sort();
    let found = small.beside_output()?;
    ensure!(found == expected, "beside the program are {found:?}");
    Ok(())
}

#[test]
fn a_terminated_distributor_leaves_its_linker_in_charge() -> Result<()> {
    let small = slow("distributor-terminated")?;
    let mut running = Running::start(&small, small.link_with_script(&["-j,1"])?)?;
    kill("-TERM", &running.distributor)?;
    running.all_end(&[])?;
    let left = small.beside_output()?;
    ensure!(left.is_empty(), "left by the link: {left:?}");
    the_next_link_is_clean(&small)
}

/// A compiler that does not end when it is told to is killed.
#[test]
fn a_stubborn_compiler_ends_too() -> Result<()> {
    let small = Small::create("stubborn")?;
    small.compiler("trap '' TERM; echo \"$PPID $$\" > running; while :; do sleep 0.1; done")?;
    let mut running = Running::start(&small, small.link_with_script(&["-j,1"])?)?;
    kill("-TERM", &running.linker)?;
    running.all_end(&[])?;
    the_next_link_is_clean(&small)
}

/// Two distributors of one job file at once, and one that a person starts: all write the same whole objects.
#[test]
fn two_runs_of_one_job_file_make_the_same() -> Result<()> {
    let small = Small::create("twice-at-once")?;
    let distributor = utf8(distlto::distributor()?)?;
    small.script(
        "wrapper",
        &format!("'{distributor}' \"$@\" & first=$!\n'{distributor}' \"$@\" || exit\nwait $first\n"),
    )?;
    succeed(&mut small.link_by(&small.path("wrapper"), &[])?)?;
    ensure!(small.say()? == "11\n");
    ensure!(small.beside_output()? == ["program"]);
    Ok(())
}
