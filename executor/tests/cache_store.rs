//! The cache on disk: what is kept comes back, and whatever happens to a file is noticed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use distlto_executor::cache::store::{Cache, Key, Limits, NewOutput, NewResult, Record};
use distlto_executor::report::Measured;
use distlto_executor::verify::Role;

fn open(directory: &Path) -> Cache {
    Cache::open(directory, Limits::default()).expect("a cache")
}

/// Keeps a result of two outputs under a key of this number.
fn put(cache: &Cache, scratch: &Path, number: u8, content: &[u8]) -> Record {
    let (object, dwo) = (scratch.join(format!("{number}.o")), scratch.join(format!("{number}.dwo")));
    fs::write(&object, content).expect("writable");
    fs::write(&dwo, "").expect("writable");
    let outputs = [
        NewOutput { role: Role::Object, name: "out/m.o", file: &object },
        NewOutput { role: Role::DwoIfAny, name: "out/m.dwo", file: &dwo },
    ];
    let measured = Measured {
        wall: Duration::from_millis(12),
        cpu: None,
        peak_memory: Some(1 << 20),
        ..Default::default()
    };
    let result = NewResult { module: "m.bc", outputs: &outputs, stderr: b"warning: \xff\n", measured };
    cache.put(&[Key([number; 32])], &result).expect("kept")
}

#[test]
fn what_is_kept_comes_back_as_files_of_their_own() {
    let scratch = tempfile::tempdir().expect("writable");
    let directory = scratch.path().join("cache");
    let kept = put(&open(&directory), scratch.path(), 1, b"object");
    let cache = open(&directory);
    assert_eq!(cache.get(&Key([2; 32])), None);
    let found = cache.get(&Key([1; 32])).expect("kept");
    assert_eq!((&found.module, &found.outputs, &found.stderr), (&kept.module, &kept.outputs, &kept.stderr));
    assert_eq!(found.measured, kept.measured);
    let place = scratch.path().join("new/place/m.o");
    for round in ["first", "over the first"] {
        assert!(cache.materialise(&found.outputs[0], &place).expect("writable"), "{round}");
        assert_eq!(fs::read(&place).expect("there"), b"object");
    }
    // Its owner may do anything with it.
    fs::write(&place, "other").expect("writable");
    assert!(cache.materialise(&found.outputs[0], &place).expect("writable"));
    assert!(cache.materialise(&found.outputs[1], &scratch.path().join("m.dwo")).expect("writable"));
    assert_eq!(cache.troubles(), Vec::<String>::new());
}
