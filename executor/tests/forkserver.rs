//! A served child is, in everything it can see and everything we can see of it, a child like any other.
//!
//! The oracle is [`LocalSpawner`], which starts the same program with fork and exec.

pub mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use distlto_executor::cancel::Cancel;
use distlto_executor::execute::forkserver::{ForkServer, MANY};
use distlto_executor::execute::process::{Child, Lost, Spawner, run};
use distlto_executor::execute::spawn::LocalSpawner;
use rustix::process::Signal;
use support::{
    command, descriptors, eventually, finish, finish_alike, kill, modules_of, probe, runs, servers, tool,
    which,
};

/// Starts `probe sleep` and tells its process id and that of the child it has started.
fn sleeper(spawner: &dyn Spawner, program: &str, place: &Path) -> (Box<dyn Child>, [u32; 2]) {
    let (reader, writer) = std::io::pipe().unwrap();
    let null = fs::File::options().write(true).open("/dev/null").unwrap();
    let child =
        spawner.spawn(&command(program, &["sleep"], place), writer.into(), OwnedFd::from(null)).unwrap();
    let mut line = String::new();
    BufReader::new(reader).read_line(&mut line).unwrap();
    (child, numbers(&line))
}

fn numbers(line: &str) -> [u32; 2] {
    let numbers: Vec<u32> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

/// Thin-links modules that call each other and compiles each with both spawners.
fn compare_objects(version: u32, modules: usize) {
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    let clang = which(&format!("clang-{version}"));
    let lld = which(&format!("ld.lld-{version}"));
    let objects = modules_of(at, version, modules);
    let objects: Vec<&str> = objects.iter().map(String::as_str).collect();

    let servers = servers();
    // As for a large link: the server's work for many jobs goes on while the first of these run.
    servers.prewarm(clang.as_ref(), MANY);
    servers.prewarm(lld.as_ref(), 2);
    let thin_link = [&["--thinlto-index-only", "-e", "main", "-o", "program"], objects.as_slice()].concat();
    let linked = finish(&servers, &command(&lld, &thin_link, at));
    assert!(linked.ended.status.success(), "{}", linked.stderr.text());
    assert!(servers.server_of(lld.as_ref()).is_some());

    for (module, &input) in objects.iter().enumerate() {
        for (spawner, suffix) in [(&servers as &dyn Spawner, "served"), (&LocalSpawner, "plain")] {
            let object = format!("m{module}.{suffix}");
            let shard = format!("-fthinlto-index=m{module}.o.thinlto.bc");
            let words = ["-c", "-O2", "-fPIC", input, &shard, "-o", &object];
            let finished = finish(spawner, &command(&clang, &words, at));
            assert!(finished.ended.status.success(), "{}", finished.stderr.text());
            assert!(finished.stderr.is_empty() && finished.stdout.is_empty());
        }
        let served = fs::read(at.join(format!("m{module}.served"))).unwrap();
        assert!(served.starts_with(b"\x7fELF"));
        assert!(
            served == fs::read(at.join(format!("m{module}.plain"))).unwrap(),
            "LLVM {version}, m{module}.o"
        );
    }
    assert!(servers.server_of(clang.as_ref()).is_some(), "LLVM {version}: no server");

    let mut programs = Vec::new();
    for (spawner, output) in [(&servers as &dyn Spawner, "served.so"), (&LocalSpawner, "plain.so")] {
        let names: Vec<String> = (0..modules).map(|module| format!("m{module}.served")).collect();
        let mut words = vec!["-shared", "-o", output];
        words.extend(names.iter().map(String::as_str));
        let finished = finish(spawner, &command(&lld, &words, at));
        assert!(finished.ended.status.success(), "{}", finished.stderr.text());
        programs.push(fs::read(at.join(output)).unwrap());
    }
    assert!(programs[0] == programs[1]);
}

#[test]
fn objects_are_those_of_plain_runs() {
    compare_objects(22, 40);
}

#[test]
fn objects_are_those_of_plain_runs_with_older_toolchains() {
    for version in [19, 16, 15, 14] {
        compare_objects(version, 6);
    }
}

#[test]
fn compilers_and_machines_are_served_side_by_side() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    let source = "int f(int x) { for (int i = 0; i < x; i++) x ^= x << i; return x; }\n";
    fs::write(at.join("m.c"), source).unwrap();
    let machines = ["x86_64-linux-gnu", "aarch64-linux-gnu", "riscv64-linux-gnu"];
    let mut jobs = Vec::new();
    for version in [22, 19, 16] {
        for machine in machines {
            let clang = which(&format!("clang-{version}"));
            let target = format!("--target={machine}");
            let name = format!("{version}-{machine}");
            tool(at, &[&clang, &target, "-O2", "-flto=thin", "-c", "m.c", "-o", &format!("{name}.bc")]);
            jobs.push((clang, target, name));
        }
    }
    let servers = servers();
    std::thread::scope(|scope| {
        for (clang, target, name) in &jobs {
            let servers = &servers;
            scope.spawn(move || {
                for _ in 0..3 {
                    for (spawner, suffix) in [(servers as &dyn Spawner, "served"), (&LocalSpawner, "plain")] {
                        let (input, object) = (format!("{name}.bc"), format!("{name}.{suffix}"));
                        let words = [target, "-O2", "-x", "ir", "-c", &input, "-o", &object];
                        let finished = finish(spawner, &command(clang, &words, at));
                        assert!(finished.ended.status.success(), "{}", finished.stderr.text());
                    }
                }
            });
        }
    });
    for (clang, _, name) in &jobs {
        let [served, plain] =
            ["served", "plain"].map(|suffix| fs::read(at.join(format!("{name}.{suffix}"))).unwrap());
        assert!(served == plain && served.starts_with(b"\x7fELF"), "{name}");
        assert!(servers.server_of(clang.as_ref()).is_some());
    }
}

