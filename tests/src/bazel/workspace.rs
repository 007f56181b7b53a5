//! A workspace in a folder of its own, built by a server of its own that ends with it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};

use super::Version;
use super::log::Actions;
use crate::distlto;
use crate::run::{capture, fail, succeed, told};
use crate::toolchain::{profile_dir, repository};

/// A workspace, and the options of its builds.
#[derive(Debug)]
pub struct Workspace {
    /// Which Bazel builds it.
    pub version: Version,
    /// The folder of everything: `ws` has the sources, `base` what is built, `cache` is for a disk cache.
    pub folder: PathBuf,
    /// Options of every build.
    pub options: Vec<String>,
    base: &'static str,
}

impl Workspace {
    /// An empty one, that loads the rules of this repository as `@distlto`.
    pub fn create(version: Version, name: &str) -> Result<Self> {
        let folder = profile_dir()?.join("bazel").join(version.name()).join(name);
        if folder.exists() {
            // Bazel takes the right to write from what it has built.
            succeed(Command::new("chmod").args(["-R", "u+w"]).arg(&folder))?;
            fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {}", folder.display()))?;
        }
        fs::create_dir_all(folder.join("ws"))?;
        let distlto = fs::canonicalize(distlto::binary()?)?;
        let mut options = [
            "--jobs=2",
            "--color=no",
            "--curses=no",
            "--noshow_progress",
            // Debian has it on, which keeps every sandbox.
            "--nosandbox_debug",
            "--remote_download_outputs=all",
        ]
        .map(str::to_owned)
        .to_vec();
        options.extend(version.options().iter().map(|&option| option.to_owned()));
        options.push(format!("--repo_env=DISTLTO={}", distlto.display()));
        let mut workspace = Self { version, folder, options, base: "base" };
        if version == Version::Four {
            workspace.provide_coverage()?;
        }
        let rules = repository().join("rules/bazel");
        let text = format!(
            "local_repository(name = \"distlto\", path = \"{}\")\n\n\
             load(\"@distlto//:repositories.bzl\", \"distlto_configure\")\n\ndistlto_configure(llvm = \"22\", shards = 3)\n",
            rules.display()
        );
        workspace.write("WORKSPACE", text)?;
        Ok(workspace)
    }

    /// Has a repository that the older version fetches for every test be one of nothing.
    fn provide_coverage(&mut self) -> Result<()> {
        let coverage = self.folder.join("coverage");
        let group = |name| format!("filegroup(name = \"{name}\", visibility = [\"//visibility:public\"])\n");
        fs::create_dir_all(&coverage)?;
        fs::write(coverage.join("WORKSPACE"), "")?;
        fs::write(coverage.join("BUILD"), ["coverage_report_generator", "lcov_merger"].map(group).concat())?;
        self.options.push(format!("--override_repository=remote_coverage_tools={}", coverage.display()));
        Ok(())
    }

    /// Loads what `MODULE.bazel` names, and no `WORKSPACE`; only the newer version can.
    pub fn by_modules(mut self) -> Self {
        self.options.retain(|option| !Version::Seven.options().contains(&option.as_str()));
        self.options.extend(["--noenable_workspace", "--lockfile_mode=off"].map(str::to_owned));
        self
    }

    /// The same sources, built into another output base by another server.
    pub fn elsewhere(&self) -> Self {
        let Self { version, folder, options, .. } = self;
        Self { version: *version, folder: folder.clone(), options: options.clone(), base: "elsewhere" }
    }

    /// A path of a source.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join("ws").join(name)
    }

    /// Where an output lies.
    pub fn output(&self, name: &str) -> PathBuf {
        self.path("bazel-bin").join(name)
    }

    /// Writes a source, making its directory.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> Result<()> {
        let path = self.path(name);
        fs::create_dir_all(path.parent().context("a file has a directory")?)?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Copies a directory of sources into the workspace.
    pub fn copy(&self, from: &Path) -> Result<()> {
        succeed(Command::new("cp").arg("-R").arg(from.join(".")).arg(self.path(""))).map(drop)
    }

    /// Replaces a text in a source, once.
    pub fn edit(&self, name: &str, from: &str, to: &str) -> Result<()> {
        let text = fs::read_to_string(self.path(name)).with_context(|| format!("cannot read {name}"))?;
        ensure!(text.contains(from), "{name} does not hold {from}");
        self.write(name, text.replacen(from, to, 1))
    }

    /// A command of Bazel's.
    pub fn bazel(&self, name: &str) -> Result<Command> {
        let mut command = Command::new(self.version.program()?);
        command.arg("--nohome_rc").arg(format!("--output_base={}", self.folder.join(self.base).display()));
        // Little memory, and no optimising: the server lives for a minute.
        command.args(
            ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
                .map(|word| format!("--host_jvm_args={word}")),
        );
        // Where this process is killed.
        command.arg("--max_idle_secs=60");
        command.arg(name).current_dir(self.path(""));
        // Variables of cargo's own differ from run to run, and the rules look for programs again when one does.
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CARGO")) {
            command.env_remove(name);
        }
        Ok(command)
    }

    fn logging(&self, name: &str, arguments: &[&str]) -> Result<Command> {
        let mut command = self.bazel(name)?;
        command.args(&self.options).arg(format!("--execution_log_json_file={}", self.log().display()));
        command.args(arguments);
        Ok(command)
    }

    fn building(&self, arguments: &[&str]) -> Result<Command> {
        self.logging("build", arguments)
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log.json")
    }

    /// Builds targets, with further options, and says what ran.
    pub fn build(&self, arguments: &[&str]) -> Result<Actions> {
        succeed(&mut self.building(arguments)?)?;
        Actions::read(&self.log())
    }

    /// Fails to build, and says what Bazel printed.
    pub fn fail(&self, arguments: &[&str]) -> Result<String> {
        Ok(fail(&mut self.building(arguments)?)?.1)
    }

    /// Builds or fails to.
    pub fn try_build(&self, arguments: &[&str]) -> Result<Output> {
        capture(&mut self.building(arguments)?)
    }

    /// Runs a program as `bazel run` does, and gives what it prints.
    pub fn run(&self, target: &str) -> Result<String> {
        let output = succeed(self.bazel("run")?.args(&self.options).arg(target))?;
        String::from_utf8(output.stdout).context("programs print UTF-8")
    }

    /// Runs tests, and gives what Bazel says of each, and what ran.
    pub fn test(&self, arguments: &[&str]) -> Result<(String, Actions)> {
        let output = succeed(&mut self.logging("test", arguments)?)?;
        let said = String::from_utf8(output.stdout).context("Bazel prints UTF-8")?;
        Ok((said, Actions::read(&self.log())?))
    }

    /// Runs a program that is built where the sources are, and gives what it prints.
    pub fn say(&self, program: &str) -> Result<String> {
        let mut program = Command::new(self.output(program));
        program.current_dir(self.path(""));
        let output = capture(&mut program)?;
        ensure!(output.status.success(), "{}", told(&program, &output));
        String::from_utf8(output.stdout).context("programs print UTF-8")
    }

    /// Forgets all that was built; caches remain.
    pub fn clean(&self) -> Result<()> {
        succeed(&mut self.bazel("clean")?).map(drop)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // It ends by itself after a while.
        let _ = self.bazel("shutdown").and_then(|mut command| capture(&mut command));
    }
}
