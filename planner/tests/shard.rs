//! Index shards of real thin links, read here and by `llvm-bcanalyzer`, their costs, and hash checks.

mod complete;
mod contents;
pub mod hostile;
pub mod oracle;
mod rename;
pub mod toolchain;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::convert::Infallible;
use std::path::Path;

use distlto_planner::bitcode::ModuleHash;
use distlto_planner::module;
use distlto_planner::references;
use distlto_planner::shard::{self, Cost, HashMismatch, Shard, UnknownVersion};
use miette::Diagnostic;

fn data(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/shards").join(name))
        .expect("test data")
}

/// Reads a shard and compares everything with `llvm-bcanalyzer`.
fn check(file: &Path) -> Shard {
    let bytes = std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let read = shard::read(&bytes).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let (records, _) = oracle::dump(file);
    let mut paths = Vec::new();
    let mut functions: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for record in &records {
        match (record.block.as_str(), record.code.as_str()) {
            ("MODULE_STRTAB_BLOCK", "ENTRY") => paths.push((record.operands[0], record.text(1), None)),
            ("MODULE_STRTAB_BLOCK", "HASH") => {
                let words: Vec<_> = record.operands.iter().map(|&word| word as u32).collect();
                paths.last_mut().expect("a path").2 = Some(ModuleHash::try_from(words).expect("five words"));
            }
            ("GLOBALVAL_SUMMARY_BLOCK", "COMBINED" | "COMBINED_PROFILE") => {
                let entry = functions.entry(record.operands[1]).or_default();
                *entry = (entry.0 + 1, entry.1 + record.operands[3]);
            }
            ("GLOBALVAL_SUMMARY_BLOCK", "FLAGS") => assert_eq!(read.flags, record.operands[0]),
            ("GLOBALVAL_SUMMARY_BLOCK", "VERSION") => assert_eq!(read.version, record.operands[0]),
            _ => {}
        }
    }
    let expected: Vec<_> = paths
        .into_iter()
        .map(|(number, path, hash)| {
            let (count, instructions) = functions.get(&number).copied().unwrap_or_default();
            (path, hash.filter(|hash| *hash != [0; 5]), count, instructions)
        })
        .collect();
    let found = read.modules.iter().map(|m| (m.name().into_owned(), m.hash, m.functions, m.instructions));
    assert_eq!(found.collect::<Vec<_>>(), expected, "{}", file.display());
    read
}

/// Runs a thin link of a caller, what it calls, an empty module and a lazy one; gives the caller's shard.
fn thin_link(dir: &Path, version: u32, flags: &[&str]) -> Shard {
    let flags = [&["-flto=thin"], flags].concat();
    toolchain::compile(dir, version, "calls.c", "calls.o", &flags);
    toolchain::compile(dir, version, "called.c", "called.o", &flags);
    toolchain::compile(dir, version, "nothing.c", "nothing.o", &flags);
    toolchain::compile(dir, version, "virtual.cpp", "lazy.o", &flags);
    let inputs = ["calls.o", "called.o", "nothing.o", "--start-lib", "lazy.o", "--end-lib"];
    let options = ["--thinlto-index-only", "--thinlto-emit-imports-files", "-e", "main", "-o", "unused"];
    toolchain::run(dir, "ld.lld", version, &[&options[..], &inputs].concat());
    check(&dir.join("calls.o.thinlto.bc"))
}

#[test]
fn shards_are_read_as_llvm_reads_them() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    for version in oracle::versions() {
        let calls = thin_link(dir, version, &[]);
        let imports = std::fs::read_to_string(dir.join("calls.o.imports")).expect("an import list");
        let imported: Vec<_> = calls.imported_from("calls.o").map(|m| m.name().into_owned()).collect();
        assert_eq!(imported, imports.lines().collect::<Vec<_>>());
        assert_eq!(imported, ["called.o"]);
        let own = |name: &str| {
            let bytes = std::fs::read(dir.join(name)).expect("the compiler wrote it");
            module::read(&bytes).expect("a module").instructions.expect("a summary")
        };
        let cost = calls.cost("calls.o").expect("a known version");
        assert_eq!(cost.own_instructions, own("calls.o"));
        assert!(cost.imported_instructions > 0, "{cost:?}");
        let file = |name: &str| std::fs::read(dir.join(name)).expect("it is there");
        let imports = shard::own_symbols(&file("calls.o.thinlto.bc"), "called.o").expect("a shard");
        let imports: Vec<_> = imports.expect("a known version").into_iter().collect();
        let sizes = imports.iter().map(|(_, symbol)| symbol.instructions).sum::<u64>();
        assert_eq!(sizes, cost.imported_instructions);
        let names = references::read(&file("called.o")).expect("bitcode").expect("a summary");
        let functions = imports.iter().filter(|(_, symbol)| symbol.is_function);
        let functions: BTreeSet<_> = functions.filter_map(|(guid, _)| names.name(*guid)).collect();
        assert_eq!(functions, [&b"more"[..], b"twice"].into());
        let called = check(&dir.join("called.o.thinlto.bc"));
        let alone = Cost { own_instructions: own("called.o"), imported_instructions: 0 };
        assert_eq!(called.cost("called.o"), Ok(alone));
        // A module that defines nothing has a shard that names it.
        let nothing = check(&dir.join("nothing.o.thinlto.bc"));
        assert_eq!(nothing.modules.len(), 1);
        assert!(!nothing.is_stub());
        assert!(check(&dir.join("lazy.o.thinlto.bc")).is_stub());
    }
}