#[test]
fn a_child_sees_what_any_child_sees() {
    let (place, program) = probe(&[]);
    let servers = servers();
    servers.prewarm(program.as_ref(), MANY);
    // The second job finds a server that has served before.
    for _ in 0..2 {
        let command = command(&program, &["report", "", "two words", "\u{e9}\n"], place.path());
        let served = finish_alike(&servers, &command);
        assert_eq!(served.stderr.text(), "to standard error\n");
        assert!(served.ended.peak_memory.is_some() && served.ended.cpu.is_some());
    }
    assert!(servers.server_of(program.as_ref()).is_some());
}

/// The server puts its libraries on huge pages when it learns of many jobs, which later jobs inherit and earlier ones do
/// not: their memory is their own.
#[test]
fn a_job_older_than_the_servers_work_for_many_tells_its_memory() {
    let place = tempfile::tempdir().unwrap();
    let clang = which("clang-22");
    let source = place.path().join("waits.c");
    tool(place.path(), &["mkfifo", "waits.c"]);
    let servers = servers();
    let command = command(&clang, &["-cc1", "-fsyntax-only", "waits.c"], place.path());
    let plain = std::thread::scope(|scope| {
        let run = scope.spawn(|| finish(&LocalSpawner, &command));
        fs::write(&source, "int x;\n").unwrap();
        run.join().unwrap()
    });
    let served = std::thread::scope(|scope| {
        let run = scope.spawn(|| finish(&servers, &command));
        // Opened for writing when the job has it open for reading.
        let mut fifo = fs::File::options().write(true).open(&source).unwrap();
        servers.prewarm(clang.as_ref(), MANY);
        let server = servers.server_of(clang.as_ref()).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        eventually("the server goes on working", || {
            let stat = fs::read_to_string(format!("/proc/{server}/stat")).unwrap();
            stat.rsplit_once(") ").unwrap().1.starts_with('S')
        });
        fifo.write_all(b"int x;\n").unwrap();
        drop(fifo);
        run.join().unwrap()
    });
    assert!(served.ended.status.success() && plain.ended.status.success(), "{}", served.stderr.text());
    let [served, plain] = [served, plain].map(|finished| finished.ended.peak_memory.unwrap());
    assert!(served > plain / 3, "{served} bytes, a process of its own {plain}");
}

