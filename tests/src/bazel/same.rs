//! Whether the rules' program is the one that a single lld links: the same driver, words and files, backends in process.
//!
//! Words come from `bazel aquery`, whose format is `ActionGraphContainer` of Bazel's `analysis_v2.proto`, as JSON. Knows
//! nothing of what the program is.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use object::{Object, ObjectSection};
use serde_json::Value;

use super::workspace::Workspace;
use crate::program::{objects, symbols};
use crate::run::succeed;

/// How far they are the same.
#[derive(Debug)]
pub struct Same {
    /// How many native objects lld has made.
    pub objects: usize,
    /// How many of them the rules' backends have made, byte for byte.
    pub equal: usize,
    /// Whether both programs define the same symbols.
    pub symbols: bool,
    /// Whether they are the same file.
    pub identical: bool,
    /// How many sections they have by name, and which of those are not the same bytes.
    pub sections: (usize, Vec<String>),
}

impl fmt::Display for Same {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} of {} native objects identical; ", self.equal, self.objects)?;
        if self.identical {
            return write!(f, "the program identical");
        }
        let (all, differ) = &self.sections;
        let same = if self.symbols { "the same symbols" } else { "other symbols" };
        write!(f, "{same}; {} of {all} sections identical, not {}", all - differ.len(), differ.join(", "))
    }
}

/// Compares what a target of the rules was built to, with these options.
pub fn as_one_lld(workspace: &Workspace, target: &str, options: &[&str]) -> Result<Same> {
    let root = fs::canonicalize(workspace.path("bazel-ws"))?;
    let mut words = line(workspace, target, options, &root)?;
    let at = words.iter().position(|word| word == "-o").context("a link has an output")? + 1;
    let output = words.get(at).context("-o has a value")?.clone();
    let dir = tempfile::tempdir()?;
    let path =
        |name: &str| Ok::<_, anyhow::Error>(dir.path().join(name).to_str().context("text")?.to_owned());
    let theirs = path("program")?;
    words[at].clone_from(&theirs);
    let alone = |more: &[String]| {
        succeed(Command::new(&words[0]).args(&words[1..]).args(more).current_dir(&root)).map(drop)
    };
    // Has it write the objects that it makes, beside this name; the program has one more then, of an empty module.
    let kept = dir.path().join("kept");
    fs::create_dir(&kept)?;
    alone(&[format!("-Wl,--lto-obj-path={}", path("kept/object")?)])?;
    fs::remove_file(kept.join("object"))?;
    alone(&[])?;
    let (ours, theirs) = (root.join(&output), PathBuf::from(theirs));
    let made: HashSet<Vec<u8>> =
        native(&root.join(format!("{output}.thinlto")))?.into_iter().map(|(_, bytes)| bytes).collect();
    let kept = fs::read_dir(&kept)?.map(|entry| Ok(fs::read(entry?.path())?)).collect::<Result<Vec<_>>>()?;
    ensure!(!kept.is_empty(), "lld has compiled no module of {target}");
    Ok(Same {
        objects: kept.len(),
        equal: kept.iter().filter(|&bytes| made.contains(bytes)).count(),
        symbols: symbols(&ours)? == symbols(&theirs)?,
        identical: fs::read(&ours)? == fs::read(&theirs)?,
        sections: differing(&sections(&ours)?, &sections(&theirs)?),
    })
}

/// What backends have made for a link of the rules.
fn native(link: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    Ok([objects(&link.join("objects"))?, objects(&link.join("shard-objects"))?].concat())
}

/// The driver's command that the thin link was given, with the files of directories in their places.
fn line(workspace: &Workspace, target: &str, options: &[&str], root: &Path) -> Result<Vec<String>> {
    let mut query = workspace.bazel("aquery")?;
    query.args(&workspace.options).args(options).args(["--include_param_files", "--output=jsonproto"]);
    let said = succeed(query.arg(format!("mnemonic(\"DistltoIndex\", {target})")))?.stdout;
    let said: Value = serde_json::from_slice(&said).context("aquery prints JSON")?;
    let arguments = said["actions"][0]["arguments"].as_array().context("a thin link has arguments")?;
    let words: Vec<&str> = arguments.iter().filter_map(Value::as_str).collect();
    let at = words.iter().position(|&word| word == "--").context("distlto is given a command")?;
    let mut expanded = Vec::new();
    for &word in &words[at + 1..] {
        if word.starts_with("bazel-out/") && root.join(word).is_dir() {
            let mut files = fs::read_dir(root.join(word))?
                .map(|entry| Ok(format!("{word}/{}", entry?.file_name().to_string_lossy())))
                .collect::<Result<Vec<_>>>()?;
            files.sort();
            expanded.extend(files);
        } else {
            expanded.push(word.to_owned());
        }
    }
    Ok(expanded)
}

type Sections = BTreeMap<String, Vec<u8>>;

/// The bytes of each section by name; of those without, their size.
fn sections(program: &Path) -> Result<Sections> {
    let bytes = fs::read(program)?;
    let file = object::File::parse(&*bytes).with_context(|| format!("{}", program.display()))?;
    let mut found = Sections::new();
    for section in file.sections() {
        let data = section.data()?;
        let size = section.size().to_le_bytes();
        found.entry(section.name()?.to_owned()).or_default().extend(if data.is_empty() {
            &size
        } else {
            data
        });
    }
    Ok(found)
}

fn differing(ours: &Sections, theirs: &Sections) -> (usize, Vec<String>) {
    let mut names: Vec<&String> = ours.keys().chain(theirs.keys()).collect();
    names.sort();
    names.dedup();
    let differ = names.iter().filter(|&&name| ours.get(name) != theirs.get(name));
    (names.len(), differ.map(|&name| name.clone()).collect())
}
