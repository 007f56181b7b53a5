//! What a second link runs: nothing when nothing changed, and after an edit exactly the modules whose shard or inputs
//! changed. Counted by the fake clang and the fake linker, and, for edits, compared with lld's own thin link.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use anyhow::{Result, ensure};
use distlto_tests::distlto;
use distlto_tests::project::Project;
use distlto_tests::run::succeed;
use distlto_tests::toolchain::Toolchain;

/// `leaf` is imported by nobody, `shared` by `a` and `b`, `c` imports nothing that is edited.
const SOURCES: [(&str, &str); 6] = [
    (
        "main.c",
        "#include <stdio.h>\nint a(int), b(int), c(int), leaf(int);\n\
         int main(void) { printf(\"%d\\n\", a(1) + b(2) + c(3) + leaf(4)); return 0; }\n",
    ),
    ("a.c", "int shared(int);\n__attribute__((noinline)) int a(int x) { return shared(x) + 1; }\n"),
    ("b.c", "int shared(int);\n__attribute__((noinline)) int b(int x) { return shared(x) + 2; }\n"),
    ("c.c", "__attribute__((noinline)) int c(int x) { return x + 3; }\n"),
    ("shared.c", "int shared(int x) { return x * 100; }\n"),
    ("leaf.c", "__attribute__((noinline)) int leaf(int x) { return x * 7; }\n"),
];

fn project(name: &str) -> Result<Project> {
    let project = Project::create(name, &SOURCES)?;
    let ran = project.relink()?;
    ensure!(ran.backends.len() == 6 && ran.links == 1, "a cold link runs everything once: {ran:?}");
    ensure!(project.say()? == "337\n", "{}", project.say()?);
    Ok(project)
}

/// The modules that lld's own thin link gives another shard or another input than before.
struct Oracle {
    shards: BTreeMap<String, Vec<u8>>,
    imports: BTreeMap<String, Vec<String>>,
    objects: BTreeMap<String, Vec<u8>>,
}

impl Oracle {
    fn ask(project: &Project) -> Result<Self> {
        let dir = project.path("oracle");
        fs::create_dir_all(&dir)?;
        let mut thin = Command::new(project.folder.toolchain.tool("clang")?);
        thin.args(["-O2", "-flto=thin", "-fuse-ld=lld", "-o", "oracle/program"]).args(&project.flags);
        thin.args(["-Wl,--thinlto-index-only", "-Wl,--thinlto-emit-imports-files"]);
        thin.arg("-Wl,--thinlto-prefix-replace=;oracle/")
            .args(&project.objects)
            .current_dir(&project.folder.path);
        succeed(&mut thin)?;
        let mut oracle = Self { shards: BTreeMap::new(), imports: BTreeMap::new(), objects: BTreeMap::new() };
        for object in &project.objects {
            oracle.shards.insert(object.clone(), fs::read(dir.join(format!("{object}.thinlto.bc")))?);
            let imports = fs::read_to_string(dir.join(format!("{object}.imports")))?;
            oracle.imports.insert(object.clone(), imports.lines().map(str::to_owned).collect());
            oracle.objects.insert(object.clone(), fs::read(project.path(object))?);
        }
        Ok(oracle)
    }

    fn changed_since(&self, before: &Self) -> Vec<String> {
        let differs = |object: &String| self.objects[object] != before.objects[object];
        let stale = |object: &&String| {
            self.shards[*object] != before.shards[*object]
                || differs(object)
                || self.imports[*object].iter().any(differs)
        };
        self.shards.keys().filter(stale).cloned().collect()
    }
}

fn edit(name: &str, source: &str, from: &str, to: &str, says: &str, at_most: usize) -> Result<()> {
    let project = project(name)?;
    let before = Oracle::ask(&project)?;
    project.edit(source, from, to)?;
    let expected = Oracle::ask(&project)?.changed_since(&before);
    let ran = project.relink()?;
    ensure!(ran.backends == expected, "ran {:?}, changed {expected:?}", ran.backends);
    ensure!(!expected.is_empty() && expected.len() <= at_most, "the edit is not the one meant: {expected:?}");
    ensure!(ran.links == 1, "{} final links", ran.links);
    ensure!(project.say()? == says, "{}", project.say()?);
    nothing_to_do(&project)
}

fn nothing_to_do(project: &Project) -> Result<()> {
    let ran = project.relink()?;
    ensure!(ran.backends.is_empty() && ran.links == 0, "nothing has changed, yet {ran:?}");
    Ok(())
}

#[test]
fn a_link_with_nothing_changed_runs_nothing() -> Result<()> {
    nothing_to_do(&project("no-op")?)
}

/// Sources on the link line are inputs too, with all that they include; so is a response file of the linker's own.
#[test]
fn what_the_driver_reads_on_the_way_is_seen() -> Result<()> {
    let project = project("driver-inputs")?;
    let folder = project.path("");
    let write = |name: &str, text: &str| fs::write(folder.join(name), text);
    write("value.h", "#define VALUE 1\n")?;
    write(
        "whole.c",
        "#include <stdio.h>\n#include \"value.h\"\nint main(void) { printf(\"%d\\n\", VALUE); }\n",
    )?;
    write("linker.rsp", "--defsym=first=1\n")?;
    let link = || -> Result<()> {
        let mut command = Command::new(distlto::binary()?);
        command.args(["link", "--"]).arg(Toolchain::from_env()?.tool("clang")?).current_dir(&folder);
        command.args(["-O2", "-flto=thin", "-fuse-ld=lld", "-Wl,@linker.rsp", "whole.c", "-o", "program"]);
        succeed(&mut command)?;
        Ok(())
    };
    let defines = |name: &str| -> Result<bool> {
        Ok(fs::read(folder.join("program"))?.windows(name.len()).any(|part| part == name.as_bytes()))
    };
    link()?;
    link()?;
    ensure!(project.say()? == "1\n" && defines("first")?);
    write("value.h", "#define VALUE 2\n")?;
    link()?;
    ensure!(project.say()? == "2\n", "an edited header was not seen");
    write("linker.rsp", "--defsym=second=1\n")?;
    link()?;
    ensure!(defines("second")? && !defines("first")?, "an edited response file was not seen");
    Ok(())
}

