//! The backends of a link as an engine has them: how long each takes, and the bytes that go there and back.
//!
//! Those of a link that was recorded, or of a larger one that is like it. Pure: knows nothing of engines and of files.

use distlto_planner::graph::{Action, ActionGraph, BackendWork, Decided, Work};

/// Bytes that go up for an action beside its files: the Action, the Command and folders.
const MESSAGES: u64 = 3000;
/// The same for each input.
const ENTRY: u64 = 100;

/// The backends of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedLink {
    /// What it is.
    pub name: String,
    /// All of them; none needs another.
    pub backends: Vec<SimulatedBackend>,
    /// Sizes of the modules, which backends share as inputs.
    pub blobs: Vec<u64>,
    /// Microseconds of the link before its first backend and after its last, which no engine shortens.
    pub rest: u64,
}

/// One backend compilation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedBackend {
    /// Microseconds of compiling.
    pub took: u64,
    /// What it reads, as positions in [`SimulatedLink::blobs`].
    pub inputs: Vec<usize>,
    /// Bytes of what it alone has: the shard, and messages.
    pub own: u64,
    /// Bytes of the object.
    pub output: u64,
}

impl SimulatedBackend {
    /// With a shard of this size.
    pub fn new(took: u64, inputs: Vec<usize>, shard: u64, output: u64) -> Self {
        let own = shard + MESSAGES + ENTRY * inputs.len() as u64;
        Self { took: took.max(1), inputs, own, output }
    }
}

impl SimulatedLink {
    /// As a graph for a schedule, an action for each backend in order.
    pub fn graph(&self) -> ActionGraph {
        let mut graph = ActionGraph::new();
        for (number, backend) in self.backends.iter().enumerate() {
            let work = Work::Backend(BackendWork {
                module: graph.file(format!("{number}.o")),
                shard: graph.file(format!("{number}.thinlto.bc")),
                imports: Vec::new(),
                extra: Vec::new(),
                object: graph.file(format!("{number}.native.o")),
                dwo: None,
                also: Vec::new(),
                decided: Decided::default(),
            });
            let label = number.to_string();
            graph.add(Action { work, label, prefix: None, args: Vec::new(), cost: backend.took });
        }
        graph
    }

    /// Microseconds of compiling.
    pub fn work(&self) -> u64 {
        self.backends.iter().map(|backend| backend.took).sum()
    }

    /// Microseconds of the longest one.
    pub fn longest(&self) -> u64 {
        self.backends.iter().map(|backend| backend.took).max().unwrap_or(0)
    }

    /// Bytes that all backends need, each once.
    pub fn unique(&self) -> u64 {
        let own: u64 = self.backends.iter().map(|backend| backend.own).sum();
        own + self.blobs.iter().sum::<u64>()
    }

    /// A program of so many modules like this one, the same for the same seed.
    ///
    /// Times of compiling are log-normal with the mean and the deviation of this program's logarithms, so that a larger
    /// program has a longer longest backend. Each has the sizes and as many imports as the one of this program that takes
    /// most nearly as long, sizes in proportion to time.
    pub fn like(&self, modules: usize, seed: u64) -> Self {
        let logarithms: Vec<f64> = self.backends.iter().map(|backend| (backend.took as f64).ln()).collect();
        let count = logarithms.len().max(1) as f64;
        let mean = logarithms.iter().sum::<f64>() / count;
        let variance = logarithms.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / count;
        let mut random = Random(seed);
        let mut sorted: Vec<&SimulatedBackend> = self.backends.iter().collect();
        sorted.sort_by_key(|backend| backend.took);
        let mut like = Self {
            name: format!("{modules} modules like {}", self.name),
            backends: Vec::with_capacity(modules),
            blobs: Vec::with_capacity(modules),
            // The linker's own work grows with what it links.
            rest: (self.rest as f64 * modules as f64 / count) as u64,
        };
        for number in 0..modules {
            let took = (mean + variance.sqrt() * random.normal()).exp();
            let longer = sorted.partition_point(|backend| (backend.took as f64) < took);
            let Some(near) = sorted.get(longer).or(sorted.last()) else { break };
            let scale = took / near.took as f64;
            let scaled = |bytes: u64| (bytes as f64 * scale) as u64;
            let module = near.inputs.first().and_then(|&own| self.blobs.get(own));
            like.blobs.push(scaled(module.copied().unwrap_or(0)));
            let mut inputs = vec![number];
            inputs.extend(near.inputs.iter().skip(1).map(|_| random.below(modules)));
            let shard = near.own.saturating_sub(MESSAGES + ENTRY * near.inputs.len() as u64);
            like.backends.push(SimulatedBackend::new(took as u64, inputs, shard, scaled(near.output)));
        }
        like
    }
}

/// Numbers that look random: SplitMix64 by Sebastiano Vigna.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Above 0 and at most 1.
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, end: usize) -> usize {
        ((self.unit() * end as f64) as usize).min(end.saturating_sub(1))
    }

    /// Of the normal distribution, by the transformation of Box and Muller.
    fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.unit(), self.unit());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}
