//! The small tools as a build system calls them: `copy`, `archive-mapper`, `compiler-stats-merger`.
//!
//! Expected sums and their spelling are what Python's `json.dump(sums, file, sort_keys=True, indent=4)` writes, as Buck2's
//! stock tools do.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_distlto");

fn scratch() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// Exit code and standard error of a run.
fn run_as(program: &Path, directory: &Path, words: &[&str]) -> (i32, String) {
    let output = Command::new(program).args(words).current_dir(directory).output().expect("runs");
    assert_eq!(output.stdout, b"", "{words:?}");
    (output.status.code().unwrap_or(-1), String::from_utf8(output.stderr).expect("UTF-8"))
}

fn run(directory: &Path, words: &[&str]) -> (i32, String) {
    run_as(Path::new(PROGRAM), directory, words)
}

fn succeeds(directory: &Path, words: &[&str]) {
    assert_eq!(run(directory, words), (0, String::new()), "{words:?}");
}

fn fails(directory: &Path, words: &[&str], code: i32, complaints: &[&str]) {
    let (found, stderr) = run(directory, words);
    assert_eq!(found, code, "{words:?}: {stderr}");
    for complaint in complaints {
        assert!(stderr.contains(complaint), "{complaint} is not in: {stderr}");
    }
}

fn write(directory: &Path, file: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = directory.join(file);
    fs::write(&path, content).expect("scratch is writable");
    path
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o7777
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("readable");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn copy_keeps_content_and_mode() {
    let scratch = scratch();
    let directory = scratch.path();
    for (size, bits) in [(0, 0o644), (100, 0o755), (3_000_000, 0o400)] {
        let content: Vec<u8> = (0..size).map(|at: u32| at.to_le_bytes()[at as usize % 3]).collect();
        let from = write(directory, "from", &content);
        fs::set_permissions(&from, fs::Permissions::from_mode(bits)).expect("own file");
        // Into a directory that is not there yet, and over what another size has left.
        for to in ["deep/er/to", "to"] {
            succeeds(directory, &["copy", "--to", to, "--from", "from"]);
            assert!(fs::read(directory.join(to)).expect("written") == content);
            assert_eq!(mode(&directory.join(to)), bits);
        }
        assert_eq!(names(directory), ["deep", "from", "to"]);
        fs::remove_file(from).expect("removable");
    }
    let before = fs::metadata(directory.join("to")).expect("written");
    fs::set_permissions(directory.join("to"), fs::Permissions::from_mode(0o600)).expect("own file");
    fs::copy(directory.join("to"), directory.join("from")).expect("writable");
    fs::set_permissions(directory.join("from"), fs::Permissions::from_mode(0o751)).expect("own file");
    succeeds(directory, &["copy", "--to=to", "--from=from"]);
    let after = fs::metadata(directory.join("to")).expect("written");
    assert_eq!(
        (after.ino(), after.mtime_nsec()),
        (before.ino(), before.mtime_nsec()),
        "the same content is not written"
    );
    assert_eq!(mode(&directory.join("to")), 0o751);
}

#[test]
fn copy_follows_links_and_takes_directories_as_targets() {
    let scratch = scratch();
    let directory = scratch.path();
    write(directory, "file", "content");
    symlink("file", directory.join("link")).expect("writable");
    fs::create_dir(directory.join("place")).expect("writable");
    succeeds(directory, &["copy", "--from", "link", "--to", "place"]);
    assert!(!directory.join("place/link").is_symlink());
    assert_eq!(fs::read(directory.join("place/link")).expect("written"), b"content");
    succeeds(directory, &["copy", "--from", "file", "--to", "file"]);
    assert_eq!(fs::read(directory.join("file")).expect("still there"), b"content");
    fails(directory, &["copy", "--from", "missing", "--to", "to"], 4, &["cannot read missing"]);
    fails(directory, &["copy", "--from", "place", "--to", "to"], 3, &["place is not a regular file"]);
    fails(directory, &["copy", "--from", "/dev/null", "--to", "to"], 3, &["not a regular file"]);
    fails(directory, &["copy", "--from", "file", "--to", "file/to"], 4, &["file"]);
    fails(directory, &["copy", "--from", "file"], 2, &["--to"]);
    assert!(!directory.join("to").exists());
}

#[test]
fn archive_mapper_copies_each_file_to_its_place() {
    let scratch = scratch();
    let directory = scratch.path();
    fs::create_dir(directory.join("objects")).expect("writable");
    for name in ["a.o", "-b.o", "c%20d.o"] {
        write(directory, &format!("objects/{name}"), name);
    }
    let map = ["--object_to_map", "a.o", "x/a.o", "--object_to_map", "-b.o", "-y.o"];
    for tool in ["archive-mapper", "archive_mapper"] {
        let words = [tool, "--objects_dir", "objects", "--object_to_map", "c%20d.o", "x/z/c"];
        succeeds(directory, &[&words[..], &map[..]].concat());
        for (place, content) in [("x/a.o", "a.o"), ("-y.o", "-b.o"), ("x/z/c", "c%20d.o")] {
            assert_eq!(fs::read_to_string(directory.join(place)).expect("written"), content);
            fs::remove_file(directory.join(place)).expect("removable");
        }
    }
    let words = |more: &[&'static str]| {
        [&["archive-mapper", "--objects_dir", "objects"][..], &map[..], more].concat()
    };
    fails(
        directory,
        &words(&[]),
        3,
        &["objects: its file `c%20d.o` has no destination", "nothing was copied"],
    );
    let extra = ["--object_to_map", "c%20d.o", "c", "--object_to_map", "e.o", "e"];
    fails(directory, &words(&extra), 3, &["objects: it has no file `e.o`"]);
    let same = ["--object_to_map", "c%20d.o", "x/a.o"];
    fails(directory, &words(&same), 3, &["`a.o` and `c%20d.o` have one destination, x/a.o"]);
    fails(directory, &words(&["--object_to_map", "c%20d.o"]), 2, &["--object_to_map"]);
    fails(directory, &["archive-mapper", "--objects_dir", "none"], 4, &["none"]);
    assert_eq!(names(directory), ["objects", "x"]);
    assert_eq!(names(&directory.join("x")), ["z"]);

    fs::create_dir(directory.join("empty")).expect("writable");
    succeeds(directory, &["archive-mapper", "--objects_dir", "empty"]);
    let odd = std::ffi::OsStr::from_bytes(b"\xff.o");
    fs::write(directory.join("empty").join(odd), "odd").expect("writable");
    let status = Command::new(PROGRAM)
        .args(["archive-mapper", "--objects_dir", "empty", "--object_to_map"])
        .args([odd, std::ffi::OsStr::new("odd")])
        .current_dir(directory)
        .status();
    assert!(status.expect("runs").success());
    assert_eq!(fs::read(directory.join("odd")).expect("written"), b"odd");
}

/// Merges these files; gives what was written.
fn merged(files: &[&str]) -> String {
    let scratch = scratch();
    let directory = scratch.path();
    let mut list = String::new();
    for (number, content) in files.iter().enumerate() {
        write(directory, &format!("{number}.json"), content);
        // With and without what text tools leave at the ends of lines.
        list += &format!("{number}.json{}", ["\n", "\r\n", "  \n"][number % 3]);
    }
    write(directory, "list", list);
    let words = ["--input-stats-filelist", "list", "--output-stats-file", "sums.json"];
    for tool in ["compiler-stats-merger", "compiler_stats_merger"] {
        succeeds(directory, &[&[tool], &words[..]].concat());
    }
    fs::read_to_string(directory.join("sums.json")).expect("written")
}

#[test]
fn statistics_are_summed_key_by_key() {
    assert_eq!(merged(&[]), "{}");
    assert_eq!(merged(&["{}", " { }\n"]), "{}");
    let sums = merged(&[
        "{\n\t\"licm.NumHoisted\": 3,\n\t\"b\": 18446744073709551615,\n\t\"time.x.wall\": 1.0000000000000000e-01\n}\n",
        "{\"licm.NumHoisted\": 4, \"b\": 18446744073709551615, \"a\u{e9}\u{1f600}\\n\": -1, \"time.x.wall\": 0.2}",
        "{\"b\": 9007199254740993, \"time.x.wall\": 0, \"one\": 1, \"half\": 0.5}",
        "{\"one\": 0.5}",
    ]);
    let expected = r#"{
  "aé😀\n": -1,
  "b": 36902495346673844223,
  "half": 0.5,
  "licm.NumHoisted": 7,
  "one": 1.5,
  "time.x.wall": 0.30000000000000004
}"#;
    assert_eq!(sums, expected);
    // The last value of a key that a file has twice.
    assert_eq!(merged(&["{\"a\": 1, \"a\": 2}"]), "{\n  \"a\": 2\n}");
}

