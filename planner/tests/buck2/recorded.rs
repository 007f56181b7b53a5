//! A run of Buck2 with its stock tools, recorded: meta file and index directory in, every plan and list out.
//!
//! `tests/data/buck2/recorded` is that run's output directory without objects. Differences from the recorded files
//! are those that `docs/design/buck2-files.md` names.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::project::{Project, finish, write};

const APP: &str = "buck-out/v2/art/root/a8ac7ec86a6bee54/__app__";

fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/buck2/recorded").join(name)
}

fn read(name: &str) -> Vec<u8> {
    fs::read(recorded(name)).expect("recorded")
}

fn read_json(name: &str) -> Value {
    serde_json::from_slice(&read(name)).expect("JSON")
}

/// A path of the run as the recording has it.
fn of_run(path: &str) -> &str {
    path.strip_prefix(APP).and_then(|path| path.strip_prefix('/')).expect("below the target")
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().expect("a string")
}

fn linkables(meta: &Value) -> impl Iterator<Item = &Value> {
    meta.as_array().expect("entries").iter().flat_map(|entry| entry["linkables"].as_array().expect("a list"))
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("listed") {
        let entry = entry.expect("listed");
        let to = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy_tree(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).expect("copied");
        }
    }
}

/// The index directory as the linker left it: the recorded one, with the shards that the planner has moved.
fn restore_index(meta: &Value, index: &str) {
    copy_tree(&recorded("__action___3__"), &Path::new(APP).join("__action___3__"));
    let restore = |shard: PathBuf, path: &str| {
        let shard = fs::read(shard).unwrap_or_default();
        if !shard.is_empty() {
            write(&format!("{index}/{path}.thinlto.bc"), shard);
        }
    };
    for linkable in linkables(meta) {
        match text(linkable, "type") {
            "bitcode" => restore(recorded(of_run(text(linkable, "output"))), text(linkable, "path")),
            "archive" => {
                let shards = recorded(of_run(text(linkable, "archive_index_dir")));
                for object in linkable["objects"].as_array().into_iter().flatten() {
                    let path = text(object, "path");
                    let name = Path::new(path).file_name().expect("a name").to_str().expect("UTF-8");
                    restore(shards.join(format!("{name}.thinlto.bc")), path);
                }
            }
            _ => {}
        }
    }
}

/// A recorded plan with the difference that is documented: an archive is named once.
fn expected(mut plan: Value) -> Value {
    if plan["is_bc"] == json!(true) {
        plan["archive_imports"].as_array_mut().expect("a list").dedup();
    }
    plan
}

#[test]
fn plans_and_lists_are_the_recorded_ones() {
    let _project = Project::create();
    let meta = read_json("__action___3__/app.thinlto.meta.json");
    let index = format!("{APP}/__action___3__/thin_lto_index_executable");
    restore_index(&meta, &index);
    let meta_file = format!("{APP}/__action___3__/app.thinlto.meta.json");
    let unknown = finish(&meta_file, &index, &read("app.thinlto_index_argsfile")).expect("planned");
    assert!(unknown.is_empty(), "{unknown:?}");

    assert_eq!(fs::read("link-plan.json").expect("written"), read("app.link-plan.json"));
    assert_eq!(fs::read("final_list").expect("written"), read("app.final_link_index"));
    let written =
        |path: &str| -> Value { serde_json::from_slice(&fs::read(path).expect("written")).expect("JSON") };
    let (mut objects, mut members) = (0, 0);
    for linkable in linkables(&meta) {
        match text(linkable, "type") {
            "bitcode" => {
                let (plan, output) = (text(linkable, "plan_output"), text(linkable, "output"));
                assert_eq!(written(plan), expected(read_json(of_run(plan))), "{plan}");
                assert_eq!(fs::read(output).expect("written"), read(of_run(output)), "{output}");
                objects += 1;
            }
            "archive" => {
                let plan = text(linkable, "archive_plan");
                let mut was = read_json(of_run(plan));
                for member in was["objects"].as_array_mut().expect("members") {
                    if member["is_bc"] == json!(true) {
                        *member = expected(member.take());
                        let shard = text(member, "bitcode_file");
                        assert_eq!(fs::read(shard).expect("moved"), read(of_run(shard)), "{shard}");
                    }
                    members += 1;
                }
                assert_eq!(written(plan), was, "{plan}");
            }
            _ => {}
        }
    }
    assert_eq!((objects, members), (10, 6));
}

#[test]
fn a_plan_without_members_is_the_recorded_one_byte_for_byte() {
    let _project = Project::create();
    let meta = read_json("__action___3__/app.thinlto.meta.json");
    let index = format!("{APP}/__action___3__/thin_lto_index_executable");
    restore_index(&meta, &index);
    finish(&format!("{APP}/__action___3__/app.thinlto.meta.json"), &index, b"").expect("planned");
    for plan in ["libbeta.a/beta/x.cpp.o.opt.plan", "libnolto.a/nolto/nolto.cpp.o.opt.plan"] {
        assert_eq!(fs::read(format!("{APP}/{plan}")).expect("written"), read(plan), "{plan}");
    }
}