/// A program of LLVM's ends without its libraries' destructors. What it prints late comes all the same: `llvm::outs()` is
/// flushed, timers and counters are printed by destructors.
#[test]
fn programs_of_llvm_print_all_they_have_to_say() {
    let place = tempfile::tempdir().unwrap();
    let source = "int f(int x) { for (int i = 0; i < x; i++) x ^= x << i; return x; }\n";
    fs::write(place.path().join("m.c"), source).unwrap();
    let (clang, lld) = (which("clang-22"), which("ld.lld-22"));
    let servers = servers();
    let ast = ["-Xclang", "-ast-dump", "-fsyntax-only", "-fno-color-diagnostics", "m.c"];
    let exact: [(&str, &[&str]); 5] = [
        (&clang, &["--version"]),
        (&clang, &["-print-targets"]),
        (&clang, &["-O2", "-S", "-o", "-", "m.c"]),
        (&clang, &["-c", "missing.c"]),
        (&lld, &["--help"]),
    ];
    for (program, words) in exact {
        finish_alike(&servers, &command(program, words, place.path()));
    }
    for words in [&ast[..], &["-O2", "-c", "-ftime-report", "-mllvm", "-stats", "m.c"]] {
        // Addresses and times differ.
        let command = command(&clang, words, place.path());
        let lines = |spawner: &dyn Spawner| {
            let finished = finish(spawner, &command);
            (finished.stdout.text().lines().count(), finished.stderr.text().lines().count())
        };
        let served = lines(&servers);
        assert_eq!(served, lines(&LocalSpawner), "{words:?}");
        assert!(served.0.max(served.1) > 3, "{words:?}: {served:?}");
    }
    assert!(servers.server_of(clang.as_ref()).is_some() && servers.server_of(lld.as_ref()).is_some());
}

#[test]
fn exit_codes_and_signals_arrive() {
    let (place, program) = probe(&[]);
    let servers = servers();
    for words in
        [["exit", "0"], ["exit", "1"], ["exit", "255"], ["signal", "6"], ["signal", "11"], ["signal", "9"]]
    {
        let command = command(&program, &words, place.path());
        let [served, plain] =
            [&servers as &dyn Spawner, &LocalSpawner].map(|spawner| finish(spawner, &command));
        assert_eq!(served.ended.status, plain.ended.status);
    }
}

#[test]
fn a_missing_directory_is_an_error_and_the_server_lives() {
    let (place, program) = probe(&[]);
    let servers = servers();
    let nowhere = command(&program, &["exit", "0"], &place.path().join("nowhere"));
    let error = run(&nowhere, &servers, &Cancel::new().unwrap(), Duration::ZERO).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    let server = servers.server_of(program.as_ref()).unwrap();
    assert!(finish(&servers, &command(&program, &["exit", "0"], place.path())).ended.status.success());
    assert_eq!(servers.server_of(program.as_ref()), Some(server));
}

#[test]
fn arguments_may_be_longer_than_exec_allows() {
    let (place, program) = probe(&[]);
    let long = "x".repeat(200 << 10);
    let mut words = vec!["count", &long];
    words.resize(100_000, "0123456789");
    let command = command(&program, &words, place.path());
    assert!(run(&command, &LocalSpawner, &Cancel::new().unwrap(), Duration::ZERO).is_err());
    let expected = program.len() + 5 + long.len() + 10 * (words.len() - 2);
    assert_eq!(finish(&servers(), &command).stdout.text(), format!("{} {expected}\n", words.len() + 1));
}

