//! Processes of a build that do not link: with distlto they print, return and hold open the same as without.
//!
//! Each row is a script that runs by itself and as a command of distlto. Lines on standard error that begin with `distlto:`
//! are distlto's own to say; all else is compared. The programs lie in `tests/outside`.

mod limits;
mod others;
mod places;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail, ensure};
use distlto_tests::distlto;
use distlto_tests::run::{capture, succeed, told};
use distlto_tests::toolchain::repository;
use tempfile::TempDir;

/// Programs of C, and the words by which a compiler makes them.
const PROGRAMS: [(&str, &[&str]); 15] = [
    ("forks", &["gcc", "forks.c", "-pthread"]),
    ("execs", &["gcc", "execs.c"]),
    ("stacks", &["gcc", "stacks.c", "-pthread"]),
    ("streams", &["gcc", "streams.c"]),
    ("removes", &["gcc", "removes.c"]),
    ("seccomp", &["gcc", "seccomp.c"]),
    ("hello", &["gcc", "hello.c"]),
    ("hello-static", &["gcc", "-static", "hello.c"]),
    ("hello-musl", &["musl-gcc", "hello.c"]),
    ("hello-32", &["gcc", "-m32", "hello.c"]),
    ("hello-asan", &["gcc", "-fsanitize=address", "hello.c"]),
    ("hello-tsan", &["gcc", "-fsanitize=thread", "hello.c"]),
    ("hello-ubsan", &["gcc", "-fsanitize=undefined", "hello.c"]),
    ("hello-clang-asan", &["clang-22", "-fsanitize=address", "hello.c"]),
    ("preloaded.so", &["gcc", "-shared", "-fPIC", "preloaded.c"]),
];

/// What is run, in a folder with the programs.
const ROWS: [(&str, &str); 83] = [
    ("a program", "./hello"),
    ("its exit code", "sh -c 'exit 7'"),
    ("a signal", "{ sh -c 'kill -SEGV $$'; } 2>/dev/null; echo $?"),
    ("a missing program", "./missing"),
    ("a program in PATH", "true"),
    ("a program that a program starts", "./hello ./hello"),
    ("a program by its full path", "\"$PWD/hello\""),
    ("a script", "printf '#!/bin/sh\\necho $0\\n' > s.sh; chmod +x s.sh; ./s.sh"),
    (
        "a script of another shell",
        "printf '#!/bin/bash -e\\nfalse\\necho no\\n' > b.sh; chmod +x b.sh; ./b.sh",
    ),
    ("a script without an interpreter", "printf 'echo it\\n' > n.sh; chmod +x n.sh; ./n.sh"),
    ("execv", "./execs execv /bin/echo it"),
    ("execvp", "./execs execvp echo it"),
    ("execvp along a PATH", "PATH=/missing:$PWD:/bin ./execs execvp hello"),
    ("execve", "./execs execve /bin/echo it"),
    ("execve of nothing", "./execs execve ./missing"),
    ("execve of a folder", "./execs execve /tmp"),
    ("execve of a pipe", "rm -f pipe; mkfifo -m 777 pipe; ./execs execve ./pipe"),
    ("execve without an environment", "./execs execve-none /usr/bin/env"),
    ("execve with null for it", "./execs execve-null /usr/bin/env"),
    ("execve with another environment", "./execs execve-some /usr/bin/env"),
    ("execvpe", "./execs execvpe echo it"),
    ("execl", "./execs execl /bin/echo it"),
    ("execlp", "./execs execlp echo it"),
    ("execle", "./execs execle /bin/echo it"),
    ("fexecve", "./execs fexecve /bin/echo it"),
    ("a system call", "./execs system-call /bin/echo it"),
    ("posix_spawn", "./execs posix_spawn /bin/echo it"),
    ("posix_spawn of nothing", "./execs posix_spawn ./missing"),
    ("posix_spawnp", "./execs posix_spawnp echo it"),
    ("system", "./execs system 'echo it'"),
    ("popen", "./execs popen 'echo it'"),
    ("vfork", "./execs vfork /bin/true"),
    ("vfork of nothing", "./execs vfork ./missing"),
    ("a signal's handler", "./execs handler /bin/echo it"),
    ("small stacks", "./stacks"),
    ("threads that fork", "./forks"),
    ("threads that fork and start programs", "./forks /bin/true"),
    ("no standard streams in the C library", "./streams none"),
    ("another standard output in the C library", "./streams another"),
    ("a closed stream of the C library", "./streams closed"),
    ("no standard input", "./hello <&-"),
    ("no standard output", "./hello >&-"),
    ("no standard error", "./hello 2>&-"),
    ("no descriptor at all", "(./hello ./hello <&- >&- 2>&-); echo $?"),
    ("further descriptors", "./hello ./hello 5</dev/null 6</dev/null"),
    (
        "an old file beside a program called ld",
        "rm -f ld old; ln -s hello ld; touch -d yesterday old; ./removes old; ls old",
    ),
    ("env -i", "env -i ./hello ./hello"),
    ("env -i env", "env -i A=b env"),
    ("a large environment", "for i in $(seq 900); do export V$i=$i; done; ./hello ./hello; env | grep -c ^V"),
    ("a long variable", "export V=$(head -c 100000 /dev/zero | tr '\\0' x); ./hello ./hello; echo ${#V}"),
    ("many arguments", "./hello /bin/echo $(seq 20000) | md5sum"),
    ("a static program", "./hello-static ./hello"),
    ("a program of musl", "./hello-musl ./hello"),
    ("a program that starts one of musl", "./hello ./hello-musl ./hello-static"),
    ("a program of 32 bits", "./hello-32"),
    ("a program that starts one of 32 bits", "./hello ./hello-32 ./hello"),
    ("gcc's address sanitizer", "ASAN_OPTIONS=detect_leaks=0 ./hello-asan ./hello"),
    ("clang's address sanitizer", "ASAN_OPTIONS=detect_leaks=0 ./hello-clang-asan ./hello"),
    ("the thread sanitizer", "./hello-tsan ./hello"),
    ("the sanitizer of undefined behaviour", "./hello-ubsan ./hello"),
    ("seccomp's strict mode", "./seccomp strict"),
    ("a filter that forbids sockets", "./seccomp filter ./hello ./hello"),
    ("few open files", "ulimit -n 8; ./hello ./hello"),
    ("little memory", "ulimit -v 100000; ./hello ./hello"),
    ("no large files", "ulimit -f 1; ./hello ./hello"),
    ("no room for a stack", "ulimit -s 256; ./hello ./hello"),
    (
        "a preloaded library of the user's",
        "LD_PRELOAD=$PWD/preloaded.so${LD_PRELOAD:+:$LD_PRELOAD} sh -c '/bin/echo it; /bin/true'",
    ),
    ("a library path", "LD_LIBRARY_PATH=/missing ./hello ./hello"),
    ("bindings at the start", "LD_BIND_NOW=1 ./hello ./hello"),
    ("setsid and nohup", "setsid -w nohup ./hello ./hello"),
    ("timeout and nice", "timeout 100 nice ./hello ./hello"),
    ("xargs", "seq 50 | xargs -n1 -P4 ./hello | sort | uniq -c"),
    ("find", "find /etc/hostname -exec ./hello {} ';'"),
    ("awk, sed and pipes", "seq 9 | awk '{ system(\"echo \" $1) }' | sed s/1/2/ | sort -r"),
    ("make", "printf 'all: a b\\na b:\\n\\t@./hello\\n' > m.mk; make -f m.mk -j1"),
    (
        "Python",
        "python3 -c 'import subprocess; print(subprocess.run([\"./hello\"]).returncode, subprocess.run(\"./hello\", shell=True).returncode)'",
    ),
    ("Perl", "perl -e 'print `./hello`; system(\"./hello\"); exec \"./hello\"'"),
    ("Node", "node -e 'console.log(require(\"child_process\").spawnSync(\"./hello\").status)'"),
    ("Go", "./start ./hello ./hello"),
    ("Java", "java -XX:TieredStopAtLevel=1 Hello.java ./hello ./hello 2>/dev/null"),
    ("valgrind", "valgrind -q ./hello ./hello"),
    ("gdb", "gdb -batch -q -ex run --args ./hello 2>/dev/null | grep words"),
    ("strace and fakeroot", "strace -f -o /dev/null ./hello ./hello; fakeroot ./hello /usr/bin/id -u"),
];

