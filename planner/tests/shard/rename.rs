//! Renamed shards, read by `llvm-bcanalyzer` and compiled by clang, whose objects do not depend on module paths.

use std::path::Path;

use distlto_planner::shard::{self, rename};

use super::toolchain;
use super::{check, data, oracle, thin_link};

/// `libreg.a(l1.o at 118).7.1D59.o` without the process number.
fn without_process(path: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(path).ok()?;
    let (head, process) = text.strip_suffix(".o")?.rsplit_once('.')?;
    (head.starts_with("libreg.a(") && process.len() == 4).then(|| format!("{head}.o").into_bytes())
}

#[test]
fn the_shards_of_two_equal_links_become_equal() {
    let runs = ["shard-archive-run1.bc", "shard-archive-run2.bc"].map(data);
    assert_ne!(runs[0], runs[1]);
    let [one, other] = [&runs[0], &runs[1]].map(|bytes| shard::digest_without_paths(bytes).expect("a shard"));
    assert_eq!(one, other);
    assert_ne!(one, shard::digest_without_paths(&data("shard-types-run1.bc")).expect("a shard"));
    let renamed = runs.map(|bytes| rename(&bytes, without_process).expect("a shard"));
    assert_eq!(renamed[0], renamed[1]);
    let paths = shard::read(&renamed[0]).expect("a shard").modules;
    assert_eq!(paths.iter().filter(|module| module.path.starts_with(b"libreg.a(")).count(), 2);
    assert!(paths.iter().all(|module| without_process(&module.path).is_none()));
}

/// Every name in turn, of any length and of any bytes: what is not the name is as `llvm-bcanalyzer` saw it before.
#[test]
fn nothing_but_the_paths_changes() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("renamed.bc");
    let dump = |bytes: &[u8]| {
        std::fs::write(&file, bytes).expect("writable");
        let (records, blocks) = oracle::dump(&file);
        let rest = records.iter().filter(|record| {
            (record.block.as_str(), record.code.as_str()) != ("MODULE_STRTAB_BLOCK", "ENTRY")
        });
        let rest: Vec<_> = rest.map(|record| (record.code.clone(), record.operands.clone())).collect();
        (rest, blocks)
    };
    let original = data("t1.o.thinlto.bc");
    let before = dump(&original);
    for new in [&b""[..], b"a", b"another/path of any length.o", &[0xff; 41], &[b'x'; 5000]] {
        let renamed = rename(&original, |path| (path == b"t3.o").then(|| new.to_vec())).expect("a shard");
        assert_eq!(dump(&renamed), before, "{new:?}");
        if new.is_ascii() {
            check(&file);
        }
        let back = rename(&renamed, |path| (path == new).then(|| b"t3.o".to_vec())).expect("a shard");
        assert_eq!(shard::read(&back).expect("a shard"), shard::read(&original).expect("a shard"));
    }
    assert_eq!(rename(&original, |_| None).expect("a shard"), original);
    let stub = data("l3.o.thinlto.bc");
    assert_eq!(rename(&stub, |_| Some(b"x".to_vec())).expect("a stub"), stub);
    assert!(rename(&original[..original.len() / 2], |_| Some(b"x".to_vec())).is_err());
}

#[test]
fn a_moved_module_compiles_to_the_same_object() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    for version in oracle::versions() {
        thin_link(dir, version, &["-g"]);
        let backend = |module: &str, shard: &str, object: &str| {
            let index = format!("-fthinlto-index={shard}");
            toolchain::run(dir, "clang", version, &["-c", "-O2", "-x", "ir", module, &index, "-o", object]);
            std::fs::read(dir.join(object)).expect("an object")
        };
        let expected = backend("calls.o", "calls.o.thinlto.bc", "expected.o");
        let moved = "moved to (a place) of another length";
        std::fs::create_dir_all(dir.join(moved)).expect("made");
        for name in ["calls.o", "called.o"] {
            std::fs::copy(dir.join(name), dir.join(moved).join(name)).expect("copied");
        }
        let bytes = std::fs::read(dir.join("calls.o.thinlto.bc")).expect("a shard");
        let to = |path: &[u8]| Some([moved.as_bytes(), b"/", path].concat());
        let renamed = rename(&bytes, to).expect("a shard");
        std::fs::write(dir.join("moved.bc"), renamed).expect("writable");
        // A compiler that looks at the old places finds nothing.
        for name in ["calls.o", "called.o"] {
            std::fs::remove_file(dir.join(name)).expect("there");
        }
        let module = Path::new(moved).join("calls.o");
        let found = backend(module.to_str().expect("UTF-8"), "moved.bc", "found.o");
        assert!(found == expected, "LLVM {version}: another object of {} bytes", found.len());
    }
}
