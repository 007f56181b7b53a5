//! The cache on disk: what is kept comes back, and whatever happens to a file is noticed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use distlto_executor::cache::store::{Cache, CacheLimits};
use distlto_executor::cancel::Cancel;
use distlto_executor::output::Role;
use distlto_executor::result::{ActionResult, Key, NewOutput, NewResult};
use distlto_record::report::Measured;

fn open(directory: &Path) -> Cache {
    Cache::open(directory, CacheLimits::default()).expect("a cache")
}

/// Keeps a result of two outputs under a key of this number.
fn put(cache: &Cache, scratch: &Path, number: u8, content: &[u8]) -> ActionResult {
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
    let result = NewResult {
        module: "m.bc",
        outputs: &outputs,
        stderr: b"warning: \xff\n",
        measured,
        by_engine: false,
        is_unobserved: false,
        note: "",
    };
    cache.put(&Key([number; 32]), &result).expect("kept")
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

#[test]
fn a_cancelled_run_does_not_prune() {
    let scratch = tempfile::tempdir().expect("writable");
    let directory = scratch.path().join("cache");
    let limits = CacheLimits { size: Some(8 * 4096), age: None };
    let records = |cancel: &Cancel| {
        let cache = Cache::open(&directory, limits).expect("a cache").until(cancel);
        for number in 0..40 {
            put(&cache, scratch.path(), number, &[number]);
        }
        drop(cache);
        open(&directory).holdings().expect("listed").records
    };
    let cancel = Cancel::new().expect("a pipe");
    cancel.cancel(None);
    assert_eq!(records(&cancel), 40);
    assert!(records(&Cancel::new().expect("a pipe")) < 8);
}

/// A cache with one result, and a further one that nothing happens to.
struct Case {
    scratch: tempfile::TempDir,
    kept: ActionResult,
}

const KEY: Key = Key([1; 32]);
const OTHER: Key = Key([2; 32]);

impl Case {
    fn new() -> Self {
        let scratch = tempfile::tempdir().expect("writable");
        let cache = open(&scratch.path().join("cache"));
        let kept = put(&cache, scratch.path(), 1, b"object");
        put(&cache, scratch.path(), 2, b"another object");
        drop(cache);
        Self { scratch, kept }
    }

    fn open(&self) -> Cache {
        open(&self.scratch.path().join("cache"))
    }

    fn record(&self, key: &Key) -> PathBuf {
        self.file("records", &key.0)
    }

    fn blob(&self) -> PathBuf {
        self.file("blobs", &self.kept.outputs[0].digest)
    }

    fn file(&self, part: &str, digest: &[u8; 32]) -> PathBuf {
        let hex = distlto_prepare::blobs::hex(digest);
        self.scratch.path().join("cache/results-v1").join(part).join(&hex[..2]).join(&hex[2..])
    }

    /// What a run does: looks up, takes or makes again. Returns whether it was a hit.
    fn run(&self, cache: &Cache, key: &Key) -> bool {
        let place = self.scratch.path().join("out/m.o");
        let content: &[u8] = if *key == KEY { b"object" } else { b"another object" };
        let _ = fs::remove_file(&place);
        let hit = cache.get(key).is_some_and(|record| {
            record.outputs[..1].iter().all(|output| cache.materialise(output, &place).expect("writable"))
        });
        cache.count(hit);
        if hit {
            assert_eq!(fs::read(&place).expect("there"), content);
        } else {
            cache.forget(key);
            assert!(!place.exists());
            put(cache, self.scratch.path(), key.0[0], content);
        }
        hit
    }
}

type Damage = (&'static str, fn(&Path));

/// What can happen to a file.
const DAMAGES: [Damage; 9] = [
    ("a flipped bit", |file| change(file, |bytes| *bytes.last_mut().expect("not empty") ^= 4)),
    ("the last byte is gone", |file| change(file, |bytes| bytes.truncate(bytes.len() - 1))),
    ("longer", |file| change(file, |bytes| bytes.push(0))),
    ("empty", |file| change(file, Vec::clear)),
    ("zeros", |file| change(file, |bytes| bytes.fill(0))),
    ("a directory", |file| {
        fs::remove_file(file).expect("there");
        fs::create_dir(file).expect("writable");
        fs::write(file.join("within"), "").expect("writable");
    }),
    ("a symbolic link to a good file", |file| {
        let good = file.with_extension("good");
        fs::rename(file, &good).expect("there");
        std::os::unix::fs::symlink(&good, file).expect("writable");
    }),
    ("a pipe that nobody writes to", |file| {
        fs::remove_file(file).expect("there");
        let made = std::process::Command::new("mkfifo").arg(file).status().expect("mkfifo is in coreutils");
        assert!(made.success());
    }),
    ("another entry's file", |file| {
        let shards = file.parent().and_then(Path::parent).expect("in a shard");
        let other = walk(shards).into_iter().find(|other| other != file).expect("another one");
        change(file, |bytes| *bytes = fs::read(&other).expect("there"));
    }),
];

fn change(file: &Path, how: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).expect("there");
    fs::set_permissions(file, fs::Permissions::from_mode(0o644)).expect("own file");
    how(&mut bytes);
    fs::write(file, bytes).expect("own file");
}

fn walk(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).expect("listed") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { files.extend(walk(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

#[test]
fn whatever_happens_to_a_file_is_noticed_once_and_mended() {
    for (what, damage) in DAMAGES {
        for part in ["record", "blob"] {
            let case = Case::new();
            let file = if part == "record" { case.record(&KEY) } else { case.blob() };
            damage(&file);
            let cache = case.open();
            assert!(!case.run(&cache, &KEY), "{what}: {part}");
            let troubles = cache.troubles();
            assert_eq!(troubles.len(), 1, "{what}: {part}: {troubles:?}");
            assert!(troubles[0].contains(file.to_str().expect("text")), "{what}: {part}: {troubles:?}");
            assert!(case.run(&cache, &KEY) && case.run(&cache, &OTHER), "{what}: {part}");
            assert_eq!(cache.troubles(), Vec::<String>::new(), "{what}: {part}");
            if what.starts_with("a symbolic link") {
                fs::remove_file(file.with_extension("good")).expect("left by the damage");
            }
            let checked = cache.verify(true).expect("checked");
            assert!(checked.bad.is_empty(), "{what}: {part}: {checked:?}");
        }
    }
}

#[test]
fn verifying_finds_what_happened_to_any_file_and_removes_it() {
    for (what, damage) in DAMAGES {
        for part in ["record", "blob", "usage"] {
            let case = Case::new();
            let file = match part {
                "record" => case.record(&KEY),
                "blob" => case.blob(),
                _ => case.scratch.path().join("cache/results-v1/usage"),
            };
            damage(&file);
            let cache = case.open();
            let kept = cache.verify(true).expect("checked");
            assert!(kept.bad.iter().any(|bad| bad.path == file), "{what}: {part}: {kept:?}");
            assert_eq!(kept.removed, 0);
            let removed = cache.verify(false).expect("checked");
            assert_eq!(
                (removed.bad.len(), removed.removed),
                (kept.bad.len(), kept.bad.len()),
                "{what}: {part}"
            );
            let clean = cache.verify(false).expect("checked");
            assert!(clean.bad.is_empty() && clean.removed == 0, "{what}: {part}: {clean:?}");
            assert!(case.run(&cache, &OTHER), "{what}: {part}");
            case.run(&cache, &KEY);
            assert!(case.run(&cache, &KEY), "{what}: {part}");
            assert_eq!(cache.troubles(), Vec::<String>::new(), "{what}: {part}");
        }
    }
}

#[test]
fn what_is_gone_is_a_miss_and_nothing_to_complain_of() {
    let case = Case::new();
    fs::remove_file(case.blob()).expect("there");
    let cache = case.open();
    assert!(!case.run(&cache, &KEY));
    fs::remove_file(case.blob()).expect("put again");
    let checked = cache.verify(false).expect("checked");
    assert_eq!((checked.incomplete, checked.bad.len()), (1, 0), "{checked:?}");
    assert_eq!(cache.get(&KEY), None);
    // Even the whole cache.
    fs::remove_dir_all(case.scratch.path().join("cache")).expect("there");
    assert!(!case.run(&cache, &KEY));
    assert!(case.run(&cache, &KEY));
    assert_eq!(cache.troubles(), Vec::<String>::new());
}

/// As if all files had been used so many seconds ago.
fn age(directory: &Path, seconds: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    let times = fs::FileTimes::new().set_accessed(time).set_modified(time);
    for file in walk(directory) {
        fs::File::open(file).and_then(|file| file.set_times(times)).expect("own file");
    }
}

#[test]
fn least_recently_used_goes_first_and_a_record_goes_before_its_blobs() {
    let case = Case::new();
    let directory = case.scratch.path().join("cache");
    age(&directory, 1000);
    let cache = case.open();
    assert!(case.run(&cache, &KEY), "a use, which the record and the blob of the object remember");
    let stats = cache.holdings().expect("listed");
    assert_eq!((stats.records, stats.blobs, stats.bytes), (2, 3, 20), "the empty file is shared: {stats:?}");
    assert_eq!(stats.disk, 4 * 4096);
    let pruned = cache.prune(CacheLimits { size: Some(3 * 4096), age: None }).expect("pruned");
    assert_eq!(pruned.removed_bytes, 4096);
    assert!(case.record(&KEY).exists() && !case.record(&OTHER).exists());
    let pruned =
        cache.prune(CacheLimits { size: None, age: Some(Duration::from_secs(500)) }).expect("pruned");
    assert!(pruned.kept_files == 2, "{pruned:?}");
    assert!(case.run(&cache, &KEY) && !case.run(&cache, &OTHER));
}

#[test]
fn a_cache_keeps_to_its_limit_by_itself() {
    let case = Case::new();
    let directory = case.scratch.path().join("cache");
    let limit = 64 * 4096;
    for round in 0..4 {
        let cache = Cache::open(&directory, CacheLimits { size: Some(limit), age: None }).expect("a cache");
        for number in 3..=62 {
            put(&cache, case.scratch.path(), number, format!("{round} {number}").as_bytes());
        }
        drop(cache);
        let stats = case.open().holdings().expect("listed");
        assert!(stats.disk <= limit, "{stats:?}");
        assert!(stats.disk > limit / 2, "no more than needed: {stats:?}");
    }
    let stats = case.open().holdings().expect("listed");
    let usage = case.open().usage().expect("noted");
    assert_eq!((usage.stored, usage.bytes >= stats.disk), (242, true), "{usage:?}");
    assert!(usage.removed > 100, "{usage:?}");
    let aged = Cache::open(&directory, CacheLimits { size: None, age: Some(Duration::from_secs(8)) })
        .expect("a cache");
    age(&directory, 9);
    std::thread::sleep(Duration::from_millis(1100));
    case.run(&aged, &KEY);
    drop(aged);
    assert_eq!(case.open().holdings().expect("listed").records, 1);
}

#[test]
fn a_link_keeps_what_it_uses_beyond_the_limit() {
    let case = Case::new();
    let directory = case.scratch.path().join("cache");
    let limit = 64 * 4096;
    let held = |round| {
        let limits = CacheLimits { size: Some(limit), age: None };
        let cache = Cache::open(&directory, limits).expect("a cache").sparing();
        for number in 3..=62 {
            put(&cache, case.scratch.path(), number, format!("{round} {number}").as_bytes());
        }
        drop(cache);
        case.open().holdings().expect("listed").disk
    };
    let first = held(1);
    assert!(first > limit, "{first}");
    // Longer ago than the grain of uses.
    age(&directory, 90);
    let second = held(2);
    assert!(second > limit && second <= first, "what the last one used is gone: {second}");
}

/// Does something as a user whom permissions concern, in a thread: root's file system user is a thread's own.
fn as_nobody(body: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let done = scope.spawn(|| {
            // SAFETY: both calls take and give numbers only.
            if unsafe { libc::geteuid() } == 0 {
                unsafe { libc::setfsuid(65534) };
            }
            body();
        });
        done.join().expect("no panic");
    });
}

/// Sets the permissions of everything in a directory, files without the right to execute.
fn permit(directory: &Path, mode: u32) {
    for entry in fs::read_dir(directory).expect("listed") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            permit(&path, mode);
        } else {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode & 0o666)).expect("own file");
        }
    }
    fs::set_permissions(directory, fs::Permissions::from_mode(mode)).expect("own directory");
}