/// A folder with the programs.
fn programs() -> Result<&'static Path> {
    static PROGRAMS_FOLDER: OnceLock<Result<TempDir, String>> = OnceLock::new();
    let made = PROGRAMS_FOLDER.get_or_init(|| build().map_err(|error| format!("{error:#}")));
    match made {
        Ok(folder) => Ok(folder.path()),
        Err(error) => bail!("{error}"),
    }
}

fn build() -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    for entry in fs::read_dir(repository().join("tests/outside"))? {
        let source = entry?;
        fs::copy(source.path(), folder.path().join(source.file_name()))?;
    }
    for (name, words) in PROGRAMS {
        let mut compiler = Command::new(words[0]);
        compiler.args(&words[1..]).args(["-w", "-o", name]).current_dir(folder.path());
        succeed(&mut compiler).context("cargo xtask setup installs the compilers of these programs")?;
    }
    let mut go = Command::new("go");
    go.args(["build", "-o", "start", "start.go"]).env("GOCACHE", folder.path().join("cache"));
    succeed(go.env("GOFLAGS", "-mod=mod").current_dir(folder.path()))?;
    Ok(folder)
}

/// Runs a script of bash by itself, and as a command of distlto.
fn run_both(folder: &Path, script: &str) -> Result<[(Command, Output); 2]> {
    let run = |words: &[&Path]| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(["-c", script]).current_dir(folder);
        let output = capture(&mut command)?;
        Ok::<_, anyhow::Error>((command, output))
    };
    let bash = Path::new("bash");
    Ok([run(&[bash])?, run(&[distlto::binary()?, bash])?])
}

/// Standard error without the lines of distlto.
fn own_words(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().filter(|line| !line.starts_with("distlto:"));
    lines.map(|line| line.to_owned() + "\n").collect()
}

#[test]
fn processes_that_do_not_link_are_the_same() -> Result<()> {
    let folder = programs()?;
    let mut differ = Vec::new();
    for (name, script) in ROWS {
        let [plain, with] = run_both(folder, script)?;
        let ended = |(_, output): &(Command, Output)| {
            (output.status.code(), output.stdout.clone(), own_words(&output.stderr))
        };
        if ended(&plain) != ended(&with) {
            differ.push(format!("{name}:\n{}\n{}", told(&plain.0, &plain.1), told(&with.0, &with.1)));
        }
    }
    ensure!(differ.is_empty(), "{} of {}:\n{}", differ.len(), ROWS.len(), differ.join("\n"));
    Ok(())
}

/// A program below a folder of its own, with the library beside it.
fn copied_to(folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    for name in ["distlto", "libdistlto_hook.so"] {
        fs::copy(distlto::directory()?.join(name), folder.join(name))?;
    }
    Ok(folder.join("distlto"))
}
