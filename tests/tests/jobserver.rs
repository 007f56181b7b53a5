//! One make, its jobserver, distlto as one of its jobs, and compilers that run a make of their own: all of them
//! together run as many jobs as make was told.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_tests::project::Project;
use distlto_tests::run::{shown, succeed};
use distlto_tests::toolchain::system_tool;

/// Each backend compilation first does four pieces of work under a make that may use what slots there are.
const WORK: &str = "all: w1 w2 w3 w4\nw1 w2 w3 w4:\n\t@echo + >> work.log; sleep 0.05; echo - >> work.log\n";

/// The most pieces of work at once, and how many there were.
fn at_once(project: &Project) -> Result<(usize, usize)> {
    let log = fs::read_to_string(project.path("work.log")).context("no work was done")?;
    let (mut now, mut most, mut all) = (0_usize, 0, 0);
    for line in log.lines() {
        match line {
            "+" => (now, all) = (now + 1, all + 1),
            _ => now -= 1,
        }
        most = most.max(now);
    }
    Ok((most, all))
}

#[test]
fn make_distlto_and_the_compilers_share_one_makes_slots() -> Result<()> {
    let make = system_tool("make")?;
    let modules: Vec<String> = (0..5).map(|n| format!("int f{n}(int x) {{ return x + {n}; }}\n")).collect();
    let names: Vec<String> = (0..5).map(|n| format!("f{n}.c")).collect();
    let mut sources: Vec<(&str, &str)> =
        names.iter().map(String::as_str).zip(modules.iter().map(String::as_str)).collect();
    sources.push(("main.c", "int f0(int); int f1(int); int f2(int); int f3(int); int f4(int);\nint main(void) { return f0(0) + f1(-1) + f2(-2) + f3(-3) + f4(-4); }\n"));
    for (slots, jobs, expected) in [(3, "-j8", 3..=3), (3, "-j1", 2..=3), (2, "-j8", 2..=2)] {
        let project = Project::create(&format!("jobserver/{slots}{jobs}"), &sources)?;
        project.folder.write("work.mk", WORK)?;
        let make = make.display();
        project.folder.write("tools/rule", format!("{make} -s -f work.mk >&2\n"))?;
        let link = shown(&project.link_with(&[jobs])?);
        // `+` has make pass its jobserver on.
        project.folder.write("Makefile", format!("program:\n\t+{}\n", link.replace('$', "$$")))?;
        let mut build = Command::new(make.to_string());
        build.args(["-s", &format!("-j{slots}")]).current_dir(&project.folder.path);
        // The make that runs this test has slots of its own.
        for name in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CARGO_MAKEFLAGS"] {
            build.env_remove(name);
        }
        succeed(&mut build)?;
        let (most, all) = at_once(&project)?;
        ensure!(all == 24, "{all} pieces of work");
        ensure!(expected.contains(&most), "make -j{slots}, distlto {jobs}: {most} at once");
    }
    Ok(())
}
