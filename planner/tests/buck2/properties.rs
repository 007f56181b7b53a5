//! What holds of the plans and lists of every link.
//!
//! Each property is computed from the generated link, not from what the planner computes on the way.

use std::collections::{BTreeSet, HashMap};
use std::fs;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::links::{INDEX, Item, Link, link, shard};
use super::project::{Project, finish, write};

/// A link that was planned, with what is needed to judge it.
struct Planned {
    link: Link,
    meta: Value,
}

fn planned(link: Link) -> Planned {
    let meta = link.meta();
    write("meta.json", meta.to_string());
    link.write_index();
    let unknown = finish("meta.json", INDEX, b"-Lone\n-Wl,-x\n-L two \n").expect("planned");
    assert!(unknown.is_empty(), "{unknown:?}");
    Planned { link, meta }
}

fn read_json(path: &str) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"))).expect("JSON")
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().expect("a string")
}

impl Planned {
    fn linkables(&self, kind: &str) -> Vec<(usize, &Value)> {
        let entries = self.meta.as_array().expect("entries").iter().enumerate();
        entries
            .flat_map(|(entry, value)| {
                value["linkables"].as_array().expect("a list").iter().map(move |linkable| (entry, linkable))
            })
            .filter(|(_, linkable)| linkable["type"] == kind)
            .collect()
    }

    fn members(archive: &Value) -> Vec<&str> {
        archive["objects"].as_array().into_iter().flatten().map(|object| text(object, "path")).collect()
    }

    /// What an import list should become: objects, archives and members.
    fn check_imports(&self, plan: &Value, path: &str) {
        let mut objects: HashMap<&str, &Value> = HashMap::new();
        let mut archives: HashMap<&str, &Value> = HashMap::new();
        for (_, object) in self.linkables("bitcode") {
            objects.insert(text(object, "path"), &object["idx"]);
        }
        for (_, archive) in self.linkables("archive") {
            for member in Self::members(archive) {
                archives.insert(member, &archive["archive_idx"]);
            }
        }
        let list = &self.link.imports[path];
        let expected: Vec<&Value> =
            list.iter().filter_map(|import| objects.get(import.as_str()).copied()).collect();
        assert_eq!(plan["imports"], json!(expected), "{path}");
        let mut order: Vec<&Value> = Vec::new();
        for import in list {
            if let Some(&archive) = archives.get(import.as_str())
                && !order.contains(&archive)
            {
                order.push(archive);
            }
        }
        assert_eq!(plan["archive_imports"], json!(order), "{path}");
    }

    fn check_plans(&self) {
        let (mut native, mut indexed) = (BTreeSet::new(), BTreeSet::new());
        // Of several objects of one path, the last stands for it in the link plan.
        let last: HashMap<&str, &Value> = self
            .linkables("bitcode")
            .into_iter()
            .map(|(_, object)| (text(object, "path"), &object["idx"]))
            .collect();
        for (_, object) in self.linkables("bitcode") {
            let path = text(object, "path");
            let plan = read_json(text(object, "plan_output"));
            let output = fs::read_to_string(text(object, "output")).expect("an output");
            let kind = self.link.kinds[path];
            if kind.bitcode {
                assert_eq!(output, shard(path));
                assert_eq!((&plan["is_bc"], &plan["index"]), (&json!(true), &object["idx"]));
                assert_eq!(text(&plan, "bitcode_file"), format!("{INDEX}/{path}.thinlto.bc"));
                self.check_imports(&plan, path);
            } else {
                assert_eq!((output.as_str(), &plan), ("", &json!({"is_bc": false})));
                native.insert(object["idx"].to_string());
            }
            if kind.bitcode && kind.loaded && last[path] == &object["idx"] {
                indexed.insert(object["idx"].to_string());
            }
        }
        for (_, archive) in self.linkables("archive") {
            let plan = read_json(text(archive, "archive_plan"));
            let members: BTreeSet<&str> = Self::members(archive).into_iter().collect();
            let planned: Vec<&str> = plan["objects"]
                .as_array()
                .expect("members")
                .iter()
                .map(|member| text(member, "path"))
                .collect();
            assert_eq!(planned, members.into_iter().collect::<Vec<_>>());
            for member in plan["objects"].as_array().expect("members") {
                let path = text(member, "path");
                let kind = self.link.kinds[path];
                assert_eq!(member["is_bc"], json!(kind.bitcode));
                if kind.bitcode {
                    assert_eq!(fs::read_to_string(text(member, "bitcode_file")).expect("moved"), shard(path));
                    self.check_imports(member, path);
                }
                if kind.bitcode && kind.loaded {
                    indexed.insert(archive["archive_idx"].to_string());
                }
            }
        }
        let ones =
            |keys: &BTreeSet<String>| keys.iter().map(|key| (key.clone(), json!(1))).collect::<Value>();
        let expected = json!({"index": ones(&indexed), "non_lto_objects": ones(&native)});
        assert_eq!(read_json("link-plan.json"), expected);
    }

