//! The ways of linking a case: in-process ThinLTO, lld's DTLTO with the simplest distributor, `distlto link`, which is one
//! run of the linker, a graph that `distlto run` runs, and slices, whose backends are run by hand.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::case::Case;
use crate::folder::Folder;
use crate::{distlto, sliced, toolchain};

/// A way of linking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The linker does everything.
    InProcess,
    /// The linker hands backends to a distributor.
    Dtlto,
    /// The program under test.
    Distlto,
    /// The program under test makes a graph, whose actions it runs then.
    Graph,
    /// The program under test plans, and cuts what is to be done into slices.
    Slices,
}

/// The index directory of a graph.
pub fn graph_dir(folder: &Folder) -> PathBuf {
    distlto::index_dir(&Way::Graph.output(folder))
}

impl Way {
    /// The directory, inside the case's folder, that holds what this way makes.
    pub fn dir(self) -> &'static str {
        match self {
            Self::InProcess => "by-linker",
            Self::Dtlto => "by-dtlto",
            Self::Distlto => "by-distlto",
            Self::Graph => "by-graph",
            Self::Slices => "by-slices",
        }
    }

    /// The program this way links.
    pub fn output(self, folder: &Folder) -> PathBuf {
        folder.path.join(self.dir()).join("program")
    }

    /// Where the DTLTO distributor keeps native objects.
    pub fn kept(self, folder: &Folder) -> PathBuf {
        folder.path.join(self.dir()).join("kept")
    }

    /// The command that links the case, ready to run; also makes the way's directory and response files.
    pub fn command(self, case: &Case, folder: &Folder) -> Result<Command> {
        let dir = self.dir();
        fs::create_dir_all(folder.path.join(dir))?;
        for section in case.sections.iter().filter(|section| section.name.ends_with(".rsp")) {
            folder.write(&format!("{dir}/{}", section.name), folder.expand(&section.text, dir)?)?;
        }
        let words = self.words(case, folder)?;
        let mut command = match self {
            Self::Distlto => distlto::link()?,
            Self::Graph => distlto::index(&graph_dir(folder))?,
            Self::Slices => sliced::index(folder)?,
            Self::InProcess | Self::Dtlto => Command::new(&words[0]),
        };
        let wrapped = matches!(self, Self::Distlto | Self::Graph | Self::Slices);
        command.args(if wrapped { &words[..] } else { &words[1..] });
        command.current_dir(&folder.path);
        Ok(command)
    }

    /// The link of this way without distlto.
    pub fn command_alone(self, case: &Case, folder: &Folder) -> Result<Command> {
        let words = self.words(case, folder)?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(&folder.path);
        Ok(command)
    }

    fn words(self, case: &Case, folder: &Folder) -> Result<Vec<String>> {
        let dir = self.dir();
        let mut words = match &case.driver {
            Some(driver) => folder.words(driver, dir)?,
            None => {
                let clang = if case.is_cpp() { "%clang++" } else { "%clang" };
                folder.words(&format!("{clang} -O2 -flto=thin -fuse-ld=lld -o %out"), dir)?
            }
        };
        if self == Self::Dtlto {
            let helper = toolchain::helper("distlto-test-distributor")?;
            let helper = helper.to_str().context("the target directory's name is UTF-8")?;
            let kept = format!("{dir}/kept");
            let direct = words[0].contains("ld.lld");
            let linker = |option: &str, value: &str| {
                let prefix = if direct { "" } else { "-Wl," };
                format!("{prefix}--thinlto-{option}={value}")
            };
            if direct {
                words.push(linker("distributor", helper));
                words.push(linker("distributor-arg", &kept));
                words.push(linker("remote-compiler", &folder.expand("%clang", dir)?));
            } else {
                words.push(format!("-fthinlto-distributor={helper}"));
                words.push(format!("-Xthinlto-distributor={kept}"));
            }
            words.extend(case.remote.iter().map(|flag| linker("remote-compiler-arg", flag)));
        }
        words.extend(folder.words(case.link.as_deref().unwrap_or("%objects"), dir)?);
        Ok(words)
    }
}