#[test]
fn floats_keep_every_digit() {
    // From `python3 -c 'print(repr(...))'`.
    for spelled in [
        "0.0",
        "-0.0",
        "1.0",
        "0.1",
        "0.0001",
        "9.999e-05",
        "1e-05",
        "123456789.125",
        "1000000000000000.0",
        "9999999999999998.0",
        "1e+16",
        "1.5e+16",
        "1e+22",
        "1.7976931348623157e+308",
        "5e-324",
        "2.5e-07",
        "0.30000000000000004",
        "-1234.5",
        "1e+100",
        "3.0000000000000004e-05",
    ] {
        let sums = merged(&[&format!("{{\"a\": {spelled}}}")]);
        let sum = sums.strip_prefix("{\n  \"a\": ").and_then(|sums| sums.strip_suffix("\n}"));
        let sum = sum.expect("one sum");
        // No reader may take it for an integer.
        assert!(sum.contains(['.', 'e']), "{sum}");
        let bits = |text: &str| text.parse::<f64>().map(f64::to_bits);
        assert_eq!(bits(sum), bits(spelled), "{sum}");
    }
}

#[test]
fn what_a_compiler_writes_is_merged() {
    let scratch = scratch();
    let directory = scratch.path();
    write(directory, "header.h", "int f(void);\n");
    for file in ["one", "two"] {
        write(directory, &format!("{file}.c"), "#include \"header.h\"\nint f(void) { return 1; }\n");
        let source = format!("{file}.c");
        let words = ["-c", &source, "-save-stats=obj"];
        let status = Command::new("clang-22").args(words).current_dir(directory).status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "clang-22 failed; install it with `apt-get install clang-22`"
        );
    }
    let one = fs::read_to_string(directory.join("one.stats")).expect("clang writes it");
    let counted = |text: &str| -> serde_json::Map<String, serde_json::Value> {
        serde_json::from_str(text).expect("an object")
    };
    assert_eq!(one, fs::read_to_string(directory.join("two.stats")).expect("clang writes it"));
    let sums = counted(&merged(&[&one, &one]));
    assert!(!sums.is_empty());
    for (key, value) in counted(&one) {
        assert_eq!(sums[&key].as_u64(), value.as_u64().map(|value| 2 * value), "{key}");
    }
}

