//! A compiler as inputs of its actions: the program, the libraries that it loads, and the loader that loads them.
//!
//! Workers need none of their own then. Which libraries those are the loader here is asked; a loader finds a library by its
//! file's name. Knows nothing of what the compiler is told.

use std::path::Path;

use distlto_planner::digests::Digest;

use crate::action::{ActionInput, InputContent};
use crate::loaded::libraries;

/// A compiler in a tree of inputs.
#[derive(Debug)]
pub struct Uploaded {
    /// What stands in the place of its name in a command.
    pub words: Vec<String>,
    /// Its files.
    pub inputs: Vec<ActionInput<'static>>,
}

impl Uploaded {
    /// A compiler whose files are looked at by `digest`. An error says what cannot be found out.
    pub fn of(program: &Path, digest: impl Fn(&Path) -> Result<Digest, String>) -> Result<Self, String> {
        let mut inputs = Vec::new();
        let mut add = |name: &str, file: &Path, is_executable| {
            let path = file.to_str().ok_or_else(|| format!("{}: the path is not UTF-8", file.display()))?;
            let content = InputContent::File(path.to_owned().into());
            inputs.push(ActionInput {
                name: name.to_owned().into(),
                digest: digest(file)?,
                is_executable,
                content,
            });
            Ok::<_, String>(())
        };
        let compiler = "toolchain/compiler";
        add(compiler, program, true)?;
        let libraries = libraries(program)?;
        let Some((loader, libraries)) = libraries.split_first() else {
            return Ok(Self { words: vec![compiler.to_owned()], inputs });
        };
        add("toolchain/loader", loader, true)?;
        for library in libraries.iter().filter(|library| *library != loader) {
            let name = library.file_name().and_then(|name| name.to_str());
            let name = name.ok_or_else(|| format!("{}: the path is not UTF-8", library.display()))?;
            add(&format!("toolchain/lib/{name}"), library, true)?;
        }
        // What a worker knows of libraries of its own is of no use.
        let words = ["toolchain/loader", "--inhibit-cache", "--library-path", "toolchain/lib", compiler];
        Ok(Self { words: words.map(str::to_owned).to_vec(), inputs })
    }
}
