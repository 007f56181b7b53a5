//! libgit2 and its command-line program `git2`, 232 C files: the program of `demo` and `bench`.
//!
//! Its sources come from the crate named in `tests/third-party`; they are copied, since both commands edit one of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use cargo_metadata::MetadataCommand;

use crate::shell::{find, output, quietly, root, run};

/// The C file whose edit is measured, and a line inside the body of a function in it that calls nothing.
const EDITED: (&str, &str) = ("src/util/varint.c", "\tuintmax_t val = c & 127;\n");

/// A copy of the sources and a build of them.
pub struct Libgit2 {
    sources: PathBuf,
    /// The build directory.
    pub build: PathBuf,
}

impl Libgit2 {
    /// Copies the sources into `dir` unless they are there.
    pub fn copy_to(dir: &Path) -> Result<Self> {
        let this = Self { sources: dir.join("libgit2"), build: dir.join("build") };
        if !this.sources.join("CMakeLists.txt").is_file() {
            fs::create_dir_all(dir)?;
            quietly(Command::new("cp").arg("-r").arg(unpacked()?).arg(&this.sources))?;
            quietly(Command::new("chmod").args(["-R", "u+w"]).arg(&this.sources))?;
        }
        Ok(this)
    }

    /// Configures a build with clang 22 and ThinLTO as a user would, with `extra` definitions.
    pub fn configure(&self, extra: &[String]) -> Result<()> {
        let mut cmake = Command::new("cmake");
        cmake.args(["-G", "Ninja", "-Wno-dev", "-S"]).arg(&self.sources).arg("-B").arg(&self.build);
        cmake.args([
            "-DCMAKE_BUILD_TYPE=Release",
            "-DCMAKE_C_COMPILER=clang-22",
            "-DCMAKE_C_FLAGS=-flto=thin",
            "-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld -flto=thin",
            "-DUSE_HTTPS=OFF",
            "-DUSE_SSH=OFF",
            "-DBUILD_TESTS=OFF",
            "-DBUILD_SHARED_LIBS=OFF",
            "-DREGEX_BACKEND=builtin",
            "-DUSE_BUNDLED_ZLIB=ON",
            "-DUSE_HTTP_PARSER=builtin",
            "-DBUILD_CLI=ON",
        ]);
        for (variable, tool) in [("AR", "llvm-ar-22"), ("RANLIB", "llvm-ranlib-22")] {
            // CMake takes a relative tool as a file of the build directory.
            let path =
                find(tool).with_context(|| format!("{tool} is missing; `cargo xtask setup` installs it"))?;
            cmake.arg(format!("-DCMAKE_{variable}={}", path.display()));
        }
        run(cmake.args(extra).stdout(Stdio::null()))
    }

    /// The command that links `git2`, to be run in the build directory.
    pub fn link_words(&self) -> Result<Vec<String>> {
        let said = output(Command::new("ninja").arg("-C").arg(&self.build).args(["-t", "commands", "git2"]))?;
        let last = said.lines().last().context("ninja knows no link of git2")?;
        // CMake writes `: && COMMAND && :` around a link.
        let command = last.trim_start_matches(": && ").trim_end_matches(" && :");
        let words = shlex::split(command).context("ninja's command has an open quote")?;
        let start =
            words.iter().position(|word| word.contains("clang")).context("git2 is not linked by clang")?;
        Ok(words[start..].to_vec())
    }

    /// How long the link of `git2` took in the last build, in seconds, by ninja's own log.
    pub fn link_seconds(&self) -> Result<f64> {
        let log = fs::read_to_string(self.build.join(".ninja_log"))?;
        let line = log.lines().rfind(|line| line.split('\t').nth(3) == Some("git2"));
        let mut times = line.context("ninja has not linked git2")?.split('\t').map(str::parse::<f64>);
        match (times.next(), times.next()) {
            (Some(Ok(start)), Some(Ok(end))) => Ok((end - start) / 1000.0),
            _ => bail!("unexpected line in .ninja_log"),
        }
    }

    /// Gives the body of one small function another constant, which changes its code and nothing else.
    pub fn edit(&self, variant: u32) -> Result<&'static str> {
        let (file, line) = EDITED;
        let path = self.sources.join(file);
        let original = fs::read_to_string(unpacked()?.join(file))?;
        ensure!(original.contains(line), "{file} has no line to edit");
        let edited = format!("{line}\t__asm__ volatile(\"\" : : \"r\"({variant}u));\n");
        fs::write(&path, original.replacen(line, &edited, 1))?;
        Ok(file)
    }

    /// Undoes every edit.
    pub fn restore(&self) -> Result<()> {
        let (file, _) = EDITED;
        let original = fs::read(unpacked()?.join(file))?;
        if fs::read(self.sources.join(file))? != original {
            fs::write(self.sources.join(file), original)?;
        }
        Ok(())
    }

    /// Compiles what has changed, without linking.
    pub fn compile(&self) -> Result<()> {
        let said = output(Command::new("ninja").arg("-C").arg(&self.build).args(["-t", "inputs", "git2"]))?;
        let objects = said.lines().filter(|path| path.ends_with(".o"));
        quietly(Command::new("ninja").arg("-C").arg(&self.build).arg("--quiet").args(objects))
    }
}

fn unpacked() -> Result<PathBuf> {
    Ok(sources_of("libgit2-sys")?.join("libgit2"))
}

/// The unpacked sources of a crate that `tests/third-party` names.
pub fn sources_of(name: &str) -> Result<PathBuf> {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("tests/third-party/Cargo.toml"))
        .other_options(vec!["--locked".to_owned()])
        .exec()?;
    let package = metadata.packages.iter().find(|package| *package.name == name);
    let manifest = &package.with_context(|| format!("tests/third-party names no {name}"))?.manifest_path;
    Ok(manifest.parent().context("a manifest has a directory")?.as_std_path().to_owned())
}
