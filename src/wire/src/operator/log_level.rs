//! The level of a node's log, changed for a time.

use sakshi_domain::time::Timestamp;

use crate::body::body;
use crate::text::{Whole, Words};

/// Seconds for which a level stands if the request does not say.
pub const LOG_LEVEL_S_DEFAULT: u64 = 900;
/// Seconds for which a level stands at most.
pub const LOG_LEVEL_S_MAX: u64 = 86_400;

body! { request
    /// A level for the log of the node that answers.
    #[derive(Clone, PartialEq)]
    pub struct ChangeLogLevelRequest {
        /// `off`, `error`, `warn`, `info`, `debug` or `trace`, or a list of `target=level` such as `sakshi_store=debug`. What it does not
        /// name stays as it is at the start of the node. `debug` and `trace` are for targets that begin with `sakshi`; without a target
        /// they change those alone.
        level: Words<500>,
        /// Seconds after which the node returns to its usual level. Default: 900.
        for_s: Option<Whole<1, LOG_LEVEL_S_MAX>>,
    }
}

body! { answer
    /// The level of the log of the node that answers.
    #[derive(Clone)]
    pub struct LogLevelResponse {
        /// The level in effect.
        level: String,
        /// The level at the start of the node, as its environment says.
        usual: String,
        /// The time at which the node returns to that; null when it is in effect.
        until: Option<Timestamp>,
    }
}
