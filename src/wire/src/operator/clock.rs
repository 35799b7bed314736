//! Accepting a clock that has jumped.

use sakshi_domain::time::Timestamp;

use crate::body::body;

body! { answer
    /// The clock jump that was accepted, at the node that answers.
    #[derive(Clone)]
    pub struct AcceptClockResponse {
        /// False when the clock had not jumped; nothing has changed then.
        accepted: bool,
        /// Last time of the clock before the jump.
        since: Option<Timestamp>,
        /// Seconds by which the clock is ahead of where it would be without the jump; negative when it is behind.
        ahead_s: Option<i64>,
    }
}
