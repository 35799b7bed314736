//! Errors of orders to upstreams.

use thiserror::Error as ThisError;

/// Reason why an order to an upstream failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
pub enum UpstreamError {
    /// The answer was not complete in time. The upstream may or may not have accepted the order.
    #[error("the upstream did not answer in time")]
    TimedOut,
    /// The connection failed or broke.
    #[error("the upstream cannot be reached")]
    Unreachable,
    /// The upstream answered with a status other than 200, for example a redirect.
    #[error("the upstream answered with status {0}")]
    Refused(u16),
    /// The limit on concurrent orders of this kind is reached; the order was not sent.
    #[error("too many orders are under way")]
    Busy,
    /// The upstream answered 200 with an unusable body. The text says why, without quoting the body.
    #[error("the upstream's answer {0}")]
    Unreadable(&'static str),
}

impl UpstreamError {
    /// Returns the code for traces.
    pub(super) const fn code(self) -> &'static str {
        match self {
            Self::TimedOut => "timed_out",
            Self::Unreachable => "unreachable",
            Self::Refused(_) => "refused",
            Self::Busy => "busy",
            Self::Unreadable(_) => "unreadable",
        }
    }
}
