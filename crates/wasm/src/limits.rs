//! The memory limit of an instance. All linear memories count together, so that a component of several parts gets no
//! more than a component of one part.

use wasmtime::ResourceLimiter;

/// Entries of one table. Interpreters that were compiled to WebAssembly have tens of thousands of functions.
pub(crate) const TABLE_ENTRIES: usize = 100_000;
/// Core instances of one component: a linked interpreter has a few dozen.
pub(crate) const CORE_INSTANCES: usize = 100;
/// Tables of one component.
pub(crate) const TABLES: usize = 32;
/// Linear memories of one component.
pub(crate) const MEMORIES: usize = 8;

/// The memory that an instance may still allocate, and whether an allocation was refused.
pub(crate) struct InstanceMemoryBudget {
    most: usize,
    left: usize,
    refused: bool,
}

impl InstanceMemoryBudget {
    pub(crate) fn new(memory: u64) -> Self {
        let most = usize::try_from(memory).unwrap_or(usize::MAX);
        Self {
            most,
            left: most,
            refused: false,
        }
    }

    /// The limit, if memory was refused since the last call of this function. A refusal is the usual reason for a trap.
    pub(crate) fn take_refused(&mut self) -> Option<usize> {
        std::mem::take(&mut self.refused).then_some(self.most)
    }
}

impl ResourceLimiter for InstanceMemoryBudget {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current);
        let Some(left) = self.left.checked_sub(more) else {
            self.refused = true;
            return Ok(false);
        };
        self.left = left;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE_ENTRIES)
    }

    fn instances(&self) -> usize {
        CORE_INSTANCES
    }

    fn tables(&self) -> usize {
        TABLES
    }

    fn memories(&self) -> usize {
        MEMORIES
    }
}
