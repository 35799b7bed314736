//! Settings of a listener.

use sakshi_service::budget::MemoryBudget;

use super::tls::ListenerTls;

/// The settings of a listener.
#[derive(Clone, Debug)]
pub struct ListenerConfig {
    /// Name in metrics.
    pub name: &'static str,
    /// Threads that serve connections.
    pub workers: usize,
    /// Maximum number of connections per worker.
    pub connections_per_worker: usize,
    /// Further connections per worker, which serve probes only.
    pub probes_per_worker: usize,
    /// Budget for responses that wait to be sent.
    pub answers: MemoryBudget,
    /// TLS; `None` for HTTP in the clear.
    pub tls: Option<ListenerTls>,
}

/// Connection thresholds of one worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableBounds {
    /// Number from which the worker evicts. It is below the maximum, so that a new connection need not wait for an
    /// eviction.
    pub(super) eviction_threshold: usize,
    /// Number from which new connections are for probes only.
    pub(super) probes_only_from: usize,
}

impl ListenerConfig {
    /// Returns the thresholds of each worker.
    pub(super) fn table_bounds(&self) -> TableBounds {
        let max = self.connections_per_worker;
        // An eighth of the places stays free for new connections.
        TableBounds { eviction_threshold: (max - max.div_ceil(8)).max(1), probes_only_from: max.max(2) }
    }

    /// Returns the number of connections at which a worker gets no more. The number is at least 2, so that one
    /// connection can be open while another is closed.
    pub(super) fn max_connections(&self) -> usize {
        self.connections_per_worker.max(2) + self.probes_per_worker
    }
}
