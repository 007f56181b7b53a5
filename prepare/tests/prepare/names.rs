//! Properties of the names given to paths and members.
//!
//! Injective, inside, short, unlike distlto's own files; the numbering of members of one name as Buck2 has it.

use std::collections::HashSet;
use std::path::{Component, Path};

use distlto_prepare::names::{escape_path, member_file_names};
use proptest::prelude::*;

fn files(names: &[&str]) -> Vec<String> {
    member_file_names(names.iter().map(|name| name.as_bytes()))
}

#[test]
fn plain_paths_stay_readable() {
    for (path, expected) in [
        ("src/a b(c).o", "src/a b(c).o"),
        ("/a/../b.o", "%2F/a/%2E%2E/b.o"),
        ("./a", "%2E/a"),
        ("a//b/", "a/%empty/b/%empty"),
        ("", "%empty"),
        ("/", "%2F/%empty"),
        ("100%;x", "100%25%3Bx"),
        ("a\\b\nc", "a%5Cb%0Ac"),
        ("\u{fc}.o", "%C3%BC.o"),
        (".distlto-tmp-x/.Distlto-y", "%2Edistlto-tmp-x/%2EDistlto-y"),
        ("...", "..."),
    ] {
        assert_eq!(escape_path(path.as_bytes()), expected, "{path}");
    }
    assert_eq!(escape_path(b"a\xff.o"), "a%FF.o");
}

#[test]
fn long_components_keep_their_beginning_and_suffix() {
    let long = |end: &str| format!("{}{end}.o", "x".repeat(300));
    let (first, second) = (escape_path(long("1").as_bytes()), escape_path(long("2").as_bytes()));
    assert_ne!(first, second);
    for name in [&first, &second] {
        assert!(name.starts_with("xxxxxxxx") && name.ends_with(".o") && name.len() <= 200, "{name}");
    }
    // Not cut inside an encoded byte.
    let encoded = escape_path(&[0xff; 300]);
    assert!(encoded.split_once("%~").is_some_and(|(kept, _)| kept.len() % 3 == 0), "{encoded}");
}

#[test]
fn members_of_one_name_are_numbered() {
    assert_eq!(files(&["a.o", "b.o", "a.o", "a.o"]), ["a.o", "b.o", "a_1.o", "a_2.o"]);
    // A real member's name is not taken, wherever it stands.
    assert_eq!(files(&["a.o", "a.o", "a_1.o", "a.o"]), ["a.o", "a_2.o", "a_1.o", "a_3.o"]);
    assert_eq!(files(&["a_1.o", "a.o", "a.o", "a_1.o"]), ["a_1.o", "a.o", "a_2.o", "a_1_1.o"]);
    assert_eq!(files(&["Foo.o", "foo.o", "FOO.o"]), ["Foo.o", "foo_1.o", "FOO_2.o"]);
    assert_eq!(files(&["x/a.o", "/a.o", "..\\a.o", "a.o/"]), ["a.o", "a_1.o", "a_2.o", "a_3.o"]);
    assert_eq!(
        files(&["", "..", ".", "/", ".o", ".o"]),
        ["%empty.o", "%2E%2E.o", "%2E.o", "%empty_1.o", ".o", ".o_1.o"]
    );
    assert_eq!(files(&["a.tar.o", "a.tar.o"]), ["a.tar.o", "a.tar_1.o"]);
}

#[test]
fn every_member_is_named_as_an_object() {
    assert_eq!(files(&["a.bc", "b.s", "c", "d.obj", "e.O"]), ["a.bc.o", "b.s.o", "c.o", "d.obj.o", "e.O.o"]);
    // What is called so already keeps its name, wherever it stands.
    assert_eq!(files(&["a", "a.o", "a", "a.o"]), ["a_1.o", "a.o", "a_2.o", "a_3.o"]);
    assert_eq!(files(&["a.bc", "a.bc"]), ["a.bc.o", "a.bc_1.o"]);
}

fn check_component(component: &str) {
    assert!(!component.is_empty() && component.len() <= 255, "{component}");
    assert!(!component.to_ascii_lowercase().starts_with(".distlto-"), "{component}");
    assert!(!component.chars().any(|c| c.is_control() || matches!(c, '\\' | ';')), "{component}");
    let mut parsed = Path::new(component).components();
    assert!(matches!(parsed.next(), Some(Component::Normal(_))) && parsed.next().is_none(), "{component}");
}

/// Paths with many of the bytes and components that matter.
fn path() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        Just(b"/".to_vec()),
        Just(b".".to_vec()),
        Just(b"..".to_vec()),
        Just(b"%2E".to_vec()),
        Just(b"%empty".to_vec()),
        Just(b".distlto-tmp-".to_vec()),
        Just(b"a".to_vec()),
        Just(b"A.o".to_vec()),
        Just("\u{e9}".as_bytes().to_vec()),
        Just(vec![b'y'; 120]),
        proptest::collection::vec(any::<u8>(), 0..4),
    ];
    proptest::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn escaped_paths_stay_inside(path in path()) {
        let escaped = escape_path(&path);
        escaped.split('/').for_each(check_component);
        prop_assert_eq!(&escaped, &escape_path(&path));
    }

    #[test]
    fn escaping_is_injective(paths in proptest::collection::hash_set(path(), 2..12)) {
        let escaped: HashSet<String> = paths.iter().map(|path| escape_path(path)).collect();
        prop_assert_eq!(escaped.len(), paths.len());
    }

    #[test]
    fn member_names_are_distinct_on_any_file_system(names in proptest::collection::vec(path(), 0..12)) {
        let files = member_file_names(names.iter().map(Vec::as_slice));
        files.iter().for_each(|file| check_component(file));
        prop_assert_eq!(files.len(), names.len());
        let lower: HashSet<String> = files.iter().map(|file| file.to_lowercase()).collect();
        let upper: HashSet<String> = files.iter().map(|file| file.to_uppercase()).collect();
        prop_assert_eq!((lower.len(), upper.len()), (files.len(), files.len()));
        prop_assert_eq!(files, member_file_names(names.iter().map(Vec::as_slice)));
    }
}