/// Of two weak definitions the first one counts. What the linker decided is printed by llvm-dis, by name where it has one.
#[test]
fn definitions_that_do_not_count() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    for version in oracle::versions() {
        toolchain::compile(dir, version, "weak.c", "first.o", &["-flto=thin", "-DFIRST"]);
        toolchain::compile(dir, version, "weak.c", "second.o", &["-flto=thin"]);
        let words = ["--thinlto-index-only", "-e", "main", "-o", "unused", "first.o", "second.o"];
        toolchain::run(dir, "ld.lld", version, &words);
        let aside = |own: &str| {
            let bytes = std::fs::read(dir.join(format!("{own}.thinlto.bc"))).expect("a shard");
            let symbols = shard::own_symbols(&bytes, own).expect("a shard").expect("a known version");
            let aside = symbols.into_iter().filter(|(_, symbol)| symbol.is_elsewhere());
            aside.map(|(guid, _)| guid).collect::<HashSet<u64>>()
        };
        assert!(aside("first.o").is_empty(), "LLVM {version}");
        let names = ["both", "value"].map(|name| shard::guid(name.as_bytes()));
        assert_eq!(aside("second.o"), names.into(), "LLVM {version}");
        let printed = toolchain::run(dir, "llvm-dis", toolchain::NEWEST, &["second.o.thinlto.bc", "-o", "-"]);
        let printed = String::from_utf8_lossy(&printed);
        let marked = printed.lines().filter(|line| line.contains("linkage: available_externally"));
        let of = |name: &u64| marked.clone().any(|line| line.contains(&format!("guid: {name}")));
        assert!(names.iter().all(of) && marked.clone().count() == 2, "LLVM {version}: {printed}");
    }
}

#[test]
fn recorded_shards_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/shards");
    let t1 = check(&folder.join("t1.o.thinlto.bc"));
    assert_eq!(t1.modules.len(), 8);
    assert_eq!(t1.cost("t1.o"), Ok(Cost { own_instructions: 9, imported_instructions: 58 }));
    let archive = check(&folder.join("shard-archive-run1.bc"));
    let members = archive.imported_from("t1.o").filter(|module| module.name().starts_with("libreg.a("));
    assert_eq!(members.count(), 2);
    check(&folder.join("l3.o.thinlto.bc"));
    let stub = shard::read(&data("l3.o.thinlto.bc")).expect("a stub");
    assert!(stub.is_stub() && stub.modules.is_empty());
    assert_eq!(stub.cost("l3.o"), Ok(Cost::default()));
}

/// The two are those of one module in two thin links that differ in a module which neither shard names.
#[test]
fn shards_that_lld_numbers_otherwise_say_the_same() {
    let [one, other] = ["shard-numbers-run1.bc", "shard-numbers-run2.bc"].map(data);
    assert_ne!(one, other, "there is something to see through");
    assert!(shard::is_equivalent(&one, &other));
    let dir = tempfile::tempdir().expect("a directory");
    let says = |shard: &[u8]| {
        std::fs::write(dir.path().join("shard.bc"), shard).expect("there is room");
        toolchain::run(dir.path(), "llvm-dis", toolchain::NEWEST, &["shard.bc", "-o", "-"])
    };
    let expected = says(&one);
    assert_eq!(says(&other), expected);
    // Damage is seen through only where LLVM reads what it read: in the padding, and in forms of records.
    for bit in (0..other.len() * 8).step_by(5) {
        let mut damaged = other.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        if shard::is_equivalent(&one, &damaged) {
            assert_eq!(says(&damaged), expected, "bit {bit}");
        }
    }
    let [one, other] = ["shard-archive-run1.bc", "shard-archive-run2.bc"].map(data);
    assert!(!shard::is_equivalent(&one, &other), "their modules have other paths");
    let stub = data("l3.o.thinlto.bc");
    assert!(shard::is_equivalent(&stub, &stub) && !shard::is_equivalent(&stub, &one));
}

/// A split unit of leveldb in two links of the same objects with `-fwhole-program-vtables`, whose members are in files with
/// other names each time.
#[test]
fn split_units_have_one_canonical_form_in_every_link() {
    let dir = tempfile::tempdir().expect("a directory");
    let records = |shard: &[u8]| {
        std::fs::write(dir.path().join("shard.bc"), shard).expect("there is room");
        let (records, _) = oracle::dump(&dir.path().join("shard.bc"));
        let summaries = records.into_iter().filter(|record| record.block == "GLOBALVAL_SUMMARY_BLOCK");
        summaries.map(|record| (record.code, record.operands)).collect::<Vec<_>>()
    };
    let runs = ["shard-types-run1.bc", "shard-types-run2.bc"].map(data);
    let [one, other] = runs.each_ref().map(|bytes| records(bytes));
    assert_ne!(one, other, "there is something to see through");
    assert!(one.iter().any(|(code, _)| code == "TYPE_ID"));
    let [one, other] = runs.each_ref().map(|bytes| shard::canonical(bytes).expect("a shard").bytes);
    assert_eq!(one, other);
}

