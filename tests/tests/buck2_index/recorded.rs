//! The command line of a recorded Buck2 run on a stock linker: the same plans and lists, and a program from them.
//!
//! The run's sources are not recorded; these have its names, and modules that import from the same ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use distlto_tests::distlto;
use distlto_tests::folder::Folder;
use distlto_tests::run::succeed;
use distlto_tests::toolchain::{Toolchain, repository};
use serde_json::Value;

const APP: &str = "buck-out/v2/art/root/a8ac7ec86a6bee54/__app__";
const ALPHA: &str = "namespace alpha { int a(int); int b(int); int c(int); int d(int); }\n";
const BETA: &str = "namespace beta { int x(int); int y(int); int z(int); }\n";
const OTHERS: &str = "int helper(int); int one(int); int util(int); int dup(); int dup_1(); int native();\n\
    int opaque(int); int nolto(int);\n";

const SOURCES: [(&str, &str); 17] = [
    (
        "app/main",
        "int main(int n, char **) { int sum = alpha::d(n) + beta::x(n) + beta::y(n) + beta::z(n) + helper(n)\n\
        + one(n) + dup() + dup_1() + native() + opaque(n) + nolto(n); return sum == 2321 ? 0 : 1; }",
    ),
    ("app/helper", "int helper(int n) { return alpha::a(n) + beta::x(n) + beta::y(n); }"),
    ("alpha/a", "int alpha::a(int n) { return n * 3 + 1; }"),
    ("alpha/b", "int alpha::b(int n) { return n * 5 - 2; }"),
    ("alpha/c", "int alpha::c(int n) { return n * 7 + 4; }"),
    ("alpha/d", "int alpha::d(int n) { return n ^ 9; }"),
    ("beta/x", "int beta::x(int n) { return alpha::a(n) + alpha::b(n) + alpha::c(n); }"),
    ("beta/y", "int beta::y(int n) { return alpha::a(n) * alpha::b(n) - alpha::c(n); }"),
    ("beta/z", "int beta::z(int n) { return alpha::a(n) - alpha::b(n) * alpha::c(n); }"),
    ("nolto/nolto", "int nolto(int n) { return n + 2000; }"),
    ("one", "int one(int n) { return util(n) + 1; }"),
    ("util", "int util(int n) { return n * 2; }"),
    ("dup", "int dup() { return 100; }"),
    ("dup_1", "int dup_1() { return 200; }"),
    ("native", "int native() { return 3; }"),
    ("unused", "int unused() { return 4; }"),
    ("opaque", "int opaque(int n) { return n - 8; }"),
];

struct Run {
    folder: Folder,
    meta: Value,
}

fn recorded(name: &str) -> PathBuf {
    repository().join("planner/tests/data/buck2/recorded").join(name)
}

fn text<'v>(value: &'v Value, key: &str) -> Result<&'v str> {
    value[key].as_str().with_context(|| format!("no {key} in {value}"))
}

impl Run {
    fn create() -> Result<Self> {
        let folder = Folder::create(Toolchain::from_env()?, "buck2-index/recorded")?;
        let meta = fs::read(recorded("__action___3__/app.thinlto.meta.json"))?;
        folder.write(&format!("{APP}/__action___3__/app.thinlto.meta.json"), &meta)?;
        folder.write(
            &format!("{APP}/app.thinlto_index_argsfile"),
            fs::read(recorded("app.thinlto_index_argsfile"))?,
        )?;
        let run = Self { folder, meta: serde_json::from_slice(&meta)? };
        for linkable in run.linkables() {
            match text(linkable, "type")? {
                "bitcode" => {
                    let path = text(linkable, "path")?;
                    let (_, source) = path.split_once("__objects__/").context("an object")?;
                    let stem = source.strip_suffix(".cpp.o").context("an object")?;
                    run.compile(stem, path, stem != "nolto/nolto")?;
                }
                "archive" => {
                    for object in linkable["objects"].as_array().context("members")? {
                        let path = text(object, "path")?;
                        let stem =
                            Path::new(path).file_stem().and_then(|stem| stem.to_str()).context("a name")?;
                        run.compile(stem, path, stem != "native")?;
                    }
                }
                _ => {
                    run.compile("opaque", "opaque.o", false)?;
                    run.folder.write("prebuilt/.keep", "")?;
                    let ar = run.folder.toolchain.tool("llvm-ar")?;
                    run.succeed(Command::new(ar).args(["rcs", "prebuilt/libopaque.a", "opaque.o"]))?;
                }
            }
        }
        Ok(run)
    }

    fn linkables(&self) -> impl Iterator<Item = &Value> {
        let entries = self.meta.as_array().into_iter().flatten();
        entries.flat_map(|entry| entry["linkables"].as_array().into_iter().flatten())
    }

    fn succeed(&self, command: &mut Command) -> Result<()> {
        succeed(command.current_dir(&self.folder.path)).map(drop)
    }

