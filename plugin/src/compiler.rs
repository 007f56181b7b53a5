//! Which compiler runs: the one that the options name, else the clang beside the linker, else the clang in `PATH`.
//!
//! The linker is the program that this library is loaded into. Knows nothing of versions.

use std::path::Path;

use distlto_planner::link_command::clang_beside;
use distlto_planner::search_path::program_file;
use distlto_planner::words::word_of;
use miette::Diagnostic;
use thiserror::Error;

/// No compiler.
#[derive(Debug, Error, Diagnostic)]
#[diagnostic(
    code(distlto::tool),
    help(
        "install the clang of the linker's LLVM version, or name it: --thinlto-distribute=distlto:compiler=/usr/bin/clang-22"
    )
)]
pub enum CompilerError {
    /// None was named and none is in the usual places.
    #[error("no clang was found beside {linker}, nor in PATH")]
    None { linker: String },
    /// The one that was named is not there.
    #[error("the compiler {compiler:?} was not found{}", if compiler.contains('/') { "" } else { " in PATH" })]
    Missing { compiler: String },
    /// Its path cannot stand in a command.
    #[error("the path of the compiler, {compiler:?}, is not UTF-8")]
    NotUtf8 { compiler: String },
}

/// The compiler as an absolute path, since commands may run elsewhere.
pub fn find(named: Option<&str>) -> Result<String, CompilerError> {
    let found = match named {
        Some(named) => {
            let path = Path::new(named);
            let found = program_file(path);
            let missing = || CompilerError::Missing { compiler: named.to_owned() };
            found.filter(|path| path.is_file()).ok_or_else(missing)?
        }
        None => {
            let linker = std::env::current_exe().unwrap_or_default();
            let beside = clang_beside(&word_of(linker.clone().into_os_string()));
            let beside = beside.map(|word| distlto_planner::words::path_of(&word));
            let none = || CompilerError::None { linker: linker.display().to_string() };
            beside.or_else(|| program_file(Path::new("clang"))).ok_or_else(none)?
        }
    };
    let absolute = std::path::absolute(&found).unwrap_or(found);
    absolute
        .into_os_string()
        .into_string()
        .map_err(|path| CompilerError::NotUtf8 { compiler: path.to_string_lossy().into_owned() })
}
