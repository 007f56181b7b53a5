//! How long backends take on an engine, on a simulated clock.
//!
//! The rules are those of a run: the longest backend starts first, on the client if it has a free slot, else at the engine.
//! An action at the engine waits for a processor of the client, the line to the engine, a slot of a worker, which takes the
//! oldest action first, and the line back. A module goes up once, with its own backend. Nothing fails, nothing is cached, no
//! action runs twice, and the workers' own way to the storage takes no time. Pure: knows nothing of records.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Ways to the engine and back, one after the other, of an action that it has to execute: GetActionResult,
/// FindMissingBlobs, an upload, Execute, a download.
const ROUND_TRIPS: u64 = 5;

/// One backend compilation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backend {
    /// Microseconds of its command.
    pub took: u64,
    /// Bytes that go to the engine.
    pub up: u64,
    /// Bytes that come back.
    pub down: u64,
}

/// The machines. Times are microseconds.
#[derive(Debug, Clone, Copy)]
pub struct Farm {
    /// Slots of all workers.
    pub slots: usize,
    /// How many actions the client has at the engine at once.
    pub in_flight: usize,
    /// Slots of the client, at least one, and its processors for the actions at the engine.
    pub here: usize,
    /// A way to the engine and back.
    pub latency: u64,
    /// Bits a second, each way.
    pub bandwidth: f64,
    /// The time of a worker for an action beside its command.
    pub overhead: u64,
    /// Processor time of the client for an action at the engine.
    pub client: u64,
}

/// How a simulated link went.
pub struct Outcome {
    /// Microseconds from the first backend's start to the last one's end.
    pub makespan: u64,
    /// Reasons why the link is no faster, each with the least that it takes, where the actions ran as they did.
    bounds: [(&'static str, u64); 6],
}

impl Outcome {
    /// The reason with the largest bound.
    pub fn limit(&self) -> &'static str {
        self.bounds.iter().rev().max_by_key(|(_, least)| least).map_or("", |(limit, _)| limit)
    }
}

/// The next event: a backend on the client has ended, the engine has an object that takes the line back for so long, or
/// that object is in place.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    EndedHere,
    Answered(u64),
    EndedThere,
}

/// Processors, slots or a line: each serves one after the other, in the order in which they come.
struct Servers {
    free: BinaryHeap<Reverse<u64>>,
    busy: u64,
}

impl Servers {
    fn new(count: usize) -> Self {
        Self { free: (0..count).map(|_| Reverse(0)).collect(), busy: 0 }
    }

    /// When one that comes now has been served.
    fn serve(&mut self, now: u64, takes: u64) -> u64 {
        let free = self.free.pop().map_or(0, |Reverse(free)| free);
        let end = free.max(now) + takes;
        self.free.push(Reverse(end));
        self.busy += takes;
        end
    }
}

