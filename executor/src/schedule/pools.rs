//! The resources of actions while they run, and their limits: slots, tokens of the build, memory, slots of an engine.
//!
//! Each [`Resource`] is a pool. A further one needs a variant, its limit, and each action's need of it. The rules of
//! the schedule are the same for all. Pure: limits come from the caller.

use std::ops::{Index, IndexMut};

/// An estimate is taken for no more than this, so that sums of estimates do not overflow: 256 TiB.
const MOST: u64 = 1 << 48;

/// A resource with a pool, in the order in which a lack is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Places to run on this machine, one for each action.
    Slots,
    /// Jobs that the build's jobserver allows, one for each action.
    Tokens,
    /// Memory of this machine, in bytes.
    Memory,
    /// Places to run on an engine, one for each action that runs there.
    Engine,
}

const ALL: [Resource; 4] = [Resource::Slots, Resource::Tokens, Resource::Memory, Resource::Engine];

/// An amount of each resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amounts([u64; ALL.len()]);

impl Amounts {
    /// The same of each.
    const fn all(amount: u64) -> Self {
        Self([amount; ALL.len()])
    }

    /// Returns the needs of an action on this machine, with this estimate of its memory in bytes.
    pub fn local(memory: u64) -> Self {
        let mut needs = Self::all(0);
        needs[Resource::Slots] = 1;
        needs[Resource::Tokens] = 1;
        needs[Resource::Memory] = memory.min(MOST);
        needs
    }

    /// Returns the needs of an action on an engine.
    pub fn engine() -> Self {
        let mut needs = Self::all(0);
        needs[Resource::Engine] = 1;
        needs
    }

    /// Combines two amounts of each resource with `choose`.
    pub(super) fn zip(self, other: Self, choose: impl Fn(u64, u64) -> u64) -> Self {
        let mut both = self;
        ALL.iter().for_each(|&resource| both[resource] = choose(self[resource], other[resource]));
        both
    }
}

impl Index<Resource> for Amounts {
    type Output = u64;

    fn index(&self, resource: Resource) -> &u64 {
        &self.0[resource as usize]
    }
}

impl IndexMut<Resource> for Amounts {
    fn index_mut(&mut self, resource: Resource) -> &mut u64 {
        &mut self.0[resource as usize]
    }
}

/// All pools.
#[derive(Debug)]
pub struct Pools {
    limits: Amounts,
    used: Amounts,
}

impl Default for Pools {
    /// Without limits, and without an engine.
    fn default() -> Self {
        let mut limits = Amounts::all(u64::MAX);
        limits[Resource::Engine] = 0;
        Self { limits, used: Amounts::all(0) }
    }
}

impl Pools {
    /// Sets the limit of a resource; amounts in use stay in use.
    pub fn limit(&mut self, resource: Resource, amount: u64) {
        self.limits[resource] = amount;
    }

    /// Returns the limit of a resource.
    pub fn limit_of(&self, resource: Resource) -> u64 {
        self.limits[resource]
    }

    /// Returns the amount in use.
    pub fn used(&self, resource: Resource) -> u64 {
        self.used[resource]
    }

    /// Returns the first resource that does not have enough left.
    pub fn lack(&self, needs: &Amounts) -> Option<Resource> {
        let has = |&resource: &Resource| {
            let sum = self.used[resource].checked_add(needs[resource]);
            sum.is_some_and(|sum| sum <= self.limits[resource])
        };
        ALL.into_iter().find(|resource| !has(resource))
    }

    /// Takes the amounts, even if there is not enough.
    pub fn take(&mut self, needs: &Amounts) {
        self.used = self.used.zip(*needs, u64::saturating_add);
    }

    /// Gives back amounts that were taken.
    pub fn give_back(&mut self, needs: &Amounts) {
        self.used = self.used.zip(*needs, u64::saturating_sub);
    }
}