    /// For each loaded file: the entry whose flags it has, and the lines that stand for it.
    fn expected_files(&self) -> Vec<(usize, Vec<String>)> {
        let mut of: HashMap<&str, (usize, Vec<String>)> = HashMap::new();
        for (entry, object) in self.linkables("bitcode") {
            let path = text(object, "path");
            let native = match self.link.kinds[path].bitcode {
                true => text(object, "output").replace(".thinlto.bc", ".opt.o"),
                false => path.to_owned(),
            };
            of.insert(path, (entry, vec![native]));
        }
        for (entry, archive) in self.linkables("archive") {
            let base = text(archive, "archive_plan").strip_suffix("/plan.json").expect("a plan");
            for member in Self::members(archive) {
                let below = member.strip_prefix(base).expect("below");
                of.insert(
                    member,
                    (entry, vec![format!("{}{below}", text(archive, "archive_opt_objects_dir"))]),
                );
            }
        }
        for (entry, part) in self.link.parts.iter().enumerate() {
            for item in &part.items {
                let (file, lines) = match item {
                    Item::Opaque(file, true) => {
                        let around = ["-Wl,--whole-archive", file, "-Wl,--no-whole-archive"];
                        (file, around.map(str::to_owned).to_vec())
                    }
                    Item::Opaque(file, false) | Item::Shared(file) => (file, vec![file.clone()]),
                    _ => continue,
                };
                let whole_before = of.get(file.as_str()).is_some_and(|(_, lines)| lines.len() > 1);
                if lines.len() > 1 || !whole_before {
                    of.insert(file, (entry, lines));
                }
            }
        }
        self.link.loaded().iter().map(|file| of[file.as_str()].clone()).collect()
    }

    fn check_final_list(&self) {
        let text = fs::read_to_string("final_list").expect("a list");
        let mut lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["-Lone", "-L two"]);
        lines.drain(..2);
        let is_flag = |line: &&str| line.starts_with("-Wl,--pre=") || line.starts_with("-Wl,--post=");
        let files = self.expected_files();
        let found: Vec<&str> = lines.iter().copied().filter(|line| !is_flag(line)).collect();
        let expected: Vec<&str> =
            files.iter().flat_map(|(_, lines)| lines.iter().map(String::as_str)).collect();
        assert_eq!(found, expected, "each loaded file once, in order");

        // An entry's flags stand around each run of its files, and once where it has none.
        let mut visits: Vec<usize> = vec![0; self.link.parts.len()];
        let mut before = None;
        for (entry, _) in &files {
            visits[*entry] += usize::from(before != Some(*entry));
            before = Some(*entry);
        }
        let places = |word: &str| -> Vec<usize> {
            lines.iter().enumerate().filter(|(_, line)| **line == word).map(|(at, _)| at).collect()
        };
        for (entry, part) in self.link.parts.iter().enumerate() {
            for flag in part.pre.iter().chain(&part.post) {
                assert_eq!(places(flag).len(), visits[entry].max(1), "{flag} in {text}");
            }
            if visits[entry] != 1 {
                continue;
            }
            let of: Vec<usize> = files
                .iter()
                .filter(|(of, _)| *of == entry)
                .flat_map(|(_, lines)| places(&lines[lines.len() / 2]))
                .collect();
            let (first, last) = (of.iter().min().expect("visited"), of.iter().max().expect("visited"));
            assert!(part.pre.iter().all(|flag| places(flag)[0] < *first), "{text}");
            assert!(part.post.iter().all(|flag| places(flag)[0] > *last), "{text}");
        }
        let leading: Vec<&str> = self
            .link
            .parts
            .iter()
            .take_while(|part| part.items.is_empty())
            .flat_map(|part| part.pre.iter().chain(&part.post).map(String::as_str))
            .collect();
        assert_eq!(lines[..leading.len()], leading, "flags before the first file come first");
    }
}

proptest! {
    // A failure cannot be kept beside the sources: the working directory is the case's.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn plans_and_lists_hold_what_the_linker_has_done(link in link()) {
        let _project = Project::create();
        let planned = planned(link);
        planned.check_plans();
        planned.check_final_list();
    }

    #[test]
    fn a_second_run_over_its_own_outputs_changes_none(link in link()) {
        let _project = Project::create();
        planned(link.clone());
        let first = super::project::files("out");
        let planned = planned(link);
        prop_assert_eq!(super::project::files("out"), first);
        planned.check_plans();
    }
}