#[test]
fn statistics_that_are_none_are_errors() {
    let scratch = scratch();
    let directory = scratch.path();
    let merge =
        ["compiler-stats-merger", "--input-stats-filelist", "list", "--output-stats-file", "sums.json"];
    write(directory, "good.json", "{\"a\": 1}");
    for (content, complaint) in [
        ("[1]", "expected one JSON object of numbers: line 1, column 0: invalid type: sequence"),
        ("", "expected one JSON object of numbers: line 1, column 0: EOF"),
        ("{\"a\": 1", "line 1, column 7: EOF while parsing an object"),
        ("{\"a\": 1} {}", "trailing characters"),
        ("{\"a\": \"1\"}", "the value of `a` is \"1\", expected a number"),
        ("{\"a\": {\"b\": 1}}", "the value of `a` is {\"b\": 1}, expected a number"),
        ("{\"ok\": 1, \"a\": true}", "the value of `a` is true"),
        ("{\"a\": null}", "the value of `a` is null"),
        ("{\"a\": NaN}", "expected value"),
        ("{\"a\": 1e999}", "the value of `a` is 1e999"),
        ("{\"a\": 999999999999999999999999999999999999999999}", "9999999999999..., expected a number"),
    ] {
        write(directory, "list", "good.json\nbad.json\n");
        write(directory, "bad.json", content);
        fails(directory, &merge, 3, &["bad.json: ", complaint]);
    }
    write(directory, "bad.json", b"{\"\xff\": 1}");
    fails(directory, &merge, 3, &["bad.json: "]);
    let most = i128::MAX.to_string();
    write(directory, "bad.json", format!("{{\"a\": {most}}}"));
    fails(directory, &merge, 3, &["bad.json: the sum of `a` is too large"]);
    write(directory, "list", "good.json\n\ngood.json\n");
    fails(directory, &merge, 3, &["list: line 2 is empty"]);
    write(directory, "list", "good.json\nmissing.json");
    fails(directory, &merge, 4, &["cannot read missing.json"]);
    fs::remove_file(directory.join("list")).expect("removable");
    fails(directory, &merge, 4, &["cannot read list"]);
    assert!(!directory.join("sums.json").exists());
}

#[test]
fn a_link_named_after_a_tool_is_that_tool() {
    let scratch = scratch();
    let directory = scratch.path();
    write(directory, "from", "content");
    write(directory, "list", "");
    fs::create_dir(directory.join("objects")).expect("writable");
    for (name, words) in [
        ("distlto-copy", &["--from", "from", "--to", "to"][..]),
        ("distlto-archive_mapper", &["--objects_dir", "objects"]),
        ("distlto-compiler-stats-merger", &["--input-stats-filelist", "list", "--output-stats-file", "to"]),
    ] {
        let link = directory.join(name);
        symlink(PROGRAM, &link).expect("writable");
        assert_eq!(run_as(&link, directory, words), (0, String::new()), "{name}");
    }
    assert_eq!(fs::read(directory.join("to")).expect("written"), b"{}");
}

/// An installation has links to the one program by the tools' names.
#[test]
fn a_name_of_a_tool_is_the_tool() {
    let place = scratch();
    for tool in ["index", "distribute", "prepare", "opt", "plan"] {
        let program = place.path().join(format!("distlto-{tool}"));
        symlink(PROGRAM, &program).expect("a link");
        let printed = |words: &[&str]| {
            let output = Command::new(&program).args(words).output().expect("runs");
            assert!(output.status.success(), "{tool} {words:?}: {output:?}");
            String::from_utf8(output.stdout).expect("UTF-8")
        };
        for version in ["--version", "-V"] {
            assert_eq!(printed(&[version]), concat!("distlto ", env!("CARGO_PKG_VERSION"), "\n"));
        }
        assert!(printed(&["--help"]).contains(&format!("Usage: distlto {tool} ")), "{tool}");
        let (code, stderr) = run_as(&program, place.path(), &["--nonsense"]);
        assert!(code == 2 && stderr.contains("unexpected argument '--nonsense'"), "{tool}: {code}: {stderr}");
    }
}
