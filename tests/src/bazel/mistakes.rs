//! What a new user gets wrong, and what is no mistake though it may look like one.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::program;
use super::workspace::Workspace;
use crate::run::succeed;
use crate::toolchain::{NEWEST, Toolchain};

/// A mistake.
pub struct Mistake {
    /// What is wrong.
    pub name: &'static str,
    /// What Bazel's answer has to hold.
    pub told: &'static [&'static str],
    make: fn(&Workspace) -> Result<()>,
    undo: fn(&Workspace) -> Result<()>,
}

/// Those that are tried.
pub const MISTAKES: [Mistake; 4] = [
    Mistake {
        name: "a clang that is not there",
        told: &["clang-99 is not to be found", "apt-get install clang-99"],
        make: |ws| ws.edit("WORKSPACE", "llvm = \"22\"", "llvm = \"99\""),
        undo: |ws| ws.edit("WORKSPACE", "llvm = \"99\"", "llvm = \"22\""),
    },
    Mistake {
        name: "no lld beside clang",
        told: &["/ld.lld is not to be found", "apt-get install lld"],
        make: |ws| {
            let clang = Toolchain { version: NEWEST }.tool("clang")?;
            fs::create_dir_all(ws.path("llvm"))?;
            for name in ["clang", "clang++"] {
                std::os::unix::fs::symlink(&clang, ws.path("llvm").join(name))?;
            }
            ws.edit("WORKSPACE", "llvm = \"22\"", &format!("llvm = \"{}\"", ws.path("llvm").display()))
        },
        undo: |ws| {
            ws.edit("WORKSPACE", &format!("llvm = \"{}\"", ws.path("llvm").display()), "llvm = \"22\"")?;
            Ok(fs::remove_dir_all(ws.path("llvm"))?)
        },
    },
    Mistake {
        name: "an archive that is cut off",
        told: &["libarchive.a"],
        make: |ws| {
            let path = ws.path("prebuilt/libarchive.a");
            let bytes = fs::read(&path)?;
            ws.write("prebuilt/libarchive.a", &bytes[..bytes.len() / 2])
        },
        undo: |ws| program::archive(ws, &["first", "second"]),
    },
    Mistake {
        name: "an object that is none",
        told: &["object.o"],
        make: |ws| ws.write("prebuilt/object.o", "not an object\n"),
        undo: program::object,
    },
];

impl Mistake {
    /// Makes it, builds, undoes it, and gives what Bazel said.
    pub fn tried(&self, workspace: &Workspace) -> Result<String> {
        (self.make)(workspace)?;
        let said = workspace.fail(&["//app"]);
        (self.undo)(workspace)?;
        let said = said.with_context(|| format!("with {}", self.name))?;
        for told in self.told {
            ensure!(said.contains(told), "with {}, Bazel does not say {told:?}:\n{said}", self.name);
        }
        Ok(said)
    }
}

/// What Bazel says of a distlto that is installed without its library.
pub fn without_library(workspace: &Workspace) -> Result<String> {
    workspace.write("alone/distlto", "")?;
    let said = workspace
        .fail(&["//app", &format!("--repo_env=DISTLTO={}", workspace.path("alone/distlto").display())])?;
    for told in ["libdistlto_hook.so is neither beside", "cargo xtask install"] {
        ensure!(said.contains(told), "Bazel does not say {told:?}:\n{said}");
    }
    Ok(said)
}

/// An archive of native code among bitcode, and a library of headers alone: both are linked as they are.
pub fn no_mistakes(workspace: &Workspace) -> Result<()> {
    let said = workspace.say("app/app")?;
    let mut clang = Command::new(Toolchain { version: NEWEST }.tool("clang")?);
    clang.args(["-O2", "-c", "object.c"]).current_dir(workspace.path("prebuilt"));
    succeed(&mut clang)?;
    let headers = "\n\ndistlto_library(\n    name = \"headers\",\n    hdrs = [\"lib.h\"],\n    visibility = [\"//visibility:public\"],\n)\n";
    let before = fs::read_to_string(workspace.path("lib/BUILD"))?;
    workspace.write("lib/BUILD", before + headers)?;
    workspace.edit("app/BUILD", "\"//lib\",", "\"//lib\",\n        \"//lib:headers\",")?;
    workspace.build(&["//app"])?;
    let now = workspace.say("app/app")?;
    ensure!(now == said, "with native code: {now:?} and not {said:?}");
    program::object(workspace)
}
