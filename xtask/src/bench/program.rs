//! The programs that benches link: real ones from `tests/third-party`, and one of many small modules.

use std::fmt::Write;
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

    /// Removes what a link left: the output, its state and its trace.
    pub fn remove(&self, output: &str) -> Result<()> {
        ["", ".distlto", ".trace"]
            .iter()
            .try_for_each(|end| shell::remove(&self.dir.join(format!("{output}{end}"))))
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

/// A program of `modules` small C modules, each of which imports from the three after it.
pub fn small(modules: usize) -> Result<Program> {
    let dir = shell::target().join(format!("bench/small-{modules}"));
    fs::create_dir_all(&dir)?;
    let mut missing = Vec::new();
    for number in 0..modules {
        let (source, object) = (dir.join(format!("m{number}.c")), dir.join(format!("m{number}.o")));
        if !object.is_file() {
            fs::write(&source, small_module(number, modules))?;
            missing.push(source);
        }
    }
    for sources in missing.chunks(50) {
        let mut clang = Command::new("clang-22");
        shell::quietly(clang.args(["-O2", "-flto=thin", "-c"]).args(sources).current_dir(&dir))?;
    }
    let mut words: Vec<String> =
        ["clang-22", "-O2", "-flto=thin", "-fuse-ld=lld"].map(str::to_owned).to_vec();
    words.extend((0..modules).map(|number| format!("m{number}.o")));
    Ok(Program { name: format!("{modules} small modules"), dir, words })
}

fn small_module(number: usize, modules: usize) -> String {
    let mut text = String::new();
    let next: Vec<usize> = (1..=3).map(|step| number + step).filter(|&next| next < modules).collect();
    for next in &next {
        let _ = writeln!(text, "int step{next}(int);");
    }
    let calls: String = next.iter().map(|next| format!(" + step{next}(n & {next})")).collect();
    let _ = writeln!(text, "static int table{number}[] = {{1, 2, 3, {number}}};");
    let _ = writeln!(
        text,
        "int step{number}(int n) {{ return n < 3 ? table{number}[n & 3] : n * {number}{}; }}",
        calls
    );
    let _ = writeln!(
        text,
        "int sum{number}(const int *from, int count) {{ int all = {number}; while (count-- > 0) all += from[count] * step{number}(count); return all; }}"
    );
    if number == 0 {
        text.push_str("int main(int argc, char **argv) { (void)argv; return sum0(&argc, 1) & 1; }\n");
    }
    text
}
