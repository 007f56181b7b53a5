//! Numbers that follow from a seed alone: splitmix64, as Sebastiano Vigna published it. Knows nothing of programs.

/// A source of numbers.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The same seed gives the same numbers.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, or 0 where there is none.
    pub fn below(&mut self, limit: usize) -> usize {
        // The high bits; what a limit of a few dozen makes uneven does not matter.
        let number = (self.next() >> 33) as usize;
        number.checked_rem(limit).unwrap_or(0)
    }

    /// A number of `from..=to`.
    pub fn between(&mut self, from: usize, to: usize) -> usize {
        from + self.below(to + 1 - from)
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of a list, or nothing of an empty one.
    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        list.get(self.below(list.len()))
    }

    /// One of several things, each with its weight.
    pub fn weighed<T: Copy>(&mut self, first: T, others: &[(usize, T)]) -> T {
        let mut at = self.below(100);
        for (weight, thing) in others {
            match at.checked_sub(*weight) {
                Some(left) => at = left,
                None => return *thing,
            }
        }
        first
    }

    /// Puts a list into another order.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for end in (1..list.len()).rev() {
            list.swap(end, self.below(end + 1));
        }
    }
}
