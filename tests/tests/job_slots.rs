//! The job slots of make, Ninja and cargo: backends of all links of a build, and its other jobs, are together as many as
//! it was told.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_record::report::Origin;
use distlto_record::run::{RunRecord, list, read};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::project::Project;
use distlto_tests::run::{shown, succeed};
use distlto_tests::store;
use distlto_tests::toolchain::{Toolchain, builder, system_tool};

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
        succeed(without_slots(&mut build))?;
        let (most, all) = at_once(&project)?;
        ensure!(all == 24, "{all} pieces of work");
        ensure!(expected.contains(&most), "make -j{slots}, distlto {jobs}: {most} at once");
    }
    Ok(())
}

/// What runs this test has slots of its own.
pub fn without_slots(build: &mut Command) -> &mut Command {
    for name in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CARGO_MAKEFLAGS"] {
        build.env_remove(name);
    }
    build
}

/// Links of a build, and the modules of each.
const LINKS: usize = 6;
const MODULES: usize = 3;
/// Records count a run's beginning in milliseconds.
const BLUR: u64 = 2_000;

/// The objects of [`LINKS`] programs, whose backends take some time each.
fn objects(name: &str) -> Result<Folder> {
    let folder = Folder::create(Toolchain::from_env()?, &format!("job-slots/{name}"))?;
    for link in 0..LINKS {
        for module in 0..MODULES {
            let mut text = String::new();
            for at in 0..40 {
                text += &format!(
                    "int f{link}_{module}_{at}(const int *a, int n) {{ int s = {at}; for (int i = 0; i < n; i++) \
                     s += a[i] * {at} + (s >> 3); return s; }}\n"
                );
            }
            if module == 0 {
                text += "int main(void) { return 0; }\n";
            }
            folder.write("m.c", text)?;
            let line = format!("%clang -O2 -flto=thin -c m.c -o m{link}-{module}.o");
            succeed(&mut folder.command(&line, "")?)?;
        }
    }
    Ok(folder)
}

/// The line that makes the program of a link, which may have all of its modules' code.
fn line(folder: &Folder, link: usize) -> Result<String> {
    let objects: Vec<String> = (0..MODULES).map(|module| format!("m{link}-{module}.o")).collect();
    let clang = folder.toolchain.tool("clang")?;
    Ok(format!("{} -fuse-ld=lld -rdynamic {} -o program{link}", clang.display(), objects.join(" ")))
}

fn makefile(folder: &Folder) -> Result<()> {
    let programs: Vec<String> = (0..LINKS).map(|link| format!("program{link}")).collect();
    let mut text = format!("all: {}\n", programs.join(" "));
    for link in 0..LINKS {
        text += &format!("program{link}:\n\t{}\n", line(folder, link)?);
    }
    folder.write("Makefile", text)?;
    Ok(())
}

/// How many backends of these links ran at once at most, and how many ran.
pub fn backends_at_once(store: &Path) -> Result<(usize, usize)> {
    let (mut ends, mut all): (Vec<(u64, bool)>, _) = (Vec::new(), 0);
    for record in fs::read_dir(store.join("links-v1"))? {
        let record = record?.path();
        for run in if record.is_dir() { list(&record)? } else { Vec::new() } {
            let RunRecord { begun_ms, actions, .. } = read(&run)?;
            let ran = actions.iter().filter(|action| action.took.origin == Origin::Ran);
            for interval in ran.filter_map(|action| action.phases.command) {
                all += 1;
                let (start, end) = (interval.start + BLUR, interval.end.saturating_sub(BLUR));
                if start < end {
                    ends.extend([(begun_ms * 1_000 + start, true), (begun_ms * 1_000 + end, false)]);
                }
            }
        }
    }
    ends.sort_unstable();
    let (mut now, mut most) = (0_usize, 0);
    for (_, begins) in &ends {
        now = if *begins { now + 1 } else { now - 1 };
        most = most.max(now);
    }
    Ok((most, all))
}

/// Runs a build under distlto, and checks that so many jobs at most ran at once.
fn build(folder: &Folder, words: &[&str], slots: usize) -> Result<()> {
    let mut build = Command::new(distlto::binary()?);
    // Each link alone may have more.
    build.args(words).env("DISTLTO_JOBS", "4").current_dir(&folder.path);
    store::give(without_slots(&mut build));
    succeed(&mut build)?;
    let (most, all) = backends_at_once(&store::of(&folder.path)?)?;
    ensure!(all == LINKS * MODULES, "{words:?}: {all} backends ran");
    ensure!(most <= slots, "{words:?}: {most} backends at once");
    Ok(())
}

fn utf8(path: &Path) -> Result<&str> {
    path.to_str().context("a path of a test is UTF-8")
}

#[test]
fn links_take_slots_of_the_make_above_distlto() -> Result<()> {
    // Its recipe lines have no + and their processes no pipe.
    let folder = objects("pipe")?;
    makefile(&folder)?;
    build(&folder, &[utf8(&system_tool("make")?)?, "-s", "-j2"], 2)
}

#[test]
fn links_take_slots_of_a_fifo() -> Result<()> {
    let folder = objects("fifo")?;
    makefile(&folder)?;
    build(&folder, &[utf8(&builder("make")?)?, "-s", "-j2"], 2)
}

#[test]
fn ninja_shares_the_slots_of_make_with_links() -> Result<()> {
    let folder = objects("ninja")?;
    let mut text = String::new();
    for link in 0..LINKS {
        text +=
            &format!("rule r{link}\n  command = {}\nbuild program{link}: r{link}\n", line(&folder, link)?);
    }
    folder.write("build.ninja", text)?;
    let ninja: PathBuf = builder("ninja")?;
    folder.write("Makefile", format!("all:\n\t+{} --quiet\n", ninja.display()))?;
    build(&folder, &[utf8(&builder("make")?)?, "-s", "-j3"], 3)
}
