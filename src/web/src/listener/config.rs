//! What can be set for a listener.

use sakshi_service::budget::MemoryBudget;

use super::tls::ListenerTls;

/// The settings of a listener.
#[derive(Clone, Debug)]
pub struct ListenerConfig {
    /// Its name in metrics.
    pub name: &'static str,
    /// Threads that serve connections.
    pub workers: usize,
    /// Connections of one worker at most.
    pub connections_per_worker: usize,
    /// Further connections of one worker, which answer probes alone.
    pub probes_per_worker: usize,
    /// What answers that wait to be sent are charged to.
    pub answers: MemoryBudget,
    /// TLS; `None` for HTTP in the clear.
    pub tls: Option<ListenerTls>,
}

/// Numbers of connections of one worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableBounds {
    /// From which on it closes some: fewer than its maximum, so that a new connection need not wait until another is closed.
    pub(super) eviction_threshold: usize,
    /// From which on a new one is for probes.
    pub(super) probes_only_from: usize,
}

impl ListenerConfig {
    pub(super) fn table_bounds(&self) -> TableBounds {
        let most = self.connections_per_worker;
        TableBounds { eviction_threshold: (most - most.div_ceil(8)).max(1), probes_only_from: most.max(2) }
    }

    /// Connections at which a worker gets no more. It needs two at least: one is open while another is closed.
    pub(super) fn max_connections(&self) -> usize {
        self.connections_per_worker.max(2) + self.probes_per_worker
    }
}
