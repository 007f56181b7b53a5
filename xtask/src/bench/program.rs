//! The programs that benches link: real ones (see `projects`), and one of many small modules.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::project::Project;
use crate::projects::{self, sources_of};
use crate::shell;

/// A link to measure: the words of a clang that links, without an output.
#[derive(Debug, Clone)]
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

    /// Removes what a link left: the output, its store and its trace.
    pub fn remove(&self, output: &str) -> Result<()> {
        ["", ".distlto", ".trace"]
            .iter()
            .try_for_each(|end| shell::remove(&self.dir.join(format!("{output}{end}"))))
    }

    /// The cache folder for the link of an output.
    pub fn state(&self, output: &str) -> PathBuf {
        self.dir.join(format!("{output}.distlto"))
    }

    /// The same program in another folder, without what links left.
    pub fn elsewhere(&self) -> Result<Self> {
        let dir = self.dir.with_extension("elsewhere");
        shell::remove(&dir)?;
        shell::quietly(Command::new("cp").args(["--recursive", "--reflink=auto"]).arg(&self.dir).arg(&dir))?;
        for entry in fs::read_dir(&dir)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.ends_with(".distlto") {
                shell::remove(&dir.join(name))?;
            }
        }
        Ok(Self { dir, ..self.clone() })
    }
}

/// libgit2's command-line program.
pub fn libgit2() -> Result<Program> {
    of_project(&projects::libgit2(&projects::bench_directory())?)
}

/// A project's program, its modules compiled from sources without edits.
pub fn of_project(project: &Project) -> Result<Program> {
    project.restore()?;
    project.configure(&[])?;
    project.compile()?;
    let mut words = project.link_words()?;
    let output = words.iter().position(|word| word == "-o").context("the link names its output")?;
    words.drain(output..output + 2);
    Ok(Program { name: project.name.to_owned(), dir: project.build.clone(), words })
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

/// A program of `modules` small C modules, each of which imports from those after it: some six milliseconds of compiling
/// each. All of it is exported, or the linker would have nothing to compile.
pub fn small(modules: usize) -> Result<Program> {
    let dir = projects::bench_directory().join(format!("small-{modules}"));
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
        ["clang-22", "-O2", "-flto=thin", "-fuse-ld=lld", "-rdynamic"].map(str::to_owned).to_vec();
    words.extend((0..modules).map(|number| format!("m{number}.o")));
    Ok(Program { name: format!("{modules} small modules"), dir, words })
}

/// Writes a module of [`small`] anew, with a constant of its own, and compiles it if it differs.
pub fn edit_small(program: &Program, number: usize, modules: usize, variant: Option<u32>) -> Result<()> {
    let source = program.dir.join(format!("m{number}.c"));
    let mut text = small_module(number, modules);
    if let Some(variant) = variant {
        let _ = writeln!(text, "unsigned variant{number}(void) {{ return {variant}u; }}");
    }
    if fs::read_to_string(&source)? == text {
        return Ok(());
    }
    fs::write(&source, text)?;
    let mut clang = Command::new("clang-22");
    shell::quietly(clang.args(["-O2", "-flto=thin", "-c"]).arg(&source).current_dir(&program.dir))
}

fn small_module(number: usize, modules: usize) -> String {
    let mut text = String::new();
    let next = number + 1;
    let call = if next < modules { format!(" + step{next}(n & {next})") } else { String::new() };
    let _ = writeln!(text, "int step{next}(int);\nstatic int table{number}[] = {{1, 2, 3, {number}}};");
    let _ = writeln!(
        text,
        "int step{number}(int n) {{ return n < 3 ? table{number}[n & 3] : n * {number}{call}; }}"
    );
    if number == 0 {
        text.push_str("volatile int sink;\nint main(int argc, char **argv) { (void)argv; sink = step0(argc); return 0; }\n");
    }
    text
}
