//! An engine errs while it is given actions, executes them and gives results back.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use distlto_reapi_server::{
    Break, CommittedSize, Counts, Cut, Faults, Missing, Options, Refusal, Server, Worker,
};

use crate::program::{Checkout, Running, warnings};
use crate::until;

/// A fault, and how a server tells that it was met.
struct Fault {
    name: &'static str,
    options: &'static [&'static str],
    set: fn(&mut Faults),
    met: fn(&Faults, &Counts) -> bool,
}

fn refuse(words: &str) -> Vec<Refusal> {
    words.split(' ').map(|word| word.parse().expect("refusals are written as flags have them")).collect()
}

fn cut(streams: u32, after: u64, how: Break) -> Option<Cut> {
    Some(Cut { streams, after, how })
}

fn all_streams(faults: &mut Faults) {
    // So that every blob but the smallest is a stream.
    faults.batch_limit = 1500;
}

const FAULTS: &[Fault] = &[
    Fault {
        name: "connections end gracefully",
        options: &[],
        set: |faults| faults.goaway_after = Some(6),
        met: |_, counts| counts.connections > 2,
    },
    Fault {
        name: "streams are refused",
        options: &[],
        set: |faults| faults.refuse_streams = 5,
        met: |faults, _| faults.refuse_streams == 0,
    },
    Fault {
        name: "unavailable and exhausted in bursts",
        options: &[],
        set: |faults| faults.refuse = refuse("UNAVAILABLE:*:15:2 RESOURCE_EXHAUSTED:*:15:6"),
        met: |_, counts| counts.refused == 30,
    },
    Fault {
        name: "no limit of batches is told",
        options: &[],
        set: |faults| faults.batch_limit = 0,
        met: |_, counts| counts.of("BatchUpdateBlobs") > 0,
    },
    Fault {
        name: "small batches",
        options: &[],
        set: |faults| faults.batch_limit = 65536,
        met: |_, counts| counts.of("BatchUpdateBlobs") > 0,
    },
    Fault {
        name: "what was committed is the blob's size",
        options: &["--remote-compression=on"],
        set: |faults| {
            all_streams(faults);
            faults.committed_size = CommittedSize::Full;
        },
        met: |_, counts| counts.of("Write") > 0,
    },
    Fault {
        name: "what was committed is the bytes of the stream",
        options: &["--remote-compression=on"],
        set: |faults| {
            all_streams(faults);
            faults.committed_size = CommittedSize::Stream;
        },
        met: |_, counts| counts.of("Write") > 0,
    },
    Fault {
        name: "what was committed is not known",
        options: &[],
        set: |faults| {
            all_streams(faults);
            faults.committed_size = CommittedSize::Unknown;
        },
        met: |_, counts| counts.of("Write") > 0,
    },
    Fault {
        name: "uploads are cut, compressed",
        options: &["--remote-compression=on"],
        set: |faults| {
            all_streams(faults);
            faults.cut_writes = cut(4, 500, Break::Status);
        },
        met: |faults, _| faults.cut_writes.is_some_and(|cut| cut.streams == 0),
    },
    Fault {
        name: "uploads are cut with their connection",
        options: &[],
        set: |faults| {
            all_streams(faults);
            faults.cut_writes = cut(4, 500, Break::Connection);
        },
        met: |faults, _| faults.cut_writes.is_some_and(|cut| cut.streams == 0),
    },
    Fault {
        name: "streams of executions are cut",
        options: &[],
        set: |faults| {
            faults.cut_executions = cut(6, 1, Break::End);
            faults.wait_not_found = 2;
        },
        met: |faults, _| {
            faults.cut_executions.is_some_and(|cut| cut.streams == 0) && faults.wait_not_found == 0
        },
    },
    Fault {
        name: "streams of executions are cut with their connection",
        options: &[],
        set: |faults| faults.cut_executions = cut(3, 1, Break::Connection),
        met: |faults, _| faults.cut_executions.is_some_and(|cut| cut.streams == 0),
    },
    Fault {
        name: "uploads are lost, as the specification tells it",
        options: &[],
        set: |faults| faults.evict_uploads = 9,
        met: |faults, _| faults.evict_uploads == 0,
    },
    Fault {
        name: "uploads are lost, in a status of the call",
        options: &[],
        set: |faults| {
            faults.evict_uploads = 9;
            faults.missing_as_error = true;
        },
        met: |faults, _| faults.evict_uploads == 0,
    },
    Fault {
        name: "uploads are lost, and nobody says which",
        options: &[],
        set: |faults| {
            faults.evict_uploads = 9;
            faults.missing = Missing::Precondition;
        },
        met: |faults, _| faults.evict_uploads == 0,
    },
    Fault {
        name: "uploads are lost, an internal error",
        options: &[],
        set: |faults| {
            faults.evict_uploads = 9;
            faults.missing = Missing::Internal;
        },
        met: |faults, _| faults.evict_uploads == 0,
    },
    Fault {
        name: "uploads are lost, not found",
        options: &[],
        set: |faults| {
            faults.evict_uploads = 9;
            faults.missing = Missing::NotFound;
        },
        met: |faults, _| faults.evict_uploads == 0,
    },
    Fault {
        name: "nothing is said to be missing",
        options: &[],
        set: |faults| faults.deny_missing = 4,
        met: |faults, _| faults.deny_missing == 0,
    },
    Fault {
        name: "all is slow, and equal actions are one",
        options: &["--remote-jobs=4"],
        set: |faults| {
            faults.latency = Duration::from_millis(20);
            faults.message_delay = Duration::from_millis(20);
            faults.merge = true;
        },
        met: |_, counts| counts.all_executed() > 0,
    },
];

