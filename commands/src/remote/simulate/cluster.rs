//! What a link's backends would take on an engine: events on a simulated clock, around the schedule of a real run.
//!
//! The [`Schedule`] decides what starts next and where, as it does in a run. Around it are: the client's processors, which
//! prepare an action before it is sent; a line to the engine and one back, which carry one blob after the other; a blob
//! that goes up once, whoever needs it; a queue of the engine, the oldest action first; and workers with one slot each,
//! whose own way to the storage takes no time. Nothing fails, nothing is raced. Pure: knows nothing of files and of
//! whose backends these are.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use distlto_executor::schedule::pools::Resource;
use distlto_executor::schedule::{Policy, Schedule, Site, Weight};
use distlto_planner::graph::ActionId;

use super::program::SimulatedLink;

/// Ways to the engine and back, one after the other, of an action that it has to execute: GetActionResult,
/// FindMissingBlobs, an upload, Execute, a download.
pub const ROUND_TRIPS: u64 = 5;

/// What there is to run on. Times are microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cluster {
    /// Slots of the engine's workers.
    pub workers: usize,
    /// How many actions the client has at the engine at once.
    pub in_flight: usize,
    /// Slots of the client's machine, at least one: what nothing stops from running there does.
    pub here: usize,
    /// A way to the engine and back.
    pub latency: u64,
    /// Bits a second, each way.
    pub bandwidth: f64,
    /// What a worker spends on an action beside its command.
    pub overhead: u64,
    /// Processor time of the client for an action at the engine.
    pub client: u64,
    /// The client's processors for that.
    pub processors: usize,
}

/// What a makespan is at least, for a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// The reason.
    pub limit: Bottleneck,
    /// Microseconds.
    pub time: u64,
}

/// Why a link is no faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bottleneck {
    /// The longest backend with its way there and back.
    Longest,
    /// All commands over all slots.
    Workers,
    /// All that goes up over the bandwidth.
    Uplink,
    /// All that comes back over the bandwidth.
    Downlink,
    /// Everything that an action waits for over the number of those in flight.
    InFlight,
    /// The client's own work over its processors.
    Client,
}

impl Bottleneck {
    /// In a table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Longest => "longest backend",
            Self::Workers => "workers",
            Self::Uplink => "uplink",
            Self::Downlink => "downlink",
            Self::InFlight => "round trips",
            Self::Client => "client's processors",
        }
    }
}

/// How a simulated link went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedOutcome {
    /// From the first backend's start to the last one's end, in microseconds.
    pub makespan: u64,
    /// Backends that ran on the client's machine.
    pub here: usize,
    /// Bytes that went up and came down.
    pub up: u64,
    /// See `up`.
    pub down: u64,
    /// What the makespan is at least, where the actions ran as they did; the largest first.
    pub bounds: Vec<Bound>,
}

impl SimulatedOutcome {
    /// What decides.
    pub fn limit(&self) -> Bottleneck {
        self.bounds.first().map_or(Bottleneck::Longest, |bound| bound.limit)
    }
}

/// Simulates the backends of a program.
pub fn simulate(program: &SimulatedLink, cluster: &Cluster) -> SimulatedOutcome {
    let graph = program.graph();
    let wanted: Vec<_> = graph.actions().map(|(id, _)| id).collect();
    let weigh = |id: ActionId| Weight { time: program.backends[id.index()].took, memory: 0 };
    let mut schedule = Schedule::new(&graph, &wanted, Policy::default(), weigh);
    schedule.limit(Resource::Slots, cluster.here.max(1) as u64);
    // An engine without workers gives nothing back.
    let in_flight = if cluster.workers == 0 { 0 } else { cluster.in_flight };
    schedule.limit(Resource::Engine, in_flight as u64);
    let mut clock = Clock::new(program, cluster);
    loop {
        while let Some((id, site)) = schedule.take() {
            clock.start(id, site);
        }
        match clock.next() {
            Some(id) => schedule.done(id),
            None => return clock.outcome(),
        }
    }
}

/// What an action comes to next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The client has it ready.
    Prepared,
    /// The engine has said that it knows no result, and which blobs it lacks.
    Asked,
    /// It is in the engine's queue.
    Queued,
    /// A worker has done it.
    Ran,
    /// Its outputs are on their way.
    Answered,
    /// Its outputs are in place.
    Ended,
}

/// Everything that takes time.
struct Clock<'a> {
    program: &'a SimulatedLink,
    cluster: &'a Cluster,
    now: u64,
    /// By time, then in the order in which they were added.
    events: BinaryHeap<Reverse<(u64, u64, ActionId, Event)>>,
    added: u64,
    /// When each processor of the client is free.
    processors: BinaryHeap<Reverse<u64>>,
    up: Line,
    down: Line,
    /// When each blob is there; `None` of one that nobody has sent.
    there: Vec<Option<u64>>,
    queue: VecDeque<ActionId>,
    idle: usize,
    sites: Vec<Site>,
}

/// Carries one thing after the other.
#[derive(Default)]
struct Line {
    free: u64,
    bytes: u64,
}

impl Line {
    /// When bytes have passed that come now.
    fn carry(&mut self, now: u64, bytes: u64, bandwidth: f64) -> u64 {
        self.bytes += bytes;
        self.free = self.free.max(now) + transfer(bytes, bandwidth);
        self.free
    }
}

