//! Servers that are killed or stopped, and crashes in them, cost a second run and nothing else.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::forkserver::support::{
    command, eventually, finish, finish_alike, kill, modules_of, probe, runs, servers, which,
};
use distlto_executor::execute::process::Spawner;
use distlto_executor::execute::spawn::LocalSpawner;
use rustix::process::Signal;

/// Compiles modules that call each other to bitcode and thin-links them; returns their names.
fn thin_linked(at: &Path, version: u32, modules: usize) -> Vec<String> {
    let objects = modules_of(at, version, modules);
    let mut words = vec!["--thinlto-index-only", "-e", "main", "-o", "program"];
    words.extend(objects.iter().map(String::as_str));
    let lld = which(&format!("ld.lld-{version}"));
    assert!(finish(&LocalSpawner, &command(&lld, &words, at)).ended.status.success());
    objects
}

#[test]
fn a_job_whose_server_dies_runs_again_and_the_third_time_without() {
    let (place, program) = probe(&[]);
    let servers = servers();
    for (signal, lost) in [(Signal::KILL, 1), (Signal::SEGV, 2)] {
        let runs = place.path().join("runs");
        let finished = std::thread::scope(|scope| {
            let waits = command(&program, &["wait", "runs", &(lost + 1).to_string()], place.path());
            let job = scope.spawn(|| finish(&servers, &{ waits }));
            for run in 1..=lost {
                eventually("the job does not run", || {
                    fs::read(&runs).is_ok_and(|marks| marks.len() == run as usize)
                });
                kill(servers.server_of(program.as_ref()).unwrap(), signal);
            }
            job.join().unwrap()
        });
        assert!(finished.ended.status.success());
        assert_eq!(finished.repeated, lost);
        // What lost runs printed is not shown.
        assert_eq!(finished.stdout.text(), format!("run {}\n", lost + 1));
        fs::remove_file(runs).unwrap();
    }
    // Three servers have died: no fourth is started.
    assert!(finish_alike(&servers, &command(&program, &["report"], place.path())).ended.status.success());
    assert_eq!(servers.server_of(program.as_ref()), None);
}

#[test]
fn a_server_that_is_stopped_is_replaced() {
    let (place, program) = probe(&[]);
    let servers = servers().patient_for(Duration::from_millis(200));
    assert!(finish(&servers, &command(&program, &["exit", "0"], place.path())).ended.status.success());
    let server = servers.server_of(program.as_ref()).unwrap();
    kill(server, Signal::STOP);
    assert!(finish(&servers, &command(&program, &["exit", "0"], place.path())).ended.status.success());
    assert!(!runs(server));
}

#[test]
fn a_crash_in_a_server_is_tried_again_without() {
    let (place, program) = probe(&[]);
    for (word, code) in [("served", 0), ("always", 11)] {
        // `served` crashes only in a process that a server forked.
        let finished = finish(&servers(), &command(&program, &["crash", word], place.path()));
        assert_eq!(finished.repeated, 1);
        assert_eq!(finished.ended.status.into_raw(), code);
    }
}

#[test]
fn servers_that_are_killed_all_the_time_change_no_object() {
    let place = tempfile::tempdir().unwrap();
    let at = place.path();
    let clang = which("clang-22");
    let objects = thin_linked(at, 22, 24);
    let compile = |spawner: &dyn Spawner, input: &str, object: &str| {
        let shard = format!("-fthinlto-index={input}.thinlto.bc");
        finish(spawner, &command(&clang, &["-c", "-O2", "-fPIC", input, &shard, "-o", object], at))
    };
    for signal in [Signal::KILL, Signal::SEGV] {
        let servers = servers();
        let todo = Mutex::new(objects.iter());
        let repeated = AtomicU32::new(0);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        while let Some(input) = { todo.lock().unwrap().next() } {
                            let finished = compile(&servers, input, &format!("{input}.served"));
                            assert!(finished.ended.status.success(), "{}", finished.stderr.text());
                            assert!(finished.stderr.is_empty());
                            repeated.fetch_add(finished.repeated, Ordering::Relaxed);
                        }
                    })
                })
                .collect();
            while !workers.iter().all(|worker| worker.is_finished()) {
                let Some(server) = servers.server_of(clang.as_ref()) else { continue };
                let children = fs::read_to_string(format!("/proc/{server}/task/{server}/children"));
                if children.is_ok_and(|children| children.split_whitespace().count() > 1) {
                    kill(server, signal);
                    std::thread::sleep(Duration::from_millis(15));
                }
            }
        });
        assert!(repeated.into_inner() > 0, "no job was lost");
        for input in &objects {
            assert!(compile(&LocalSpawner, input, &format!("{input}.plain")).ended.status.success());
            let [served, plain] =
                ["served", "plain"].map(|suffix| fs::read(at.join(format!("{input}.{suffix}"))).unwrap());
            assert!(served == plain && served.starts_with(b"\x7fELF"), "{input}");
            fs::remove_file(at.join(format!("{input}.served"))).unwrap();
        }
    }
}
