//! The LLVM that a test run uses: which version, where its tools are, and what to install when one is missing.
//!
//! Debian's names are used (`clang-22`, `llvm-ar-16`); `DISTLTO_TEST_LLVM` chooses the version. Knows nothing of cases.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

/// The LLVM that rustc's bitcode and the DTLTO oracle need.
pub const NEWEST: u32 = 22;

/// One installed LLVM.
#[derive(Debug, Clone, Copy)]
pub struct Toolchain {
    /// Major version.
    pub version: u32,
}

impl Toolchain {
    /// The version named by `DISTLTO_TEST_LLVM`, or the newest.
    pub fn from_env() -> Result<Self> {
        let version = match env::var("DISTLTO_TEST_LLVM") {
            Ok(text) => {
                text.parse().with_context(|| format!("DISTLTO_TEST_LLVM={text:?} is no major version"))?
            }
            Err(_) => NEWEST,
        };
        let toolchain = Self { version };
        toolchain.tool("clang")?;
        toolchain.tool("ld.lld")?;
        Ok(toolchain)
    }

    /// Whether lld can hand backends to a distributor.
    pub fn has_dtlto(self) -> bool {
        self.version > 21
    }

    /// The absolute path of a tool of this LLVM, named without its version: `clang`, `clang++`, `ld.lld`, `llvm-ar`.
    /// Packages of old versions that hold only the compiler borrow the newest binary utilities.
    pub fn tool(self, name: &str) -> Result<PathBuf> {
        let versioned = |version: u32| find(&format!("{name}-{version}"));
        let utility = name.starts_with("llvm-") && name != "llvm-profdata";
        versioned(self.version).or_else(|| if utility { versioned(NEWEST) } else { None }).with_context(
            || {
                let version = self.version;
                format!("{name}-{version} is missing; install it with `cargo xtask setup --llvm {version}`")
            },
        )
    }
}

/// The first executable of this name in PATH.
pub fn find(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|dir| dir.join(name)).find(|path| path.is_file())
}

/// A program that comes with the system, not with LLVM: `gcc`, `cmake`, `rustc`.
pub fn system_tool(name: &str) -> Result<PathBuf> {
    find(name).with_context(|| format!("{name} is missing; install it with `cargo xtask setup`"))
}

/// GNU make or Ninja of a release that has job slots in a fifo.
pub fn builder(name: &str) -> Result<PathBuf> {
    let path = target().join("builders").join(name);
    ensure!(path.is_file(), "{} is missing; install it with `cargo xtask setup`", path.display());
    Ok(path)
}

/// A program that this crate builds for its own tests, found beside the running test.
pub fn helper(name: &str) -> Result<PathBuf> {
    let path = profile_dir()?.join(name);
    if !path.is_file() {
        bail!("{} is missing; run the tests with `cargo test -p distlto-tests`", path.display());
    }
    Ok(path)
}

/// `target/debug` or `target/release`, whichever holds the running test.
pub fn profile_dir() -> Result<PathBuf> {
    let exe = env::current_exe()?;
    let dir = exe.parent().context("a test has a directory")?;
    let dir = if dir.file_name() == Some(OsStr::new("deps")) { dir.parent().unwrap_or(dir) } else { dir };
    Ok(dir.to_owned())
}

/// Where cargo builds, and `cargo xtask setup` installs.
pub fn target() -> PathBuf {
    repository().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// The root of the repository.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}
