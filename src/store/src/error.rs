//! Results and errors of a store. Business refusals are outcomes, not errors.

use std::pin::Pin;

use sakshi_domain::time::Timestamp;
use sakshi_trace::invariant::Broken;

/// Maximum number of attempts of an operation whose changes conflict with others. After them the store counts as
/// overloaded.
pub(crate) const ATTEMPTS: usize = 64;

/// Result of a store call, to be awaited on any thread.
pub type StoreFuture<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'static>>;

/// Error of an operation that the store could not execute or confirm.
///
/// After an error the caller does not know whether the operation took effect. It retries under the same id, or reports
/// that the service is unavailable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The store is shutting down, restarting or out of reach.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The disk or the memory of the store is full; nothing was written.
    #[error("the store is full")]
    Full,
    /// The stored data is damaged; an operator must repair it.
    #[error("the store is corrupt: {0}")]
    Corrupt(String),
    /// Another process has the store open.
    #[error("the store at {0} is in use by another process")]
    InUse(String),
    /// The store was written under keys that this node does not have; nothing was written.
    #[error(
        "the store was written under another encryption key: store.encryption_key and store.previous_encryption_keys \
         hold none that opens it"
    )]
    WrongKey,
    /// The store belongs to another installation; nothing was written.
    #[error(
        "the store belongs to {store}, but this node has {node}; name a store of its own in store.path or \
         store.redis_url, or move this one with store.take_over_from"
    )]
    OtherInstallation {
        /// Installation that the store remembers, in words.
        store: String,
        /// Installation of the node, in words.
        node: String,
    },
    /// The store has the schema of another release, which this release does not open; nothing was written.
    #[error("{0}")]
    OtherSchema(String),
    /// The store lacks data that it had; nothing was written.
    #[error(
        "the store has lost data since {0}, and nothing is written until the data is back or an operator runs `sakshi \
            admin accept-loss`"
    )]
    DataLost(Timestamp),
    /// Too many calls are waiting; nothing was written.
    #[error("the store is overloaded")]
    Overloaded,
    /// An invariant does not hold, so the operation was stopped before it wrote or returned anything.
    #[error(transparent)]
    Broken(#[from] Broken),
}

/// The reason why a node would not open a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The store refuses the node, with the error of opening it.
    #[error(transparent)]
    Refused(StoreError),
    /// The caller cannot read the store. A node may still be able to open it.
    #[error(transparent)]
    Unreadable(StoreError),
}

impl StoreError {
    /// Returns the error for a record or reply whose content no store writes; `subject` names it.
    pub(crate) fn unreadable(subject: &str) -> Self {
        Self::Corrupt(format!("{subject} cannot be read"))
    }

    /// Returns the error for a store that cannot answer now.
    pub(crate) fn unavailable(reason: impl Into<String>) -> Self {
        Self::Unavailable(reason.into())
    }

    /// Returns a stable word for metrics and for the `code` of a 503.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unavailable(_) | Self::DataLost(_) => "storage_unavailable",
            Self::Full => "storage_full",
            Self::Corrupt(_) | Self::Broken(_) => "storage_corrupt",
            Self::InUse(_) => "storage_in_use",
            Self::WrongKey => "storage_key",
            Self::OtherInstallation { .. } => "storage_installation",
            Self::OtherSchema(_) => "storage_schema",
            Self::Overloaded => "storage_overloaded",
        }
    }
}
