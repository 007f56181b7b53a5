//! What came of a link: whether it succeeded, what the program prints, how it ends, and its bytes; and how two of them differ.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use anyhow::Result;
use object::{Object, ObjectSymbol};

use super::line;
use super::model::{Kind, Program};
use super::ways::Way;
use super::workspace::Workspace;
use crate::run::{capture, shown, succeed};

/// What came of a link.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The linker's complaint, of a link that failed.
    pub error: Option<String>,
    /// What the program prints and how it ends.
    pub said: String,
    /// The program.
    pub bytes: Vec<u8>,
    /// What it exports.
    pub exports: BTreeSet<String>,
    /// What the link printed on standard output.
    pub events: String,
    /// What it printed on standard error.
    pub told: String,
}

/// How two outcomes differ; the first that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// One link succeeds and the other fails.
    Status,
    /// The programs behave otherwise.
    Behaviour,
    /// They export other symbols.
    Exports,
    /// Only the order differs in which constructors and destructors run.
    Order,
    /// The link is one that this way is known not to do, and says so.
    Refused,
}

impl Difference {
    /// The name of the table's column.
    pub fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Behaviour => "behaviour",
            Self::Exports => "exports",
            Self::Order => "order",
            Self::Refused => "refused",
        }
    }

    /// Whether the way is at fault: not where it says what it does otherwise.
    pub fn counts(self) -> bool {
        self != Self::Refused
    }
}

/// Links in one way, and runs what was made.
pub fn outcome(program: &Program, workspace: &mut Workspace, way: Way, more: &[&str]) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for mut command in way.commands(program, workspace, more)? {
        workspace.commands.push(shown(&command));
        let ended = capture(&mut command)?;
        outcome.events += &String::from_utf8_lossy(&ended.stdout);
        outcome.told += &String::from_utf8_lossy(&ended.stderr);
        if !ended.status.success() {
            outcome.error = Some(format!("{}: {}", ended.status, outcome.told));
            return Ok(outcome);
        }
    }
    let output = workspace.path.join(line::output(program, way.dir));
    let Ok(bytes) = fs::read(&output) else {
        outcome.error = Some(format!("success, and no {}", output.display()));
        return Ok(outcome);
    };
    outcome.exports = exports(&bytes)?;
    outcome.bytes = bytes;
    outcome.said = run(program, workspace, way)?;
    Ok(outcome)
}

/// The symbols that a program or library exports. How strong they are makes no difference there; and what is wanted of others
/// shows in what the program does.
fn exports(bytes: &[u8]) -> Result<BTreeSet<String>> {
    let file = object::File::parse(bytes)?;
    let exported = file.dynamic_symbols().filter(|symbol| !symbol.is_undefined());
    exported.map(|symbol| Ok(symbol.name()?.to_owned())).collect()
}

/// Runs what was linked; what it prints, and how it ends.
pub fn run(program: &Program, workspace: &mut Workspace, way: Way) -> Result<String> {
    let output = line::output(program, way.dir);
    let mut start = output.clone();
    if program.options.kind == Kind::Shared {
        start = format!("{}/host", way.dir);
        let mut host = workspace.tool("clang")?;
        host.args(["-fuse-ld=lld", "host.o", &output, "-o", &start]).args([
            "-Wl,-rpath,$ORIGIN",
            "-Wl,-rpath,$ORIGIN/..",
            "-Wl,--allow-shlib-undefined",
        ]);
        workspace.commands.push(shown(&host));
        // A version script may hide what the host calls; that is the library's behaviour too.
        let linked = capture(&mut host)?;
        if !linked.status.success() {
            return Ok(format!("the host does not link: {}", linked.status));
        }
    }
    let mut command = Command::new(workspace.path.join(start));
    command.current_dir(&workspace.path);
    workspace.commands.push(shown(&command));
    let ran = capture(&mut command)?;
    let end = match ran.status.code() {
        Some(code) => format!("exit code {code}"),
        None => format!("signal {:?}", ran.status.signal()),
    };
    Ok(format!("{}{end}\n", String::from_utf8_lossy(&ran.stdout)))
}

/// How a way's outcome differs from that of an oracle, the bytes left aside.
pub fn difference(way: Way, found: &Outcome, oracle: &Outcome) -> Option<Difference> {
    if found.error.is_some() != oracle.error.is_some() {
        let refused =
            found.error.as_deref().is_some_and(|error| way.refusals.iter().any(|text| error.contains(text)));
        return Some(if refused { Difference::Refused } else { Difference::Status });
    }
    if found.said == oracle.said {
        return (found.exports != oracle.exports).then_some(Difference::Exports);
    }
    let same = in_any_order(&found.said) == in_any_order(&oracle.said);
    Some(match same {
        true => Difference::Order,
        false => Difference::Behaviour,
    })
}

/// The lines of constructors and destructors, sorted, and the others as they are.
fn in_any_order(said: &str) -> (Vec<&str>, Vec<&str>) {
    let is_constructor = |line: &&str| line.starts_with("ctor ") || line.starts_with("dtor ");
    let (mut constructors, others): (Vec<&str>, Vec<&str>) = said.lines().partition(is_constructor);
    constructors.sort_unstable();
    (constructors, others)
}

/// Makes sure that what was run by hand can be run again: the commands as a script.
pub fn save_commands(workspace: &Workspace) -> Result<()> {
    let text: String = workspace.commands.iter().map(|line| format!("({line})\n")).collect();
    let path = workspace.path.join("commands.sh");
    fs::write(&path, format!("#!/bin/sh\n{text}"))?;
    succeed(Command::new("chmod").arg("+x").arg(&path)).map(drop)
}
