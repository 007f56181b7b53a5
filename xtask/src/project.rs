//! A third-party program that CMake builds with clang 22 and ThinLTO as a user would, and that can be edited.
//!
//! Knows nothing of which programs there are (see `projects`) and of how they are linked by distlto.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;

use crate::setup::NEWEST;
use crate::shell::{self, find, output, quietly, run};

/// What is edited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Edit {
    /// A function of a file that few or no modules import from.
    Leaf,
    /// A function of one that many modules import from, which many import.
    Wide,
    /// A function of such a file that none imports.
    Apart,
    /// A function in a header.
    Header,
    /// A comment in a file that many modules import from.
    Comment,
}

/// A file of the sources, and a line inside the body of a function in it that occurs once.
pub type Edited = (&'static str, &'static str);

/// A copy of the sources and a build of them.
pub struct Project {
    /// What it is called.
    pub name: &'static str,
    /// Where CMake finds it.
    pub sources: PathBuf,
    /// The build directory.
    pub build: PathBuf,
    /// The program, as ninja names it.
    pub target: &'static str,
    /// What CMake is told of this project.
    pub options: &'static [&'static str],
    /// Where [`Edit::Leaf`] edits.
    pub leaf: Edited,
    /// Where [`Edit::Wide`] and [`Edit::Comment`] edit.
    pub wide: Edited,
    /// Where [`Edit::Apart`] edits.
    pub apart: Edited,
    /// Where [`Edit::Header`] edits.
    pub header: Edited,
}

/// How an inserted line begins; nothing else in the sources does.
const INSERTED: &str = "\t{ volatile unsigned distlto_edit = (";
/// The same of a comment.
const COMMENT: &str = "\t/* a comment, ";

impl Project {
    /// Configures a build with clang 22 and ThinLTO, with `extra` definitions.
    pub fn configure(&self, extra: &[String]) -> Result<()> {
        self.configure_by(NEWEST, extra)
    }

    /// The same with clang of another version, and with these flags for every source and the link.
    pub fn configure_with(&self, llvm: u32, flags: &str) -> Result<()> {
        let flags = ["C", "CXX"].map(|language| format!("-DCMAKE_{language}_FLAGS=-flto=thin {flags}"));
        self.configure_by(llvm, &flags)
    }

    fn configure_by(&self, llvm: u32, extra: &[String]) -> Result<()> {
        let mut cmake = Command::new("cmake");
        cmake.args(["-G", "Ninja", "-Wno-dev", "-S"]).arg(&self.sources).arg("-B").arg(&self.build);
        cmake.args([
            "-DCMAKE_BUILD_TYPE=Release",
            "-DCMAKE_C_FLAGS=-flto=thin",
            "-DCMAKE_CXX_FLAGS=-flto=thin",
            "-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld -flto=thin",
        ]);
        cmake.arg(format!("-DCMAKE_C_COMPILER=clang-{llvm}"));
        cmake.arg(format!("-DCMAKE_CXX_COMPILER=clang++-{llvm}"));
        for (variable, tool) in [("AR", "llvm-ar"), ("RANLIB", "llvm-ranlib")] {
            let tool = format!("{tool}-{llvm}");
            // CMake takes a relative tool as a file of the build directory.
            let path =
                find(&tool).with_context(|| format!("{tool} is missing; `cargo xtask setup` installs it"))?;
            cmake.arg(format!("-DCMAKE_{variable}={}", path.display()));
        }
        run(cmake.args(self.options).args(extra).stdout(Stdio::null()))
    }

    /// The command that links the program, to be run in the build directory.
    pub fn link_words(&self) -> Result<Vec<String>> {
        let said = output(self.ninja().args(["-t", "commands", self.target]))?;
        let last = said.lines().last().with_context(|| format!("ninja knows no link of {}", self.target))?;
        // CMake writes `: && COMMAND && :` around a link.
        let command = last.trim_start_matches(": && ").trim_end_matches(" && :");
        let words = shlex::split(command).context("ninja's command has an open quote")?;
        let start = words.iter().position(|word| word.contains("clang"));
        let start = start.with_context(|| format!("{} is not linked by clang", self.target))?;
        Ok(words[start..].to_vec())
    }

