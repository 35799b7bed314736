//! The acceptance of data loss in the store.

use sakshi_domain::time::Timestamp;

use crate::body::body;

body! { response
    /// The accepted loss of data.
    #[derive(Clone)]
    pub struct AcceptLossResponse {
        /// False if there was no loss. Nothing has changed then.
        accepted: bool,
        /// The time at which a node last saw data that is missing now; null if nothing is missing.
        since: Option<Timestamp>,
    }
}
