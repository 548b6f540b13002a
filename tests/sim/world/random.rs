//! Chance: one seeded stream of numbers for a whole run. No other source of chance exists in the
//! simulator.

/// SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014): a
/// counter and a mixer.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number from `first` to `last`, both included.
    pub(crate) fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last - first + 1)
    }

    /// A position in a list that is not empty.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// An entry of a list; None where it is empty.
    pub(crate) fn pick<T: Copy>(&mut self, list: &[T]) -> Option<T> {
        if list.is_empty() { None } else { Some(list[self.index(list.len())]) }
    }

    /// True this many times in a thousand.
    pub(crate) fn permille(&mut self, times: u32) -> bool {
        self.below(1000) < u64::from(times)
    }

    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }
}

/// Spreads a number over all 64 bits.
pub(crate) fn mix(number: u64) -> u64 {
    let mut z = number;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
