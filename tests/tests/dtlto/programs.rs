//! Real programs: every object is the same byte for byte as in a serial run of the same jobs, and the program says what
//! the one that lld's own ThinLTO links says.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_tests::build::build;
use distlto_tests::case::Case;
use distlto_tests::check::{outcome, outcome_of_linked};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::program::objects;
use distlto_tests::run::{capture, succeed};
use distlto_tests::toolchain::{Toolchain, helper, repository, system_tool};
use distlto_tests::way::Way;

/// Links one of the cases that all ways of linking are tested with. `modules` is how many jobs there are at least.
fn check(name: &str, modules: usize) -> Result<()> {
    let path = repository().join("tests/cases").join(name);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let name = Path::new("dtlto").join(name).with_extension("");
    let case = Case::parse(name.to_str().context("names of cases are UTF-8")?, &text)?;
    let folder = build(&case, Toolchain::from_env()?)?;
    let oracle = outcome(&case, &folder, Way::InProcess)?;
    let mut link = Way::Dtlto.command(&case, &folder)?;
    let distributor = distlto::distributor()?.to_str().context("the target directory's name is UTF-8")?;
    link.arg(format!("-Xthinlto-distributor=--then,{distributor}"));
    succeed(&mut link)?;
    let said = outcome_of_linked(&case, &folder, Way::Dtlto)?;
    ensure!(said == oracle, "the program says\n{said}\nand the in-process one\n{oracle}");
    let compared = objects(&Way::Dtlto.kept(&folder))?.len();
    ensure!(compared >= modules, "{compared} objects were compared, expected at least {modules}");
    leaves_nothing(&folder.path.join(Way::Dtlto.dir()))
}

/// A link leaves its program and what the tests keep.
fn leaves_nothing(directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let temporary = [".native.o", ".thinlto.bc", ".dist-file.json"].iter().any(|end| name.ends_with(end));
        ensure!(!temporary && !name.starts_with(".distlto-tmp-"), "{name} is left behind");
    }
    Ok(())
}

#[test]
fn plain_objects() -> Result<()> {
    check("basic/promoted.c", 2)
}

#[test]
fn cpp() -> Result<()> {
    check("cpp/vtables.cpp", 2)
}

#[test]
fn regular_archives() -> Result<()> {
    check("archives/regular.c", 2)
}

#[test]
fn thin_archives() -> Result<()> {
    check("archives/thin.c", 2)
}

#[test]
fn members_of_one_name() -> Result<()> {
    check("archives/same-names.c", 2)
}

#[test]
fn debug_information() -> Result<()> {
    check("options/debug.c", 2)
}

#[test]
fn shared_libraries() -> Result<()> {
    check("options/shared.c", 1)
}

#[test]
fn sample_profiles() -> Result<()> {
    check("profiles/sample.c", 3)
}

#[test]
fn names_with_spaces() -> Result<()> {
    check("names/space.c", 2)
}

#[test]
fn names_with_quotes() -> Result<()> {
    check("names/quotes.c", 2)
}

#[test]
fn names_with_semicolons() -> Result<()> {
    check("names/semicolon.c", 2)
}

#[test]
fn names_above() -> Result<()> {
    check("names/above.c", 2)
}

#[test]
fn rust_libraries() -> Result<()> {
    check("rust/staticlib.cpp", 2)
}

#[test]
fn rust_and_cpp() -> Result<()> {
    check("rust/calls-cpp.cpp", 3)
}

const MAIN: &str = r#"
fn main() {
    let words: Vec<String> = (0..4).map(shout::shout).collect();
    println!("{}", words.join(" "));
}
"#;
const LIBRARY: &str = r#"
pub fn shout(n: usize) -> String {
    "ha".repeat(n).to_uppercase() + "!"
}
"#;

/// rustc drives the link: its crates' rlibs are archives, and std's members in them are native.
#[test]
fn rust_programs() -> Result<()> {
    let toolchain = Toolchain::from_env()?;
    let folder = Folder::create(toolchain, "dtlto/rust-program")?;
    folder.write("main.rs", MAIN)?;
    folder.write("shout.rs", LIBRARY)?;
    let rustc = || -> Result<Command> {
        let mut command = Command::new(system_tool("rustc")?);
        command.current_dir(&folder.path).args([
            "--edition",
            "2024",
            "-C",
            "linker-plugin-lto",
            "-C",
            "opt-level=2",
        ]);
        Ok(command)
    };
    succeed(rustc()?.args(["--crate-type", "rlib", "shout.rs"]))?;
    let word = |path: &Path| path.to_str().map(str::to_owned).context("the paths of tools are UTF-8");
    let (clang, helper) = (word(&toolchain.tool("clang")?)?, word(&helper("distlto-test-distributor")?)?);
    let mut link = rustc()?;
    link.args(["-C", "codegen-units=4", "--extern", "shout=libshout.rlib", "main.rs", "-o", "program"]);
    link.args(["-C", &format!("linker={clang}"), "-C", "link-arg=-fuse-ld=lld", "-C", "link-arg=-flto=thin"]);
    let distributor = word(distlto::distributor()?)?;
    for argument in [
        format!("-fthinlto-distributor={helper}"),
        format!("-Xthinlto-distributor={}", word(&folder.path.join("kept"))?),
        format!("-Xthinlto-distributor=--then,{distributor}"),
    ] {
        link.args(["-C", &format!("link-arg={argument}")]);
    }
    succeed(&mut link)?;
    let said = capture(&mut Command::new(folder.path.join("program")))?;
    ensure!(said.status.success() && said.stdout == b"! HA! HAHA! HAHAHA!\n", "{said:?}");
    let compared = objects(&folder.path.join("kept"))?.len();
    ensure!(compared >= 2, "{compared} objects were compared");
    leaves_nothing(&folder.path)
}
