//! Real Ninja builds a real program from an emitted file, does nothing when nothing changed, and after an edit
//! runs the one backend compilation whose module changed.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use distlto_planner::emit::ninja::render;
use distlto_planner::link_plan::{LinkPlan, PlanStep, VERSION};

use super::ninja::{ninja, options};
use super::samples::module;

/// Runs the linker that follows `--` and keeps shards and import lists that did not change.
const INDEX: &str = r#"#!/bin/sh
set -e
shift
rm -rf fresh
"$@" -Wl,--thinlto-index-only -Wl,--thinlto-emit-imports-files '-Wl,--thinlto-prefix-replace=;fresh/'
mkdir -p thin
for file in fresh/*; do
    cmp -s "$file" "thin/${file#fresh/}" || cp "$file" "thin/${file#fresh/}"
done
"#;

/// Takes the options of distlto-opt, refuses what clang reports without failing, keeps what did not change.
const OPT: &str = r#"#!/bin/sh
[ "$1 $3 $5 $7" = "--out --input --index --" ] || exit 2
out=$2 input=$4 index=$6
shift 7
echo "$input" >> compiled.log
"$@" -x ir "$input" "-fthinlto-index=$index" -o "$out.new" && [ -s "$out.new" ] || exit 1
cmp -s "$out.new" "$out" || cp "$out.new" "$out"
"#;

const SOURCES: [(&str, &str); 3] = [
    ("main $1", "int near(int); int far(int);\nint main(void) { return near(20) + far(1); }\n"),
    ("it's near;(x)", "int near(int n) { return n * 2; }\n"),
    ("far|:\"y\"", "__attribute__((noinline)) int far(int n) { return n + 1; }\n"),
];

fn clang(directory: &Path, arguments: &[&str]) {
    let status = Command::new("clang-22").current_dir(directory).args(arguments).status();
    let status = status.expect("clang-22 is missing: apt-get install clang-22 lld-22");
    assert!(status.success(), "clang-22 {arguments:?}");
}

fn compile(directory: &Path, name: &str, source: &str) {
    fs::write(directory.join(format!("{name}.c")), source).expect("writing a source");
    clang(directory, &["-O2", "-flto=thin", "-c", &format!("./{name}.c"), "-o", &format!("{name}.o")]);
}

fn script(directory: &Path, name: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = directory.join(name);
    fs::write(&path, text).expect("writing a script");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("making it executable");
}

/// The plan of the link of [`SOURCES`], with the imports that lld found.
fn plan(directory: &Path) -> LinkPlan {
    let objects = SOURCES.map(|(name, _)| format!("{name}.o"));
    let linker = ["clang-22", "-O2", "-flto=thin", "-fuse-ld=lld-22", "-o", "out $/pro'g"];
    let step = |words: Vec<&str>, inputs: Vec<String>, outputs: Vec<&str>| {
        let mut inputs: Vec<_> = inputs.into_iter().map(Into::into).collect();
        inputs.sort();
        let command = words.into_iter().map(str::to_owned).collect();
        PlanStep { command, inputs, outputs: outputs.into_iter().map(Into::into).collect() }
    };
    let mut thin: Vec<&str> = vec!["./index", "--"];
    thin.extend(linker);
    thin.extend(objects.iter().map(String::as_str));
    let status =
        Command::new(thin[0]).args(&thin[1..]).current_dir(directory).status().expect("the script runs");
    assert!(status.success(), "the thin link failed");
    let modules = objects.each_ref().map(|object| {
        let imports =
            fs::read_to_string(directory.join(format!("thin/{object}.imports"))).expect("an import list");
        let mut module = module(object, &imports.lines().collect::<Vec<_>>(), 1, 0);
        module.args.push(format!("-DLABEL=\"$ {object}\""));
        module
    });
    let natives: Vec<String> = modules.iter().map(|module| module.object.to_string()).collect();
    let mut link = linker.to_vec();
    link.extend(natives.iter().map(String::as_str));
    LinkPlan {
        by_linker: false,
        version: VERSION,
        output: "out $/pro'g".into(),
        archives: Vec::new(),
        thin_link: step(thin.clone(), objects.to_vec(), Vec::new()),
        backend: ["clang-22", "-c", "-O2", "-fPIC", "-Wno-unused-command-line-argument"]
            .map(str::to_owned)
            .to_vec(),
        modules: modules.to_vec(),
        link: step(link.clone(), natives.clone(), vec!["out $/pro'g"]),
    }
}

fn exit_code(directory: &Path) -> Option<i32> {
    Command::new(directory.join("out $/pro'g")).status().expect("the program was linked").code()
}

fn compiled(directory: &Path) -> Vec<String> {
    let log = fs::read_to_string(directory.join("compiled.log")).expect("the opt script's log");
    fs::remove_file(directory.join("compiled.log")).expect("removing the log");
    let mut modules: Vec<_> = log.lines().map(str::to_owned).collect();
    modules.sort();
    modules
}

#[test]
fn a_program_is_built_once_and_again_where_it_changed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let directory = directory.path();
    fs::create_dir(directory.join("out $")).expect("making a directory");
    script(directory, "index", INDEX);
    script(directory, "opt", OPT);
    for (name, source) in SOURCES {
        compile(directory, name, source);
    }
    let plan = plan(directory);
    assert_eq!(plan.modules[0].imports, [format!("{}.o", SOURCES[1].0)], "lld imports `near` into `main`");
    let mut options = options();
    options.opt_program = "./opt".to_owned();
    let text = render(&plan.to_graph().expect("a sound plan"), &options).expect("one-line names");
    fs::write(directory.join("build.ninja"), text).expect("writing the Ninja file");

    ninja(directory, &[]);
    assert_eq!(exit_code(directory), Some(42));
    assert_eq!(compiled(directory).len(), 3);
    assert!(ninja(directory, &[]).contains("no work to do"));

    let (name, source) = SOURCES[2];
    compile(directory, name, &source.replace("n + 1", "n + 9"));
    ninja(directory, &[]);
    assert_eq!(exit_code(directory), Some(50));
    assert_eq!(compiled(directory), [format!("{name}.o")]);
    assert!(ninja(directory, &[]).contains("no work to do"));

    // An object that is written again unchanged: Ninja goes by times, so its thin link and its compilation run,
    // but what they write is what was there, so no other compilation and no link does.
    let linked = modified(directory);
    compile(directory, name, &source.replace("n + 1", "n + 9"));
    ninja(directory, &[]);
    assert_eq!(compiled(directory), [format!("{name}.o")]);
    assert_eq!(modified(directory), linked);
    assert!(ninja(directory, &[]).contains("no work to do"));
}

fn modified(directory: &Path) -> SystemTime {
    fs::metadata(directory.join("out $/pro'g"))
        .and_then(|found| found.modified())
        .expect("the linked program")
}
