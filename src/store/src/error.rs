//! Why the store could not answer. Business refusals are outcomes, not errors.

/// The store could not carry out or could not confirm a transition.
///
/// After any of these the caller knows nothing about the transition: it repeats it under the same
/// id, or reports that the service is unavailable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The store is shutting down, restarting or out of reach.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The disk or the memory of the store is full; nothing was written.
    #[error("the store is full")]
    Full,
    /// The stored data is damaged; an operator must look.
    #[error("the store is corrupt: {0}")]
    Corrupt(String),
    /// Another process holds the store.
    #[error("the store at {0} is in use by another process")]
    InUse(String),
    /// The store was written under keys of which this node has none; nothing was written.
    #[error(
        "the store was written under another encryption key: store.encryption_key and store.previous_encryption_keys hold none that \
         opens it"
    )]
    WrongKey,
    /// Too much work is waiting; nothing was written.
    #[error("the store is overloaded")]
    Overloaded,
}

impl StoreError {
    /// A stable word for metrics and for the `code` of a 503.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => "storage_unavailable",
            Self::Full => "storage_full",
            Self::Corrupt(_) => "storage_corrupt",
            Self::InUse(_) => "storage_in_use",
            Self::WrongKey => "storage_key",
            Self::Overloaded => "storage_overloaded",
        }
    }
}
