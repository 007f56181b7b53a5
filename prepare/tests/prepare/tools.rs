//! Running toolchains, and the shapes that every test of unpacking needs.
//!
//! A tool that is missing fails the test with the command that installs it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use distlto_prepare::error::PrepareError;
use distlto_prepare::unpack::{LinkerType, Unpack, Unpacked, unpack};
use tempfile::TempDir;

/// Runs a tool in a directory; gives its standard output.
pub fn run(directory: &Path, tool: &str, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(tool).args(arguments).current_dir(directory).output().unwrap_or_else(|error| {
        panic!("{tool}: {error}; install it with `apt-get install clang-22 lld-22 llvm-22 binutils`")
    });
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tool} {arguments:?}: {}\n{stderr}", output.status);
    output.stdout
}

/// An empty directory for one test.
pub fn scratch() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// Compiles `int NAME(void) { return N; }` to `file` with more clang options.
pub fn compile(directory: &Path, file: &str, options: &[&str]) {
    let name: String = file.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let source = directory.join("source.c");
    fs::write(&source, format!("int f_{name}(void) {{ return {}; }}", file.len()))
        .expect("scratch is writable");
    let mut arguments = vec!["-c", "-O2", "source.c", "-o", file];
    arguments.extend(options);
    run(directory, "clang-22", &arguments);
}

pub const THIN_LTO: &[&str] = &["-flto=thin"];

/// A request without options. That of the rule for Darwin, since an archive without objects then gives none.
pub fn request<'a>(archive: &'a Path, directory: &'a Path) -> Unpack<'a> {
    Unpack { linker: LinkerType::Darwin, archive, directory, architecture: None, fat_lto: false }
}

/// Unpacks `archive` to `out`, both in `directory`, and checks what holds for every success. Returns the files in the order of the
/// manifest.
pub fn unpacked(directory: &Path, archive: &str, out: &str) -> Vec<String> {
    let out = directory.join(out);
    let _ = fs::remove_dir_all(&out);
    let unpacked =
        unpack(&request(&directory.join(archive), &out)).unwrap_or_else(|error| panic!("{error:?}"));
    check(&unpacked, &out);
    unpacked.files
}

/// The error of unpacking `archive` to `out`.
pub fn refused(directory: &Path, archive: &str) -> PrepareError {
    unpack(&request(&directory.join(archive), &directory.join("refused"))).expect_err("it is refused")
}

/// The result says what lies in the directory, and nothing else does.
pub fn check(unpacked: &Unpacked, out: &Path) {
    for file in &unpacked.files {
        assert!(!file.contains('/') && file.len() <= 255, "{file}");
    }
    let mut listed = unpacked.files.clone();
    listed.sort();
    assert_eq!(files(out).into_keys().collect::<Vec<_>>(), listed);
}

/// The files of a directory.
pub fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).expect("the directory is there");
    let entry = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.to_owned();
        Some((name, fs::read(&path).expect("a readable file")))
    };
    entries.filter_map(|found| entry(found.expect("an entry").path())).collect()
}

/// Compares with `llvm-ar`: the same contents, but for members that are no objects. Not for nested archives.
pub fn compare_with_llvm_ar(directory: &Path, archive: &str, no_objects: &[&str], out: &str) {
    let list = String::from_utf8(run(directory, "llvm-ar-22", &["t", archive])).expect("UTF-8 names");
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut expected = Vec::new();
    for name in list.lines().filter(|name| !no_objects.contains(name)) {
        let instance = seen.entry(name).or_default();
        *instance += 1;
        let theirs = scratch();
        let output = format!("--output={}", theirs.path().display());
        run(directory, "llvm-ar-22", &["xN", &output, &instance.to_string(), archive, name]);
        expected.push(fs::read(theirs.path().join(name)).expect("llvm-ar has written it"));
    }
    assert!(!expected.is_empty());
    let mut written: Vec<Vec<u8>> = files(&directory.join(out)).into_values().collect();
    expected.sort();
    written.sort();
    assert!(written == expected, "{archive}: the members differ from what llvm-ar extracts");
}