#[test]
fn a_thousand_jobs_leave_nothing_behind() {
    let (place, program) = probe(&[]);
    let servers = servers();
    let command = command(&program, &["exit", "3"], place.path());
    let mut server = None;
    let mut before = 0;
    for job in 0..1000 {
        assert_eq!(finish(&servers, &command).ended.status.code(), Some(3));
        // The work for many jobs is done by now.
        if job == 2 * MANY {
            server = servers.server_of(program.as_ref());
            before = descriptors(server.unwrap());
        }
    }
    assert_eq!(servers.server_of(program.as_ref()), server);
    let server = server.unwrap();
    // A job's descriptor closes just after its end is reported.
    eventually("the server keeps descriptors", || descriptors(server) <= before);
    let children = fs::read_to_string(format!("/proc/{server}/task/{server}/children")).unwrap();
    assert_eq!(children, "");
    drop(servers);
    assert!(!Path::new(&format!("/proc/{server}")).exists());
}

#[test]
fn a_killed_job_takes_its_children_along_and_leaves_the_server() {
    let (place, program) = probe(&[]);
    let servers = servers();
    for signal in [Signal::TERM, Signal::KILL] {
        let (mut child, processes) = sleeper(&servers, &program, place.path());
        let server = servers.server_of(program.as_ref());
        assert!(processes.iter().all(|&pid| runs(pid)) && child.try_wait().unwrap().is_none());
        child.signal_group(signal);
        let mut ended = None;
        eventually("the job goes on", || {
            ended = child.try_wait().unwrap();
            ended.is_some()
        });
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(ended.unwrap().status.signal(), Some(signal.as_raw()));
        eventually("the job's child goes on", || !processes.iter().any(|&pid| runs(pid)));
        assert!(server.is_some() && servers.server_of(program.as_ref()) == server && runs(server.unwrap()));
    }
    let (child, processes) = sleeper(&servers, &program, place.path());
    drop(child);
    eventually("a job that nobody waits for goes on", || !processes.iter().any(|&pid| runs(pid)));
}

#[test]
fn a_killed_server_takes_its_jobs_along_and_is_replaced() {
    let (place, program) = probe(&[]);
    let servers = servers();
    let (mut child, processes) = sleeper(&servers, &program, place.path());
    let server = servers.server_of(program.as_ref()).unwrap();
    kill(server, Signal::KILL);
    let mut error = None;
    eventually("the job goes on", || {
        error = child.try_wait().err();
        error.is_some()
    });
    // Whoever learns of the loss may write the same files at once.
    assert!(!processes.iter().any(|&pid| runs(pid)));
    assert!(error.unwrap().get_ref().unwrap().is::<Lost>());
    assert!(finish(&servers, &command(&program, &["exit", "0"], place.path())).ended.status.success());
    let next = servers.server_of(program.as_ref()).unwrap();
    assert!(next != server && runs(next));
}

#[test]
fn servers_and_jobs_end_with_their_client() {
    let role = "DISTLTO_TEST_PROBE";
    if let Some(program) = std::env::var_os(role) {
        // The client that is to be killed.
        let servers = servers();
        let program = program.to_str().unwrap();
        let (_child, [job, grandchild]) = sleeper(&servers, program, Path::new("/"));
        println!("\npids {} {job} {grandchild}", servers.server_of(program.as_ref()).unwrap());
        std::thread::sleep(Duration::from_secs(600));
    }
    let (_place, program) = probe(&[]);
    let mut client = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "forkserver::servers_and_jobs_end_with_their_client", "--nocapture"])
        .env(role, &program)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(client.stdout.take().unwrap()).lines();
    let line =
        lines.map(Result::unwrap).find_map(|line| line.strip_prefix("pids ").map(str::to_owned)).unwrap();
    let processes: Vec<u32> = line.split(' ').map(|word| word.parse().unwrap()).collect();
    assert!(processes.iter().all(|&pid| runs(pid)), "{processes:?}");
    client.kill().unwrap();
    client.wait().unwrap();
    eventually("a process outlives the client", || !processes.iter().any(|&pid| runs(pid)));
}