#[test]
fn a_cache_that_can_only_be_read_is_used() {
    let case = Case::new();
    let directory = case.scratch.path().join("cache");
    permit(case.scratch.path(), 0o777);
    permit(&directory, 0o555);
    let place = tempfile::tempdir_in("/dev/shm").expect("another file system");
    permit(place.path(), 0o777);
    as_nobody(|| {
        let cache = case.open();
        let record = cache.get(&KEY).expect("readable");
        let object = place.path().join("m.o");
        assert!(cache.materialise(&record.outputs[0], &object).expect("writable"));
        assert_eq!(fs::read(&object).expect("placed"), b"object");
        cache.count(true);
        assert_eq!(cache.troubles(), Vec::<String>::new());
        let outputs = [NewOutput { role: Role::Object, name: "m.o", file: &object }];
        let result = NewResult {
            module: "m",
            outputs: &outputs,
            stderr: b"",
            measured: Measured::default(),
            by_engine: false,
            is_unobserved: false,
            note: "",
        };
        for _ in 0..20 {
            assert_eq!(cache.put(&Key([9; 32]), &result), None);
        }
        let troubles = cache.troubles();
        assert!(troubles.len() == 2 && troubles[1].starts_with("nothing more is kept"), "{troubles:?}");
    });
    permit(&directory, 0o755);
    assert!(case.open().verify(true).expect("checked").bad.is_empty());
}

