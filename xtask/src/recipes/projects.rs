//! A project that a recipe is shown with: sources of a Debian package, or a folder of `examples/`.
//!
//! What stands here is what is the project's own: options, how it is tested where its build system has no word for that,
//! and a line to edit. How it is linked stands in `docs/recipes.md` alone.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::debian::{self, SourcePackage};
use crate::shell::root;

/// Where sources are.
pub enum Sources {
    /// A Debian source package.
    Debian(SourcePackage),
    /// A folder of the repository.
    Example(&'static str),
}

/// A project and its recipe.
pub struct Project {
    /// What it is called here, and on the command line.
    pub name: &'static str,
    /// The section of the page.
    pub recipe: &'static str,
    /// Which of its ways, where there are several.
    pub variant: &'static str,
    /// Where it comes from.
    pub sources: Sources,
    /// What its build needs.
    pub tools: &'static [Tool],
    /// Files of the repository that are copied into it.
    pub added: &'static [(&'static str, &'static str)],
    /// The project's own options, `"$@"` of the page.
    pub options: &'static [&'static str],
    /// Environment variables that its build heeds.
    pub variables: &'static [(&'static str, &'static str)],
    /// Steps for which the page has no lines, or others than this project's.
    pub own: &'static [(&'static str, &'static str)],
    /// A file, a text in it that occurs once, and what is put after it.
    pub edit: (&'static str, &'static str, &'static str),
}

impl Project {
    /// Where its sources lie, fetched unless they are there.
    pub fn sources(&self, directory: &Path) -> Result<PathBuf> {
        match &self.sources {
            Sources::Example(name) => Ok(root().join("examples").join(name)),
            Sources::Debian(package) => {
                let sources = directory.join("sources");
                fs::create_dir_all(&sources)?;
                let unpacked = sources.join(package.name);
                debian::unpack(package, &directory.join("archives"), &unpacked)?;
                Ok(unpacked)
            }
        }
    }

    /// Its name and version, for people.
    pub fn title(&self) -> String {
        match &self.sources {
            Sources::Example(name) => format!("examples/{name}"),
            Sources::Debian(package) => format!("{} {}", package.name, package.version),
        }
    }
}

/// Code that changes a function of C or C++ and nothing that it does.
pub const C: &str = "__asm__ volatile(\"\" : : \"r\"(77u));";
/// The same in Rust.
pub const RUST: &str = "std::hint::black_box(77_u32);";

/// A Debian package, and a program of it.
pub type Tool = (&'static str, &'static str);

pub const MAKE: Tool = ("make", "make");
pub const CMAKE: Tool = ("cmake", "cmake");
pub const NINJA: Tool = ("ninja-build", "ninja");
pub const MESON: Tool = ("meson", "meson");
pub const GN: Tool = ("generate-ninja", "gn");
pub const PYTHON: Tool = ("python3", "python3");

/// What most projects have none of.
pub const NONE: Project = Project {
    name: "",
    recipe: "",
    variant: "",
    sources: Sources::Example(""),
    tools: &[],
    added: &[],
    options: &[],
    variables: &[],
    own: &[],
    edit: ("", "", ""),
};
