//! Completed shards, as LLVM reads them, and the objects that are made of them.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use distlto_planner::references;
use distlto_planner::shard::{self, guid};

use super::toolchain;
use super::{data, oracle};

/// A module that takes the address of a function of another one, and calls a third's that takes one.
const SOURCES: [(&str, &str); 3] = [
    (
        "main.c",
        "int far(int), near(int);\nint (*volatile chosen)(int);\nint main(int argc, char **argv) { chosen = far; return near(argc); }\n",
    ),
    (
        "near.c",
        "int far(int);\nextern int (*volatile chosen)(int);\nstatic int hidden = 3;\nint near(int x) { if (chosen == far) hidden++; return x + hidden; }\n",
    ),
    ("far.c", "int far(int x) { return x * 3; }\n"),
];

/// A link by one LLVM, with its shards and the objects of lld in process.
fn link(dir: &Path, version: u32) {
    for (name, text) in SOURCES {
        std::fs::write(dir.join(name), text).expect("there is room");
        let object = name.replace(".c", ".o");
        toolchain::run(dir, "clang", version, &["-O2", "-fPIE", "-flto=thin", "-c", name, "-o", &object]);
    }
    let line = ["-pie", "-e", "main", "main.o", "near.o", "far.o"];
    let shards = ["--thinlto-index-only", "-o", "unused"];
    toolchain::run(dir, "ld.lld", version, &[&line[..], &shards].concat());
    toolchain::run(dir, "ld.lld", version, &[&line[..], &["-o", "program", "--lto-obj-path=lld.o"]].concat());
}

/// What llvm-dis says of a shard, summary by summary, without the numbers that it counts them by.
fn says(dir: &Path, version: u32, shard: &[u8]) -> BTreeSet<String> {
    std::fs::write(dir.join("shard.bc"), shard).expect("there is room");
    let text = toolchain::run(dir, "llvm-dis", version, &["shard.bc", "-o", "-"]);
    let text = String::from_utf8(text).expect("text");
    // What it says can be assembled again.
    std::fs::write(dir.join("shard.ll"), &text).expect("there is room");
    toolchain::run(dir, "llvm-as", version, &["shard.ll", "-o", "again.bc"]);
    let summaries = text.lines().filter_map(|line| line.split_once(" = gv: (guid: "));
    let summaries: Vec<_> = summaries.collect();
    let guids: HashMap<&str, &str> = summaries
        .iter()
        .filter_map(|(number, summary)| Some((*number, summary.split_once(',')?.0)))
        .collect();
    let named = |summary: &str| {
        let mut parts = summary.split('^');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| {
            let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
            let number = format!("^{}", &part[..end]);
            text + guids.get(&*number).copied().unwrap_or(&number) + &part[end..]
        })
    };
    summaries.iter().map(|(_, summary)| named(summary)).collect()
}

#[test]
fn llvm_reads_what_was_added_and_makes_the_linkers_object() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    for version in oracle::versions().into_iter().filter(|version| *version >= 15) {
        link(dir, version);
        let bytes = std::fs::read(dir.join("main.o.thinlto.bc")).expect("lld wrote it");
        let mut asked = Vec::new();
        let completed = shard::complete(&bytes, b"main.o", |module, definitions| {
            asked.push((String::from_utf8_lossy(module).into_owned(), definitions.contains(&guid(b"near"))));
            vec![guid(b"far"), guid(b"near"), guid(b"main")]
        });
        let completed = completed.expect("a shard");
        // Each symbol has one number, so that the order of the linker's numbers does not matter.
        let canonical = shard::canonical(&bytes).expect("a shard");
        let own = canonical.modules.iter().find(|module| module.path == b"main.o").expect("its module");
        let again = shard::complete(&canonical.bytes, own.name.as_bytes(), |_, _| {
            vec![guid(b"far"), guid(b"near"), guid(b"main")]
        });
        let digests =
            [&completed, &again.expect("a shard")].map(|shard| shard::digest(shard).expect("a shard"));
        assert_eq!(digests[0], digests[1], "LLVM {version}");
        assert!(asked.contains(&("near.o".to_owned(), true)), "{asked:?}");
        let [before, after] = [&bytes, &completed].map(|bytes| says(dir, version, bytes));
        assert!(before.is_subset(&after), "LLVM {version}: {before:?} is not in {after:?}");
        let added: Vec<_> = after.difference(&before).collect();
        assert!(
            matches!(added.as_slice(), [one] if one.contains(&guid(b"far").to_string()) && one.contains("dsoLocal: 1")),
            "LLVM {version}: {added:?}"
        );
        assert_eq!(shard::read(&completed).expect("a shard"), shard::read(&bytes).expect("a shard"));
        // Nothing is added twice.
        let again = shard::complete(&completed, b"main.o", |_, _| vec![guid(b"far")]).expect("a shard");
        assert_eq!(again, completed);

        std::fs::write(dir.join("completed.bc"), &completed).expect("there is room");
        let flags = [
            "-O2",
            "-fpic",
            "-faddrsig",
            "-ffunction-sections",
            "-fdata-sections",
            "-x",
            "ir",
            "main.o",
            "-c",
        ];
        let object = |shard: &str| {
            let index = format!("-fthinlto-index={shard}");
            toolchain::run(dir, "clang", version, &[&flags[..], &[&index, "-o", "object.o"]].concat());
            std::fs::read(dir.join("object.o")).expect("clang wrote it")
        };
        let linkers = std::fs::read(dir.join("lld.o1")).expect("lld wrote it");
        assert_ne!(object("main.o.thinlto.bc"), linkers, "LLVM {version}: nothing is missing");
        assert_eq!(object("completed.bc"), linkers, "LLVM {version}");
    }
}

