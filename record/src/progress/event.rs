//! The events of a run, and who listens to them.

use std::io::Write;
use std::time::{Duration, Instant};

use distlto_planner::graph::{ActionId, ActionKind};

use crate::action::{ActionRecord, EngineTimes};
use crate::report::summary::Summary;
use crate::report::{Counts, Failure, Measured, Outcome};
use crate::run::{EngineUse, MemoryUse};

/// Listens to a run.
pub trait Progress {
    /// Takes one event. A listener passes over those that it does not show.
    fn report(&self, event: ProgressEvent<'_>);
}

/// An event of a run.
#[derive(Debug, Clone, Copy)]
pub enum ProgressEvent<'a> {
    /// A run begins.
    Planned(Plan),
    /// An action has arrived in a run that is planned or about to be. It is not among [`Plan::actions`] until the next
    /// [`ProgressEvent::Planned`] or [`ProgressEvent::Grown`].
    Arrived(&'a ActionRecord),
    /// The plan of a run has changed while it lasts, as actions arrived or more or fewer are expected.
    Grown(Plan),
    /// An action starts.
    Started(ProgressStep<'a>),
    /// An action succeeded. The text is its command's standard error, whole lines or nothing.
    Finished(ProgressStep<'a>, Measured, &'a str),
    /// An action failed.
    Failed(ProgressStep<'a>, &'a Failure),
    /// A lookup in the result cache under this key. Comes before the action's own event.
    LookedUp(ProgressStep<'a>, &'a [u8; 32]),
    /// An engine has executed an action: its worker, and the time in each stage. Comes before the action's own event.
    ExecutedBy(ProgressStep<'a>, &'a str, EngineTimes),
    /// An action that started on an engine is to start once more, here, for this cause.
    CameBack(ProgressStep<'a>, &'a str),
    /// The stages of actions on engines changed.
    UnderWay(UnderWay),
    /// The slots that others hold while actions wait for them changed.
    Waits(&'a SlotWait),
    /// The traffic with engines so far. Comes before [`ProgressEvent::Ended`].
    Engines(&'a [EngineUse]),
    /// An action that started was killed, for this cause, and is to start once more, alone.
    Again(ProgressStep<'a>, &'a str),
    /// A result did not serve, as the text says, and its action was executed anew.
    Retried(&'a str),
    /// The outcome of every wanted action, also of those that never started. Comes before [`ProgressEvent::Ended`].
    Outcomes(&'a [(ActionId, Outcome)]),
    /// Whole lines for people, which are to be seen at once.
    Printed(&'a str),
    /// Something went wrong that fails nothing, and was said.
    Warned(&'a str),
    /// Something that fails nothing and is nobody's fault, for those who want to know more.
    Noted(&'a str),
    /// A run ended.
    Ended(Counts, Duration),
    /// A part of the link outside of the graph's run begins, or has ended. Phases may come before the plan, after the
    /// end of the run, and while actions run.
    Phase(Phase),
    /// The memory of the running actions changed.
    Memory(MemoryUse),
    /// The command has ended; the counts are of all its runs. Takes the place of [`ProgressEvent::Ended`].
    Concluded(Counts, &'a Summary),
}

/// Idle slots that ready actions need and that others hold. The default is that none waits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotWait {
    /// How many slots.
    pub slots: usize,
    /// Whether no action of the run goes on meanwhile.
    pub is_alone: bool,
    /// The processes of the runs that hold them or the memory; none if make's jobserver holds them.
    pub holders: Vec<u32>,
}

/// How many actions on engines are in each stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnderWay {
    /// Inputs are uploaded.
    pub uploading: usize,
    /// They wait for a worker.
    pub queued: usize,
    /// A worker has them.
    pub running: usize,
    /// Outputs are downloaded.
    pub downloading: usize,
    /// Results of this machine are uploaded, to be kept.
    pub storing: usize,
}

/// A part of a link that is no action of the run: its names are `thin link`, `prepare`, `plan`, `final link` and the like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phase {
    /// Its display name. A name belongs to one span at a time.
    pub name: &'static str,
    /// When it began.
    pub start: Instant,
    /// When it ended; `None` while it lasts.
    pub end: Option<Instant>,
}

/// The size of a run that is about to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Wanted actions, those too that are expected to arrive.
    pub actions: usize,
    /// The sum of their costs; [`ProgressStep::cost`] is a part of it.
    pub cost: u64,
    /// The most jobs at once.
    pub jobs: usize,
}

/// One action, as much of it as progress shows.
#[derive(Debug, Clone, Copy)]
pub struct ProgressStep<'a> {
    /// Its number in the action graph.
    pub id: usize,
    /// Its kind.
    pub kind: ActionKind,
    /// The module id, or the action's display name.
    pub label: &'a str,
    /// Its part of [`Plan::cost`], at least 1.
    pub cost: u64,
    /// The number of the worker that runs it, from 0. No two actions have one worker at a time.
    pub lane: usize,
    /// Its command; only when it starts.
    pub command: &'a str,
}

/// Reports nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn report(&self, _: ProgressEvent<'_>) {}
}

/// Which backend a program uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// Events as JSON lines on standard output.
    pub json: bool,
    /// A line for every action, and a summary.
    pub verbose: bool,
    /// The commands of verbose lines too.
    pub commands: bool,
    /// Failures and warnings alone.
    pub quiet: bool,
}

/// Writes a whole text at once. A reader that has gone away (a closed pipe) is no reason to end a build.
pub(super) fn put(out: &mut (impl Write + ?Sized), text: &str) {
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Returns the verb for a kind of action.
pub(super) fn verb(kind: ActionKind) -> &'static str {
    match kind {
        ActionKind::Prepare => "unpack",
        ActionKind::ThinLink => "thin link",
        ActionKind::Opt => "opt",
        ActionKind::Link => "link",
    }
}
