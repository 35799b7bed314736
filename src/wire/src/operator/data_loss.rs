//! Accepting that the store has lost data.

use sakshi_domain::time::Timestamp;

use crate::body::body;

body! { answer
    /// The loss that was accepted.
    #[derive(Clone)]
    pub struct AcceptLossResponse {
        /// There was a loss, and it is accepted.
        accepted: bool,
        /// The time when a node last saw data that is missing now; null when nothing is missing.
        since: Option<Timestamp>,
    }
}
