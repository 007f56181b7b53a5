//! A compiler as inputs of its actions: the program, the libraries that it loads, and the loader that loads them.
//!
//! Workers then need no compiler of their own. The loader of this machine lists the libraries; a loader finds a library
//! by its file's name. Knows nothing of the compiler's options.

use std::path::Path;

use distlto_planner::digests::Digest;

use crate::action::{ActionInput, InputContent};
use crate::program_files::libraries;

/// A compiler in a tree of inputs.
#[derive(Debug)]
pub struct CompilerInputs {
    /// The words that replace its name in a command.
    pub words: Vec<String>,
    /// Its files.
    pub inputs: Vec<ActionInput<'static>>,
}

impl CompilerInputs {
    /// Describes a compiler; `digest` returns the digest of a file. The error is a sentence with the cause.
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
        // A worker's own cache of libraries must not be used.
        let words = ["toolchain/loader", "--inhibit-cache", "--library-path", "toolchain/lib", compiler];
        Ok(Self { words: words.map(str::to_owned).to_vec(), inputs })
    }
}
