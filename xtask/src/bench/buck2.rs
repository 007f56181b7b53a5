//! `cargo xtask bench buck2`: Buck2's tools beside distlto's, and both beside a floor that only moves the files.
//!
//! The stock tools are Python programs of Buck2's prelude and no part of this repository: `--baseline` names the
//! directory that holds them. They are run by the interpreter itself, since a version manager's shim costs more than
//! some of them. All of it happens on a tmpfs, where a file system's moods do not count.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use rustix::fs::statfs;

use super::machine;
use super::measure::{Cost, measure, median};
use super::tree::{ARGUMENTS, DRIVER, FINAL, INDEX, LINK_PLAN, META, Tree};
use crate::{setup, shell};

/// `TMPFS_MAGIC` of statfs(2).
const TMPFS: i64 = 0x0102_1994;
const MEMBERS: usize = 1000;
const COMPILATIONS: usize = 40;

/// What to measure.
pub struct Request {
    /// The directory of the stock Python tools, where one has them.
    pub baseline: Option<PathBuf>,
    /// How often; medians are shown.
    pub runs: usize,
    /// Sizes of the planner's trees.
    pub objects: Vec<usize>,
    /// Imports of each object in the planner's trees.
    pub imports: Vec<usize>,
    /// Where the trees are made.
    pub directory: PathBuf,
}

/// Measures all three tools and prints a table for each.
pub fn buck2(request: &Request) -> Result<()> {
    setup::setup(&[])?;
    let on_tmpfs = statfs(&request.directory)?.f_type == TMPFS;
    let bench = Bench {
        runs: request.runs.max(1),
        floor: floor()?,
        tools: shell::distlto()?.parent().context("a built program has a directory")?.to_owned(),
        stock: request.baseline.as_deref().map(Stock::new).transpose()?,
        directory: tempfile::tempdir_in(&request.directory)?,
    };
    let note = if on_tmpfs { "on a tmpfs" } else { "NOT on a tmpfs: see --directory" };
    println!("Buck2's tools, medians of {} runs {note}, {}", bench.runs, machine());
    for &objects in &request.objects {
        for &imports in &request.imports {
            bench.planner(objects, imports)?;
        }
    }
    bench.prepare()?;
    bench.opt()
}

/// This program as a release build, since what distlto is measured against is to be as fast as it can be.
pub(crate) fn floor() -> Result<PathBuf> {
    shell::run(shell::cargo().args(["build", "--quiet", "--release", "--package", "xtask"]))?;
    Ok(shell::target().join("release/xtask"))
}

/// The tools of Buck2's prelude.
struct Stock {
    python: PathBuf,
    directory: PathBuf,
}

impl Stock {
    fn new(directory: &Path) -> Result<Self> {
        let python =
            shell::output(Command::new("python3").args(["-c", "import sys; print(sys.executable)"]))?;
        let directory =
            fs::canonicalize(directory).with_context(|| format!("--baseline {}", directory.display()))?;
        Ok(Self { python: python.trim_end().into(), directory })
    }

    /// One of them, by either of the names it has had.
    fn tool(&self, name: &str) -> Result<Command> {
        let names = [format!("dist_lto_{name}_gnu.py"), format!("dist_lto_{name}.py")];
        let found = names.iter().map(|name| self.directory.join(name)).find(|path| path.is_file());
        let found = found.with_context(|| {
            format!("--baseline {}: there is no {}", self.directory.display(), names.join(" nor "))
        })?;
        let mut command = Command::new(&self.python);
        command.arg(found);
        Ok(command)
    }
}

struct Bench {
    runs: usize,
    floor: PathBuf,
    tools: PathBuf,
    stock: Option<Stock>,
    directory: tempfile::TempDir,
}

/// What a program is called, how it is started, and what its runs cost.
struct Row {
    name: &'static str,
    command: Command,
    costs: Vec<Cost>,
}

impl Row {
    fn new(name: &'static str, command: Command) -> Self {
        Self { name, command, costs: Vec::new() }
    }
}

