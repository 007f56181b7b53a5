//! What a fork server has ready for its jobs: constants on huge pages, options that are reset, a heap of their own.

use std::fs;

use crate::forkserver::support::{command, eventually, finish, finish_alike, probe, servers, which};
use distlto_executor::execute::forkserver::MANY;
use distlto_executor::execute::spawn::LocalSpawner;

/// What is mapped of a process by a line of its `maps`: bytes from an address on.
fn mapping(line: &str) -> (usize, usize) {
    let (from, to) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
    let [from, to] = [from, to].map(|address| usize::from_str_radix(address, 16).unwrap());
    (from, to - from)
}

/// Of a compiler's constants the server puts those on huge pages that jobs have read, which is the least part.
#[test]
fn constants_that_jobs_read_are_on_huge_pages() {
    const HUGE: usize = 2 << 20;
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("m.c"), "int f(int x) { return x * x; }\n").unwrap();
    let clang = which("clang-22");
    let servers = servers();
    servers.prewarm(clang.as_ref(), MANY);
    let compile = command(&clang, &["-cc1", "-O2", "-S", "-o", "-", "m.c"], place.path());
    let maps = || {
        let server = servers.server_of(clang.as_ref()).unwrap();
        fs::read_to_string(format!("/proc/{server}/maps")).unwrap()
    };
    finish_alike(&servers, &compile);
    let constants: usize =
        maps().lines().filter(|line| line.contains(" r--p ")).map(|line| mapping(line).1).sum();
    let moved = || -> usize {
        let maps = maps();
        let unnamed = maps.lines().filter(|line| line.contains(" r--p ") && line.ends_with(" 0 "));
        unnamed
            .map(mapping)
            .filter(|(from, size)| from % HUGE == 0 && size % HUGE == 0)
            .map(|(_, size)| size)
            .sum()
    };
    let state = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if state.is_empty() || state.contains("[never]") {
        assert_eq!(moved(), 0);
        return;
    }
    eventually("the server moves what the first job has read", || {
        finish_alike(&servers, &compile);
        moved() > 0
    });
    assert!(moved() < constants / 3, "{} of {constants} bytes", moved());
}

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
