//! Errors of orders.

use thiserror::Error as ThisError;

/// Reason why an order failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
pub enum UpstreamError {
    /// The answer was not complete in time; whether the upstream accepted the order is unknown.
    #[error("the upstream did not answer in time")]
    TimedOut,
    /// There was no connection, or it broke.
    #[error("the upstream cannot be reached")]
    Unreachable,
    /// It answered with a status other than 200, for example a redirect.
    #[error("the upstream answered with status {0}")]
    Refused(u16),
    /// The limit on concurrent orders of this kind is reached; this one was not sent.
    #[error("too many orders are under way")]
    Busy,
    /// It answered 200 with a body that cannot be used. The text says why, without quoting the body.
    #[error("the upstream's answer {0}")]
    Unreadable(&'static str),
}

impl UpstreamError {
    /// Returns its code in spans.
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
