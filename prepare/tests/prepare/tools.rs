//! Running toolchains, and the shapes that every test of unpacking needs.
//!
//! A tool that is missing fails the test with the command that installs it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use distlto_prepare::error::PrepareError;
use distlto_prepare::manifest::Manifest;
use distlto_prepare::unpack::{Unpack, unpack};
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

/// A request without store or options.
pub fn request<'a>(archive: &'a Path, directory: &'a Path) -> Unpack<'a> {
    Unpack { archive, directory, store: None, architecture: None, fat_lto: false }
}

/// Unpacks `archive` to `out`, both in `directory`, and checks what holds for every success.
pub fn unpacked(directory: &Path, archive: &str, out: &str) -> Manifest {
    let out = directory.join(out);
    let manifest =
        unpack(&request(&directory.join(archive), &out)).unwrap_or_else(|error| panic!("{error:?}"));
    check(&manifest, &out);
    manifest
}

/// The error of unpacking `archive` to `out`.
pub fn refused(directory: &Path, archive: &str) -> PrepareError {
    unpack(&request(&directory.join(archive), &directory.join("refused"))).expect_err("it is refused")
}

/// The manifest says what lies in the directory, and nothing else of ours does.
pub fn check(manifest: &Manifest, out: &Path) {
    let found = files(out);
    let mut expected = BTreeMap::new();
    for (member, file) in manifest.written() {
        assert!(!file.contains('/') && file.len() <= 255, "{file}");
        let content = found.get(file).unwrap_or_else(|| panic!("{file} is missing"));
        assert_eq!(content.len() as u64, member.size, "{file}");
        assert_eq!(Some(blake3::hash(content).to_hex().as_str()), member.digest.as_deref(), "{file}");
        assert!(expected.insert(file.to_owned(), content.clone()).is_none(), "{file} twice");
    }
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    let json = manifest.to_json();
    assert_eq!(&Manifest::from_json(out, json.as_bytes()).expect("own JSON is read"), manifest);
}

/// The files of a directory, without the record that `unpack` keeps there.
pub fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).expect("the directory is there");
    let entry = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.to_owned();
        (name != ".distlto-unpacked.json").then(|| (name, fs::read(&path).expect("a readable file")))
    };
    entries.filter_map(|found| entry(found.expect("an entry").path())).collect()
}

/// Compares with `llvm-ar`: the same names in the same order, the same bytes. Not for nested archives.
pub fn compare_with_llvm_ar(directory: &Path, archive: &str, manifest: &Manifest, out: &str) {
    let list = String::from_utf8(run(directory, "llvm-ar-22", &["t", archive])).expect("UTF-8 names");
    let names: Vec<&str> = list.lines().collect();
    assert_eq!(manifest.members.iter().map(|member| member.name.as_str()).collect::<Vec<_>>(), names);
    assert!(!names.is_empty());
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (member, file) in manifest.written() {
        let instance = seen.entry(&member.name).or_default();
        *instance += 1;
        let theirs = scratch();
        let output = format!("--output={}", theirs.path().display());
        let instance = instance.to_string();
        run(directory, "llvm-ar-22", &["xN", &output, &instance, archive, &member.name]);
        let expected = fs::read(theirs.path().join(&member.name)).expect("llvm-ar has written it");
        let written = fs::read(directory.join(out).join(file)).expect("the file is written");
        assert!(written == expected, "{file} differs from what llvm-ar extracts");
    }
}
