//! A link by slices, as a build system would run it: `distlto index --slices`, `distlto opt --slice` for each, and
//! `distlto link --graph` with the graph that is left.
//!
//! Every other object of a case is announced before the link; all other modules are spread over a few slices.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::distlto;
use crate::folder::Folder;
use crate::program::files;
use crate::run::succeed;
use crate::way::Way;

/// Over how many slices the modules are spread that are not announced.
const SPREAD: usize = 3;

/// The objects that are announced.
fn announced(folder: &Folder) -> impl Iterator<Item = (usize, &String)> {
    folder.objects.iter().enumerate().step_by(2)
}

/// Where the objects lie that slices give.
fn natives(folder: &Folder) -> Result<String> {
    let place = PathBuf::from(Way::Slices.dir()).join("program.objects");
    let place = folder.path.join(&place).strip_prefix(&folder.path)?.to_owned();
    Ok(place.display().to_string())
}

/// Where the graph of the link lies.
fn graph() -> String {
    format!("{}/graph.json", Way::Slices.dir())
}

/// The command that plans, without the link's own words.
pub fn index(folder: &Folder) -> Result<Command> {
    let dir = Way::Slices.dir();
    let natives = natives(folder)?;
    let mut request = format!("graph\t{}\nreport\t{dir}/report.txt\n", graph());
    for (at, object) in announced(folder) {
        writeln!(request, "object\tnumber {at}\t{object}\t{dir}/slices/{at}\t{natives}/{at}.o")?;
    }
    for at in 0..SPREAD {
        writeln!(request, "rest\t{dir}/rest/{at}\t{natives}/rest-{at}")?;
    }
    let request = folder.write(&format!("{dir}/request"), request)?;
    let mut command = Command::new(distlto::binary()?);
    command.arg("index").arg("--slices").arg(request).args(["--index", &format!("{dir}/state"), "--"]);
    Ok(command)
}

/// Runs the backends of every slice, and the link.
pub fn finish(folder: &Folder) -> Result<()> {
    let dir = Way::Slices.dir();
    let natives = natives(folder)?;
    let opt = |words: &[&str]| -> Result<()> {
        let mut command = Command::new(distlto::binary()?);
        command.args(["opt", "--slice"]).args(words).current_dir(&folder.path);
        succeed(&mut command).map(drop)
    };
    let splits = line(folder)?.iter().any(|word| word == "-gsplit-dwarf");
    for (at, _) in announced(folder) {
        let outputs = [format!("{natives}/{at}.o"), format!("{dir}/program-dwo/{at}.dwo")];
        let slice = format!("{dir}/slices/{at}");
        let words = [&slice, "--out", &outputs[0], "--dwo", &outputs[1]];
        opt(if splits { &words } else { &words[..3] })?;
        for output in outputs.map(|output| folder.path.join(output)) {
            // What stands for an object that has no backend; the link does not read it.
            if fs::metadata(&output).is_ok_and(|found| found.len() == 0) {
                fs::remove_file(output)?;
            }
        }
    }
    for at in 0..SPREAD {
        let objects = format!("{natives}/rest-{at}");
        opt(&[&format!("{dir}/rest/{at}"), "--objects", &objects])?;
        for (path, _) in files(&folder.path.join(objects), "dwo")? {
            let name = path.file_name().unwrap_or_default();
            fs::rename(&path, folder.path.join(dir).join("program-dwo").join(name))?;
        }
    }
    let mut link = Command::new(distlto::binary()?);
    link.args(["link", "--graph", &graph(), "--"]).args(line(folder)?).current_dir(&folder.path);
    succeed(&mut link).map(drop)
}

/// The link's own words, as the graph's last action has them.
fn line(folder: &Folder) -> Result<Vec<String>> {
    let bytes = fs::read(folder.path.join(graph()))?;
    let graph: Value = serde_json::from_slice(&bytes)?;
    let last = graph["actions"].as_array().and_then(|actions| actions.last());
    let words = last.and_then(|last| last["args"].as_array()).context("a graph ends in a link")?;
    let words = words.iter().map(|word| word.as_str().map(str::to_owned));
    let words: Vec<String> = words.collect::<Option<_>>().context("words are text")?;
    let at = words.iter().position(|word| word == "--").context("distlto is given a command")?;
    Ok(words[at + 1..].to_vec())
}
