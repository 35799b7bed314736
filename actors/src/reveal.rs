//! Opening outcomes on their way out of the store.

use sakshi_domain::ids::TxnId;
use sakshi_domain::transaction::{Completed, Outcome};
use sakshi_store::{CompletedRecord, Sealed, Vault, VaultError};

/// Why a stored outcome cannot be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RevealError {
    /// It does not open.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// Its content is not an outcome.
    #[error("the sealed outcome is malformed")]
    Malformed,
}

/// Opens a stored transaction's outcome.
///
/// # Errors
/// [`RevealError`] when no configured key opens it, or its content is not an outcome.
pub(crate) fn reveal(vault: &Vault, record: CompletedRecord) -> Result<Completed, RevealError> {
    let CompletedRecord { opened, verified_at, answer, outcome, .. } = record;
    let outcome = reveal_outcome(vault, opened.id, &outcome)?;
    Ok(Completed { opened, verified_at, outcome, answer })
}

/// Opens the outcome of the transaction with this id.
///
/// # Errors
/// [`RevealError`] when no configured key opens it, or its content is not an outcome.
pub fn reveal_outcome(vault: &Vault, id: TxnId, sealed: &Sealed) -> Result<Outcome, RevealError> {
    let plain = vault.open(id.as_bytes(), sealed)?;
    serde_json::from_slice(&plain).map_err(|_| RevealError::Malformed)
}
