//! `examples/bazel` on a real engine, which runs each action in a folder with what it declares and nothing else.
//!
//! Bazel up to version 7 is a client of version 2.0 of the API, and buildbox-casd wants a later one, so a translator stands
//! between.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, ensure};
use distlto_reapi_server::Translator;

use super::Version;
use super::log::Actions;
use super::program::{self, Slices};
use super::workspace::Workspace;

/// The one action that is not for the engine: a worker need not have rustc.
pub const HERE: &str = "rot13/librot13.rlib";
const RUSTC_HERE: &str = "--strategy_regexp=//rot13:rlib=local";
/// The program.
const PROGRAM: &str = "app/app";
/// Its split debug information.
const PACKED: &str = "app/app.dwp";
/// What is built.
const TARGETS: [&str; 2] = ["//app", "//tests/..."];
/// What needs cc rules, which the older version fetches.
const CC: [&str; 2] = ["//cc:hello_thinlto", "--repo_env=CC=clang-22"];

/// One build.
pub struct Row {
    /// What was done before it.
    pub after: &'static str,
    /// What Bazel did then.
    pub actions: Actions,
    /// The backends of the program whose slices are others than before.
    pub had_to: BTreeSet<String>,
    /// What the program says.
    pub said: String,
}

impl Row {
    /// The outputs of what ran or did not, and whether on the engine; all come from its cache otherwise.
    pub fn ran(&self, on_engine: bool) -> BTreeSet<&str> {
        let ran = self.actions.0.iter().filter(|one| !one.cached && (one.runner == "remote") == on_engine);
        ran.map(|one| one.output.as_str()).collect()
    }

    /// The outputs of what the engine's cache had.
    pub fn cached(&self) -> BTreeSet<&str> {
        let cached = self.actions.0.iter().filter(|one| one.cached);
        cached.map(|one| one.output.as_str()).collect()
    }
}

/// Builds of one workspace on one engine.
pub struct Remote<'a> {
    workspace: &'a Workspace,
    translator: Translator,
    before: Slices,
    /// What they did.
    pub rows: Vec<Row>,
}

impl<'a> Remote<'a> {
    /// None yet.
    pub fn new(workspace: &'a Workspace, engine: &str) -> Result<Self> {
        let translator = Translator::start(engine)?;
        Ok(Self { workspace, translator, before: Slices::new(), rows: Vec::new() })
    }

    /// Cold, from an output base that has nothing, and after edits.
    pub fn all(&mut self) -> Result<()> {
        let ws = self.workspace;
        ws.build(&TARGETS)?;
        let here = fs::read(ws.output(PROGRAM))?;
        ws.clean()?;
        self.row(ws, "`clean`, with a cache that is not asked", &["--noremote_accept_cached"])?;
        ensure!(
            fs::read(ws.output(PROGRAM))? == here,
            "the engine's program is not the one that is built here"
        );
        self.row(&ws.elsewhere(), "another output base", &[])?;
        ws.clean()?;
        ws.edit("rot13/rot13.cc", "std::string result;", "std::string result(\"=\");")?;
        self.row(ws, "`clean`, an edit of rot13/rot13.cc", &[])?;
        ws.edit("app/main.cc", "length %d", "size %d")?;
        self.row(ws, "an edit of app/main.cc", &[])
    }

    /// What Bazel says where a target does not declare a header that its source includes; it builds where actions see the
    /// files of the whole workspace.
    pub fn undeclared(&self) -> Result<String> {
        let (ws, build) = (self.workspace, "checksum/BUILD.bazel");
        let declared = "    hdrs = [\"checksum.h\"],\n";
        ws.edit(build, declared, "")?;
        ws.build(&["//checksum", "--spawn_strategy=local"]).context("without an engine")?;
        ws.clean()?;
        let options = self.options();
        let said = ws.fail(&there(&["//checksum"], &options));
        ws.edit(build, "    visibility", &format!("{declared}    visibility"))?;
        said
    }

    /// Packs split debug information here and on the engine, with the same outcome. Gives what ran there.
    pub fn packed(&self) -> Result<Actions> {
        let (ws, build) = (self.workspace, "app/BUILD.bazel");
        let packs = "    name = \"app\",\n    fission = True,\n";
        ws.edit(build, "    name = \"app\",\n", packs)?;
        let words = ["//app", "--output_groups=+dwp"];
        ws.build(&words)?;
        let here = fs::read(ws.output(PACKED))?;
        ws.clean()?;
        let options = self.options();
        let actions = ws.build(&there(&words, &options))?;
        ensure!(
            fs::read(ws.output(PACKED))? == here,
            "the engine's {PACKED} is not the one that is made here"
        );
        ws.edit(build, packs, "    name = \"app\",\n")?;
        Ok(actions)
    }

    /// Runs the tests on the engine, and gives what Bazel says of them, and what ran.
    pub fn tested(&self) -> Result<(String, Actions)> {
        let options = self.options();
        self.workspace.test(&there(&["//tests/..."], &options))
    }

    fn options(&self) -> Vec<String> {
        let executor = format!("--remote_executor={}", self.translator.url());
        let others = ["--spawn_strategy=remote", "--noremote_local_fallback", RUSTC_HERE];
        [executor].into_iter().chain(others.map(str::to_owned)).collect()
    }

    fn row(&mut self, workspace: &Workspace, after: &'static str, more: &[&str]) -> Result<()> {
        let options = self.options();
        let mut words = there(&[&TARGETS, more].concat(), &options);
        if workspace.version == Version::Seven {
            words.extend(CC);
        }
        let actions = workspace.build(&words)?;
        let slices = program::slices(workspace)?;
        let had_to = slices.iter().filter(|&(name, slice)| self.before.get(name) != Some(slice));
        let had_to = had_to.map(|(name, _)| name.clone()).collect();
        self.before = slices;
        self.rows.push(Row { after, actions, had_to, said: workspace.say(PROGRAM)? });
        Ok(())
    }
}

/// Words of a command, and what has it done on the engine.
fn there<'w>(words: &[&'w str], options: &'w [String]) -> Vec<&'w str> {
    words.iter().copied().chain(options.iter().map(String::as_str)).collect()
}
