//! One graph, run by distlto and as a build.ninja, each from nothing: both make the same objects and the same program.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::program::objects;
use distlto_tests::run::{capture, succeed};
use distlto_tests::toolchain::{Toolchain, system_tool};

const SOURCES: [(&str, &str); 4] = [
    (
        "main",
        "#include <stdio.h>\nint near(int), far(int), member(int);\n\
         int main(void) { printf(\"%d\\n\", near(1) + far(2) + member(3)); return 0; }\n",
    ),
    ("near", "int near(int n) { return n * 2; }\n"),
    ("far $way's \"1\"", "__attribute__((noinline)) int far(int n) { return n + 1; }\n"),
    ("member", "int near(int);\nint member(int n) { return near(n) * 10; }\n"),
];

struct Plan {
    folder: Folder,
    path: std::ffi::OsString,
}

impl Plan {
    fn create() -> Result<Self> {
        let folder = Folder::create(Toolchain::from_env()?, "emitted")?;
        // Tools that are said by name alone.
        let tools = folder.path.join("tools");
        fs::create_dir_all(&tools)?;
        for name in ["distlto", "distlto-index", "distlto-opt", "distlto-plan"] {
            std::os::unix::fs::symlink(distlto::binary()?, tools.join(name))?;
        }
        let inherited = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([tools].into_iter().chain(env::split_paths(&inherited)))?;
        let plan = Self { folder, path };
        let clang = plan.folder.toolchain.tool("clang")?;
        for (name, text) in SOURCES {
            let source = format!("{name}.c");
            plan.folder.write(&source, text)?;
            let object = format!("{name}.o");
            succeed(plan.command(&clang).args(["-O2", "-flto=thin", "-c", &source, "-o", &object]))?;
        }
        let ar = plan.folder.toolchain.tool("llvm-ar")?;
        succeed(plan.command(&ar).args(["rcs", "lib.a", "member.o"]))?;
        let lld = format!("--ld-path={}", plan.folder.toolchain.tool("ld.lld")?.display());
        let mut index = plan.command("distlto-index");
        index.arg("--").arg(&clang).args(["-O2", "-flto=thin", &lld, "-o", "program"]);
        succeed(index.args(["main.o", "near.o", "far $way's \"1\".o", "lib.a"]))?;
        Ok(plan)
    }

    fn command(&self, program: impl AsRef<Path>) -> Command {
        let program = program.as_ref();
        let tool = self.folder.path.join("tools").join(program);
        let mut command = Command::new(if tool.exists() { &tool } else { program });
        command.current_dir(&self.folder.path).env("PATH", &self.path).env_remove("DISTLTO_STATE");
        command
    }

    /// What a build makes where there is no object and no program: the objects by name, and the program.
    fn built(&self, name: &str, run: impl FnOnce(&Self) -> Result<()>) -> Result<Made> {
        let state = self.folder.path.join("program.distlto/index");
        let program = self.folder.path.join("program");
        fs::remove_dir_all(state.join("objects")).or_else(|error| if_there(error, ()))?;
        fs::remove_file(&program).or_else(|error| if_there(error, ()))?;
        run(self).with_context(|| name.to_owned())?;
        let made = objects(&state.join("objects"))?.into_iter().collect();
        let said = String::from_utf8(succeed(&mut self.command(program.clone()))?.stdout)?;
        ensure!(said == "65\n", "{name}: the program says {said}");
        Ok((made, fs::read(program)?))
    }
}

type Made = (BTreeMap<PathBuf, Vec<u8>>, Vec<u8>);

fn if_there<T>(error: std::io::Error, nothing: T) -> std::io::Result<T> {
    if error.kind() == std::io::ErrorKind::NotFound { Ok(nothing) } else { Err(error) }
}

#[test]
fn ninja_builds_what_distlto_runs() -> Result<()> {
    let plan = Plan::create()?;
    let by_ninja = plan.built("ninja", |plan| {
        succeed(plan.command("distlto-plan").args(["program.distlto", "--ninja", "link.ninja"]))?;
        succeed(plan.command(system_tool("ninja")?).args(["-f", "link.ninja"])).map(drop)
    })?;
    ensure!(by_ninja.0.len() == 4, "{:?}", by_ninja.0.keys());
    let by_run = plan.built("distlto run", |plan| {
        succeed(plan.command("distlto").args(["run", "program.distlto"])).map(drop)
    })?;
    ensure!(by_run == by_ninja, "distlto makes other objects or another program than ninja");

    // After a failed compilation nothing is linked.
    fs::write(plan.folder.path.join("near.o"), "no module")?;
    fs::remove_file(plan.folder.path.join("program"))?;
    let output = capture(plan.command(system_tool("ninja")?).args(["-f", "link.ninja"]))?;
    ensure!(!output.status.success() && !plan.folder.path.join("program").exists(), "{output:?}");
    Ok(())
}