#[test]
fn many_jobs_of_two_programs_run_at_once() {
    let (place, first) = probe(&[]);
    let (_other, second) = probe(&["-O2"]);
    let servers = servers();
    std::thread::scope(|scope| {
        for worker in 0..6u8 {
            let (servers, place) = (&servers, place.path());
            let program = if worker % 2 == 0 { &first } else { &second };
            scope.spawn(move || {
                for job in 0..40u8 {
                    let code = (worker * 40 + job).to_string();
                    let finished = finish(servers, &command(program, &["exit", &code], place));
                    assert_eq!(finished.ended.status.code(), Some(i32::from(worker * 40 + job)));
                }
            });
        }
    });
    assert_ne!(servers.server_of(first.as_ref()).unwrap(), servers.server_of(second.as_ref()).unwrap());
}

/// Runs the probe's report through `program`, which is no server, and expects what a plain run gives.
fn falls_back(servers: &ForkServer<LocalSpawner>, program: &str, place: &Path) {
    let command = command(program, &["report"], place);
    servers.prewarm(program.as_ref(), MANY);
    for _ in 0..2 {
        let [served, plain] =
            [servers as &dyn Spawner, &LocalSpawner].map(|spawner| finish(spawner, &command));
        assert!(!served.stdout.is_empty());
        assert_eq!(served.stdout.text(), plain.stdout.text());
        assert_eq!(served.stderr.text(), plain.stderr.text());
    }
    assert_eq!(servers.server_of(program.as_ref()), None);
}

#[test]
fn a_static_program_is_started_the_ordinary_way() {
    let (place, program) = probe(&["-static"]);
    falls_back(&servers(), &program, place.path());
}

#[test]
fn a_missing_or_broken_library_changes_nothing() {
    let (place, program) = probe(&[]);
    let broken = place.path().join("broken.so");
    fs::write(&broken, "not a library").unwrap();
    for library in [Some(place.path().join("missing.so")), Some(broken), None] {
        falls_back(&ForkServer::with_library(library, LocalSpawner), &program, place.path());
    }
}

#[test]
fn without_the_library_no_server_is_started() {
    let (place, program) = probe(&[]);
    falls_back(&ForkServer::with_library(None, LocalSpawner), &program, place.path());
}

#[test]
fn a_script_runs_once_per_job_and_its_programs_are_not_served() {
    let (place, program) = probe(&[]);
    let script = place.path().join("script");
    fs::write(&script, format!("#!/bin/sh\necho run >>runs\n{program} \"$@\"\n")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    falls_back(&servers(), script.to_str().unwrap(), place.path());
    // Two served and two plain runs; none to find out.
    assert_eq!(fs::read_to_string(place.path().join("runs")).unwrap(), "run\n".repeat(4));
}

#[test]
fn a_wrapper_that_replaces_itself_keeps_its_job() {
    // A compiled wrapper, as ccache is: it becomes the server, and each job of it executes the real program.
    let (place, program) = probe(&[]);
    let source = place.path().join("wrapper.c");
    let text =
        format!("#include <unistd.h>\nint main(int c, char **v) {{ return execv(\"{program}\", v); }}\n");
    fs::write(&source, text).unwrap();
    tool(place.path(), &["clang-22", "wrapper.c", "-o", "wrapper"]);
    let wrapper = place.path().join("wrapper").to_str().unwrap().to_owned();
    let servers = servers();
    let command = command(&wrapper, &["report"], place.path());
    assert!(!finish_alike(&servers, &command).stdout.is_empty());
    assert!(servers.server_of(wrapper.as_ref()).is_some());
    let (mut child, processes) = sleeper(&servers, &wrapper, place.path());
    child.signal_group(Signal::KILL);
    eventually("the job goes on", || child.try_wait().unwrap().is_some());
    eventually("the job's child goes on", || !processes.iter().any(|&pid| runs(pid)));
}

#[test]
fn the_ordinary_search_of_path_is_used() {
    let place = tempfile::tempdir().unwrap();
    let servers = servers();
    assert_eq!(finish_alike(&servers, &command("echo", &["said"], place.path())).stdout.text(), "said\n");
    assert!(servers.server_of("echo".as_ref()).is_some());
    let missing = command("distlto-no-such-program", &[], place.path());
    let error = run(&missing, &servers, &Cancel::new().unwrap(), Duration::ZERO).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}
