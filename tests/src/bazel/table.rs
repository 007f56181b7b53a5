//! What runs again after each kind of change, in Bazel's own account, and which backends had to.
//!
//! A backend has to run when the bytes of its slice change, which this looks up itself; so a table holds its own oracle.
//! What must change besides is known of the program, and stands in `tests/bazel.rs`.

use std::collections::BTreeSet;

use anyhow::Result;

use super::Version;
use super::log::Actions;
use super::program::{self, Slices};
use super::workspace::Workspace;

/// One build after a change.
pub struct Row {
    /// What was changed.
    pub change: &'static str,
    /// What Bazel did then.
    pub actions: Actions,
    /// The backends whose slices are others than before.
    pub had_to: BTreeSet<String>,
    /// What the program prints.
    pub said: String,
}

impl Row {
    /// The backends that ran.
    pub fn backends(&self) -> BTreeSet<String> {
        self.actions.ran("DistltoOpt").into_iter().map(str::to_owned).collect()
    }

    /// How many actions of these kinds ran.
    pub fn counts<const N: usize>(&self, mnemonics: [&str; N]) -> [usize; N] {
        mnemonics.map(|mnemonic| self.actions.ran(mnemonic).len())
    }
}

/// A change of the workspace.
type Change = fn(&Workspace) -> Result<()>;

/// The changes, each made on top of those before it.
const CHANGES: [(&str, Change); 9] = [
    ("cold", |_| Ok(())),
    ("nothing", |_| Ok(())),
    ("comment", |ws| ws.edit("lib/wide.c", "return", "/* Sums. */ return")),
    ("leaf", |ws| ws.edit("lib/leaf.c", "- 1", "- 2")),
    ("wide", |ws| ws.edit("lib/wide.c", "+ 10", "+ 11")),
    ("member", |ws| {
        ws.edit("prebuilt/second.c", "+ 200", "+ 201")?;
        program::archive(ws, &["first", "second"])
    }),
    ("member added", |ws| {
        ws.write("prebuilt/third.c", "int third(int x) { return x; }\n")?;
        program::archive(ws, &["first", "second", "third"])
    }),
    ("member of a directory", |ws| ws.edit("tree/leafy.c", "+ 700", "+ 701")),
    ("link flag", |ws| {
        ws.edit("app/BUILD", "name = \"app\",", "name = \"app\",\n    linkopts = [\"-Wl,--build-id\"],")
    }),
];

/// Builds the program, and again after each change.
pub fn rows(version: Version, workspace: &Workspace) -> Result<Vec<Row>> {
    let _ = version;
    let mut rows = Vec::new();
    let mut before = Slices::new();
    for (name, change) in CHANGES {
        change(workspace)?;
        rows.push(row(workspace, name, &mut before, &[])?);
    }
    Ok(rows)
}

/// Builds the program with further options.
pub fn row(
    workspace: &Workspace,
    change: &'static str,
    before: &mut Slices,
    options: &[&str],
) -> Result<Row> {
    let actions = workspace.build(&[&["//app"], options].concat())?;
    let slices = program::slices(workspace)?;
    let had_to = slices.iter().filter(|&(name, slice)| before.get(name) != Some(slice));
    let had_to = had_to.map(|(name, _)| name.clone()).collect();
    *before = slices;
    Ok(Row { change, actions, had_to, said: workspace.say("app/app")? })
}
