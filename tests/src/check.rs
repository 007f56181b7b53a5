//! One case from beginning to end: build, link in every way, run, and compare what came out with the oracles.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::{fs, str};

use anyhow::{Context, Result, bail, ensure};

use crate::build::build;
use crate::campaign::ways::names_of_served;
use crate::case::Case;
use crate::distlto::objects;
use crate::folder::Folder;
use crate::program::symbols;
use crate::run::{capture, fail, shown, succeed, told};
use crate::toolchain::Toolchain;
use crate::way::{Way, graph_dir};
use crate::{distlto, sliced};

/// How many native objects were compared, and how many there were.
#[derive(Debug, Default, Clone, Copy)]
pub struct Compared {
    /// Those of programs that are the linker's, byte for byte.
    pub identical: usize,
    /// All objects that distlto compiled.
    pub compiled: usize,
}

impl std::ops::Add for Compared {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { identical: self.identical + other.identical, compiled: self.compiled + other.compiled }
    }
}

/// Checks one case.
pub fn check(case: &Case, toolchain: Toolchain) -> Result<Compared> {
    let folder = build(case, toolchain)?;
    if let Some(text) = &case.fails {
        fail(&mut Way::InProcess.command(case, &folder)?)?;
        return refuses(case, &folder, text);
    }
    let oracle = outcome(case, &folder, Way::InProcess)?;
    let dtlto = toolchain.has_dtlto() && case.without_dtlto.is_none();
    if dtlto {
        let said = outcome(case, &folder, Way::Dtlto)?;
        ensure!(said == oracle, "DTLTO's program behaves unlike the in-process one, so it is no oracle");
    }
    let compared = links_alike(case, &folder, &oracle)?;
    // What is left to the linker has no graph.
    let alone = case.otherwise.is_some() || case.without_graph.is_some() || compared.compiled == 0;
    if !alone && !case.name.starts_with("third-party/") {
        graph_alike(case, &folder, &oracle)?;
        // Slices are a graph in another form, so one version shows what they do.
        if dtlto {
            sliced_alike(case, &folder, &oracle)?;
        }
    }
    Ok(compared)
}

/// Has a graph's actions run, and compares with the oracles.
fn graph_alike(case: &Case, folder: &Folder, oracle: &str) -> Result<()> {
    let way = Way::Graph;
    succeed(&mut way.command(case, folder)?)?;
    let mut run = Command::new(distlto::binary()?);
    run.arg("run").arg(graph_dir(folder)).current_dir(&folder.path).env("PATH", distlto::search_path()?);
    succeed(&mut run)?;
    let said = outcome_of_linked(case, folder, way)?;
    ensure!(said == oracle, "{}: the program says\n{said}\nand the in-process one\n{oracle}", way.dir());
    is_of_linker(case, folder, way)
}

/// Links by slices, and compares with the oracles.
fn sliced_alike(case: &Case, folder: &Folder, oracle: &str) -> Result<()> {
    let way = Way::Slices;
    succeed(&mut way.command(case, folder)?)?;
    sliced::finish(folder)?;
    let said = outcome_of_linked(case, folder, way)?;
    ensure!(said == oracle, "{}: the program says\n{said}\nand the in-process one\n{oracle}", way.dir());
    is_of_linker(case, folder, way)
}

/// Checks that a program equals that of the linker alone, byte for byte. A library holds its own name, which the build id
/// depends on.
fn is_of_linker(case: &Case, folder: &Folder, way: Way) -> Result<()> {
    let output = way.output(folder);
    let read = || fs::read(&output).with_context(|| format!("cannot read {}", output.display()));
    let ours = read()?;
    succeed(&mut way.command_alone(case, folder)?)?;
    ensure!(ours == read()?, "{}: another program than that of the linker alone", way.dir());
    Ok(())
}

/// Links in a way of ours, and compares with the oracles; links again, which changes nothing.
fn links_alike(case: &Case, folder: &Folder, oracle: &str) -> Result<Compared> {
    let way = Way::Distlto;
    let said = outcome(case, folder, way)?;
    ensure!(said == oracle, "{}: the program says\n{said}\nand the in-process one\n{oracle}", way.dir());
    same_symbols(folder, way)?;
    let mut compared = Compared { identical: 0, compiled: objects(&way.output(folder))?.len() };
    if let Some(modules) = case.modules {
        let found = compared.compiled;
        ensure!(found == modules, "{}: {found} native objects were compiled, expected {modules}", way.dir());
    }
    unchanged_by_relink(case, folder, way)?;
    if same_program(case, folder)? {
        compared.identical = compared.compiled;
    }
    Ok(compared)
}

