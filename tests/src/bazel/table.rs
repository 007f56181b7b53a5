//! What runs again after each kind of change, in Bazel's own account, and which backends had to.
//!
//! A backend has to run when the bytes of its slice change, which this looks up itself; so a table holds its own oracle.
//! What must change besides is known of the program, and stands in `tests/bazel.rs`.

use std::collections::BTreeSet;

use anyhow::Result;

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
}

/// A change of the workspace.
type Change = fn(&Workspace) -> Result<()>;

/// The changes, each made on top of those before it.
const CHANGES: [(&str, Change); 11] = [
    ("cold", |_| Ok(())),
    ("nothing", |_| Ok(())),
    ("a comment", |ws| ws.edit("lib/wide.c", "return", "/* Sums. */ return")),
    ("a leaf", |ws| ws.edit("lib/leaf.c", "- 1", "- 2")),
    ("a source that others import from", |ws| ws.edit("lib/wide.c", "+ 10", "+ 11")),
    ("a member of an archive", |ws| {
        ws.edit("prebuilt/second.c", "+ 200", "+ 201")?;
        program::archive(ws, &["first", "second"])
    }),
    ("a member added", |ws| {
        ws.write("prebuilt/third.c", "int third(int x) { return x; }\n")?;
        program::archive(ws, &["first", "second", "third"])
    }),
    ("a prebuilt object", |ws| {
        ws.edit("prebuilt/object.c", "+ 300", "+ 301")?;
        program::object(ws)
    }),
    ("an rlib", |ws| {
        ws.edit("prebuilt/rusty.rs", "add(500)", "add(501)")?;
        program::rlib(ws)
    }),
    ("an object of a directory", |ws| ws.edit("tree/leafy.c", "+ 700", "+ 701")),
    ("a flag of the link", |ws| {
        ws.edit("app/BUILD", "name = \"app\",", "name = \"app\",\n    linkopts = [\"-Wl,--build-id\"],")
    }),
];

/// What the program prints after all changes.
pub const CHANGED: &str = "12 24 -1\n101 202 302\n601 702 502\n";

/// Builds of one workspace, one after the other.
pub struct Table<'a> {
    workspace: &'a Workspace,
    before: Slices,
    /// What they did.
    pub rows: Vec<Row>,
}

impl<'a> Table<'a> {
    /// None yet.
    pub fn new(workspace: &'a Workspace) -> Self {
        Self { workspace, before: Slices::new(), rows: Vec::new() }
    }

    /// All of it, with a server of the Remote Execution API.
    pub fn all(&mut self, url: &str) -> Result<()> {
        self.local()?;
        self.disk_cache_hits()?;
        self.remote_cache_hits(url)?;
        self.on_server(url)
    }

    /// A build after each change, which fill a disk cache and find nothing in it.
    fn local(&mut self) -> Result<()> {
        let cache = self.disk_cache();
        for (name, change) in CHANGES {
            change(self.workspace)?;
            self.row(self.workspace, name, &[&cache])?;
        }
        Ok(())
    }

    /// An edit after `clean`, and one in an output base that knows nothing: a disk cache has the rest.
    fn disk_cache_hits(&mut self) -> Result<()> {
        let (ws, cache) = (self.workspace, self.disk_cache());
        ws.clean()?;
        ws.edit("lib/wide.c", "+ 11", "+ 12")?;
        self.row(ws, "clean, an imported source; disk cache", &[&cache])?;
        ws.edit("lib/leaf.c", "- 2", "- 3")?;
        self.row(&ws.elsewhere(), "another output base, a leaf; disk cache", &[&cache])
    }

    /// The same with the cache of a server, which is filled first.
    fn remote_cache_hits(&mut self, url: &str) -> Result<()> {
        let (ws, cache) = (self.workspace, format!("--remote_cache={}", url));
        ws.clean()?;
        ws.build(&["//app", &cache])?;
        ws.clean()?;
        ws.edit("lib/wide.c", "+ 12", "+ 13")?;
        self.row(ws, "clean, an imported source; remote cache", &[&cache])
    }

    /// Run by a server, where they see no file but those that they declare and the machine's own.
    fn on_server(&mut self, url: &str) -> Result<()> {
        let (ws, executor) = (self.workspace, format!("--remote_executor={}", url));
        ws.clean()?;
        let before = std::mem::take(&mut self.before);
        let options = [
            executor.as_str(),
            "--spawn_strategy=remote",
            "--noremote_accept_cached",
            "--noremote_local_fallback",
        ];
        self.row(ws, "clean; remote execution", &options)?;
        self.before = before;
        Ok(())
    }

    fn disk_cache(&self) -> String {
        format!("--disk_cache={}", self.workspace.folder.join("cache").display())
    }

    fn row(&mut self, workspace: &Workspace, change: &'static str, options: &[&str]) -> Result<()> {
        let actions = workspace.build(&[&["//app"], options].concat())?;
        let slices = program::slices(workspace)?;
        let had_to = slices.iter().filter(|&(name, slice)| self.before.get(name) != Some(slice));
        let had_to = had_to.map(|(name, _)| name.clone()).collect();
        self.before = slices;
        self.rows.push(Row { change, actions, had_to, said: workspace.say("app/app")? });
        Ok(())
    }
}
