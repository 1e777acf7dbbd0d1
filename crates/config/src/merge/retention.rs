//! `retention`: for operators alone. Keeping less is not stricter, since an agent could have the record of its own
//! calls removed; keeping more uses the operator's disk.

use std::time::Duration;

use crate::{LocatedValue, RetentionConfig, RetentionSection};

use super::{LayerMerge, never, some};

impl LayerMerge<'_> {
    pub(super) fn retention(&mut self, retention: &mut RetentionConfig, file: &RetentionSection) {
        self.put(
            "retention.artifacts",
            &mut retention.artifacts,
            file.artifacts,
            never,
        );
        let journal = &mut retention.journal;
        let written = &file.journal;
        let age = some(written.age.map(LocatedValue::converted::<Duration>));
        self.put("retention.journal.age", &mut journal.age, age, never);
        let size = some(written.size.map(LocatedValue::converted::<u64>));
        self.put("retention.journal.size", &mut journal.size, size, never);
    }
}
