//! The nodes of an installation: their actors, their webhook queues, and their figures of the last two minutes.

use std::borrow::Cow;

use sakshi_domain::ids::ClientId;
use sakshi_domain::time::Timestamp;

use super::views::TreeNode;
use crate::body::body;

body! { response
    /// All nodes of the installation.
    pub struct NodesResponse {
        /// The time by the clock of the responding node.
        now: Timestamp,
        /// The nodes with a recent heartbeat, oldest first.
        nodes: Vec<NodeState>,
    }
}

body! { response
    /// A node. Fields of another node are null until it reports, within three seconds of its start.
    #[derive(Clone)]
    pub struct NodeState {
        /// Identifies the process. Each start of a node has a new id.
        node: String,
        /// True for the responding node.
        is_this: bool,
        /// The version and commit of the program.
        version: Option<String>,
        /// The time at which the node started.
        started_at: Option<Timestamp>,
        /// The time of the last heartbeat.
        seen_at: Timestamp,
        /// `live`, `draining` during a graceful shutdown, or `silent` if heartbeats are missing. A silent node leaves
        /// the list after some seconds.
        state: Cow<'static, str>,
        /// The number of transactions with an actor.
        live_transactions: Option<i64>,
        /// The number of events with an actor.
        live_events: Option<i64>,
        /// The supervision tree.
        tree: Option<TreeNode>,
        /// The longest webhook queues, at most 20.
        receivers: Vec<ReceiverQueue>,
        /// The number of receivers with a queue.
        receivers_total: u64,
        /// The figures of the last two minutes.
        figures: Option<NodeFigures>,
    }
}

body! { response
    /// The webhook queue of a receiver.
    #[derive(Clone)]
    pub struct ReceiverQueue {
        /// Scheme, host and port of the receiver.
        origin: String,
        /// The client that owns the webhooks.
        client_id: ClientId,
        /// Webhooks queued in memory, at most 1,000. Further ones may be in the outbox.
        waiting: u64,
        /// Attempts in flight.
        in_flight: u64,
        /// Age of the oldest queued webhook in seconds; absent if none is queued.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        oldest_s: Option<u64>,
    }
}

body! { response
    /// Samples of a node, oldest first: at most 60, one per interval.
    #[derive(Clone)]
    pub struct NodeFigures {
        /// The length of an interval in seconds.
        interval_s: u64,
        /// Transactions opened per interval.
        inits: Vec<u64>,
        /// Callbacks of the identity app answered per interval.
        callbacks: Vec<u64>,
        /// Webhook attempts that ended per interval.
        webhooks: Vec<u64>,
        /// Webhook attempts that ended without delivery per interval.
        webhooks_failed: Vec<u64>,
        /// The 99th percentile of the response time per interval, in milliseconds: requests of clients and callbacks,
        /// without long polls; 0 without requests.
        p99_ms: Vec<f64>,
        /// CPU time of the process per interval, in percent of one core.
        cpu_percent: Vec<f64>,
    }
}
