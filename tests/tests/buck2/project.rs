//! A Buck2 project in a directory: loads its build files with the stand-in of Buck2's API and builds targets.
//!
//! The dialect is Buck2's own. What an earlier build of the same project ran is remembered, so that a further one runs
//! only actions whose command or inputs differ.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use starlark::environment::{FrozenModule, Globals, GlobalsBuilder, LibraryExtension, Module};
use starlark::eval::{Evaluator, ReturnFileLoader};
use starlark::syntax::{AstModule, Dialect, DialectTypes};
use starlark::values::list::AllocList;

use super::build::Build;
use super::values::natives;

/// A project and what was built of it.
#[derive(Debug, Clone)]
pub struct Project {
    /// Sources, and `buck-out`.
    pub root: PathBuf,
    /// `section.key` to value.
    pub config: BTreeMap<String, String>,
    /// The PATH of actions, if they have one.
    pub path: Option<OsString>,
    /// The text of `distlto.bzl`.
    pub rules: String,
    /// What the last run of an action was, by name.
    pub done: HashMap<String, u64>,
}

/// What a build did.
#[derive(Debug, Default)]
pub struct Built {
    /// What the target offers, absolute.
    pub outputs: Vec<PathBuf>,
    /// Commands that ran, in order, as `target: category identifier`.
    pub ran: Vec<String>,
    /// Inputs of the commands that are part of the build, by name.
    pub inputs: BTreeMap<String, Vec<String>>,
}

impl Built {
    /// The commands of one category that ran, sorted.
    pub fn ran_of(&self, category: &str) -> Vec<&str> {
        let category = format!(": {category} ");
        let mut found: Vec<_> =
            self.ran.iter().filter_map(|action| Some(action.split_once(&category)?.1)).collect();
        found.sort_unstable();
        found
    }
}

/// A target as a build file declares it, with attributes as JSON; of rules that are not analysed.
#[derive(Debug)]
pub struct Foreign {
    pub kind: String,
    pub name: String,
    pub attributes: serde_json::Value,
}

impl Project {
    /// Builds a target of the root package or of another one, such as `toolchains//:distlto`, or its part in brackets.
    pub fn build(&mut self, label: &str) -> Result<Built> {
        self.with_build(|build| build.build(label))
    }

    /// What the program of a target is started with.
    pub fn command(&mut self, label: &str) -> Result<Vec<String>> {
        self.with_build(|build| build.command(label))
    }

    fn with_build<R>(&mut self, work: impl FnOnce(Build) -> Result<R>) -> Result<R> {
        Module::with_temp_heap(|module| {
            let loaded = self.load(&module)?;
            let files = loaded.iter().map(|(name, module)| (*name, module)).collect();
            let loader = ReturnFileLoader { modules: &files };
            let mut eval = evaluator(&module, &loader);
            let stand_in = loaded.get("stand_in").context("the stand-in is loaded")?;
            self.evaluate_build_files(&mut eval)?;
            work(Build::new(&mut eval, stand_in, self))
        })
    }

    /// The targets of the prelude's rules.
    pub fn foreign(&self) -> Result<Vec<Foreign>> {
        Module::with_temp_heap(|module| {
            let loaded = self.load(&module)?;
            let files = loaded.iter().map(|(name, module)| (*name, module)).collect();
            let loader = ReturnFileLoader { modules: &files };
            let mut eval = evaluator(&module, &loader);
            self.evaluate_build_files(&mut eval)?;
            super::build::foreign(&module)
        })
    }

    fn evaluate_build_files<'v>(&self, eval: &mut Evaluator<'v, '_, '_>) -> Result<()> {
        let root = self.root.to_str().context("the project's path is UTF-8")?;
        let mut packages = vec!["toolchains".to_owned(), String::new()];
        for file in glob::glob(&format!("{root}/*/BUCK"))? {
            let file = file?;
            let package = file.parent().and_then(|folder| folder.file_name()).context("a package")?;
            packages.push(package.to_str().context("the project's names are UTF-8")?.to_owned());
        }
        packages[2..].sort();
        packages.dedup();
        for package in packages {
            let mark = parse("mark", format!("emit(\"package\", \"{package}\")"))?;
            let file = Path::new(&package).join("BUCK");
            let ast = parse(&package, fs::read_to_string(self.root.join(file))?)?;
            for ast in [mark, ast] {
                eval.eval_module(ast, &globals()).map_err(|error| error.into_anyhow())?;
            }
        }
        Ok(())
    }

    /// Sets up the module that build files are evaluated in, and gives what they may load.
    fn load<'v>(&self, module: &Module<'v>) -> Result<HashMap<&'static str, FrozenModule>> {
        let stand_in = freeze("stand_in.bzl", include_str!("stand_in.bzl"), None, &HashMap::new())?;
        let distlto = freeze("distlto.bzl", &self.rules, Some(&stand_in), &HashMap::new())?;
        let mut loaded =
            HashMap::from([(":distlto.bzl", distlto.clone()), ("@distlto//:distlto.bzl", distlto)]);
        for (path, text) in PRELUDE {
            loaded.insert(path, freeze(path, text, Some(&stand_in), &HashMap::new())?);
        }
        let toolchain = fs::read_to_string(rules().join("toolchain.bzl"))?;
        let toolchain = freeze("toolchain.bzl", &toolchain, Some(&stand_in), &loaded)?;
        loaded.insert("@distlto//:toolchain.bzl", toolchain);
        module.import_public_symbols(&stand_in);
        loaded.insert("stand_in", stand_in);
        module.set_extra_value(module.heap().alloc(AllocList::EMPTY));
        let root = self.root.to_str().context("the project's path is UTF-8")?;
        module.set("PROJECT", module.heap().alloc(root));
        for (name, value) in &self.config {
            module.set(name, module.heap().alloc(value.as_str()));
        }
        Ok(loaded)
    }
}

