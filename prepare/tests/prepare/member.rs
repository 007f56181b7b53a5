//! Single members by name and offset: the names that lld gives modules lead to the content that `llvm-ar` extracts.

use std::fs;
use std::path::Path;

use distlto_prepare::error::PrepareError;
use distlto_prepare::member;

use crate::tools::{THIN_LTO, run, scratch};

/// Two members of one name, one with a long name, all loaded.
fn archive(directory: &Path, options: &[&str]) -> Vec<(String, u64)> {
    fs::create_dir(directory.join("sub")).expect("scratch is writable");
    let sources = [("m.o", "f"), ("sub/m.o", "g"), ("a name of more than sixteen characters.o", "h")];
    for (object, function) in sources {
        fs::write(directory.join("x.c"), format!("int {function}(void) {{ return 1; }}\n"))
            .expect("writable");
        let mut arguments = vec!["-O2", "-c", "x.c", "-o", object];
        arguments.extend(THIN_LTO);
        run(directory, "clang-22", &arguments);
    }
    let mut arguments = options.to_vec();
    arguments.push("l.a");
    arguments.extend(sources.map(|(object, _)| object));
    run(directory, "llvm-ar-22", &arguments);
    let link = ["--thinlto-index-only=index", "-shared", "--whole-archive", "l.a", "-o", "out"];
    run(directory, "ld.lld-22", &link);
    let index = fs::read_to_string(directory.join("index")).expect("written by lld");
    let parse = |line: &str| {
        let inside = line.strip_prefix("l.a(")?.strip_suffix(')')?;
        let (name, offset) = inside.rsplit_once(" at ")?;
        Some((name.to_owned(), offset.parse().ok()?))
    };
    index.lines().map(|line| parse(line).unwrap_or_else(|| panic!("{line}"))).collect()
}

#[test]
fn the_names_that_lld_gives_lead_to_the_members() {
    for options in [&["qcs"][..], &["--format=bsd", "qcs"], &["--format=darwin", "qcs"], &["qcs", "--thin"]] {
        let scratch = scratch();
        let directory = scratch.path();
        let members = archive(directory, options);
        assert_eq!(members.len(), 3, "{options:?}");
        for (at, (name, offset)) in members.iter().enumerate() {
            let placed = directory.join("placed").join(format!("l.a({name} at {offset})"));
            member::place(&directory.join("l.a"), name.as_bytes(), *offset, &placed)
                .unwrap_or_else(|error| panic!("{options:?} {name} {offset}: {error}"));
            let original = ["m.o", "sub/m.o", "a name of more than sixteen characters.o"][at];
            let expected = fs::read(directory.join(original)).expect("compiled");
            let found = fs::read(&placed).expect("placed");
            // Darwin's archives pad the members themselves.
            let padding = found.strip_prefix(&expected[..]).unwrap_or(b"another content");
            assert!(padding.len() < 8 && padding.iter().all(|&byte| byte == b'\n'), "{options:?} {name}");
        }
    }
}

#[test]
fn another_member_or_none_at_the_place_is_an_error() {
    let scratch = scratch();
    let directory = scratch.path();
    let members = archive(directory, &["qcs"]);
    let (path, out) = (directory.join("l.a"), directory.join("out.o"));
    let (name, offset) = &members[0];
    for (name, offset) in [
        ("other.o", *offset),
        (name.as_str(), members[1].1 + 2),
        (name.as_str(), members[2].1),
        (name.as_str(), 0),
        (name.as_str(), u64::MAX),
    ] {
        let refused = member::place(&path, name.as_bytes(), offset, &out);
        let error = refused.expect_err("there is no such member");
        assert!(matches!(error, PrepareError::NoSuchMember { .. }), "{name} at {offset}: {error}");
        assert!(error.to_string().contains(&format!("no member {name} at byte {offset}")), "{error}");
        assert!(!out.exists());
    }
    let cut = fs::read(&path).expect("an archive");
    fs::write(&path, &cut[..cut.len() - 10]).expect("writable");
    member::place(&path, members[2].0.as_bytes(), members[2].1, &out).expect_err("the member is cut");
    fs::write(&path, "text").expect("writable");
    member::place(&path, name.as_bytes(), *offset, &out).expect_err("no archive");
    member::place(directory, name.as_bytes(), *offset, &out).expect_err("a directory");
}