/// Simulates backends on a farm.
pub fn simulate(backends: &[Backend], farm: &Farm) -> Outcome {
    let Farm { latency, bandwidth, overhead, client, .. } = *farm;
    let transfer = |bytes: u64| (bytes as f64 * 8e6 / bandwidth) as u64;
    let here = farm.here.max(1);
    // An engine without workers gives nothing back.
    let in_flight = if farm.slots == 0 { 0 } else { farm.in_flight };
    let (mut free_here, mut free_there) = (here, in_flight);
    let (mut processors, mut workers) = (Servers::new(here), Servers::new(farm.slots));
    let (mut up, mut down) = (Servers::new(1), Servers::new(1));
    let (mut longest, mut work_here, mut flown) = (0, 0, 0);
    let mut waiting: Vec<&Backend> = backends.iter().collect();
    waiting.sort_by_key(|backend| backend.took);
    let mut events = BinaryHeap::new();
    let mut now = 0;
    loop {
        while free_here + free_there > 0
            && let Some(backend) = waiting.pop()
        {
            if free_here > 0 {
                free_here -= 1;
                work_here += backend.took;
                longest = longest.max(backend.took);
                events.push(Reverse((now + backend.took, Event::EndedHere)));
                continue;
            }
            free_there -= 1;
            // Each step serves actions in the order of their starts, so all but the line back is known from the start.
            let ready = processors.serve(now, client);
            let there = up.serve(ready + 2 * latency, transfer(backend.up));
            let ran = workers.serve(there + latency + latency / 2, overhead + backend.took);
            let back = transfer(backend.down);
            events.push(Reverse((ran + (latency - latency / 2) + latency, Event::Answered(back))));
            let alone = client + ROUND_TRIPS * latency + overhead + backend.took + back;
            longest = longest.max(alone);
            flown += alone;
        }
        let Some(Reverse((time, event))) = events.pop() else { break };
        now = time;
        match event {
            Event::EndedHere => free_here += 1,
            Event::Answered(takes) => events.push(Reverse((down.serve(now, takes), Event::EndedThere))),
            Event::EndedThere => free_there += 1,
        }
    }
    let bounds = [
        ("longest backend", longest),
        ("workers", (work_here + workers.busy) / (farm.slots + here) as u64),
        ("uplink", up.busy),
        ("downlink", down.busy),
        ("round trips", flown / in_flight.max(1) as u64),
        ("client's processors", processors.busy / here as u64),
    ];
    Outcome { makespan: now, bounds }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots as near as the client's own.
    const NEAR: Farm =
        Farm { slots: 1, in_flight: 1, here: 1, latency: 0, bandwidth: 1e18, overhead: 0, client: 0 };

    fn random(rng: &mut fastrand::Rng) -> Vec<Backend> {
        let mut below = |end| rng.u64(1..end);
        (0..60)
            .map(|_| Backend { took: below(5_000_000), up: below(3_000_000), down: below(1_000_000) })
            .collect()
    }

    /// Each backend, the longest first, on the slot that is free first.
    fn list_schedule(backends: &[Backend], slots: usize) -> u64 {
        let mut took: Vec<u64> = backends.iter().map(|backend| backend.took).collect();
        took.sort_unstable();
        let mut ends = vec![0; slots];
        while let Some(took) = took.pop() {
            *ends.iter_mut().min().unwrap() += took;
        }
        ends.into_iter().max().unwrap()
    }

    #[test]
    fn one_action_at_the_engine_waits_for_each_of_its_steps() {
        let farm = Farm { latency: 100_000, bandwidth: 1e7, overhead: 300_000, client: 3000, ..NEAR };
        let there = Backend { took: 1_000_000, up: 10_000_000, down: 5_000_000 };
        // The longer one runs on the client.
        let outcome = simulate(&[there, Backend { took: 60_000_000, ..there }], &farm);
        assert_eq!((outcome.makespan, outcome.limit()), (60_000_000, "longest backend"));
        let outcome = simulate(&[there, Backend { took: 1_000_001, ..there }], &farm);
        // 10 MB up and 5 MB down, at 1.25 MB/s.
        let transfers = 8_000_000 + 4_000_000;
        assert_eq!(outcome.makespan, 3000 + ROUND_TRIPS * 100_000 + transfers + 300_000 + 1_000_000);
        assert_eq!(outcome.limit(), "uplink");
    }

    #[test]
    fn what_is_scarce_is_what_limits() {
        let backends = [Backend { took: 1_000_000, up: 1000, down: 100_000 }; 400];
        let limit = |farm: Farm| simulate(&backends, &farm).limit();
        let many = Farm { slots: 1000, in_flight: 1000, ..NEAR };
        assert_eq!(limit(Farm { slots: 10, in_flight: 20, ..NEAR }), "workers");
        assert_eq!(limit(many), "longest backend");
        assert_eq!(limit(Farm { client: 10_000, ..many }), "client's processors");
        assert_eq!(limit(Farm { bandwidth: 1e7, ..many }), "downlink");
        assert_eq!(limit(Farm { in_flight: 10, latency: 1_000_000, ..many }), "round trips");
    }

    #[test]
    fn near_slots_are_like_own_ones() {
        let mut rng = fastrand::Rng::with_seed(1);
        for slots in 0..20 {
            let backends = random(&mut rng);
            let outcome = simulate(&backends, &Farm { slots, in_flight: slots, ..NEAR });
            assert_eq!(outcome.makespan, list_schedule(&backends, slots + 1), "{slots} slots");
        }
    }

    #[test]
    fn no_link_is_faster_than_its_bounds() {
        let mut rng = fastrand::Rng::with_seed(2);
        for _ in 0..200 {
            let farm = Farm {
                slots: rng.usize(0..20),
                in_flight: rng.usize(0..30),
                here: rng.usize(1..4),
                latency: rng.u64(0..200_000),
                bandwidth: rng.u64(1..10_000) as f64 * 1e6,
                overhead: rng.u64(0..500_000),
                client: rng.u64(0..10_000),
            };
            let outcome = simulate(&random(&mut rng), &farm);
            for (limit, least) in outcome.bounds {
                assert!(least <= outcome.makespan, "{limit}: {least} of {} on {farm:?}", outcome.makespan);
            }
        }
    }
}
