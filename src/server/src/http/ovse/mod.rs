//! Single verifications (specification, "OVSE"): init, qr-intent, result, and the identity app's
//! callback.

pub mod callback;
pub mod init;
pub mod qr_intent;
pub mod result;

use std::time::Duration;

use sakshi_actors::AskError;
use sakshi_domain::ids::TxnId;

use super::error::ApiError;

/// Reads a transaction id of a path; what is none is not found.
fn txn_of_path(text: &str) -> Result<TxnId, ApiError> {
    text.parse().map_err(|_| ApiError::TransactionNotFound)
}

impl From<AskError> for ApiError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Overloaded => Self::Overloaded,
            AskError::NoAnswer => Self::Unavailable { code: "no_answer", retry_after: Duration::from_secs(1) },
            AskError::Store(error) => error.into(),
        }
    }
}
