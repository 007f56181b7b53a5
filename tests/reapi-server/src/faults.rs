//! What a server does otherwise than a good one: switches that hold while it runs, and as flags of the program.
//!
//! The defaults are those of a good server. Switches that count (`u32`) are used up one by one; `u32::MAX`, on the
//! command line `always`, is never used up.

use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Parser, ValueEnum};
use tonic::Code;

/// The switches.
#[derive(Args, Clone, Debug)]
pub struct Faults {
    /// Ends each connection gracefully, by GOAWAY, once it has begun this many streams.
    #[arg(long, value_name = "STREAMS")]
    pub goaway_after: Option<u32>,
    /// Refuses this many streams by HTTP/2's REFUSED_STREAM, before any call of theirs.
    #[arg(long, value_name = "N", value_parser = times, default_value = "0")]
    pub refuse_streams: u32,
    /// Refuses calls: CODE:METHOD:CALLS[:AFTER], METHOD as `Execute` or `*`; once more for each time that it is given.
    #[arg(long, value_name = "REFUSAL")]
    pub refuse: Vec<Refusal>,
    /// UNAUTHENTICATED for calls without this header, as NAME:VALUE.
    #[arg(long, value_name = "HEADER")]
    pub authenticate: Option<String>,
    /// How much later every call is begun.
    #[arg(long, value_name = "MS", value_parser = milliseconds, default_value = "0")]
    pub latency: Duration,
    /// How much later every message of a stream that the server sends.
    #[arg(long, value_name = "MS", value_parser = milliseconds, default_value = "0")]
    pub message_delay: Duration,
    /// Nothing comes through, though connections stay open: a network that is cut.
    #[arg(long)]
    pub freeze: bool,
    /// One byte goes over a connection each so many milliseconds: a server that is never silent, and never done. 0 is at once.
    #[arg(long, value_name = "MS", value_parser = milliseconds, default_value = "0")]
    pub trickle: Duration,
    /// How many bytes one message of a download has.
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 10)]
    pub read_message: usize,
    /// Names outputs of results with another size (`false_size`), this many times.
    #[arg(long, value_name = "N", value_parser = times, default_value = "0")]
    pub false_outputs: u32,
    /// Names standard error of results with another size, this many times.
    #[arg(long, value_name = "N", value_parser = times, default_value = "0")]
    pub false_stderr: u32,
    /// That size. A download of such a blob gives zeros as long as anybody takes them.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 40)]
    pub false_size: u64,
    /// Goes on with zeros after the end of this many downloads by stream, as long as anybody takes them.
    #[arg(long, value_name = "N", value_parser = times, default_value = "0")]
    pub endless_reads: u32,
    /// What every result has as standard error in place of its own.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub stderr: String,
    /// Never answers calls of this method, as `Execute`; repeatable.
    #[arg(long, value_name = "METHOD")]
    pub stall: Vec<String>,
    /// The greatest message that is accepted, in bytes; holds for connections made later.
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 20)]
    pub message_limit: usize,
    /// The `max_batch_total_size_bytes` that is advertised and, but for 0, enforced.
    #[arg(long, value_name = "BYTES", default_value_t = 4_193_280)]
    pub batch_limit: i64,
    /// The greatest batch that is accepted, whatever is advertised; 0 is no limit.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub unsaid_batch_limit: i64,
    /// Neither offers nor accepts compressed blobs.
    #[arg(long)]
    pub no_zstd: bool,
    /// What a write says was committed.
    #[arg(long, value_enum, default_value_t)]
    pub committed_size: CommittedSize,
    /// Forgets this many blobs as soon as they are uploaded.
    #[arg(long, value_name = "N", value_parser = times, default_value = "0")]
    pub evict_uploads: u32,
    /// Says so many times that no blob is missing, whatever is.
    #[arg(long, value_name = "N", value_parser = times, default_value = "0")]
    pub deny_missing: u32,
    /// How execution answers where a blob of the action is missing.
    #[arg(long, value_enum, default_value_t)]
    pub missing: Missing,
    /// Answers so as the call's own status, not in the ExecuteResponse.
    #[arg(long)]
    pub missing_as_error: bool,
    /// Gives this many downloads with a wrong byte.
    #[arg(long, value_name = "N", value_parser = times, default_value = "0")]
    pub wrong_bytes: u32,
    /// Breaks downloads by stream: N:BYTES:HOW, how one of status, end, connection.
    #[arg(long, value_name = "CUT")]
    pub cut_reads: Option<Cut>,
    /// Breaks uploads by stream in the same way.
    #[arg(long, value_name = "CUT")]
    pub cut_writes: Option<Cut>,
    /// Breaks streams of Execute and WaitExecution, after so many messages; the first says that the action is queued.
    #[arg(long, value_name = "CUT")]
    pub cut_executions: Option<Cut>,
    /// WaitExecution knows no operation, this many times.
    #[arg(long, value_name = "N", value_parser = times, default_value = "0")]
    pub wait_not_found: u32,
    /// Forgets the blobs that a result names when it is taken from the action cache, this many times.
    #[arg(long, value_name = "N", value_parser = times, default_value = "0")]
    pub hollow_results: u32,
    /// Gives results of the action cache with other outputs (`poison`), this many times.
    #[arg(long, value_name = "N", value_parser = times, default_value = "0")]
    pub poison_results: u32,
    /// What those outputs hold.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub poison: String,
    /// Gives results of the action cache without any output, this many times.
    #[arg(long, value_name = "N", value_parser = times, default_value = "0")]
    pub bare_results: u32,
    /// Answers lookups in the action cache only when so many have come.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub gather_lookups: u32,
    /// A cache alone: no execution.
    #[arg(long)]
    pub no_execution: bool,
    /// UpdateActionResult is not permitted.
    #[arg(long)]
    pub read_only_cache: bool,
    /// UpdateActionResult wants the action among the blobs.
    #[arg(long)]
    pub wants_actions: bool,
    /// Workers begin nothing.
    #[arg(long)]
    pub hold: bool,
    /// FAILED_PRECONDITION for an action whose platform no worker has, which else stays queued.
    #[arg(long)]
    pub refuse_platforms: bool,
    /// Refuses an execution while so many are followed, and workers begin nothing then: threads that both need. 0 is no limit.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub most_streams: usize,
    /// Runs equal actions that are in flight once.
    #[arg(long)]
    pub merge: bool,
}

