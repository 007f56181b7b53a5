//! The state of a job at its start in a fork server: options that are reset, a heap of its own.

use std::fs;

use crate::forkserver::support::{command, finish, finish_alike, probe, servers, which};
use distlto_executor::execute::spawn::LocalSpawner;

/// A served compiler proper finds its options reset, and nothing of what other jobs were told.
#[test]
fn options_of_a_job_are_its_own() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("m.c"), "int f(int x) { return x * x; }\n").unwrap();
    let clang = which("clang-22");
    let servers = servers();
    let align = |functions| format!("-align-all-functions={functions}");
    let proper = ["-cc1", "-O2", "-S", "-o", "-", "m.c"];
    let printed = |words: &[&str]| {
        finish_alike(&servers, &command(&clang, words, place.path())).stdout.text().contains("p2align\t6")
    };
    for _ in 0..2 {
        assert!(!printed(&proper));
        assert!(printed(&[&proper[..], &["-mllvm", &align(6)]].concat()));
        assert!(printed(&["-O2", "-S", "-o", "-", "-mllvm", &align(6), "m.c"]));
        // A reset takes away what LLVM defines by default, and reading arguments puts that back.
        assert!(!printed(&[&proper[..], &["-mllvm", "-help"]].concat()));
    }
    assert!(servers.server_of(clang.as_ref()).is_some());
}

/// What jobs see of it is compared by the tests of what jobs see: nothing.
#[test]
fn malloc_is_tuned_where_a_compiler_starts() {
    let (place, program) = probe(&[]);
    let servers = servers();
    let mut command = command(&program, &["report"], place.path());
    let told = |text: &str| text.contains("glibc.malloc.hugetlb=1");
    assert!(!told(&finish(&servers, &command).stdout.text()));
    let server = servers.server_of(program.as_ref()).unwrap();
    assert!(told(&fs::read_to_string(format!("/proc/{server}/environ")).unwrap()));
    assert!(!told(&finish(&LocalSpawner, &command).stdout.text()));
    command.tunes_heap = true;
    assert!(told(&finish(&LocalSpawner, &command).stdout.text()));
}

/// A huge page that the server had touched would be copied for each of them, page by page.
#[test]
fn the_heap_of_a_job_begins_at_a_huge_page_of_its_own() {
    let (place, program) = probe(&[]);
    let servers = servers();
    for job in 0..3 {
        let command = command(&program, &["heap"], place.path());
        assert_eq!(finish(&servers, &command).stdout.text(), "0\n", "job {job}");
    }
}
