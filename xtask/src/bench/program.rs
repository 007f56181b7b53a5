//! The programs that benches link: real ones from `tests/third-party`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::libgit2::{Libgit2, sources_of};
use crate::shell;

/// A link to measure: the words of a clang that links, without an output.
pub struct Program {
    /// What it is, for the head of a table.
    pub name: String,
    /// Where the link runs.
    pub dir: PathBuf,
    /// The words; the first is the driver.
    pub words: Vec<String>,
}

impl Program {
    /// The link by the linker itself.
    pub fn link(&self, driver: &str, output: &str) -> Command {
        let mut command = Command::new(driver);
        command.args(&self.words[1..]).args(["-o", output]).current_dir(&self.dir);
        command
    }
}

/// libgit2's command-line program, 232 modules of very different sizes.
pub fn libgit2() -> Result<Program> {
    let program = Libgit2::copy_to(&shell::target().join("bench"))?;
    program.restore()?;
    program.configure(&[])?;
    program.compile()?;
    let mut words = program.link_words()?;
    let output = words.iter().position(|word| word == "-o").context("the link names its output")?;
    words.drain(output..output + 2);
    Ok(Program { name: "libgit2's git2".to_owned(), dir: program.build.clone(), words })
}

/// zstd as a shared library, its modules sorted by size with the largest last.
pub fn zstd() -> Result<Program> {
    let sources = sources_of("zstd-sys")?.join("zstd/lib");
    let dir = shell::target().join("bench/zstd");
    fs::create_dir_all(&dir)?;
    let mut objects = Vec::new();
    for part in ["common", "compress", "decompress", "dictBuilder"] {
        let pattern = sources.join(part).join("*.c");
        for source in glob::glob(pattern.to_str().context("the registry's path is UTF-8")?)? {
            let source = source?;
            let stem = source.file_stem().context("a source has a name")?.to_string_lossy().into_owned();
            let object = format!("{part}-{stem}.o");
            if !dir.join(&object).is_file() {
                let mut clang = Command::new("clang-22");
                clang.args(["-O2", "-fPIC", "-flto=thin", "-DZSTD_DISABLE_ASM", "-w", "-c"]);
                shell::quietly(clang.arg(&source).args(["-o", &object]).current_dir(&dir))?;
            }
            objects.push((fs::metadata(dir.join(&object))?.len(), object));
        }
    }
    objects.sort();
    let mut words: Vec<String> =
        ["clang-22", "-O2", "-flto=thin", "-fuse-ld=lld", "-shared"].map(str::to_owned).to_vec();
    words.extend(objects.into_iter().map(|(_, object)| object));
    Ok(Program { name: "zstd's library, the largest module last".to_owned(), dir, words })
}
