//! An engine errs while it is given actions, executes them and gives results back.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use distlto_reapi_server::{Break, CommittedSize, Counts, Faults, Missing, Options, Refusal, Server, Worker};
use distlto_tests::run::succeed;

use super::faults::{Fault, all_streams, cut, each, is_used_up};
use super::program::{Checkout, Running, compile, refused, warnings};
use super::until;

fn refuse(words: &str) -> Vec<Refusal> {
    words.split(' ').map(|word| word.parse().expect("refusals are written as flags have them")).collect()
}

fn streams_say(faults: &mut Faults, size: CommittedSize) {
    all_streams(faults);
    faults.committed_size = size;
}

fn cut_uploads(faults: &mut Faults, how: Break) {
    all_streams(faults);
    faults.cut_writes = cut(4, 500, how);
}

fn lose_uploads(faults: &mut Faults, missing: Missing) {
    faults.evict_uploads = 9;
    faults.missing = missing;
}

fn streams_went_up(_: &Faults, counts: &Counts) -> bool {
    counts.of("Write") > 0
}

fn batches_went_up(_: &Faults, counts: &Counts) -> bool {
    counts.of("BatchUpdateBlobs") > 0
}

fn uploads_were_cut(left: &Faults, _: &Counts) -> bool {
    is_used_up(left.cut_writes)
}

fn executions_were_cut(left: &Faults, _: &Counts) -> bool {
    is_used_up(left.cut_executions) && left.wait_not_found == 0
}

fn uploads_were_lost(left: &Faults, _: &Counts) -> bool {
    left.evict_uploads == 0
}

const COMPRESSED: &[&str] = &["--remote-compression=on"];

const FAULTS: &[Fault] = &[
    Fault::new(
        "connections end gracefully",
        |faults| faults.goaway_after = Some(6),
        |_, counts| counts.connections > 2,
    ),
    Fault::new("streams are refused", |faults| faults.refuse_streams = 5, |left, _| left.refuse_streams == 0),
    Fault::new(
        "unavailable and exhausted in bursts",
        |faults| faults.refuse = refuse("UNAVAILABLE:*:15:2 RESOURCE_EXHAUSTED:*:15:6"),
        |_, counts| counts.refused == 30,
    ),
    Fault::new(
        "more streams than the server has threads for",
        |faults| faults.most_streams = 2,
        |_, counts| counts.of("Execute") > counts.all_executed(),
    ),
    Fault::new("no limit of batches is told", |faults| faults.batch_limit = 0, batches_went_up),
    Fault::new(
        "small batches, and no word of it",
        |faults| faults.unsaid_batch_limit = 2000,
        streams_went_up,
    ),
    Fault::new("small batches", |faults| faults.batch_limit = 65536, batches_went_up),
    Fault::new(
        "what was committed is the blob's size",
        |faults| streams_say(faults, CommittedSize::Full),
        streams_went_up,
    )
    .with(COMPRESSED),
    Fault::new(
        "what was committed is the bytes of the stream",
        |faults| streams_say(faults, CommittedSize::Stream),
        streams_went_up,
    )
    .with(COMPRESSED),
    Fault::new(
        "what was committed is not known",
        |faults| streams_say(faults, CommittedSize::Unknown),
        streams_went_up,
    ),
    Fault::new("uploads are cut, compressed", |faults| cut_uploads(faults, Break::Status), uploads_were_cut)
        .with(COMPRESSED),
    Fault::new(
        "uploads are cut with their connection",
        |faults| cut_uploads(faults, Break::Connection),
        uploads_were_cut,
    ),
    Fault::new(
        "streams of executions are cut",
        |faults| {
            faults.cut_executions = cut(6, 1, Break::End);
            faults.wait_not_found = 2;
        },
        executions_were_cut,
    ),
    Fault::new(
        "streams of executions are cut with their connection",
        |faults| faults.cut_executions = cut(3, 1, Break::Connection),
        executions_were_cut,
    ),
    Fault::new(
        "uploads are lost, as the specification tells it",
        |faults| lose_uploads(faults, Missing::Details),
        uploads_were_lost,
    ),
    Fault::new(
        "uploads are lost, in a status of the call",
        |faults| {
            lose_uploads(faults, Missing::Details);
            faults.missing_as_error = true;
        },
        uploads_were_lost,
    ),
    Fault::new(
        "uploads are lost, and nobody says which",
        |faults| lose_uploads(faults, Missing::Precondition),
        uploads_were_lost,
    ),
    Fault::new(
        "uploads are lost, an internal error",
        |faults| lose_uploads(faults, Missing::Internal),
        uploads_were_lost,
    ),
    Fault::new(
        "uploads are lost, not found",
        |faults| lose_uploads(faults, Missing::NotFound),
        uploads_were_lost,
    ),
    Fault::new(
        "nothing is said to be missing",
        |faults| faults.deny_missing = 4,
        |left, _| left.deny_missing == 0,
    ),
    Fault::new(
        "all is slow, and equal actions are one",
        |faults| {
            faults.latency = Duration::from_millis(20);
            faults.message_delay = Duration::from_millis(20);
            faults.merge = true;
        },
        |_, counts| counts.all_executed() > 0,
    )
    .with(&["--remote-jobs=4"]),
];

/// Every fault passes: the engine is used to the end, and nobody is warned of what was mended.
#[test]
fn what_passes_is_got_over() -> Result<()> {
    each(FAULTS, |fault| {
        let (said, counts) = fault.link(Options::default())?;
        ensure!(warnings(&said).is_empty(), "{said}");
        ensure!(counts.all_executed() > 0, "{counts:#?}");
        Ok(())
    })
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
        // In any longer time this machine's own slot could do everything, and the engine would not be missed.
        let soon = ["--remote-retry-time=0s"];
        let said = Checkout::new()?.linked(&server, &soon).context(words)?;
        ensure!(warnings(&said).len() == 1 && said.contains(", continuing here: "), "{words}: {said}");

        let checkout = Checkout::new()?;
        let never =
            checkout.remote_link(&server.url(), &[&soon[..], &["--remote-fallback=never"]].concat())?;
        let (code, said) = refused(never, &checkout).context(words)?;
        ensure!(code == 7 && said.contains("error: "), "{words}: exit code {code}:\n{said}");
    }
    Ok(())
}

/// A worker has no file that no command names. This machine finds out which the compiler reads, and sends it the next time.
#[test]
fn a_file_that_the_assembler_includes() -> Result<()> {
    let server = Server::start(Options::default(), Faults::default())?;
    let checkout = Checkout::new()?;
    let text = "__asm__(\".data\\n.globl data\\ndata: .incbin \\\"data.bin\\\"\\n.byte 0\\n.text\\n\");\n\
                extern char data[]; int f13(int x) { return data[x & 1]; }\n";
    fs::write(checkout.path.join("m13.c"), text)?;
    // A compilation reads it for its symbols.
    fs::write(checkout.path.join("data.bin"), "")?;
    compile(&checkout.path, "m13")?;
    for data in ["some data", "other data"] {
        fs::write(checkout.path.join("data.bin"), data)?;
        // What is younger than a compilation may have changed after it.
        std::thread::sleep(Duration::from_millis(60));
        succeed(&mut checkout.remote_link(&server.url(), &[])?)?;
        let program = checkout.program()?;
        ensure!(program.windows(data.len()).any(|part| part == data.as_bytes()), "the program lacks {data}");
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