impl Bench {
    fn planner(&self, objects: usize, imports: usize) -> Result<()> {
        let root = self.directory.path().join(format!("planner-{objects}-{imports}"));
        fs::create_dir(&root)?;
        let tree = Tree { root: &root, objects, imports };
        tree.write(&fs::read(indexed_module(&root)?)?)?;
        let buck2 = |mut command: Command| {
            command.args(["--meta", META, "--index", INDEX, "--link-plan", LINK_PLAN]);
            command.args(["--final-link-index", FINAL, "--"]).arg(root.join(DRIVER));
            command.args([&format!("@{ARGUMENTS}"), "-o", "app"]);
            command.arg(format!("-Wl,--thinlto-index-only={INDEX}/index"));
            command.args(["-Wl,--thinlto-emit-imports-files", "-Wl,--thinlto-full-index"]);
            command.arg(format!("-Wl,--thinlto-prefix-replace=;{INDEX}/"));
            command
        };
        let mut floor = Command::new(&self.floor);
        floor.args(["floor", "planner", &objects.to_string(), &imports.to_string()]);
        let mut rows = vec![
            Row::new("floor", floor),
            Row::new("distlto-index", buck2(Command::new(self.tools.join("distlto-index")))),
        ];
        if let Some(stock) = &self.stock {
            rows.push(Row::new("stock planner", buck2(stock.tool("planner")?)));
        }
        let mut lists: Vec<Vec<u8>> = Vec::new();
        for _ in 0..self.runs {
            lists.clear();
            for row in &mut rows {
                row.costs.push(measure(row.command.current_dir(&root))?);
                lists.push(fs::read(root.join(FINAL))?);
                tree.restore()?;
            }
        }
        // The floor's list is blanks; those of the others must agree.
        ensure!(lists[1..].iter().all(|list| *list == lists[1]), "the final link lists differ");
        fs::remove_dir_all(&root)?;
        print(&format!("planner, {objects} objects, {imports} imports each"), &rows, "<= 1.5 x floor");
        Ok(())
    }

    fn prepare(&self) -> Result<()> {
        let root = self.directory.path().join("prepare");
        fs::create_dir(&root)?;
        bitcode(&root, "module")?;
        let module = fs::read(root.join("module.o"))?;
        let names: Vec<_> = (0..MEMBERS).map(|number| format!("m{number}.o")).collect();
        names.iter().try_for_each(|name| fs::write(root.join(name), &module))?;
        shell::quietly(Command::new("llvm-ar-22").args(["rcs", "lib.a"]).args(&names).current_dir(&root))?;
        let ar = shell::find("llvm-ar-22").context("llvm-ar-22 is not in PATH: run cargo xtask setup")?;
        let buck2 = |mut command: Command| {
            command.args(["--manifest-out", "out.json", "--objects-out", "out", "--archive", "lib.a"]);
            command.args(["--name", "lib.a", "--ar"]).arg(&ar);
            command
        };
        let mut floor = Command::new(&self.floor);
        floor.args(["floor", "prepare", "lib.a", &MEMBERS.to_string(), "out"]);
        let mut rows = vec![
            Row::new("floor", floor),
            Row::new("distlto-prepare", buck2(Command::new(self.tools.join("distlto-prepare")))),
        ];
        if let Some(stock) = &self.stock {
            rows.push(Row::new("stock prepare", buck2(stock.tool("prepare")?)));
        }
        for _ in 0..self.runs {
            for row in &mut rows {
                row.costs.push(measure(row.command.current_dir(&root))?);
                let written = fs::read_dir(root.join("out"))?.count();
                ensure!(written == MEMBERS, "{} wrote {written} members of {MEMBERS}", row.name);
                fs::remove_dir_all(root.join("out"))?;
            }
        }
        print(&format!("prepare, {MEMBERS} members"), &rows, "<= 0.1 x stock");
        Ok(())
    }