    /// How long the link took in the last build, in seconds, by ninja's own log.
    pub fn link_seconds(&self) -> Result<f64> {
        let log = fs::read_to_string(self.build.join(".ninja_log"))?;
        let line = log.lines().rfind(|line| line.split('\t').nth(3) == Some(self.target));
        let line = line.with_context(|| format!("ninja has not linked {}", self.target))?;
        let mut times = line.split('\t').map(str::parse::<f64>);
        match (times.next(), times.next()) {
            (Some(Ok(start)), Some(Ok(end))) => Ok((end - start) / 1000.0),
            _ => bail!("unexpected line in .ninja_log"),
        }
    }

    /// Gives the body of one function another constant, which changes its code and nothing else, or another comment.
    pub fn edit(&self, edit: Edit, variant: u32) -> Result<&'static str> {
        let (file, line) = self.edited(edit);
        let original = self.original(file)?;
        ensure!(original.matches(line).count() == 1, "{file} has no line to edit");
        let new = match edit {
            Edit::Comment => format!("{line}{COMMENT}{variant} */\n"),
            _ => format!("{line}{INSERTED}{variant}u); (void)distlto_edit; }}\n"),
        };
        fs::write(self.sources.join(file), original.replacen(line, &new, 1))?;
        Ok(file)
    }

    /// Undoes every edit.
    pub fn restore(&self) -> Result<()> {
        for (file, _) in [self.leaf, self.wide, self.apart, self.header] {
            let original = self.original(file)?;
            if fs::read_to_string(self.sources.join(file))? != original {
                fs::write(self.sources.join(file), original)?;
            }
        }
        Ok(())
    }

    /// Where an edit of this kind is made.
    pub fn edited(&self, edit: Edit) -> Edited {
        match edit {
            Edit::Leaf => self.leaf,
            Edit::Wide | Edit::Comment => self.wide,
            Edit::Apart => self.apart,
            Edit::Header => self.header,
        }
    }

    /// A file without what was inserted.
    fn original(&self, file: &str) -> Result<String> {
        let path = self.sources.join(file);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(text
            .split_inclusive('\n')
            .filter(|line| !line.starts_with(INSERTED) && !line.starts_with(COMMENT))
            .collect())
    }

    /// Compiles what has changed, without linking the program.
    pub fn compile(&self) -> Result<()> {
        quietly(&mut self.compilation()?)
    }

    /// The same where it may fail; whether it does not.
    pub fn compiles(&self) -> Result<bool> {
        let mut command = self.compilation()?;
        Ok(command.stdout(Stdio::null()).stderr(Stdio::null()).status()?.success())
    }

    fn compilation(&self) -> Result<Command> {
        let mut command = self.ninja();
        command.arg("--quiet").args(self.linked()?);
        Ok(command)
    }

    /// The objects and archives that the program is made of, as the build directory names them.
    pub fn linked(&self) -> Result<Vec<PathBuf>> {
        let said = output(self.ninja().args(["-t", "inputs", self.target]))?;
        Ok(said
            .lines()
            .filter(|path| path.ends_with(".o") || path.ends_with(".a"))
            .map(PathBuf::from)
            .collect())
    }

    /// Copies what the program is made of to another build directory.
    pub fn copy_linked(&self, build: &Path) -> Result<()> {
        for file in self.linked()? {
            let place = build.join(&file);
            fs::create_dir_all(place.parent().context("a file has a directory")?)?;
            fs::copy(self.build.join(&file), place)?;
        }
        Ok(())
    }

    /// The files that are compiled.
    pub fn compiled(&self) -> Result<HashSet<PathBuf>> {
        let said = output(self.ninja().args(["-t", "compdb"]))?;
        let commands: Vec<serde_json::Value> = serde_json::from_str(&said)?;
        let files = commands.iter().filter_map(|command| command["file"].as_str());
        Ok(files.map(|file| self.build.join(file)).collect())
    }

    fn ninja(&self) -> Command {
        let mut command = Command::new("ninja");
        command.arg("-C").arg(&self.build);
        command
    }
}

/// Copies a directory of sources, unless that was done before, so that it can be edited.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    if to.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(to.parent().context("a copy has a directory")?)?;
    // One that is broken off is not taken for the whole.
    let part = to.with_extension("part");
    shell::remove(&part)?;
    quietly(Command::new("cp").arg("-r").arg(from).arg(&part))?;
    quietly(Command::new("chmod").args(["-R", "u+w"]).arg(&part))?;
    Ok(fs::rename(&part, to)?)
}
