//! Builds a program in a directory: writes what differs, compiles and archives what that concerns, and remembers the
//! commands, so that one link can be repeated by hand.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::model::{Form, Kind, Language, Library, Program, Unit};
use super::{assembly, line, source};
use crate::run::{shown, succeed};
use crate::store;
use crate::toolchain::Toolchain;

/// A directory with a program's sources and objects.
#[derive(Debug)]
pub struct Workspace {
    /// The directory; every command runs in it.
    pub path: PathBuf,
    /// The LLVM it is built with.
    pub toolchain: Toolchain,
    /// The commands that were run, as one would type them.
    pub commands: Vec<String>,
    /// What each file was made of.
    made: BTreeMap<String, String>,
}

impl Workspace {
    /// An empty directory.
    pub fn create(path: PathBuf, toolchain: Toolchain) -> Result<Self> {
        if path.exists() {
            fs::remove_dir_all(&path).with_context(|| format!("cannot empty {}", path.display()))?;
        }
        store::prepare(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self { path, toolchain, commands: Vec::new(), made: BTreeMap::new() })
    }

    /// Makes everything up to the link.
    pub fn build(&mut self, program: &Program) -> Result<()> {
        for (name, text) in line::files(program) {
            self.write(name, text)?;
        }
        let mut compiled = Vec::new();
        for unit in &program.units {
            if self.compile(program, unit)? {
                compiled.push(unit.number);
            }
        }
        for library in &program.archives {
            self.archive(program, library, &compiled)?;
        }
        for library in &program.shared {
            self.share(program, library, &compiled)?;
        }
        self.twins(program)?;
        if program.options.kind == Kind::Shared && self.write("host.c", source::HOST.to_owned())? {
            let mut command = self.tool("clang")?;
            self.run(command.args(["-c", "host.c", "-o", "host.o"]))?;
        }
        Ok(())
    }

    /// The same files in another directory, save what the ways of linking made.
    pub fn copy(&self, path: PathBuf) -> Result<Self> {
        let copy = Self::create(path, self.toolchain)?;
        copy_files(&self.path, &copy.path)?;
        Ok(copy)
    }

    /// A tool of the toolchain, to be run in the directory.
    pub fn tool(&self, name: &str) -> Result<Command> {
        let mut command = Command::new(self.toolchain.tool(name)?);
        command.current_dir(&self.path);
        Ok(command)
    }

    /// Runs a command that must succeed.
    pub fn run(&mut self, command: &mut Command) -> Result<()> {
        self.commands.push(shown(command));
        succeed(command).map(drop)
    }

    /// Whether a file is made of something else than last time.
    fn differs(&mut self, name: &str, of: String) -> bool {
        let before = self.made.insert(name.to_owned(), of.clone());
        before != Some(of)
    }

    fn write(&mut self, name: &str, text: String) -> Result<bool> {
        let path = self.path.join(name);
        let differs = self.differs(name, text.clone());
        if differs {
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(differs)
    }

    fn compile(&mut self, program: &Program, unit: &Unit) -> Result<bool> {
        let text = match unit.language {
            Language::Assembly => assembly::text(unit),
            Language::C | Language::Cpp => source::text(program, unit),
        };
        let source = unit.source();
        let written = self.write(&source, text)?;
        let mut flags: Vec<&str> = match unit.language {
            Language::Assembly => Vec::new(),
            Language::C => vec!["-fcommon", "-ffunction-sections"],
            Language::Cpp => {
                vec![
                    "-std=c++17",
                    "-fno-exceptions",
                    "-fno-rtti",
                    "-fno-threadsafe-statics",
                    "-ffunction-sections",
                ]
            }
        };
        flags.extend(match unit.form {
            Form::Thin => Some("-flto=thin"),
            Form::Full => Some("-flto=full"),
            Form::Native => None,
        });
        flags.extend((program.options.classes && unit.is_bitcode()).then_some("-fwhole-program-vtables"));
        let object = match unit.link {
            Some(number) => format!("{}.{number}", unit.object),
            None => unit.object.clone(),
        };
        let mut words = line::compile_words(unit, &flags);
        words.extend(["-c".to_owned(), source, "-o".to_owned(), object.clone()]);
        if !self.differs(&unit.object, words.join(" ")) && !written {
            return Ok(false);
        }
        if let Some(parent) = self.path.join(&object).parent() {
            fs::create_dir_all(parent)?;
        }
        let mut command = self.tool("clang")?;
        self.run(command.args(words))?;
        if unit.link.is_some() {
            self.lead(&unit.object, &object)?;
        }
        Ok(true)
    }

    /// Has a symbolic link lead to a file in its directory.
    fn lead(&mut self, link: &str, to: &str) -> Result<()> {
        let name = Path::new(to).file_name().context("an object has a name")?;
        let link = self.path.join(link);
        // The first time there is none, or an object.
        let _ = fs::remove_file(&link);
        symlink(name, &link).with_context(|| format!("cannot make {}", link.display()))
    }

    fn archive(&mut self, program: &Program, library: &Library, compiled: &[usize]) -> Result<()> {
        let members = library.members.iter().map(|unit| program.units[*unit].object.as_str());
        let name = format!("lib{}.a", library.name);
        let words: Vec<&str> = if library.thin { vec!["--thin"] } else { Vec::new() };
        let words: Vec<&str> = words.into_iter().chain(members).collect();
        let stale = !library.thin && library.members.iter().any(|unit| compiled.contains(unit));
        if !self.differs(&name, words.join(" ")) && !stale {
            return Ok(());
        }
        let path = self.path.join(&name);
        if path.exists() {
            fs::remove_file(&path)?;
        }
        let mut command = self.tool("llvm-ar")?;
        // `q`, as members may have one name.
        let (options, members) =
            if library.thin { (&words[..1], &words[1..]) } else { (&words[..0], &words[..]) };
        self.run(command.arg("qcs").args(options).arg(&name).args(members))
    }

    fn twins(&mut self, program: &Program) -> Result<()> {
        let objects = line::twins(program);
        let Some(last) = objects.last() else { return Ok(()) };
        if !self.write("twin.c", source::TWIN.to_owned())? {
            return Ok(());
        }
        for object in &objects {
            let mut command = self.tool("clang")?;
            self.run(command.args(["-O2", "-fPIC", "-flto=thin", "-c", "twin.c", "-o", object]))?;
        }
        let mut command = self.tool("llvm-ar")?;
        self.run(command.args(["qcs", line::TWINS, last]))
    }

    fn share(&mut self, program: &Program, library: &Library, compiled: &[usize]) -> Result<()> {
        let members = library.members.iter().map(|unit| program.units[*unit].object.clone());
        let name = format!("lib{}.so", library.name);
        let words: Vec<String> = members.collect();
        let stale = library.members.iter().any(|unit| compiled.contains(unit));
        if !self.differs(&name, words.join(" ")) && !stale {
            return Ok(());
        }
        let mut command = self.tool("clang")?;
        command.args(["-shared", "-fuse-ld=lld", "-o", &name]).arg(format!("-Wl,-soname,{name}"));
        // What two of them define twice is not the link under test.
        self.run(command.arg("-Wl,-z,muldefs").args(words))
    }
}

fn copy_files(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            symlink(fs::read_link(&path)?, to)?;
        } else if kind.is_file() {
            fs::copy(path, to)?;
        } else if entry.file_name() != store::CACHE && !entry.file_name().to_string_lossy().starts_with("by-")
        {
            fs::create_dir(&to)?;
            copy_files(&path, &to)?;
        }
    }
    Ok(())
}
