//! Accepting a clock that has jumped.

use sakshi_domain::time::Timestamp;

use crate::body::body;

body! { answer
    /// The jump of the clock because of which the node that answers deleted nothing.
    #[derive(Clone)]
    pub struct AcceptClockResponse {
        /// Whether there was one. Without, nothing has changed.
        accepted: bool,
        /// Last time of the clock before the jump.
        since: Option<Timestamp>,
        /// Seconds by which the clock is ahead of where it would be without the jump; negative when it is behind.
        ahead_s: Option<i64>,
    }
}