#[test]
fn a_dead_definition_gets_the_flag_of_the_links_first() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let main = "__attribute__((weak)) int both[2];\nint main(int argc, char **argv) { return both[argc]; }\n";
    for version in oracle::versions() {
        std::fs::write(dir.join("main.c"), main).expect("there is room");
        std::fs::write(dir.join("native.c"), "int both[2] = {1, 2};\n").expect("there is room");
        toolchain::run(dir, "clang", version, &["-O2", "-fPIC", "-flto=thin", "-c", "main.c"]);
        toolchain::run(dir, "clang", version, &["-O2", "-fPIC", "-c", "native.c"]);
        let line = ["-shared", "main.o", "native.o", "--thinlto-index-only", "-o", "unused"];
        toolchain::run(dir, "ld.lld", version, &line);
        let bytes = std::fs::read(dir.join("main.o.thinlto.bc")).expect("lld wrote it");
        let completed = shard::complete(&bytes, b"main.o", |_, _| vec![guid(b"both")]).expect("a shard");
        let [before, after] = [&bytes, &completed].map(|shard| says(dir, version, shard));
        let [before, after] = [before.difference(&after), after.difference(&before)].map(Vec::from_iter);
        let ([old], [new]) = (before.as_slice(), after.as_slice()) else {
            panic!("LLVM {version}: {before:?} became {after:?}")
        };
        assert!(old.contains("live: 0, dsoLocal: 0"), "LLVM {version}: {old}");
        assert_eq!(old.replace("dsoLocal: 0", "dsoLocal: 1"), **new, "LLVM {version}");
        let again = shard::complete(&completed, b"main.o", |_, _| vec![guid(b"both")]).expect("a shard");
        assert_eq!(again, completed);
    }
}

#[test]
fn a_module_says_what_its_definitions_refer_to() {
    let dir = tempfile::tempdir().expect("a directory");
    for version in oracle::versions() {
        link(dir.path(), version);
        let bytes = std::fs::read(dir.path().join("near.o")).expect("clang wrote it");
        let read = references::read(&bytes).expect("bitcode").expect("a summary");
        assert!(read.is_thin);
        let of: BTreeSet<&[u8]> = read.of(guid(b"near")).collect();
        assert_eq!(of, BTreeSet::from([&b"chosen"[..], b"far", b"hidden"]), "LLVM {version}");
        let near = read.definition(guid(b"near")).expect("a definition");
        assert!(near.is_dso_local());
        assert!(read.definition(guid(b"far")).is_none());
        for separator in [";", ":"] {
            assert!(read.definition(guid(format!("near.c{separator}hidden").as_bytes())).is_some());
        }
    }
}

/// A module of clang 23, of `static int hid(int)` and `int f(int)`, in which `hid` has been called `renamed` before its
/// summary was written (`opt -module-summary`). LLVM's shards know it by the GUID that clang had recorded.
#[test]
fn definitions_have_the_guids_that_their_module_records() {
    let bytes = data("renamed.o");
    let read = references::read(&bytes).expect("bitcode").expect("a summary");
    assert_eq!(read.name(guid(b"k.c;hid")), Some(&b"renamed"[..]));
    assert_eq!(read.name(guid(b"k.c;renamed")), None);
    assert_eq!(read.name(guid(b"f")), Some(&b"f"[..]));
    let recorded = references::recorded_guids(&bytes).expect("bitcode");
    assert_eq!(recorded.get(&b"renamed"[..]), Some(&guid(b"k.c;hid")));
}

#[test]
fn what_is_no_shard_of_the_module_stays_as_it_is() {
    let shard = data("t1.o.thinlto.bc");
    let all = |_: &[u8], _: &[u64]| vec![1, 2, 3];
    assert_eq!(shard::complete(&shard, b"none.o", all).expect("a shard"), shard);
    assert_eq!(shard::complete(&shard, b"t1.o", |_, _| Vec::new()).expect("a shard"), shard);
    assert_ne!(shard::complete(&shard, b"t1.o", all).expect("a shard"), shard);
    for end in (0..shard.len()).step_by(7) {
        // An error, or what is left says the same.
        let _ = shard::complete(&shard[..end], b"t1.o", all);
    }
    let module = shard::complete(b"BC\xC0\xDE", b"a.o", all);
    assert!(module.is_err());
}
