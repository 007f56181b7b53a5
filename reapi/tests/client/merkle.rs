//! Trees: the same bytes as a construction that is written down naively, and what cannot be in one.

use std::collections::BTreeMap;

use distlto_reapi::action::Action;
use distlto_reapi::merkle::{Tree, TreeError};
use distlto_reapi::proto::{self, Directory, DirectoryNode, FileNode};
use distlto_reapi::{Digest, DigestMessage};
use proptest::prelude::*;

const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[test]
fn golden_bytes() {
    assert_eq!(Tree::new().build().digest().hex(), EMPTY);
    // FileNode files = 1 { string name = 1; Digest digest = 2 { string hash = 1; int64 size_bytes = 2; }; bool is_executable = 4 }
    // DirectoryNode directories = 2 { string name = 1; Digest digest = 2 }
    let digest = [&[0x0a, 0x40], EMPTY.as_bytes()].concat();
    let file = [&[0x0a, 1, b'f', 0x12, 66], &digest[..], &[0x20, 1]].concat();
    let inner = [&[0x0a, 73], &file[..]].concat();
    let digest = [&[0x0a, 0x40], Digest::of(&inner).hex().as_bytes(), &[0x10, 75]].concat();
    let directory = [&[0x0a, 1, b'd', 0x12, 68], &digest[..]].concat();
    let bytes = [&inner[..], &[0x12, 73], &directory].concat();
    let mut tree = Tree::new();
    tree.add_file("d/f", Digest::of(b""), true).expect("it is the first");
    tree.add_file("f", Digest::of(b""), true).expect("it is the first");
    assert_eq!(tree.build().digest(), Digest::of(&bytes));
}

/// All paths of a tree, sorted.
type Files = BTreeMap<Vec<String>, (Digest, bool)>;

/// A path and its file.
type Entry = (Vec<String>, (Digest, bool));

/// The directory below `prefix` as one would write it down; all directories by digest.
fn naive(files: &Files, prefix: &[String], all: &mut BTreeMap<Digest, Vec<u8>>) -> Digest {
    let mut directory = Directory::default();
    let mut seen = Vec::new();
    for (path, (digest, is_executable)) in files {
        if !path.starts_with(prefix) || path.len() == prefix.len() || seen.contains(&path[prefix.len()]) {
            continue;
        }
        let name = path[prefix.len()].clone();
        seen.push(name.clone());
        if path.len() == prefix.len() + 1 {
            directory.files.push(FileNode {
                name,
                digest: Some(digest.message()),
                is_executable: *is_executable,
                node_properties: None,
            });
        } else {
            let digest = Some(naive(files, &path[..=prefix.len()], all).message());
            directory.directories.push(DirectoryNode { name, digest });
        }
    }
    directory.files.sort_by(|one, other| one.name.as_bytes().cmp(other.name.as_bytes()));
    directory.directories.sort_by(|one, other| one.name.as_bytes().cmp(other.name.as_bytes()));
    let bytes = prost_bytes(&directory);
    let digest = Digest::of(&bytes);
    all.insert(digest, bytes);
    digest
}

fn prost_bytes(directory: &Directory) -> Vec<u8> {
    use prost::Message;
    directory.encode_to_vec()
}

fn files() -> impl Strategy<Value = Vec<Entry>> {
    // Few names, so that paths meet; some of them sort otherwise by characters of UTF-16.
    let name = prop::sample::select(vec!["a", "b", "a.b", "ä", "\u{ffee}", "\u{1f600}", "-"])
        .prop_map(str::to_owned);
    let file = (prop::collection::vec(any::<u8>(), 0..3), any::<bool>());
    let file = file.prop_map(|(bytes, executable)| (Digest::of(&bytes), executable));
    prop::collection::vec((prop::collection::vec(name, 1..5), file), 0..24)
}