#[test]
fn costs_of_an_unknown_version_are_unknown() {
    // VERSION is 12 in one unabbreviated record: code 10, one operand, 6 bits each.
    let mut bytes = data("t1.o.thinlto.bc");
    let old = 10u64 | 1 << 6 | 12 << 12;
    let place = (0..bytes.len() * 8 - 64).find(|bit| {
        let word = u64::from_le_bytes(bytes[bit / 8..bit / 8 + 8].try_into().expect("eight bytes"));
        word >> (bit % 8) & 0x3FFFF == old
    });
    let place = place.expect("the version record") + 12;
    // 12 is 0b01100; the lowest bits make it 15.
    for bit in [place, place + 1] {
        bytes[bit / 8] |= 1 << (bit % 8);
    }
    let read = shard::read(&bytes).expect("paths and hashes are read all the same");
    assert_eq!(read.version, 15);
    assert_eq!(read.cost("t1.o"), Err(UnknownVersion { found: 15 }));
    let known = shard::read(&data("t1.o.thinlto.bc")).expect("a shard");
    let hashes = |shard: &Shard| shard.modules.iter().map(|m| (m.path.clone(), m.hash)).collect::<Vec<_>>();
    assert_eq!(hashes(&read), hashes(&known));
}

#[test]
fn modules_that_changed_since_the_thin_link_are_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let calls = thin_link(dir, toolchain::NEWEST, &[]);
    let hash = |name: &str| -> Result<Option<ModuleHash>, Infallible> {
        let bytes = std::fs::read(dir.join(name)).expect("the compiler wrote it");
        Ok(module::read(&bytes).expect("a module").hash)
    };
    shard::check_hashes(&calls, "calls.o", hash).expect("nothing changed");
    toolchain::compile(dir, toolchain::NEWEST, "called.c", "called.o", &["-flto=thin", "-Dtwice=other"]);
    let error = shard::check_hashes(&calls, "calls.o", hash).expect_err("an import changed");
    assert!(matches!(&error, HashMismatch::Changed { module, .. } if module == "called.o"), "{error}");
    assert_eq!(error.help().expect("a remedy").to_string(), "run the thin link again");
    let error = shard::check_hashes(&calls, "other.o", hash).expect_err("another module's shard");
    assert!(error.to_string().contains("other.o") && error.to_string().contains("calls.o"), "{error}");
}

#[test]
fn modules_without_hashes_cannot_be_checked() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let newest = toolchain::NEWEST;
    toolchain::compile(dir, newest, "calls.c", "calls.bc", &["-emit-llvm"]);
    toolchain::run(dir, "opt", newest, &["-module-summary", "calls.bc", "-o", "calls.o"]);
    toolchain::compile(dir, newest, "called.c", "called.o", &["-flto=thin"]);
    let link = ["--thinlto-index-only", "-e", "main", "-o", "unused", "calls.o", "called.o"];
    toolchain::run(dir, "ld.lld", newest, &link);
    let shard = check(&dir.join("calls.o.thinlto.bc"));
    let recorded = |name: &str| shard.modules.iter().find(|m| m.name() == name).map(|m| m.hash.is_some());
    assert_eq!((recorded("calls.o"), recorded("called.o")), (Some(false), Some(true)));
    let hash = |name: &str| -> Result<Option<ModuleHash>, Infallible> {
        assert_eq!(name, "called.o", "only recorded hashes are asked for");
        let bytes = std::fs::read(dir.join(name)).expect("the compiler wrote it");
        Ok(module::read(&bytes).expect("a module").hash)
    };
    shard::check_hashes(&shard, "calls.o", hash).expect("what is recorded fits");
}

#[test]
fn hostile_bytes_give_errors_with_a_place() {
    hostile::check_crafted(shard::read);
    hostile::check(&data("t1.o.thinlto.bc"), shard::read);
    hostile::check(&data("l3.o.thinlto.bc"), shard::read);
    let error = shard::read(b"").expect_err("an empty shard");
    assert!(error.to_string().contains("byte 0") && error.to_string().contains("empty"), "{error}");
    assert!(error.help().expect("a remedy").to_string().contains("thin link"));
    let dir = tempfile::tempdir().expect("a directory");
    let file = toolchain::compile(dir.path(), toolchain::NEWEST, "called.c", "thin.o", &["-flto=thin"]);
    let error = shard::read(&std::fs::read(file).expect("a file")).expect_err("a module is no shard");
    assert!(error.to_string().contains("summary of an object"), "{error}");
}