/// The rules under test.
pub fn rules() -> PathBuf {
    distlto_tests::toolchain::repository().join("rules/buck2")
}

/// Copies the example.
pub fn copy_example(to: &Path) -> Result<()> {
    let example = distlto_tests::toolchain::repository().join("examples/buck2");
    for entry in fs::read_dir(&example)? {
        let name = entry?.file_name();
        super::sandbox::copy(&example.join(&name), &to.join(&name))?;
    }
    Ok(())
}

/// What `toolchain.bzl` and the example load from the prelude.
const PRELUDE: [(&str, &str); 7] = [
    (
        "@prelude//cxx:cxx_toolchain.bzl",
        "cxx_toolchain_inheriting_target_platform = foreign_rule(\"cxx_toolchain_inheriting_target_platform\")",
    ),
    ("@prelude//tests:test_toolchain.bzl", "noop_test_toolchain = foreign_rule(\"noop_test_toolchain\")"),
    (
        "@prelude//toolchains:remote_test_execution.bzl",
        "remote_test_execution_toolchain = foreign_rule(\"remote_test_execution_toolchain\")",
    ),
    ("@prelude//cxx/dist_lto:tools.bzl", "dist_lto_tools = foreign_rule(\"dist_lto_tools\")"),
    ("@prelude//cxx/tools:defs.bzl", "cxx_internal_tools = foreign_rule(\"cxx_internal_tools\")"),
    (
        "@prelude//toolchains:genrule.bzl",
        "system_genrule_toolchain = foreign_rule(\"system_genrule_toolchain\")",
    ),
    (
        "@prelude//toolchains:python.bzl",
        "system_python_bootstrap_toolchain = foreign_rule(\"system_python_bootstrap_toolchain\")",
    ),
];

fn evaluator<'v, 'a>(module: &'a Module<'v>, loader: &'a ReturnFileLoader<'a>) -> Evaluator<'v, 'a, 'a> {
    let mut eval = Evaluator::new(module);
    // Values are kept outside of the heap's sight between evaluations.
    eval.disable_gc();
    eval.set_loader(loader);
    eval
}

fn freeze(
    name: &str,
    text: &str,
    prelude: Option<&FrozenModule>,
    loaded: &HashMap<&'static str, FrozenModule>,
) -> Result<FrozenModule> {
    Module::with_temp_heap(|module| {
        if let Some(prelude) = prelude {
            module.import_public_symbols(prelude);
        }
        {
            let files = loaded.iter().map(|(name, module)| (*name, module)).collect();
            let loader = ReturnFileLoader { modules: &files };
            let mut eval = evaluator(&module, &loader);
            eval.eval_module(parse(name, text.to_owned())?, &globals())
                .map_err(|error| error.into_anyhow())?;
        }
        module.freeze().map_err(|error| anyhow!("{name}: {error:?}"))
    })
}

fn parse(name: &str, text: String) -> Result<AstModule> {
    let dialect = Dialect {
        enable_keyword_only_arguments: true,
        enable_positional_only_arguments: true,
        enable_types: DialectTypes::Enable,
        enable_load_reexport: false,
        enable_f_strings: true,
        ..Dialect::Standard
    };
    AstModule::parse(name, text, &dialect).map_err(|error| error.into_anyhow())
}

fn globals() -> Globals {
    let extensions = [
        LibraryExtension::StructType,
        LibraryExtension::RecordType,
        LibraryExtension::EnumType,
        LibraryExtension::Json,
        LibraryExtension::Typing,
        LibraryExtension::Print,
    ];
    GlobalsBuilder::extended_by(&extensions).with(natives).build()
}