impl Default for Faults {
    fn default() -> Self {
        #[derive(Parser)]
        struct Flags {
            #[command(flatten)]
            faults: Faults,
        }
        Flags::parse_from(["reapi-server"]).faults
    }
}

/// Calls that are refused.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The answer.
    pub code: Code,
    /// The method, as `Execute`; all where it is empty.
    pub method: String,
    /// So many calls are refused,
    pub calls: u32,
    /// after so many that were not.
    pub after: u32,
}

/// Streams that are broken.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// So many of them,
    pub streams: u32,
    /// after so many bytes of the blob, or messages,
    pub after: u64,
    /// in this way.
    pub how: Break,
}

/// How a stream breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Break {
    /// UNAVAILABLE.
    Status,
    /// It ends well, too early.
    End,
    /// The connection ends.
    Connection,
}

/// How execution answers where a blob is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Missing {
    /// FAILED_PRECONDITION that names the blobs, as the specification wants.
    #[default]
    Details,
    /// FAILED_PRECONDITION without.
    Precondition,
    /// INTERNAL.
    Internal,
    /// NOT_FOUND.
    NotFound,
}

/// What a write says was committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CommittedSize {
    /// As the specification: the bytes of the stream, -1 for a compressed blob that was there.
    #[default]
    Specified,
    /// The blob's size.
    Full,
    /// The bytes of the stream.
    Stream,
    /// -1.
    Unknown,
}

/// Takes one of what a switch counts.
pub fn take(left: &mut u32) -> bool {
    let any = *left > 0;
    if any && *left != u32::MAX {
        *left -= 1;
    }
    any
}

impl Faults {
    /// The answer to a call that is refused, and one refusal less.
    pub fn refusal(&mut self, method: &str) -> Option<Code> {
        for refusal in &mut self.refuse {
            if refusal.calls == 0 || !(refusal.method.is_empty() || refusal.method == method) {
                continue;
            }
            if refusal.after > 0 {
                refusal.after -= 1;
                continue;
            }
            take(&mut refusal.calls);
            return Some(refusal.code);
        }
        None
    }
}

/// The cut for a stream that begins, and one less.
pub fn cut(of: &mut Option<Cut>) -> Option<Cut> {
    let cut = of.as_mut()?;
    let found = *cut;
    take(&mut cut.streams).then_some(found)
}

impl FromStr for Refusal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split(':').collect();
        let (&[code, method, calls], after) = words.split_at_checked(3).ok_or("three words are wanted")?
        else {
            return Err("three words are wanted".to_owned());
        };
        let code = (0..=16).map(Code::from_i32).find(|known| {
            let spelled = format!("{known:?}").to_uppercase();
            spelled == code.replace('_', "").to_uppercase()
        });
        let method = if method == "*" { "" } else { method };
        Ok(Self {
            code: code.ok_or("the first word is a code, as UNAVAILABLE")?,
            method: method.to_owned(),
            calls: times(calls)?,
            after: after.first().map_or(Ok(0), |word| times(word))?,
        })
    }
}

impl FromStr for Cut {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split(':').collect();
        let &[streams, after, how] = words.as_slice() else {
            return Err("three words are wanted".to_owned());
        };
        let after = after.parse().map_err(|_| format!("{after} is no number"))?;
        Ok(Self { streams: times(streams)?, after, how: Break::from_str(how, true)? })
    }
}

fn times(text: &str) -> Result<u32, String> {
    if text == "always" {
        return Ok(u32::MAX);
    }
    text.parse().map_err(|_| format!("{text} is neither a number nor `always`"))
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    text.parse().map(Duration::from_millis).map_err(|_| format!("{text} is no number of milliseconds"))
}
