//! What errs at a server, at random and by name: switches that are set before or while a link runs, and events meanwhile.
//!
//! Names are those of the table that `campaign remote` prints. Knows nothing of links.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use distlto_reapi_server::{Break, CommittedSize, Cut, Faults, Missing, Server};

use super::random::Random;

/// The names of what errs.
pub type Names = BTreeSet<&'static str>;

/// A good server does not count as an error, but has a row.
pub const NOTHING: &str = "nothing";

const CODES: [&str; 9] = [
    "UNAVAILABLE",
    "RESOURCE_EXHAUSTED",
    "INTERNAL",
    "UNKNOWN",
    "ABORTED",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "FAILED_PRECONDITION",
    "PERMISSION_DENIED",
];
const METHODS: [&str; 11] = [
    "*",
    "*",
    "FindMissingBlobs",
    "BatchUpdateBlobs",
    "BatchReadBlobs",
    "Write",
    "Read",
    "GetActionResult",
    "Execute",
    "WaitExecution",
    "UpdateActionResult",
];

type Switch = (&'static str, fn(&mut Random, &mut Faults));

const SWITCHES: [Switch; 27] = [
    ("GOAWAY after some streams", |random, faults| {
        faults.goaway_after = Some(random.between(2, 12) as u32);
    }),
    ("streams refused", |random, faults| faults.refuse_streams = few(random)),
    ("calls refused", refuse),
    ("calls refused", refuse),
    ("UNAVAILABLE, RESOURCE_EXHAUSTED in bursts", |random, faults| {
        for code in &CODES[..2] {
            let text = format!("{code}:*:{}:{}", random.between(4, 20), random.below(30));
            faults.refuse.extend(text.parse());
        }
    }),
    ("slow calls", |random, faults| faults.latency = Duration::from_millis(random.below(40) as u64)),
    ("slow streams", |random, faults| faults.message_delay = Duration::from_millis(random.below(80) as u64)),
    ("limits of batches", |random, faults| faults.batch_limit = [0, 1500, 65536][random.below(3)]),
    ("a limit of batches that is not told", |random, faults| {
        faults.unsaid_batch_limit = [300, 1500, 65536][random.below(3)];
    }),
    ("no zstd", |_, faults| faults.no_zstd = true),
    ("committed_size", |random, faults| {
        let all = [CommittedSize::Full, CommittedSize::Stream, CommittedSize::Unknown];
        faults.committed_size = all[random.below(3)];
    }),
    ("blobs lost after upload", |random, faults| faults.evict_uploads = few(random)),
    ("blobs said to be there", |random, faults| faults.deny_missing = few(random)),
    ("blobs lost, told otherwise", |random, faults| {
        faults.missing = [Missing::Precondition, Missing::Internal, Missing::NotFound][random.below(3)];
        faults.missing_as_error = random.chance(50);
        faults.evict_uploads = few(random);
    }),
    ("wrong bytes", |random, faults| faults.wrong_bytes = few(random)),
    ("downloads cut", |random, faults| faults.cut_reads = cut(random, 3000)),
    ("uploads cut", |random, faults| faults.cut_writes = cut(random, 3000)),
    ("executions cut", |random, faults| {
        faults.cut_executions = cut(random, 3);
        faults.wait_not_found = random.below(3) as u32;
    }),
    ("blobs of a result gone", |random, faults| faults.hollow_results = few(random)),
    ("empty or foreign object in the cache", |random, faults| {
        faults.poison_results = few(random);
        faults.poison = ["", "no object", "\u{7f}ELF"][random.below(3)].to_owned();
    }),
    ("calls that are never answered", |random, faults| {
        let method = random.pick(&METHODS[2..]).copied().unwrap_or("Execute");
        faults.stall.push(method.to_owned());
    }),
    ("a byte at a time of downloads", |random, faults| {
        (faults.batch_limit, faults.read_message) = (1500, 1);
        faults.message_delay = Duration::from_millis(random.between(5, 300) as u64);
    }),
    ("a byte at a time of everything", |random, faults| {
        faults.trickle = Duration::from_millis(random.between(1, 100) as u64);
    }),
    ("sizes of outputs are lies", |random, faults| {
        faults.false_outputs = few(random);
        faults.false_size = size(random);
    }),
    ("sizes of standard error are lies", |random, faults| {
        faults.false_stderr = few(random);
        faults.false_size = size(random);
    }),
    ("downloads that do not end", |random, faults| {
        faults.batch_limit = 1500;
        faults.endless_reads = few(random);
    }),
    ("standard error with escape sequences", |_, faults| {
        faults.stderr = "\u{1b}[2J\u{1b}]0;title\u{7}warning: \u{9b}31m\r\n".to_owned();
    }),
];

/// A size that is none: of what no client should take, or of what it has to take for a while.
fn size(random: &mut Random) -> u64 {
    random.weighed(1 << 40, &[(30, u64::MAX), (30, 64 << 20)])
}

fn few(random: &mut Random) -> u32 {
    random.between(1, 6) as u32
}

fn cut(random: &mut Random, after: usize) -> Option<Cut> {
    let how = random.weighed(Break::Status, &[(30, Break::End), (30, Break::Connection)]);
    Some(Cut { streams: few(random), after: random.below(after) as u64, how })
}

fn refuse(random: &mut Random, faults: &mut Faults) {
    let code = random.pick(&CODES).copied().unwrap_or("INTERNAL");
    let method = random.pick(&METHODS).copied().unwrap_or("*");
    let text = format!("{code}:{method}:{}:{}", few(random), random.below(20));
    faults.refuse.extend(text.parse());
}

/// Most of a good server, and some faults.
pub fn faults(random: &mut Random, names: &mut Names) -> Faults {
    let mut faults = Faults::default();
    for _ in 0..random.below(4) {
        let (name, set) = SWITCHES[random.below(SWITCHES.len())];
        set(random, &mut faults);
        names.insert(name);
    }
    faults.merge = random.chance(30);
    if random.chance(10) {
        faults.read_only_cache = true;
        names.insert("action cache may not be written");
    }
    faults
}

/// Something happens to a server while a link goes on, until `has_ended`.
pub fn disturb(
    random: &mut Random,
    server: &mut Server,
    has_ended: &mut dyn FnMut() -> Result<bool>,
    names: &mut Names,
) -> Result<()> {
    match random.below(8) {
        0 => {
            server.resume()?;
            names.insert("server restarted");
        }
        1 => {
            server.resume_empty()?;
            names.insert("server restarted, empty");
        }
        2 => {
            server.evict_all()?;
            names.insert("all blobs lost");
        }
        3 => {
            server.lose_worker("two");
            names.insert("worker killed");
        }
        4 => {
            let short = ("network cut for 1.5 s at most", random.between(50, 1500) as u64);
            let long = [(15, ("network cut for 5 s", 5000)), (3, ("network cut for 60 s", 60_000))];
            let (name, length) = random.weighed(short, &long);
            names.insert(name);
            server.change(|faults| faults.freeze = true);
            let end = Instant::now() + Duration::from_millis(length);
            while Instant::now() < end && !has_ended()? {
                thread::sleep(Duration::from_millis(10));
            }
            server.change(|faults| faults.freeze = false);
        }
        5 => {
            names.insert("server stopped");
            server.change(|faults| faults.freeze = true);
        }
        6 => {
            names.insert("server killed");
            server.stop();
        }
        _ => server.change(|current| *current = faults(random, names)),
    }
    Ok(())
}
