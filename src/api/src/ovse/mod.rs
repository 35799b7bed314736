//! Single verifications (specification, "OVSE"): init, qr-intent, result, and the identity app's
//! callback.

pub mod callback;
pub mod init;
pub mod qr_intent;
pub mod result;

use sakshi_domain::ids::TxnId;
use sakshi_service::error::ServiceError;
use sakshi_web::error::ApiError;

/// Reads a transaction id of a path; what is none is not found.
fn txn_of_path(text: &str) -> Result<TxnId, ApiError> {
    text.parse().map_err(|_| ApiError::Service(ServiceError::TransactionNotFound))
}
