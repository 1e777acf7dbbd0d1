//! Dice with a seed, so that a run can be repeated.

/// A small generator of numbers. (The constants are SplitMix64's.)
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// A number from 0 to below `below`.
    pub(crate) fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }

    /// One of these.
    pub(crate) fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.roll(from.len() as u64) as usize]
    }

    /// Dice of their own for another thread.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.roll(u64::MAX))
    }
}

/// A number from the environment.
pub(crate) fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name)
        .ok()
        .map_or(otherwise, |text| text.parse().expect("a number"))
}
