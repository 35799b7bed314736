//! Accepting that the store has lost data.

use sakshi_domain::time::Timestamp;

use crate::body::body;

body! { answer
    /// The loss that was accepted.
    #[derive(Clone)]
    pub struct AcceptLossResponse {
        /// Since when data is missing; null when nothing is.
        since: Option<Timestamp>,
    }
}