#[test]
fn an_edit_of_a_leaf_runs_one_backend() -> Result<()> {
    edit("edit-leaf", "leaf.c", "x * 7", "x * 8", "341\n", 1)
}

#[test]
fn an_edit_of_an_imported_function_runs_its_importers_too() -> Result<()> {
    edit("edit-shared", "shared.c", "x * 100", "x * 200", "637\n", 3)
}

#[test]
fn a_touched_object_runs_nothing() -> Result<()> {
    let project = project("touch")?;
    for object in &project.objects {
        let bytes = fs::read(project.path(object))?;
        fs::write(project.path(object), bytes)?;
    }
    nothing_to_do(&project)
}

#[test]
fn a_compiler_that_is_installed_again_runs_nothing_and_another_one_everything() -> Result<()> {
    let project = project("same-compiler")?;
    let compiler = project.path("tools/clang");
    let (content, permissions) = (fs::read(&compiler)?, fs::metadata(&compiler)?.permissions());
    for (more, backends) in [("", 0), ("# Another one.\n", 6)] {
        let new = project.path("tools/new");
        fs::write(&new, [&content, more.as_bytes()].concat())?;
        fs::set_permissions(&new, permissions.clone())?;
        fs::rename(new, &compiler)?;
        let ran = project.relink()?;
        ensure!(ran.backends.len() == backends, "with {more:?} more: {ran:?}");
        nothing_to_do(&project)?;
    }
    Ok(())
}

#[test]
fn other_flags_run_every_backend() -> Result<()> {
    let mut project = project("flags")?;
    project.flags.push("-O3".to_owned());
    let ran = project.relink()?;
    ensure!(ran.backends.len() == 6 && ran.links == 1, "{ran:?}");
    nothing_to_do(&project)
}

#[test]
fn a_flag_of_the_final_link_runs_no_backend() -> Result<()> {
    let mut project = project("final-flag")?;
    project.flags.push("-Wl,--build-id=0x1234".to_owned());
    let ran = project.relink()?;
    ensure!(ran.backends.is_empty() && ran.links == 1, "{ran:?}");
    nothing_to_do(&project)
}

#[test]
fn a_missing_program_is_linked_again_and_nothing_else() -> Result<()> {
    let project = project("program-removed")?;
    fs::remove_file(project.path("program"))?;
    let ran = project.relink()?;
    ensure!(ran.backends.is_empty() && ran.links == 1, "{ran:?}");
    ensure!(project.say()? == "337\n");
    Ok(())
}

#[test]
fn a_missing_native_object_is_compiled_again_and_nothing_else() -> Result<()> {
    let project = project("object-removed")?;
    project.edit("leaf.c", "x * 7", "x * 8")?;
    let (_, bytes) = project.native_objects()?.swap_remove(0);
    fs::remove_file(project.stored(&bytes)?)?;
    let ran = project.relink()?;
    ensure!(ran.backends.len() == 2, "the edited module and the removed object: {ran:?}");
    ensure!(project.say()? == "341\n");
    Ok(())
}

#[test]
fn a_module_added_and_removed() -> Result<()> {
    let mut project = project("added")?;
    project.folder.write("extra.c", "int extra(int x) { return x; }\n")?;
    project.compile("extra.c")?;
    project.objects.push("extra.o".to_owned());
    let ran = project.relink()?;
    ensure!(ran.backends == ["extra.o"] && ran.links == 1, "{ran:?}");
    project.objects.pop();
    let ran = project.relink()?;
    ensure!(ran.backends.is_empty() && ran.links == 1, "{ran:?}");
    ensure!(project.native_objects()?.len() == 6, "the native object of a module that is gone stays");
    Ok(())
}

#[test]
fn an_edit_and_its_undoing_give_the_same_objects() -> Result<()> {
    let project = project("undo")?;
    let before = project.native_objects()?;
    project.edit("shared.c", "x * 100", "x * 101")?;
    project.relink()?;
    ensure!(project.native_objects()? != before, "an edit that changed no object");
    project.edit("shared.c", "x * 101", "x * 100")?;
    project.relink()?;
    ensure!(project.native_objects()? == before, "the objects differ from those of the same sources");
    ensure!(project.say()? == "337\n");
    Ok(())
}

#[test]
fn the_plan_is_the_same_in_two_directories() -> Result<()> {
    let (one, two) = (project("same-plan-one")?, project("same-plan-two")?);
    let plan = |project: &Project| -> Result<String> {
        succeed(&mut project.index()?)?;
        let graph = project.path("program.distlto/index/graph.json");
        let first = fs::read_to_string(&graph)?;
        succeed(&mut project.index()?)?;
        let text = fs::read_to_string(&graph)?;
        ensure!(text == first, "the same graph twice differs");
        Ok(text.replace(&project.folder.path.display().to_string(), ""))
    };
    ensure!(plan(&one)? == plan(&two)?, "plans differ by more than the tools' directory");
    Ok(())
}
