//! The nodes of an installation side by side: their actors, their webhook queues, and the figures of the last two
//! minutes.

use std::borrow::Cow;

use sakshi_domain::ids::ClientId;
use sakshi_domain::time::Timestamp;

use super::views::TreeNode;
use crate::body::body;

body! { answer
    /// All nodes of the installation.
    pub struct NodesResponse {
        /// The time by the clock of the node that answers.
        now: Timestamp,
        /// The nodes that have a heartbeat, oldest first.
        nodes: Vec<NodeState>,
    }
}

body! { answer
    /// A node. Fields are null for another node that has not reported yet; it does so within three seconds.
    #[derive(Clone)]
    pub struct NodeState {
        /// Identifies the process. Each start has a new id.
        node: String,
        /// This node answers.
        is_this: bool,
        /// Version and commit of the program.
        version: Option<String>,
        /// The time of its start.
        started_at: Option<Timestamp>,
        /// The last heartbeat.
        seen_at: Timestamp,
        /// `live`, `draining` before it ends, or `silent` when its heartbeats stay away. A silent node is gone after
        /// some seconds.
        state: Cow<'static, str>,
        /// Transactions with an actor.
        live_transactions: Option<i64>,
        /// Events with an actor.
        live_events: Option<i64>,
        /// The supervision tree.
        tree: Option<TreeNode>,
        /// The longest queues of webhooks, 20 at most.
        receivers: Vec<ReceiverQueue>,
        /// Receivers with a queue.
        receivers_total: u64,
        /// The last two minutes.
        figures: Option<NodeFigures>,
    }
}

body! { answer
    /// The webhooks that wait for one receiver.
    #[derive(Clone)]
    pub struct ReceiverQueue {
        /// Scheme, host and port.
        origin: String,
        /// The client that it receives for.
        client_id: ClientId,
        /// Webhooks that wait in memory. A queue of 1,000 may have more in the outbox.
        waiting: u64,
        /// Attempts in flight.
        in_flight: u64,
        /// Seconds that the first has waited here; absent when none waits.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        oldest_s: Option<u64>,
    }
}

body! { answer
    /// Samples of a node, oldest first: 60 at most, one at the end of each interval.
    #[derive(Clone)]
    pub struct NodeFigures {
        /// Seconds between two samples.
        interval_s: u64,
        /// Transactions opened in the interval.
        inits: Vec<u64>,
        /// Callbacks of the identity app answered in the interval.
        callbacks: Vec<u64>,
        /// Attempts of webhooks that ended in the interval.
        webhooks: Vec<u64>,
        /// The part of these attempts that did not deliver.
        webhooks_failed: Vec<u64>,
        /// Milliseconds within which 99 % of the interval's requests of clients and callbacks were answered, long polls
        /// left out; 0 without requests.
        p99_ms: Vec<f64>,
        /// Processor time of the process in the interval; 100 is one core.
        cpu_percent: Vec<f64>,
    }
}
