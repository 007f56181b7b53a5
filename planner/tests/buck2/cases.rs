//! Single links that a generator would not find: colliding shards, odd names, what is missing, merged modules.

use std::fs;
use std::path::Path;

use distlto_planner::buck2::darwin::{self, DarwinLink};
use distlto_planner::buck2::error::Buck2PlanError;
use distlto_planner::buck2::index_directory::IndexDirectory;
use serde_json::{Value, json};

use super::project::{Project, finish, write};

const INDEX: &str = "index";

fn object(path: &str, index: u32) -> Value {
    json!({"type": "bitcode", "path": path, "idx": index,
        "output": format!("out/{index}.thinlto.bc"), "plan_output": format!("out/{index}.opt.plan")})
}

fn archive(index: u32, members: &[&str]) -> Value {
    let objects: Vec<Value> = members.iter().map(|path| json!({"path": path, "idx": index})).collect();
    json!({"type": "archive", "archive_idx": index, "archive_name": "lib", "archive_plan": "lib/plan.json",
        "archive_index_dir": "lib/indexes", "archive_opt_objects_dir": "lib/opt", "objects": objects})
}

fn write_meta(linkables: &[Value]) {
    let meta = json!([{"pre_flags": [], "post_flags": [], "linkables": linkables}]);
    write("meta.json", meta.to_string());
}

fn write_module(path: &str, imports: &[&str]) {
    write(&format!("{INDEX}/{path}.thinlto.bc"), format!("the shard of {path}"));
    write(
        &format!("{INDEX}/{path}.imports"),
        imports.iter().map(|path| format!("{path}\n")).collect::<String>(),
    );
}

fn write_listings(bitcode: &[&str], native: &[&str]) {
    let index: String = bitcode.iter().map(|path| format!("{INDEX}/{path}\n")).collect();
    let full = index.clone() + &native.iter().map(|path| format!("{path}\n")).collect::<String>();
    write("index/index", index);
    write("index/index.full", full);
}

fn read_json(path: &str) -> Value {
    serde_json::from_slice(&fs::read(path).expect("written")).expect("JSON")
}

#[test]
fn members_of_one_base_name_keep_their_own_shards() {
    let _project = Project::create();
    let members = ["lib/objects/a/x.o", "lib/objects/b/x.o", "lib/objects/y.o"];
    write_meta(&[archive(0, &members)]);
    members.iter().for_each(|member| write_module(member, &[]));
    write_listings(&members, &[]);
    finish("meta.json", INDEX, b"").expect("planned");
    let plan = read_json("lib/plan.json");
    for (at, member) in members.iter().enumerate() {
        let entry = &plan["objects"][at];
        assert_eq!(entry["path"], json!(member));
        let shard = entry["bitcode_file"].as_str().expect("a shard");
        assert_eq!(fs::read_to_string(shard).expect("moved"), format!("the shard of {member}"));
    }
    assert_eq!(plan["objects"][2]["bitcode_file"], json!("lib/indexes/y.o.thinlto.bc"));
    assert_eq!(
        fs::read_to_string("final_list").expect("a list"),
        "\nlib/opt/objects/a/x.o\nlib/opt/objects/b/x.o\nlib/opt/objects/y.o\n"
    );
}

#[test]
fn one_path_may_be_an_object_twice_and_a_member() {
    let _project = Project::create();
    write_meta(&[
        object("lib/objects/a.o", 0),
        archive(1, &["lib/objects/a.o"]),
        object("lib/objects/a.o", 2),
    ]);
    write_module("lib/objects/a.o", &[]);
    write_listings(&["lib/objects/a.o"], &[]);
    finish("meta.json", INDEX, b"").expect("planned");
    for shard in ["out/0.thinlto.bc", "out/2.thinlto.bc", "lib/indexes/a.o.thinlto.bc"] {
        assert_eq!(fs::read_to_string(shard).expect("written"), "the shard of lib/objects/a.o");
    }
    assert_eq!(read_json("out/0.opt.plan")["index"], json!(0));
    assert_eq!(read_json("link-plan.json")["index"], json!({"2": 1}));
    assert_eq!(fs::read_to_string("final_list").expect("a list"), "\nout/2.opt.o\n");
}

#[test]
fn another_actions_plan_of_an_archive_without_members_stays() {
    let _project = Project::create();
    let mut empty = archive(0, &[]);
    empty["objects"] = Value::Null;
    write_meta(&[empty]);
    write_listings(&[], &[]);
    write("lib/plan.json", "{}");
    finish("meta.json", INDEX, b"").expect("planned");
    assert_eq!(fs::read_to_string("lib/plan.json").expect("a plan"), "{}");
    fs::remove_file("lib/plan.json").expect("removed");
    finish("meta.json", INDEX, b"").expect("planned");
    assert_eq!(read_json("lib/plan.json"), json!({"base_dir": "lib", "objects": []}));
    assert!(!Path::new("lib/indexes").exists(), "another action makes the directory");
}

/// A link of `a.o`, which imports what `imports` says, and of `b.o`.
fn pair(imports: &[u8]) -> Result<Vec<String>, Buck2PlanError> {
    write_meta(&[object("a.o", 0), object("b.o", 1)]);
    write_module("a.o", &[]);
    write("index/a.o.imports", imports);
    write_listings(&["a.o"], &["b.o"]);
    finish("meta.json", INDEX, b"")
}

