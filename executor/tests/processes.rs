//! Commands whose behaviour is bad: they flood us, leave processes behind, ignore signals.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::{command, eventually, finish, runs};
use distlto_executor::cancel::Cancel;
use distlto_executor::execute::process::{Command, run};
use distlto_executor::execute::spawn::PLAIN;

fn shell(script: &str, place: &Path) -> Command {
    command("/bin/sh", &["-c", script], place)
}

#[test]
fn a_gigabyte_is_captured_within_bounds_while_others_run() {
    let place = tempfile::tempdir().unwrap();
    let spawner = &PLAIN;
    {
        let flood = "echo first >&2; head -c 1073741824 /dev/zero | tr '\\0' x >&2; echo >&2; echo last >&2";
        std::thread::scope(|scope| {
            let flooding = scope.spawn(|| finish(spawner, &shell(flood, place.path())));
            let mut others = 0;
            while !flooding.is_finished() {
                assert_eq!(finish(spawner, &shell("echo quick", place.path())).stdout.text(), "quick\n");
                others += 1;
            }
            let text = flooding.join().unwrap().stderr.text();
            assert!(text.starts_with("first\nxxx") && text.ends_with("xxx\nlast\n"), "{} bytes", text.len());
            assert!(text.contains(" bytes omitted") && text.len() < 1 << 20);
            assert!(others > 1, "the flood kept others from running");
        });
    }
}

#[test]
fn standard_input_is_empty() {
    let place = tempfile::tempdir().unwrap();
    let spawner = &PLAIN;
    {
        let finished = finish(spawner, &shell("readlink /proc/self/fd/0; wc -c", place.path()));
        assert_eq!(finished.stdout.text(), "/dev/null\n0\n");
    }
}

#[test]
fn a_process_left_behind_does_not_hold_up_its_job() {
    let place = tempfile::tempdir().unwrap();
    let spawner = &PLAIN;
    {
        let begun = Instant::now();
        let finished = finish(spawner, &shell("sleep 60 & echo $!", place.path()));
        assert!(finished.ended.status.success() && begun.elapsed() < Duration::from_secs(30));
        let left: u32 = finished.stdout.text().trim().parse().unwrap();
        eventually("a process was left behind", || !runs(left));
    }
}

#[test]
fn a_command_that_ignores_signals_is_killed() {
    let place = tempfile::tempdir().unwrap();
    let spawner = &PLAIN;
    {
        let cancel = Cancel::new().unwrap();
        let script = "trap '' TERM INT HUP; sleep 60 & echo $$ $! >pids; wait; wait; sleep 60";
        let pids = place.path().join("pids");
        let begun = Instant::now();
        let finished = std::thread::scope(|scope| {
            let job = scope.spawn(|| {
                run(&shell(script, place.path()), spawner, &cancel, Duration::from_millis(300)).unwrap()
            });
            eventually("the command does not run", || {
                std::fs::read_to_string(&pids).is_ok_and(|text| text.ends_with('\n'))
            });
            cancel.cancel(None);
            job.join().unwrap()
        });
        assert!(finished.cancelled && begun.elapsed() < Duration::from_secs(30));
        for pid in std::fs::read_to_string(&pids).unwrap().split_whitespace() {
            eventually("a process was left behind", || !runs(pid.parse().unwrap()));
        }
        std::fs::remove_file(&pids).unwrap();
    }
}