#[test]
fn a_file_that_cannot_be_read_is_replaced() {
    for part in ["record", "blob"] {
        let case = Case::new();
        permit(case.scratch.path(), 0o777);
        let file = if part == "record" { case.record(&KEY) } else { case.blob() };
        fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).expect("own file");
        as_nobody(|| {
            // To this process, whose files here are not its user's, they are another's.
            let cache = case.open().shared();
            assert!(!case.run(&cache, &KEY), "{part}");
            let troubles = cache.troubles();
            assert!(troubles.len() == 1 && troubles[0].contains("ermission denied"), "{troubles:?}");
            assert!(case.run(&cache, &KEY));
            assert!(cache.verify(true).expect("checked").bad.is_empty());
        });
    }
}

#[test]
fn only_a_cache_is_looked_after() {
    let case = Case::new();
    let directory = case.scratch.path().join("cache");
    let error = |directory: &Path| {
        let error = Cache::open_existing(directory, CacheLimits::default()).expect_err("no cache");
        (distlto_prepare::exit::code_of(&error), error.to_string())
    };
    assert!(Cache::open_existing(&directory, CacheLimits::default()).is_ok());
    assert!(error(case.scratch.path()).1.contains("is no cache of results"));
    assert_eq!(error(&directory.join("missing")).0, 4);
    fs::rename(directory.join("results-v1"), directory.join("results-v2")).expect("there");
    assert!(error(&directory).1.contains("of version 2"), "{:?}", error(&directory));
    let (code, text) = error(&case.record(&KEY));
    assert!(code == 4, "{text}");
    assert!(Cache::open(&case.scratch.path().join("1.o"), CacheLimits::default()).is_err());
}