proptest! {
    #[test]
    fn trees_are_canonical(entries in files()) {
        let mut tree = Tree::new();
        let mut files = Files::new();
        for (path, file) in &entries {
            let joined = path.join("/");
            let added = tree.add_file(&joined, file.0, file.1);
            // The naive idea of a conflict: another file at, above or below the path.
            let other = |(known, what): (&Vec<String>, &(Digest, bool))| {
                let same = known == path && what == file;
                !same && (path.starts_with(known) || known.starts_with(path))
            };
            let conflict = files.iter().any(other);
            prop_assert_eq!(added.is_err(), conflict, "{} in {:?}", joined, files);
            if conflict {
                // The part of the way that was free may be there.
                return Ok(());
            }
            files.insert(path.clone(), *file);
        }
        let mut all = BTreeMap::new();
        let root = naive(&files, &[], &mut all);
        let built = tree.build();
        prop_assert_eq!(built.digest(), root);
        let blobs: Vec<_> = built.blobs().iter().map(|blob| blob.digest()).collect();
        prop_assert_eq!(blobs.first(), Some(&root));
        prop_assert_eq!(blobs.len(), all.len());
        prop_assert!(blobs.iter().all(|digest| all.contains_key(digest)));
        // Built in any order it is the same.
        let mut backwards = Tree::new();
        for (path, (digest, executable)) in entries.iter().rev() {
            backwards.add_file(&path.join("/"), *digest, *executable)?;
        }
        prop_assert_eq!(backwards.build().digest(), root);
    }
}

#[test]
fn what_cannot_be_in_a_tree() {
    let digest = Digest::of(b"content");
    for path in ["", "/", "/a", "a/", "a//b", ".", "./a", "a/.", "..", "a/../b", "a\0b"] {
        let added = Tree::new().add_file(path, digest, false);
        assert!(matches!(added, Err(TreeError::Path { .. })), "{path:?}: {added:?}");
    }
    let mut tree = Tree::new();
    tree.add_file("a/b", digest, false).expect("it is the first");
    tree.add_file("a/b", digest, false).expect("the same file");
    let conflict = |result| matches!(result, Err(TreeError::Conflict { .. }));
    assert!(conflict(tree.add_file("a/b", digest, true)), "another mode");
    assert!(conflict(tree.add_file("a/b", Digest::of(b"other"), false)), "another content");
    assert!(conflict(tree.add_file("a/b/c", digest, false)), "below a file");
    assert!(conflict(tree.add_file("a", digest, false)), "a directory's name");
}

#[test]
fn actions_are_canonical() {
    use prost::Message;
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut action = Action::new(vec!["cc".to_owned()], Digest::of(b""));
    action.environment = vec![pair("B", "2"), pair("A", "1")];
    action.platform = vec![pair("OSFamily", "linux"), pair("ISA", "x86-64")];
    action.output_paths = vec!["b".to_owned(), "a".to_owned(), "b".to_owned()];
    action.timeout = Some(std::time::Duration::from_millis(1500));
    let encoded = action.encode();
    let mut other = action.clone();
    other.environment.reverse();
    other.platform.reverse();
    other.output_paths.reverse();
    assert_eq!(other.encode().digest(), encoded.digest());
    let bytes = |blob: &distlto_reapi::blob::Blob| match blob.source() {
        distlto_reapi::blob::Source::Bytes(bytes) => bytes.clone(),
        distlto_reapi::blob::Source::File(_) => panic!("messages are in memory"),
    };
    let command = proto::Command::decode(bytes(&encoded.command)).expect("a Command");
    let action = proto::Action::decode(bytes(&encoded.action)).expect("an Action");
    let names: Vec<_> = command.environment_variables.iter().map(|variable| variable.name.as_str()).collect();
    assert_eq!((names, command.output_paths.clone()), (vec!["A", "B"], vec!["a".to_owned(), "b".to_owned()]));
    #[expect(deprecated, reason = "older servers read the platform from the Command")]
    let platforms = [command.platform, action.platform];
    for platform in platforms {
        let properties = platform.expect("both messages have it").properties;
        let names: Vec<_> = properties.iter().map(|property| property.name.as_str()).collect();
        assert_eq!(names, ["ISA", "OSFamily"]);
    }
    let timeout = action.timeout.map(|timeout| (timeout.seconds, timeout.nanos));
    assert_eq!(timeout, Some((1, 500_000_000)));
}
