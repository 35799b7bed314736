//! The acceptance of a clock that has jumped.

use sakshi_domain::time::Timestamp;

use crate::body::body;

body! { response
    /// The accepted clock jump of the responding node.
    #[derive(Clone)]
    pub struct AcceptClockResponse {
        /// False if the clock had not jumped. Nothing has changed then.
        accepted: bool,
        /// The last time of the clock before the jump; null without a jump.
        since: Option<Timestamp>,
        /// Seconds by which the jump moved the clock ahead; negative if it moved back, null without a jump.
        ahead_s: Option<i64>,
    }
}
