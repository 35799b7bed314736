//! What can be set for a listener.

use sakshi_service::budget::MemoryBudget;

/// The settings of a listener.
#[derive(Clone, Debug)]
pub struct ListenerConfig {
    /// Its name in metrics.
    pub name: &'static str,
    /// Threads that serve connections.
    pub workers: usize,
    /// Connections of one worker at most.
    pub connections_per_worker: usize,
    /// What answers that wait to be sent are charged to.
    pub answers: MemoryBudget,
}

impl ListenerConfig {
    /// Connections from which on a worker closes idle ones: fewer than its maximum, so that a new connection need not wait until
    /// another is closed.
    pub(super) fn eviction_threshold(&self) -> usize {
        (self.connections_per_worker - self.connections_per_worker.div_ceil(8)).max(1)
    }

    /// Connections at which a worker gets no more. It needs two at least: one is open while another is closed.
    pub(super) fn max_connections(&self) -> usize {
        self.connections_per_worker.max(2)
    }
}
