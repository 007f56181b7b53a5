//! Simulated links against an independent list scheduler, against what no link can be faster than, and against
//! arithmetic: one action, step by step.

use distlto_commands::remote::simulate::{
    Bottleneck, Cluster, ROUND_TRIPS, SimulatedBackend, SimulatedLink, simulate,
};
use distlto_planner::graph::summary;
use proptest::prelude::*;

/// Slots as near as this machine's own.
const NEAR: Cluster = Cluster {
    workers: 1,
    in_flight: 1,
    here: 1,
    latency: 0,
    bandwidth: 1e18,
    overhead: 0,
    client: 0,
    processors: 1,
};

fn program(backends: Vec<SimulatedBackend>, blobs: Vec<u64>) -> SimulatedLink {
    SimulatedLink { name: "a program".to_owned(), backends, blobs, rest: 0 }
}

#[test]
fn one_action_at_the_engine_waits_for_each_of_its_steps() {
    // The first one runs here; the second, which is shorter, at the engine.
    let blobs = vec![0, 9_000_000];
    let backends = vec![
        SimulatedBackend::new(60_000_000, vec![0], 0, 0),
        SimulatedBackend::new(1_000_000, vec![1], 996_900, 5_000_000),
    ];
    let cluster = Cluster { latency: 100_000, bandwidth: 1e7, overhead: 300_000, client: 3000, ..NEAR };
    let outcome = simulate(&program(backends.clone(), blobs.clone()), &cluster);
    assert_eq!((outcome.makespan, outcome.here), (60_000_000, 1));
    // 3000 and 100 bytes of messages make a million of the shard: 10 MB up, 5 MB down, at 1.25 MB/s.
    assert_eq!((outcome.up, outcome.down), (10_000_000, 5_000_000));
    let longer = vec![SimulatedBackend::new(1_000_001, vec![0], 0, 0), backends[1].clone()];
    let outcome = simulate(&program(longer, blobs), &cluster);
    let transfers = 8_000_000 + 4_000_000;
    assert_eq!(outcome.makespan, 3000 + ROUND_TRIPS * 100_000 + transfers + 300_000 + 1_000_000);
    assert_eq!(outcome.limit(), Bottleneck::Uplink);
}

#[test]
fn a_module_that_many_import_goes_up_once() {
    let backends = (0..20).map(|_| SimulatedBackend::new(1_000_000, vec![0], 0, 0)).collect();
    let outcome =
        simulate(&program(backends, vec![1 << 30]), &Cluster { workers: 19, in_flight: 19, ..NEAR });
    assert_eq!(outcome.here, 1);
    assert_eq!(outcome.up - (1 << 30), 19 * 3100);
}

#[test]
fn what_is_scarce_is_what_limits() {
    let backends = || (0..400).map(|_| SimulatedBackend::new(1_000_000, vec![0], 0, 100_000)).collect();
    let limit = |cluster: Cluster| simulate(&program(backends(), vec![1000]), &cluster).limit();
    assert_eq!(limit(Cluster { workers: 10, in_flight: 20, ..NEAR }), Bottleneck::Workers);
    assert_eq!(limit(Cluster { workers: 1000, in_flight: 1000, ..NEAR }), Bottleneck::Longest);
    assert_eq!(limit(Cluster { workers: 1000, in_flight: 1000, client: 10_000, ..NEAR }), Bottleneck::Client);
    assert_eq!(
        limit(Cluster { workers: 1000, in_flight: 1000, bandwidth: 1e7, ..NEAR }),
        Bottleneck::Downlink
    );
    assert_eq!(
        limit(Cluster { workers: 1000, in_flight: 10, latency: 1_000_000, ..NEAR }),
        Bottleneck::InFlight
    );
}

#[test]
fn a_program_that_is_made_up_is_like_its_model_and_always_the_same() {
    let backends =
        (1..200).map(|n| SimulatedBackend::new(n * n * 50, vec![0, 1], 500 + n, 100 * n)).collect();
    let model = program(backends, vec![4000, 5000]);
    let like = model.like(20_000, 1);
    assert_eq!(like, model.like(20_000, 1));
    assert_ne!(like, model.like(20_000, 2));
    assert_eq!((like.backends.len(), like.blobs.len()), (20_000, 20_000));
    let middle = |program: &SimulatedLink| {
        let mut took: Vec<_> = program.backends.iter().map(|backend| (backend.took as f64).ln()).collect();
        took.sort_by(f64::total_cmp);
        took.iter().sum::<f64>() / took.len() as f64
    };
    assert!((middle(&like) - middle(&model)).abs() < 0.05, "{} {}", middle(&like), middle(&model));
    assert!(like.longest() > model.longest(), "twenty thousand have a longer tail than two hundred");
    assert!(like.backends.iter().all(|backend| backend.inputs.len() == 2));
}

fn programs() -> impl Strategy<Value = SimulatedLink> {
    let backend =
        (1_u64..5_000_000, prop::collection::btree_set(0_usize..8, 1..4), 0_u64..100_000, 0_u64..1_000_000);
    let backends = prop::collection::vec(backend, 1..60);
    (backends, prop::collection::vec(0_u64..3_000_000, 8)).prop_map(|(backends, blobs)| {
        let made = backends.into_iter().map(|(took, inputs, shard, output)| {
            SimulatedBackend::new(took, inputs.into_iter().collect(), shard, output)
        });
        program(made.collect(), blobs)
    })
}

proptest! {
    /// Slots that are as near as this machine's make the makespan of a list scheduler, which another crate has.
    #[test]
    fn near_slots_are_like_own_ones(program in programs(), workers in 1_usize..9) {
        let near = Cluster { workers, in_flight: workers, ..NEAR };
        let outcome = simulate(&program, &near);
        prop_assert_eq!(outcome.makespan, summary::makespan(&program.graph(), workers + 1));
    }

    /// Nothing is faster than what each part of it needs, and all of it runs.
    #[test]
    fn no_link_is_faster_than_its_bounds(
        program in programs(),
        (workers, in_flight, here) in (0_usize..20, 0_usize..30, 1_usize..4),
        (latency, overhead, client) in (0_u64..200_000, 0_u64..500_000, 0_u64..10_000),
        megabits in 1_u64..10_000,
    ) {
        let bandwidth = megabits as f64 * 1e6;
        let cluster = Cluster { workers, in_flight, here, latency, bandwidth, overhead, client, processors: 2 };
        let outcome = simulate(&program, &cluster);
        for bound in &outcome.bounds {
            // Each transfer is rounded down on its own.
            let slack = 10 * program.backends.len() as u64;
            prop_assert!(bound.time <= outcome.makespan + slack, "{:?} of {:?}", bound, outcome);
        }
        prop_assert!(outcome.makespan >= program.longest());
        prop_assert!(outcome.here <= program.backends.len());
        prop_assert!(outcome.up <= program.unique());
        if in_flight == 0 || workers == 0 {
            prop_assert_eq!(outcome.makespan, summary::makespan(&program.graph(), here));
        }
    }
}
