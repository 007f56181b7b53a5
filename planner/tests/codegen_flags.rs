//! Options of LLVM that ld.lld has and clang has not, asked of both: none of them is handed on as it is.

use std::collections::BTreeSet;
use std::path::Path;

use distlto_planner::backend_flags::of_link_line;
use distlto_planner::link_line::parse;

#[path = "shard/toolchain.rs"]
#[expect(dead_code, reason = "nothing is compiled here")]
mod toolchain;

/// The names in a list that a tool prints, of one option in each line: `  --name=<value>   - What it does`.
fn names(list: &[u8]) -> BTreeSet<String> {
    let list = String::from_utf8_lossy(list);
    let words = list.lines().filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    let names = words.filter_map(|word| word.strip_prefix('-')).map(|word| word.trim_start_matches('-'));
    names.map(|name| name.split('=').next().unwrap_or(name).to_owned()).collect()
}

fn unknown_to_clang(version: u32) -> BTreeSet<String> {
    let list = ["-mllvm", "-help-list-hidden"];
    let here = Path::new(".");
    let linker = names(&toolchain::run(here, "ld.lld", version, &[&list[..], &["none.o"]].concat()));
    let compiler = names(&toolchain::run(
        here,
        "clang",
        version,
        &[&["-c", "-x", "c", "/dev/null"], &list[..]].concat(),
    ));
    assert!(compiler.len() > 1000, "{version}: {compiler:?}");
    linker.difference(&compiler).cloned().collect()
}

#[test]
fn what_only_the_linker_registers_is_said_otherwise_or_refused() {
    for version in [14, 15, 16, 19, 22] {
        let options = unknown_to_clang(version);
        // LLVM 14 has its flags of code generation in the library.
        assert!(options.contains("load"), "{version}: {options:?}");
        for option in options {
            let words = [b"-mllvm".to_vec(), format!("-{option}").into_bytes()];
            let line = parse(words).expect("a link line");
            if let Ok(flags) = of_link_line(&line, "x86_64", &[]) {
                assert!(!flags.args.iter().any(|word| word == "-mllvm"), "{version}: {option}: {flags:?}");
            }
        }
    }
}
