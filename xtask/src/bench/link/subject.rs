//! What `bench link` links: a program, how it is edited, and how it is known to work.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use anyhow::{Result, ensure};
use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::bench::program::{self, Program};
use crate::project::{Edit, Project};
use crate::projects::{self, bench_directory};
use crate::shell::{output, quietly};

/// The programs, as they are named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// One of someone else.
    Project(projects::Name),
    /// 2000 modules of some six milliseconds of compiling each.
    Small,
}

impl ValueEnum for Name {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<Name>> = LazyLock::new(|| {
            let projects = projects::Name::value_variants().iter().copied().map(Name::Project);
            projects.chain([Name::Small]).collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Project(name) => name.to_possible_value(),
            Self::Small => Some(
                PossibleValue::new("small").help("2000 modules of some six milliseconds of compiling each"),
            ),
        }
    }
}

const SMALL: usize = 2000;

/// A program that can be edited and tested.
pub struct Subject {
    name: Name,
    /// The program; what ways of linking write lies in its directory.
    pub program: Program,
    project: Option<Project>,
}

impl Subject {
    /// Has the program's modules be there.
    pub fn new(name: Name) -> Result<Self> {
        let project = match name {
            Name::Project(name) => Some(name.open(&bench_directory())?),
            Name::Small => None,
        };
        let program = match &project {
            Some(project) => program::of_project(project)?,
            None => program::small(SMALL)?,
        };
        Ok(Self { name, program, project })
    }

    /// Changes the code of one module, which is compiled.
    pub fn edit(&self, edit: Edit, variant: u32) -> Result<()> {
        match &self.project {
            Some(project) => {
                project.edit(edit, variant)?;
                project.compile()
            }
            // Nothing is imported from the first, and as much as from any other from one in the middle.
            None => program::edit_small(
                &self.program,
                if edit == Edit::Leaf { 0 } else { SMALL / 2 },
                SMALL,
                Some(variant),
            ),
        }
    }

    /// Undoes every edit.
    pub fn restore(&self) -> Result<()> {
        match &self.project {
            Some(project) => {
                project.restore()?;
                project.compile()
            }
            None => [0, SMALL / 2]
                .into_iter()
                .try_for_each(|number| program::edit_small(&self.program, number, SMALL, None)),
        }
    }

    /// Fails unless the linked program passes the tests that it has.
    pub fn check(&self, linked: &Path) -> Result<()> {
        let place = tempfile::tempdir()?;
        match self.name {
            Name::Project(projects::Name::Libgit2) => check_git2(linked, place.path()),
            Name::Project(projects::Name::Leveldb) => quietly(
                Command::new(linked)
                    .env("TEST_TMPDIR", place.path())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null()),
            ),
            Name::Project(projects::Name::Protoc) => check_protoc(linked, place.path()),
            Name::Project(projects::Name::RustAndCpp) => {
                quietly(Command::new(linked).arg(place.path().join("database")))
            }
            Name::Project(projects::Name::Cmake) => check_cmake(linked, place.path()),
            Name::Small => quietly(&mut Command::new(linked)),
        }
    }
}

/// Stores an object and reads it.
fn check_git2(git2: &Path, place: &Path) -> Result<()> {
    let text = "hello from a link\n";
    quietly(Command::new(git2).args(["init", "--quiet", "."]).current_dir(place).stdout(Stdio::null()))?;
    fs::write(place.join("file"), text)?;
    let name = output(Command::new(git2).args(["hash-object", "-w", "file"]).current_dir(place))?;
    let read = output(Command::new(git2).args(["cat-file", "-p", name.trim()]).current_dir(place))?;
    ensure!(read == text, "git2 stored something else");
    Ok(())
}

/// Translates messages to C++ and to Java.
fn check_protoc(protoc: &Path, place: &Path) -> Result<()> {
    let messages = "syntax = \"proto3\";\nmessage Point { int32 x = 1; repeated string names = 2; }\n";
    fs::write(place.join("point.proto"), messages)?;
    quietly(Command::new(protoc).args(["--cpp_out=.", "--java_out=.", "point.proto"]).current_dir(place))?;
    for (file, text) in [("point.pb.h", "class Point final"), ("PointOuterClass.java", "getNamesList()")] {
        ensure!(fs::read_to_string(place.join(file))?.contains(text), "{file} does not hold {text}");
    }
    Ok(())
}

/// Tells its version, and configures and builds a project.
fn check_cmake(linked: &Path, place: &Path) -> Result<()> {
    // Under its own name in its build it finds the modules of its sources, and is found by the builds that it writes.
    let own = linked.with_file_name("bin").join("cmake");
    fs::create_dir_all(linked.with_file_name("bin"))?;
    fs::copy(linked, &own)?;
    let told = output(Command::new(&own).arg("--version"))?;
    ensure!(told.starts_with("cmake version 3.25.1"), "it tells another version: {told}");
    fs::write(
        place.join("CMakeLists.txt"),
        "cmake_minimum_required(VERSION 3.13)\nproject(p C)\nadd_executable(p p.c)\n",
    )?;
    fs::write(place.join("p.c"), "int main(void) { return 0; }\n")?;
    let build: PathBuf = place.join("build");
    let cmake = || {
        let mut command = Command::new(&own);
        command.stdout(Stdio::null()).current_dir(place);
        command
    };
    quietly(cmake().args(["-S", ".", "-B", "build", "-DCMAKE_C_COMPILER=clang-22"]))?;
    quietly(cmake().args(["--build", "build"]))?;
    quietly(&mut Command::new(build.join("p")))
}
