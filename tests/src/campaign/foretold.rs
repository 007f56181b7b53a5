//! What a dry run foretells, against what then runs: the same backends, for reasons that are true; and nothing is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::backends::stem;
use super::model::Program;
use super::ways::Way;
use super::workspace::Workspace;
use crate::run::{capture, shown};

/// What `distlto link --dry-run --json` prints, as far as it is looked at.
#[derive(Debug, Deserialize)]
pub struct Foretold {
    would_run: Vec<Backend>,
    /// The files that saying so has written.
    #[serde(skip)]
    written: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Backend {
    label: String,
    why: Vec<Why>,
}

#[derive(Debug, Deserialize)]
struct Why {
    what: String,
    name: Option<String>,
}

/// How machine code begins.
const ELF: &[u8] = b"\x7fELF";

/// Files by path: content's length, number, and the second and nanosecond of the last change.
type Files = BTreeMap<String, (u64, u64, i64, i64)>;

/// The contents of the objects that the last link had, by path.
pub type Objects = BTreeMap<String, Vec<u8>>;

impl Foretold {
    /// Asks, with more options. `None` where the link is refused.
    pub fn ask(
        program: &Program,
        workspace: &mut Workspace,
        way: Way,
        more: &[&str],
    ) -> Result<Option<Self>> {
        let mut command = way.command(program, workspace, &[&["--dry-run", "--json"], more].concat())?;
        workspace.commands.push(shown(&command));
        let before = files(&workspace.path)?;
        let output = capture(&mut command)?;
        let after = files(&workspace.path)?;
        // A file that is gone has been written too.
        let all: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let differs = |path: &&String| before.get(*path) != after.get(*path);
        // The libraries for the processes of a command are no part of a link.
        let is_of_link = |path: &&String| !path.contains("/preload-v1/");
        let written = all.into_iter().filter(differs).filter(is_of_link).cloned().collect();
        if !output.status.success() {
            return Ok(None);
        }
        let text = String::from_utf8(output.stdout).context("JSON is UTF-8")?;
        if !text.starts_with('{') {
            // The linker links by itself.
            return Ok(Some(Self { would_run: Vec::new(), written }));
        }
        let foretold: Self = serde_json::from_str(&text).with_context(|| shown(&command))?;
        Ok(Some(Self { written, ..foretold }))
    }

    /// Whether nothing was written.
    pub fn check_written(&self) -> Result<()> {
        ensure!(self.written.is_empty(), "a dry run has written {:?}", self.written);
        Ok(())
    }

    /// Compares with what ran. A dry run has no key of the linker's, and goes by the shard that a backend would read: it may name
    /// one of `may` whose object that key finds. Of twins, which are equal modules, one may get the object of the other.
    pub fn check(&self, mut ran: Vec<String>, may: &[String]) -> Result<()> {
        let mut would: Vec<String> = self.would_run.iter().map(|backend| backend.label.clone()).collect();
        let is_twin = |label: &String| label.contains("twin");
        let may_be_kept = |label: &String| {
            may.iter().any(|name| name == stem(label)) || is_twin(label) && ran.iter().any(is_twin)
        };
        would.retain(|label| ran.contains(label) || !may_be_kept(label));
        would.sort();
        ran.sort();
        ensure!(would == ran, "foretold: {}; ran: {}", would.join(" "), ran.join(" "));
        Ok(())
    }

    /// Compares the reasons with what objects were and are; members of archives are not looked at.
    pub fn check_reasons(&self, before: &Objects, now: &Objects) -> Result<()> {
        let changed: BTreeSet<&str> = now
            .iter()
            .filter(|(path, bytes)| before.get(*path) != Some(bytes))
            .map(|(path, _)| path.as_str())
            .collect();
        for Backend { label, why } in &self.would_run {
            ensure!(!why.is_empty(), "{label} would run for no reason");
            for Why { what, name } in why {
                let about = if what == "module" { Some(label) } else { name.as_ref() };
                let about = about.filter(|path| now.contains_key(*path)).map(String::as_str);
                match (what.as_str(), about) {
                    ("module" | "import", Some(path)) if !changed.contains(path) => {
                        bail!("{label} would run since {path} changed, which it did not")
                    }
                    _ => {}
                }
            }
            // Of machine code that became a module the record is of a link before the last: it may be that module, whose
            // object is gone.
            let was_native = before.get(label).is_some_and(|bytes| bytes.starts_with(ELF));
            let says_so = |why: &Why| match why.what.as_str() {
                "module" | "first-time" | "not-known" => true,
                what => was_native && what == "output-missing",
            };
            ensure!(
                !changed.contains(label.as_str()) || !before.contains_key(label) || why.iter().any(says_so),
                "{label} changed, and would run for {why:?}"
            );
        }
        Ok(())
    }
}

/// The contents of a program's objects.
pub fn objects(program: &Program, workspace: &Workspace) -> Result<Objects> {
    let read = |object: &String| Ok((object.clone(), fs::read(workspace.path.join(object))?));
    program.units.iter().map(|unit| read(&unit.object)).collect()
}

/// The process of a link is noted in its lock; the others hold answers of linkers.
const NOT_OF_LINKS: [&str; 3] = ["lock", "linkers-v4", "linker-flags-v1"];

fn files(directory: &Path) -> Result<Files> {
    let mut found = Files::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let data = entry.metadata()?;
            if data.is_dir() {
                left.push(entry.path());
            } else if !NOT_OF_LINKS.iter().any(|name| entry.file_name() == *name) {
                let name = entry.path().to_string_lossy().into_owned();
                found.insert(name, (data.len(), data.ino(), data.mtime(), data.mtime_nsec()));
            }
        }
    }
    Ok(found)
}
