//! The kind of command that a user wraps: a compiler driver, a linker, or something else.
//!
//! Judges by the program's name alone, as drivers and linkers themselves do. Runs nothing.

/// The kind of a command's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramKind {
    /// clang or clang++, under any prefix or version suffix.
    Clang,
    /// Another program that may pass its arguments to a compiler driver: gcc, cc, ccache, a script.
    OtherDriver,
    /// An ELF linker of LLVM.
    Lld,
    /// A linker that is not one for ELF, or not one of LLVM's.
    OtherLinker,
}

/// Returns the kind of a command's program by its base name; `first` is the command's first argument.
pub fn program(command: &str, first: Option<&[u8]>) -> ProgramKind {
    let name = command.rsplit('/').next().unwrap_or(command);
    let stem = without_version(name);
    match stem {
        "ld.lld" => ProgramKind::Lld,
        // The generic driver takes its flavour from the first argument.
        "lld" | "rust-lld" if first == Some(b"-flavor") => ProgramKind::Lld,
        "ld64.lld" | "lld-link" | "wasm-ld" | "lld" | "rust-lld" | "mold" | "ld.mold" | "ld.gold"
        | "ld.bfd" | "ld" => ProgramKind::OtherLinker,
        _ if is_clang(stem) => ProgramKind::Clang,
        _ => ProgramKind::OtherDriver,
    }
}

/// The option by which a compiler takes clang's options, where its name has it take those of MSVC: among these `-O2` is
/// clang's `-O3`, and options on sections are unknown.
pub fn mode_of(compiler: &str) -> Option<&'static str> {
    let stem = without_version(compiler.rsplit('/').next().unwrap_or(compiler));
    stem.ends_with("clang-cl").then_some("--driver-mode=gcc")
}

/// `clang-22` -> `clang`, `clang++-16.0` -> `clang++`.
fn without_version(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((stem, version))
            if !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') =>
        {
            stem
        }
        _ => name,
    }
}

/// `clang`, `clang++`, `x86_64-linux-gnu-clang`.
fn is_clang(stem: &str) -> bool {
    let last = stem.rsplit('-').next().unwrap_or(stem);
    matches!(last, "clang" | "clang++")
}