/// Links in one way, runs the program, and gives what it said and how it ended.
pub fn outcome(case: &Case, folder: &Folder, way: Way) -> Result<String> {
    succeed(&mut way.command(case, folder)?)?;
    outcome_of_linked(case, folder, way)
}

/// The same for a program that has been linked.
pub fn outcome_of_linked(case: &Case, folder: &Folder, way: Way) -> Result<String> {
    for line in &case.after {
        succeed(&mut folder.command(line, way.dir())?)?;
    }
    let program = vec!["%out".to_owned()];
    let commands = case.run.as_ref().unwrap_or(&program);
    let mut said = String::new();
    for (number, line) in commands.iter().enumerate() {
        let mut command = folder.command(line, way.dir())?;
        let output = capture(&mut command)?;
        let expected = if number + 1 == commands.len() { case.exit } else { 0 };
        if output.status.code() != Some(expected) {
            bail!("expected exit code {expected}, found {}", told(&command, &output));
        }
        let text = str::from_utf8(&output.stdout).context("programs print UTF-8")?;
        said.push_str(&text.replace(way.dir(), "<dir>"));
    }
    ensure!(commands.is_empty() || !said.is_empty(), "the program prints nothing, so nothing is compared");
    Ok(said)
}

/// Every way defines the same symbols.
fn same_symbols(folder: &Folder, way: Way) -> Result<()> {
    let expected = symbols(&Way::InProcess.output(folder))?;
    let found = symbols(&way.output(folder))?;
    let missing: Vec<_> = expected.difference(&found).take(10).collect();
    let extra: Vec<_> = found.difference(&expected).take(10).collect();
    ensure!(
        missing.is_empty() && extra.is_empty(),
        "the program lacks the symbols {missing:?} of the in-process one and has {extra:?} instead"
    );
    Ok(())
}

/// Checks that a served link equals the linker alone, byte for byte, unless the case gives a reason. A reason that no longer
/// holds is an error.
fn same_program(case: &Case, folder: &Folder) -> Result<bool> {
    let output = Way::Distlto.output(folder);
    let read = || fs::read(&output).with_context(|| format!("cannot read {}", output.display()));
    let served = read()?;
    let names = names_of_served(&output)?;
    // A library holds its own name, which the build id depends on.
    let mut alone = Way::Distlto.command_alone(case, folder)?;
    let is_driver = !alone.get_program().to_string_lossy().contains("ld.lld");
    for name in names {
        match is_driver {
            true => alone.arg(name),
            false => alone.args(name.trim_start_matches("-Wl,").split(',')),
        };
    }
    succeed(&mut alone)?;
    match (&case.otherwise, served == read()?) {
        (None, is_same) => ensure!(is_same, "a served link makes another program than the linker alone"),
        (Some(reason), is_same) => ensure!(!is_same, "the programs are the same; the case says: {reason}"),
    }
    Ok(case.otherwise.is_none())
}

/// A second link with nothing changed writes no object, and leaves the program's content: only its time may differ, since a
/// build system asks by times.
fn unchanged_by_relink(case: &Case, folder: &Folder, way: Way) -> Result<()> {
    let output = way.output(folder);
    let state = |output: &Path| {
        Ok::<_, anyhow::Error>((objects(output)?, fs::metadata(output)?.ino(), fs::read(output)?))
    };
    let before = state(&output)?;
    if before.0.is_empty() {
        return Ok(());
    }
    let linked = fs::metadata(&output)?.modified()?;
    succeed(&mut way.command(case, folder)?)?;
    ensure!(
        state(&output)? == before,
        "{}: a second link with nothing changed wrote the program or objects again",
        way.dir()
    );
    ensure!(fs::metadata(&output)?.modified()? >= linked, "{}: the program has become older", way.dir());
    Ok(())
}

/// distlto fails with the expected text and leaves no program.
fn refuses(case: &Case, folder: &Folder, text: &str) -> Result<Compared> {
    let mut command = Way::Distlto.command(case, folder)?;
    let (_, said) = fail(&mut command)?;
    let shown = shown(&command);
    ensure!(said.contains(text), "expected `{text}` from\n  {shown}\nfound\n{said}");
    ensure!(!Way::Distlto.output(folder).exists(), "a program is left behind by\n  {shown}");
    Ok(Compared::default())
}
