//! A set of places of one batch.

pub(crate) const MOST_CALLS: u32 = 256;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BatchIndexSet([u64; (MOST_CALLS / 64) as usize]);

impl BatchIndexSet {
    /// `false`: the place is beyond the limit.
    pub(super) fn insert(&mut self, place: u32) -> bool {
        match self.0.get_mut((place / 64) as usize) {
            Some(bits) => {
                *bits |= 1 << (place % 64);
                true
            }
            None => false,
        }
    }

    pub(super) fn contains(&self, place: u32) -> bool {
        self.0
            .get((place / 64) as usize)
            .is_some_and(|bits| bits & 1 << (place % 64) != 0)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        let set = *self;
        (0..MOST_CALLS).filter(move |place| set.contains(*place))
    }
}
