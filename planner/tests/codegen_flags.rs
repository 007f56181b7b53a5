//! Options of LLVM that ld.lld has and clang has not, asked of both: none of them is handed on as it is.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use distlto_planner::backend_flags::of_link_line;
use distlto_planner::link_line::parse;

use crate::shard::toolchain;

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
            if let Ok(flags) = of_link_line(&line, "x86_64", None, &[]) {
                assert!(!flags.args.iter().any(|word| word == "-mllvm"), "{version}: {option}: {flags:?}");
            }
        }
    }
}

/// The values that an option of the linker takes, each on a line of its own below the option's: `    =name   -  What it is`.
fn values(version: u32, option: &str) -> Vec<String> {
    let list = toolchain::run(Path::new("."), "ld.lld", version, &["-mllvm", "-help-list-hidden", "none.o"]);
    let list = String::from_utf8_lossy(&list);
    let of_option = list.lines().skip_while(|line| !line.starts_with(&format!("  --{option}="))).skip(1);
    let values = of_option.map_while(|line| line.strip_prefix("    ="));
    values.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn libraries_of_vector_functions_have_names_that_clang_knows() {
    for version in [14, 15, 16, 19, 22] {
        let values = values(version, "vector-library");
        assert!(values.len() > 4, "{version}: {values:?}");
        for value in values {
            let words = [b"-mllvm".to_vec(), format!("-vector-library={value}").into_bytes()];
            let flags =
                of_link_line(&parse(words).expect("a link line"), "x86_64", None, &[]).expect("flags");
            let [name] =
                flags.args.iter().filter(|word| word.starts_with("-fveclib=")).collect::<Vec<_>>()[..]
            else {
                panic!("{flags:?}");
            };
            // Some are for other machines, which clang says in other words.
            let said = Command::new(format!("clang-{version}"))
                .args(["-###", "-c", "-x", "c", "/dev/null", name])
                .output()
                .expect("it runs");
            let said = String::from_utf8_lossy(&said.stderr);
            assert!(!said.contains("invalid value"), "{version}: {value}: {said}");
        }
    }
}