#[test]
fn imports_that_no_backend_can_have_are_refused_and_no_plan_is_left() {
    let _project = Project::create();
    for (imports, expected) in [
        (&b"b.o\n"[..], "index/b.o.thinlto.bc is missing, though a.o imports from its module"),
        (b"x.o\nlib/l.a(m.o at 86)\n", "a.o imports lib/l.a(m.o at 86), a member that no backend can load"),
        (b"x.o\n\xff.o\n", "index/a.o.imports: line 2 is not UTF-8"),
    ] {
        let error = pair(imports).expect_err("refused");
        assert_eq!(error.to_string(), expected);
        for plan in ["out/0.opt.plan", "out/1.opt.plan", "link-plan.json", "final_list"] {
            assert!(!Path::new(plan).exists(), "{plan} is left");
        }
    }
    // A file that the meta file does not list may still be there for the backend: a flag may name it.
    assert_eq!(pair(b"x.o\n").expect("planned"), ["x.o"]);
    assert_eq!(read_json("out/0.opt.plan")["imports"], json!([]));
}

#[test]
fn names_that_the_linker_cleans_are_found() {
    let _project = Project::create();
    write_meta(&[object("d/../a.o", 0), object("./b.o", 1)]);
    write_module("a.o", &["./b.o"]);
    write_module("b.o", &[]);
    write_listings(&["d/../a.o", "./b.o"], &[]);
    finish("meta.json", INDEX, b"").expect("planned");
    assert_eq!(read_json("out/0.opt.plan")["imports"], json!([1]));
    assert_eq!(fs::read_to_string("out/1.thinlto.bc").expect("moved"), "the shard of b.o");
}

#[test]
fn odd_names_are_quoted_for_the_final_link() {
    let _project = Project::create();
    write_meta(&[object("é \"x\".o", 0)]);
    write_listings(&[], &["é \"x\".o"]);
    finish("meta.json", INDEX, b"").expect("planned");
    assert_eq!(fs::read_to_string("final_list").expect("a list"), "\n\"é \\\"x\\\".o\"\n");
}

#[test]
fn merged_modules_say_what_became_of_them() {
    let _project = Project::create();
    let record = |name: &str, index: u32| {
        json!({"input_object_file_path": format!("{name}.o"), "starlark_array_index": index.to_string(),
            "output_index_shard_file_path": format!("out/{name}.thinlto.bc"),
            "output_plan_file_path": format!("out/{name}.opt.plan"),
            "output_premerged_bitcode_file_path": format!("out/{name}.merged.bc")})
    };
    let names = ["root", "absorbed", "alone", "unloaded", "native"];
    let records: Vec<Value> = names.iter().zip(0..).map(|(name, index)| record(name, index)).collect();
    let text = Value::Array(records).to_string();
    write("meta.json", &text);
    let write_modules = || {
        write_module("root.o", &["alone.o", "out/root.merged.bc"]);
        ["absorbed.o", "alone.o", "unloaded.o"].iter().for_each(|module| write_module(module, &[]));
    };
    write_modules();
    for (name, content) in [
        ("root", &b"\xde\xc0\x17\x0b rest"[..]),
        ("absorbed", b"a note:\nabsorbed by root.o\n"),
        ("alone", b"standalone\n"),
        ("unloaded", b""),
    ] {
        write(&format!("out/{name}.merged.bc"), content);
    }
    write_listings(&["root.o", "alone.o"], &["native.o"]);
    let meta = darwin::read(Path::new("meta.json"), text.as_bytes(), true).expect("a meta file");
    assert_eq!(
        serde_json::from_slice::<Value>(&meta.output_map()).expect("JSON")["root.o"],
        json!("out/root.merged.bc")
    );
    let modules = meta.modules();
    let directory = IndexDirectory::new(INDEX);
    let link =
        DarwinLink { meta: &meta, modules: &modules, directory: &directory, link_plan: "link-plan.json" };
    link.finish().expect("planned");
    for (name, position, imports, state) in [
        ("root", 0, json!([2, 0]), json!("ROOT")),
        ("absorbed", -1, json!([]), json!("ABSORBED")),
        ("alone", 1, json!([]), json!("STANDALONE")),
        ("unloaded", -1, json!([]), json!("NOT_LOADED")),
        ("native", 2, json!([]), Value::Null),
    ] {
        let expected = json!({"final_link_line_position": position, "imports": imports,
            "is_bitcode": name != "native", "loaded_by_linker": position >= 0, "merge_state": state});
        assert_eq!(read_json(&format!("out/{name}.opt.plan")), expected, "{name}");
    }
    assert_eq!(fs::read("out/native.merged.bc").expect("written"), b"");
    assert_eq!(fs::read("link-plan.json").expect("written"), b"{\"non_lto_objects\": {\"4\": 1}}");

    write("out/alone.merged.bc", "something else");
    write_modules();
    let error = link.finish().expect_err("refused").to_string();
    assert!(error.starts_with("out/alone.merged.bc is neither empty nor bitcode"), "{error}");
    assert!(!Path::new("out/root.opt.plan").exists() && !Path::new("link-plan.json").exists());
    let without = text.replace("output_premerged_bitcode_file_path", "other");
    let error =
        darwin::read(Path::new("meta.json"), without.as_bytes(), true).expect_err("refused").to_string();
    assert!(error.contains("[0] has no \"output_premerged_bitcode_file_path\""), "{error}");
}