/// Microseconds.
fn transfer(bytes: u64, bandwidth: f64) -> u64 {
    (bytes as f64 * 8e6 / bandwidth) as u64
}

impl<'a> Clock<'a> {
    fn new(program: &'a SimulatedLink, cluster: &'a Cluster) -> Self {
        Self {
            program,
            cluster,
            now: 0,
            events: BinaryHeap::new(),
            added: 0,
            processors: (0..cluster.processors.max(1)).map(|_| Reverse(0)).collect(),
            up: Line::default(),
            down: Line::default(),
            there: vec![None; program.blobs.len()],
            queue: VecDeque::new(),
            idle: cluster.workers,
            sites: vec![Site::Here; program.backends.len()],
        }
    }

    fn at(&mut self, time: u64, id: ActionId, event: Event) {
        self.added += 1;
        self.events.push(Reverse((time, self.added, id, event)));
    }

    fn start(&mut self, id: ActionId, site: Site) {
        self.sites[id.index()] = site;
        if site == Site::Here {
            return self.at(self.now + self.program.backends[id.index()].took, id, Event::Ended);
        }
        let free = self.processors.pop().map_or(0, |Reverse(free)| free);
        let ready = free.max(self.now) + self.cluster.client;
        self.processors.push(Reverse(ready));
        self.at(ready, id, Event::Prepared);
    }

    /// Lets time pass until an action has ended.
    fn next(&mut self) -> Option<ActionId> {
        let latency = self.cluster.latency;
        while let Some(Reverse((time, _, id, event))) = self.events.pop() {
            self.now = time;
            match event {
                Event::Prepared => self.at(time + 2 * latency, id, Event::Asked),
                Event::Asked => {
                    let there = self.upload(id);
                    self.at(there + latency + latency / 2, id, Event::Queued);
                }
                Event::Queued => {
                    self.queue.push_back(id);
                    self.assign();
                }
                Event::Ran => {
                    self.idle += 1;
                    self.assign();
                    self.at(time + (latency - latency / 2) + latency, id, Event::Answered);
                }
                Event::Answered => {
                    let output = self.program.backends[id.index()].output;
                    let end = self.down.carry(time, output, self.cluster.bandwidth);
                    self.at(end, id, Event::Ended);
                }
                Event::Ended => return Some(id),
            }
        }
        None
    }

    /// Sends what nobody has sent, and tells when all of it is there.
    fn upload(&mut self, id: ActionId) -> u64 {
        let backend = &self.program.backends[id.index()];
        let bandwidth = self.cluster.bandwidth;
        let mut there = self.up.carry(self.now, backend.own, bandwidth);
        for &blob in &backend.inputs {
            let at = self.there[blob]
                .unwrap_or_else(|| self.up.carry(self.now, self.program.blobs[blob], bandwidth));
            self.there[blob] = Some(at);
            there = there.max(at);
        }
        there
    }

    /// Gives what is queued to workers that are idle.
    fn assign(&mut self) {
        while self.idle > 0
            && let Some(id) = self.queue.pop_front()
        {
            self.idle -= 1;
            let took = self.program.backends[id.index()].took + self.cluster.overhead;
            self.at(self.now + took, id, Event::Ran);
        }
    }

    fn outcome(&self) -> SimulatedOutcome {
        let Cluster { workers, in_flight, here, bandwidth, overhead, client, processors, .. } = *self.cluster;
        let backends = || self.program.backends.iter().zip(&self.sites);
        let took = |site| backends().filter(move |(_, at)| **at == site).map(|(backend, _)| backend.took);
        let there = took(Site::Engine).count() as u64;
        let alone = |(backend, site): (&super::program::SimulatedBackend, &Site)| match site {
            Site::Here => backend.took,
            Site::Engine => backend.took + self.way(backend.output),
        };
        let flown = took(Site::Engine).sum::<u64>()
            + backends()
                .filter(|(_, site)| **site == Site::Engine)
                .map(|(one, _)| self.way(one.output))
                .sum::<u64>();
        let work = took(Site::Here).sum::<u64>() + took(Site::Engine).sum::<u64>() + there * overhead;
        let mut bounds = [
            (Bottleneck::Longest, backends().map(alone).max().unwrap_or(0)),
            (Bottleneck::Workers, work / (workers + here.max(1)) as u64),
            (Bottleneck::Uplink, transfer(self.up.bytes, bandwidth)),
            (Bottleneck::Downlink, transfer(self.down.bytes, bandwidth)),
            (Bottleneck::InFlight, flown / in_flight.max(1) as u64),
            (Bottleneck::Client, there * client / processors.max(1) as u64),
        ]
        .map(|(limit, time)| Bound { limit, time });
        bounds.sort_by_key(|bound| (Reverse(bound.time), bound.limit));
        SimulatedOutcome {
            makespan: self.now,
            here: took(Site::Here).count(),
            up: self.up.bytes,
            down: self.down.bytes,
            bounds: bounds.to_vec(),
        }
    }

    /// What an action at the engine takes beside its command if it waits for no other.
    fn way(&self, output: u64) -> u64 {
        let Cluster { latency, bandwidth, overhead, client, .. } = *self.cluster;
        client + ROUND_TRIPS * latency + overhead + transfer(output, bandwidth)
    }
}
