//! The store: sharing, damage, pruning, and doing without it.
//!
//! Directories on another file system (`/dev/shm`) show the way without links.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use distlto_prepare::manifest::Manifest;
use distlto_prepare::store::Store;
use distlto_prepare::unpack::{Unpack, unpack};
use tempfile::TempDir;

use crate::tools::{THIN_LTO, check, compile, files, request, run, scratch};

struct Case {
    scratch: TempDir,
    archive: PathBuf,
}

fn case() -> Case {
    let scratch = scratch();
    compile(scratch.path(), "a.o", THIN_LTO);
    compile(scratch.path(), "b.o", &[]);
    fs::write(scratch.path().join("text"), "text").expect("writable");
    run(scratch.path(), "llvm-ar-22", &["qcs", "a.a", "a.o", "text", "b.o"]);
    let archive = scratch.path().join("a.a");
    Case { scratch, archive }
}

impl Case {
    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn store(&self) -> Store {
        Store::open(&self.path("store")).expect("a store")
    }

    fn unpack(&self, store: &Store, out: &Path) -> Manifest {
        let manifest = unpack(&Unpack { store: Some(store), ..request(&self.archive, out) });
        let manifest = manifest.unwrap_or_else(|error| panic!("{error}"));
        check(&manifest, out);
        assert_eq!(files(out)["a.o"], fs::read(self.path("a.o")).expect("written"));
        manifest
    }

    fn blobs(&self) -> Vec<PathBuf> {
        let mut blobs = Vec::new();
        for shard in fs::read_dir(self.path("store/v2/blobs")).expect("blobs") {
            let shard = fs::read_dir(shard.expect("an entry").path()).expect("a shard");
            blobs.extend(shard.map(|blob| blob.expect("an entry").path()));
        }
        blobs
    }
}

#[test]
fn directories_share_what_the_store_has() {
    let case = case();
    let store = case.store();
    let first = case.unpack(&store, &case.path("one"));
    let second = case.unpack(&store, &case.path("two"));
    assert_eq!(first, second);
    assert_eq!(case.blobs().len(), 2);
    let of = |out: &str| fs::metadata(case.path(out).join("a.o")).expect("written");
    let (one, two) = (of("one"), of("two"));
    // Either one file by two names, or (with reflinks) two files.
    assert!(one.ino() == two.ino() || one.nlink() == 1, "{one:?} {two:?}");
    assert_eq!(one.permissions().mode() & 0o222, 0, "a file of the store's content is read-only");
    assert_eq!(store.trouble(), None);
    // The same archive elsewhere, without a look at its members: as good as unpacked.
    let other = tempfile::tempdir_in("/dev/shm").expect("another file system");
    assert_eq!(case.unpack(&store, &other.path().join("out")), first);
    assert_eq!(store.trouble(), None);
}

#[test]
fn a_damaged_blob_is_noticed_and_made_again() {
    let case = case();
    let store = case.store();
    case.unpack(&store, &case.path("one"));
    for damage in [&b"damaged"[..], b""] {
        for blob in case.blobs() {
            fs::set_permissions(&blob, fs::Permissions::from_mode(0o644)).expect("own file");
            fs::write(&blob, damage).expect("own file");
        }
        let store = case.store();
        case.unpack(&store, &case.path(&format!("after-{}", damage.len())));
        assert!(store.trouble().expect("noticed").contains("damaged"), "{:?}", store.trouble());
        case.unpack(&case.store(), &case.path("one"));
    }
    let store = case.store();
    case.unpack(&store, &case.path("last"));
    assert_eq!(store.trouble(), None);
}

#[test]
fn pruning_removes_the_oldest_first_and_harms_nobody() {
    let case = case();
    let store = case.store();
    case.unpack(&store, &case.path("one"));
    let everything = store.prune(None, None).expect("pruned");
    assert_eq!((everything.removed_files, everything.kept_files), (0, 3), "two blobs and a manifest");
    let aged = store.prune(None, Some(Duration::from_secs(3600))).expect("pruned");
    assert_eq!(aged.removed_files, 0);
    let most = everything.kept_bytes - 1;
    let pruned = store.prune(Some(most), None).expect("pruned");
    assert!(pruned.removed_files >= 1 && pruned.kept_bytes <= most, "{pruned:?}");
    // Whatever is missing, blob or manifest, is made again.
    case.unpack(&store, &case.path("two"));
    let pruned = store.prune(Some(0), None).expect("pruned");
    assert_eq!((pruned.kept_files, pruned.kept_bytes), (0, 0));
    check(&case.unpack(&store, &case.path("one")), &case.path("one"));
    assert_eq!(store.prune(None, Some(Duration::ZERO)).expect("pruned").kept_files, 0);
    assert_eq!(store.trouble(), None);
}

#[test]
fn pruning_while_others_unpack() {
    let case = case();
    let reader = case.store();
    std::thread::scope(|scope| {
        let pruner = scope.spawn(|| {
            let store = case.store();
            (0..300).map(|_| store.prune(Some(0), None).expect("pruned").removed_files).sum::<usize>()
        });
        let mut round = 0;
        while !pruner.is_finished() || round < 20 {
            case.unpack(&reader, &case.path(&format!("out-{round}")));
            round += 1;
        }
        pruner.join().expect("no panic");
    });
    assert_eq!(reader.trouble(), None);
}

#[test]
fn a_store_that_cannot_be_written_only_costs_time() {
    let case = case();
    let store = case.store();
    let _ = fs::remove_dir_all(case.path("store/v2/blobs"));
    fs::write(case.path("store/v2/blobs"), "in the way").expect("writable");
    case.unpack(&store, &case.path("one"));
    assert!(store.trouble().expect("said").contains("nothing more is kept"), "{:?}", store.trouble());
    fs::write(case.path("file"), "").expect("writable");
    assert!(Store::open(&case.path("file")).is_err());
}

#[test]
fn temporaries_of_the_dead_are_swept_while_others_are_there() {
    let case = case();
    let temporaries = case.path("store/v2/tmp");
    let names = || -> Vec<_> {
        fs::read_dir(&temporaries).expect("made").map(|entry| entry.expect("an entry").file_name()).collect()
    };
    let first = case.store();
    case.unpack(&first, &case.path("one"));
    let living = names();
    assert_eq!(living.len(), 1, "the first user's own");
    fs::create_dir(temporaries.join(".distlto-tmp-dead")).expect("writable");
    fs::write(temporaries.join(".distlto-tmp-dead/half"), "half").expect("writable");
    drop(case.store());
    assert_eq!(names(), living);
    drop(first);
    assert!(names().is_empty());
}