    fn clang(&self) -> Result<Command> {
        Ok(Command::new(self.folder.toolchain.tool("clang++")?))
    }

    fn compile(&self, stem: &str, object: &str, lto: bool) -> Result<()> {
        let (_, source) = SOURCES.iter().find(|(name, _)| *name == stem).context("a source")?;
        let name = format!("sources/{stem}.cpp");
        self.folder.write(&name, format!("{ALPHA}{BETA}{OTHERS}{source}\n"))?;
        self.folder.write(object, "")?;
        let mut command = self.clang()?;
        command.args(["-O2", "-ffunction-sections", "-c", &name, "-o", object]);
        self.succeed(command.args(lto.then_some("-flto=thin")))
    }

    /// The backend of one module, as a rule would run it: with clang alone, so that nothing but the plan counts.
    fn backend(&self, module: &str, shard: &str, object: &str) -> Result<()> {
        self.folder.write(object, "")?;
        let mut command = self.clang()?;
        command.args(["-O2", "-c", "-x", "ir", module, &format!("-fthinlto-index={shard}"), "-o", object]);
        self.succeed(&mut command)
    }

    fn link_command(&self) -> Result<Command> {
        let mut command = self.clang()?;
        let lld = self.folder.toolchain.tool("ld.lld")?;
        command.args(["-fuse-ld=lld", &format!("--ld-path={}", lld.display()), "-flto=thin"]);
        Ok(command)
    }
}

#[test]
fn plans_lists_and_program_of_the_recorded_command() -> Result<()> {
    let run = Run::create()?;
    let index = format!("{APP}/__action___3__/thin_lto_index_executable");
    let mut planner = Command::new(distlto::binary()?);
    planner.args(["index", "--meta", &format!("{APP}/__action___3__/app.thinlto.meta.json")]);
    planner.args(["--index", &index, "--link-plan", &format!("{APP}/app.link-plan.json")]);
    planner.args(["--final-link-index", &format!("{APP}/app.final_link_index"), "--", "env"]);
    let link = run.link_command()?;
    planner.arg(link.get_program()).args(link.get_args());
    planner.args([&format!("@{APP}/app.thinlto_index_argsfile"), "-o", &format!("{APP}/app")]);
    planner.args([
        &format!("-Wl,--thinlto-index-only={index}/index"),
        "-Wl,--thinlto-emit-imports-files",
        "-Wl,--thinlto-full-index",
        &format!("-Wl,--thinlto-prefix-replace=;{index}/"),
    ]);
    run.succeed(&mut planner)?;

    let lists = ["app.final_link_index", "app.link-plan.json"].map(str::to_owned);
    let full = "__action___3__/thin_lto_index_executable/index.full".to_owned();
    for file in lists.into_iter().chain([full]) {
        let (ours, was) = (
            fs::read_to_string(run.folder.path.join(APP).join(&file))?,
            fs::read_to_string(recorded(&file))?,
        );
        // The recorded lists are in the order of the link line, ours in the order of loading.
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            lines
        };
        ensure!(sorted(&ours) == sorted(&was), "{file}:\n{ours}");
    }
    let mut backends = 0;
    for linkable in run.linkables() {
        if text(linkable, "type")? == "bitcode" {
            let plan_file = text(linkable, "plan_output")?;
            let ours: Value = serde_json::from_slice(&fs::read(run.folder.path.join(plan_file))?)?;
            let was = plan_file.strip_prefix(APP).context("below the target")?.trim_start_matches('/');
            let was: Value = serde_json::from_slice(&fs::read(recorded(was))?)?;
            ensure!(
                ours["imports"] == was["imports"] && ours["is_bc"] == was["is_bc"],
                "{plan_file}: {ours}"
            );
            if ours["is_bc"] == Value::Bool(true) {
                let shard = text(linkable, "output")?;
                let object = shard.replace(".thinlto.bc", ".opt.o");
                run.backend(text(linkable, "path")?, shard, &object)?;
                backends += 1;
            }
        } else if text(linkable, "type")? == "archive" {
            let plan: Value =
                serde_json::from_slice(&fs::read(run.folder.path.join(text(linkable, "archive_plan")?))?)?;
            let base = text(&plan, "base_dir")?;
            for member in plan["objects"].as_array().context("members")? {
                let path = text(member, "path")?;
                let below = path.strip_prefix(base).context("below the base")?;
                let object = format!("{}{below}", text(linkable, "archive_opt_objects_dir")?);
                if member["is_bc"] == Value::Bool(true) {
                    run.backend(path, text(member, "bitcode_file")?, &object)?;
                    backends += 1;
                } else {
                    run.folder.write(&object, fs::read(run.folder.path.join(path))?)?;
                }
            }
        }
    }
    ensure!(backends == 14, "{backends} backends");
    let mut last = run.link_command()?;
    run.succeed(last.args([&format!("@{APP}/app.final_link_index"), "-o", "program"]))?;
    run.succeed(&mut Command::new(run.folder.path.join("program")))
}