    fn opt(&self) -> Result<()> {
        let root = self.directory.path().join("opt");
        fs::create_dir(&root)?;
        indexed_module(&root)?;
        fs::write(root.join("arguments"), "clang++-22\n-fuse-ld=lld\n-flto=thin\n")?;
        let mut bare = Command::new("clang++-22");
        bare.args(["-O2", "-ffunction-sections", "-fdata-sections", "-gno-split-dwarf", "-x", "ir", "-c"]);
        bare.args(["module.o", "-fthinlto-index=module.o.thinlto.bc", "-o", "bare.o"]);
        let buck2 = |mut command: Command, output: &str| {
            command.args(["--out", output, "--input", "module.o", "--index", "module.o.thinlto.bc"]);
            command.args(["--split-dwarf=none", "--args", "arguments", "--", "/usr/bin/env", "clang++-22"]);
            command
        };
        let mut rows = vec![
            Row::new("clang++-22 by itself", bare),
            Row::new("distlto-opt", buck2(Command::new(self.tools.join("distlto-opt")), "distlto.o")),
        ];
        if let Some(stock) = &self.stock {
            rows.push(Row::new("stock opt", buck2(stock.tool("opt")?, "stock.o")));
        }
        for _ in 0..COMPILATIONS.max(self.runs) {
            for row in &mut rows {
                row.costs.push(measure(row.command.current_dir(&root))?);
            }
        }
        let title = format!("opt on a small object, medians of {} runs", COMPILATIONS.max(self.runs));
        print(&title, &rows, "< 3 ms over clang");
        let wall = |row: &Row| 1000.0 * median(&row.costs).wall;
        for row in &rows[1..] {
            println!("{:24} {:+.2} ms over clang by itself", row.name, wall(row) - wall(&rows[0]));
        }
        Ok(())
    }
}

/// A small module of ThinLTO bitcode.
fn bitcode(root: &Path, name: &str) -> Result<()> {
    let source = root.join(format!("{name}.c"));
    fs::write(&source, "int g(int); int f(int x) { return g(x) + x; } int h(int x) { return f(x) * 3; }\n")?;
    let object = format!("{name}.o");
    shell::quietly(
        Command::new("clang-22")
            .args(["-O2", "-flto=thin", "-c", "-o", &object])
            .arg(&source)
            .current_dir(root)
            .env_remove("CFLAGS"),
    )
}

/// The shard of a small module, `module.o`, beside it.
fn indexed_module(root: &Path) -> Result<PathBuf> {
    bitcode(root, "module")?;
    shell::quietly(
        Command::new("ld.lld-22").args(["--thinlto-index-only", "-shared", "module.o"]).current_dir(root),
    )?;
    Ok(root.join("module.o.thinlto.bc"))
}

fn print(title: &str, rows: &[Row], aim: &str) {
    let first = median(&rows[0].costs);
    println!("\n{title} (aim: {aim})");
    println!(
        "{:24} {:>9} {:>9} {:>9}   wall, cpu, memory as ratios to {}",
        "", "wall s", "cpu s", "MiB", rows[0].name
    );
    for row in rows {
        let cost = median(&row.costs);
        let ratio = cost.relative_to(first);
        println!(
            "{:24} {:9.4} {:9.3} {:9.1}   {:8.3} {:8.3} {:8.3}",
            row.name, cost.wall, cost.cpu, cost.memory, ratio.wall, ratio.cpu, ratio.memory
        );
    }
    if let [_, ours, stock] = rows {
        let ratio = median(&ours.costs).relative_to(median(&stock.costs));
        println!(
            "{:24} {:39} {:8.3} {:8.3} {:8.3}",
            "", "distlto's to the stock tool's:", ratio.wall, ratio.cpu, ratio.memory
        );
    }
}

/// The file system for measurements: the shared memory every Linux mounts, or where temporary files go.
pub fn default_directory() -> PathBuf {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() { shared.to_owned() } else { env::temp_dir() }
}