/// Every fault passes: the engine is used to the end, and nobody is warned of what was mended.
#[test]
fn what_passes_is_got_over() -> Result<()> {
    let mut wrong = Vec::new();
    for Fault { name, options, set, met } in FAULTS {
        let mut faults = Faults::default();
        set(&mut faults);
        let server = Server::start(Options::default(), faults)?;
        let checked = Checkout::new()?.linked(&server, options).and_then(|said| {
            let mut left = Faults::default();
            server.change(|faults| left = faults.clone());
            let counts = server.counts();
            ensure!(met(&left, &counts), "the fault was not met: {counts:#?}\n{left:#?}");
            ensure!(warnings(&said).is_empty(), "{said}");
            ensure!(counts.all_executed() > 0, "{counts:#?}");
            Ok(())
        });
        if let Err(error) = checked {
            wrong.push(format!("{name}: {error:#}"));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    Ok(())
}

/// Refusals that last end the use of the engine: this machine does all, or nobody, and that is told once.
#[test]
fn what_lasts_is_told_once() -> Result<()> {
    for words in [
        "UNAVAILABLE:Execute:always",
        "PERMISSION_DENIED:Execute:always",
        "FAILED_PRECONDITION:Execute:always",
        "UNKNOWN:GetActionResult:always",
    ] {
        let faults = Faults { refuse: refuse(words), ..Faults::default() };
        let server = Server::start(Options::default(), faults)?;
        let soon = ["--remote-retry-time=1s"];
        let said = Checkout::new()?.linked(&server, &soon).context(words)?;
        ensure!(warnings(&said).len() == 1 && said.contains("this machine does the rest"), "{words}: {said}");

        let checkout = Checkout::new()?;
        let never =
            checkout.remote_link(&server.url(), &[&soon[..], &["--remote-fallback=never"]].concat())?;
        let (code, said) = crate::program::refused(never, &checkout).context(words)?;
        // Each action that was under way says why.
        ensure!(code == 7 && said.contains("error: "), "{words}: exit code {code}:\n{said}");
    }
    Ok(())
}

#[test]
fn a_worker_is_lost_in_the_middle() -> Result<()> {
    let mut doomed = Worker::new("doomed", 2);
    // It ends nothing before it is lost.
    doomed.delay = Duration::from_secs(3600);
    let workers = vec![doomed, Worker::new("other", 2)];
    let server = Server::start(Options { workers, ..Options::default() }, Faults::default())?;
    let checkout = Checkout::new()?;
    let mut link = Running::start(checkout.remote_link(&server.url(), &[])?)?;
    until(|| Ok(server.counts().all_executed() > 0 || link.has_ended()?))?;
    server.lose_worker("doomed");
    let said = link.right(&checkout)?;
    ensure!(warnings(&said).is_empty(), "{said}");
    Ok(())
}
