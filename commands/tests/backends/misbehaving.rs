//! The compiler replaced by a script that misbehaves: each is refused with its cause, the earlier object is
//! intact, and no temporary is left.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use distlto_executor::cancel::Cancel;
use distlto_executor::run::{NoHooks, run};
use distlto_executor::schedule::Policy;

use super::common::{Link, cause, is_done};

const GOOD: &[u8] = b"an earlier object";

/// Runs `body` as the compiler of `a.o` and expects a refusal that holds `expected`.
#[track_caller]
fn refused(expected: &str, body: &str) {
    refused_with(1, expected, body);
}

#[track_caller]
fn refused_with(code: u8, expected: &str, body: &str) {
    let link = Link::new(22);
    fs::create_dir(link.path("out")).unwrap();
    link.write("out/a.o", GOOD);
    let report = link.opt(&link.compiler(body));
    let cause = cause(&report);
    assert!(cause.starts_with("a.o: ") && cause.contains(expected), "{cause}");
    assert_eq!(report.exit_code(), code);
    assert_eq!(link.read("out/a.o"), GOOD);
    assert_eq!(link.temporaries(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn writes_nothing_and_exits_0() {
    refused("did not write", "exit 0");
}

#[test]
fn writes_an_empty_file_and_exits_0() {
    refused("wrote an empty", ": > \"$out\"");
}

#[test]
fn writes_a_truncated_object() {
    for cut in ["head -c -1", "head -c 700", "head -c 64", "head -c 63", "head -c 5"] {
        refused("out/a.o is", &format!("clang-22 -c a.c -o - | {cut} > \"$out\""));
    }
}

#[test]
fn writes_a_damaged_section_table() {
    // The byte of e_shoff that makes the section table begin 64 KiB later than it does.
    let damage =
        "clang-22 -c a.c -o \"$out\"; printf '\\001' | dd of=\"$out\" bs=1 seek=42 conv=notrunc 2>/dev/null";
    refused("out/a.o is truncated or malformed", damage);
}

#[test]
fn writes_an_object_of_another_machine() {
    let body = "clang-22 -c --target=aarch64-linux-gnu -ffreestanding a.c -o \"$out\"";
    refused("out/a.o is ELF aarch64 object, expected ELF x86-64 object", body);
}

#[test]
fn writes_an_object_of_another_format() {
    refused(
        "COFF x86-64 object, expected ELF",
        "clang-22 -c --target=x86_64-pc-windows-msvc a.c -o \"$out\"",
    );
}

#[test]
fn writes_bitcode_text_or_a_program() {
    refused("out/a.o is bitcode, expected ELF x86-64 object", "clang-22 -flto=thin -c a.c -o \"$out\"");
    refused("out/a.o is text, expected", "echo 'an object' > \"$out\"");
    refused(
        "executable, expected",
        "clang-22 -c a.c -o x.o && ld.lld-22 -e 0 --unresolved-symbols=ignore-all x.o -o \"$out\"",
    );
}

#[test]
fn writes_a_directory_in_place_of_an_object() {
    refused("is not a file", "mkdir \"$out\"");
}

#[test]
fn changes_its_inputs() {
    let good = "clang-22 -c a.c -o \"$out\"";
    let changed = "a.o changed while the command ran";
    refused_with(3, changed, &format!("{good}; cp a.o x.o; mv x.o a.o"));
    refused_with(3, changed, &format!("{good}; cp -p a.o x.o; cp -p b.o a.o; touch -r x.o a.o"));
    refused_with(3, "a.o.thinlto.bc changed while", &format!("{good}; cp b.o.thinlto.bc a.o.thinlto.bc"));
    // A failure may have come from the change, so that is told.
    refused_with(3, changed, "rm a.o; exit 1");
}

#[test]
fn prints_a_backend_error_and_exits_0() {
    let good = "clang-22 -c a.c -o \"$out\"";
    refused(
        "exited with 0, but said: Error running",
        &format!("{good}; echo 'Error running ThinLTO backend: x' >&2"),
    );
    refused("said: clang: error: x", &format!("{good}; echo 'clang: error: x' >&2"));
    // The last line may lack its end, and the text may come after a flood.
    refused(
        "said: error: x",
        &format!(
            "{good}; yes warning | head -c 2000000 >&2; printf '\\nerror: x' >&2; yes | head -c 2000000 >&2"
        ),
    );
}

#[test]
fn fails_with_a_good_object() {
    refused("exit code 7: error: why", "clang-22 -c a.c -o \"$out\"; echo error: why >&2; exit 7");
}

#[test]
fn dies_by_a_signal() {
    refused("ended by SIGKILL (signal 9)", "clang-22 -c a.c -o \"$out\"; kill -KILL $$");
    refused("ended by SIGSEGV (signal 11)", "kill -SEGV $$");
}

#[test]
fn leaves_files_of_its_own_beside_the_object() {
    refused("exit code 1", ": > \"$out.tmp\"; exit 1");
}

#[test]
fn floods_both_streams_and_succeeds() {
    let link = Link::new(22);
    let flood = "yes 'warning: something' | head -c 200000000 >&2; yes | head -c 3000000; clang-22 -c a.c -o \"$out\"";
    let report = link.opt(&link.compiler(flood));
    assert!(is_done(&report), "{report:?}");
}

#[test]
fn a_missing_compiler_is_named() {
    let link = Link::new(22);
    let report = link.opt("no-such-clang");
    assert!(cause(&report).contains("cannot run no-such-clang"), "{report:?}");
    assert_eq!(report.exit_code(), 7);
    assert_eq!(link.temporaries(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_file_or_a_directory_in_the_outputs_place() {
    let link = Link::new(22);
    link.write("out", "a file");
    let report = link.opt(&link.clang);
    assert!(cause(&report).contains("cannot"), "{report:?}");
    assert_eq!((report.exit_code(), link.read("out")), (4, b"a file".to_vec()));
    fs::remove_file(link.path("out")).unwrap();
    fs::create_dir_all(link.path("out/a.o")).unwrap();
    let report = link.opt(&link.clang);
    assert!(cause(&report).contains("cannot write"), "{report:?}");
    assert_eq!((report.exit_code(), link.temporaries().len()), (4, 0));
}

#[test]
fn an_output_directory_that_cannot_be_written() {
    // Root may write anywhere; /proc is read-only in effect for everyone.
    let link = Link::new(22);
    std::os::unix::fs::symlink("/proc/self/fd", link.path("out")).unwrap();
    let report = link.opt(&link.clang);
    assert!(cause(&report).contains("cannot write"), "{report:?}");
    assert_eq!(report.exit_code(), 4);
}

#[test]
fn a_full_disk_leaves_the_earlier_object() {
    // A limit on file sizes stands for the disk's: it needs no rights. 512-byte blocks; the object is larger.
    let link = Link::new(22);
    assert!(is_done(&link.opt(&link.clang)));
    let good = link.read("out/a.o");
    let limited = link.compiler("trap '' XFSZ; ulimit -f 1; exec clang-22 \"$@\"");
    let report = link.opt(&limited);
    assert!(cause(&report).starts_with("a.o: "), "{report:?}");
    assert_eq!(link.read("out/a.o"), good);
    assert_eq!(link.temporaries(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn odd_names_are_compiled_and_quoted_so_that_a_shell_repeats_the_command() {
    let link = Link::new(22);
    for name in ["a b.o", "semi;colon.o", "quo'te\".o", "new\nline.o", "do$lar`x`.o", "star*.o"] {
        link.tool(&["clang-22", "-O2", "-flto=thin", "-c", "b.c", "-o", name]);
        link.thin_link(22, &[name]);
        let report = link.opt_of(&link.clang, name);
        assert!(is_done(&report), "{report:?}");
        fs::remove_file(link.path(&format!("{name}.thinlto.bc"))).unwrap();
        let report = link.opt_of("printf '%s\\n'", name);
        let command = report.failures().next().unwrap().1.command.clone();
        let words = std::process::Command::new("sh")
            .args([
                "-c",
                &format!(
                    "{}; set -- {}; shift 4; printf %s \"$1\"",
                    "cd /",
                    command.split_once("&& ").unwrap().1
                ),
            ])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(words.stdout).unwrap(), name);
    }
}

#[test]
fn one_failure_stops_what_has_not_started_or_nothing_else() {
    let link = Link::new(22);
    let compiler = link.compiler("case \"$*\" in *' a.o '*) exit 3;; *) exec clang-22 \"$@\";; esac");
    let (graph, wanted) = link.graph(&compiler, &["a.o", "b.o"]);
    let cancel = Cancel::new().unwrap();
    for (policy, done) in [(Policy::StopAtFirstFailure, 0), (Policy::KeepGoing, 1)] {
        let options = distlto_executor::run::RunOptions { jobs: 1, policy, ..link.options(&cancel) };
        let report = run(&graph, &wanted, &options, &NoHooks);
        let counts = report.counts();
        assert_eq!((counts.failed, counts.done, counts.not_started), (1, done, 1 - done));
    }
}

#[test]
fn objects_get_the_permissions_of_the_umask() {
    let link = Link::new(22);
    let report = link.opt(&link.clang);
    assert!(is_done(&report), "{report:?}");
    link.tool(&["touch", "plain"]);
    let mode = |name: &str| fs::metadata(link.path(name)).unwrap().permissions().mode() & 0o666;
    assert_eq!(mode("out/a.o"), mode("plain"));
}
