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
    /// It is not what the record beside it says.
    #[error("the sealed outcome and its record contradict each other")]
    Contradicted,
}

/// Opens a stored transaction's outcome.
///
/// # Errors
/// [`RevealError`] when no configured key opens it, or its content is not an outcome.
pub(crate) fn reveal(vault: &Vault, record: CompletedRecord) -> Result<Completed, RevealError> {
    let CompletedRecord { opened, verified_at, passed, answer, outcome, .. } = record;
    let outcome = reveal_outcome(vault, opened.id, &outcome)?;
    if outcome.passed() != passed {
        return Err(RevealError::Contradicted);
    }
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

#[cfg(test)]
mod tests {
    use sakshi_domain::event::EventRefusal;
    use sakshi_domain::ids::{AppId, ClientId};
    use sakshi_domain::time::Timestamp;
    use sakshi_domain::transaction::{AnswerDigest, Failure};
    use sakshi_kit::records::pending;
    use sakshi_store::seal_outcome;

    use super::*;

    #[test]
    fn a_record_that_says_otherwise_than_its_sealed_outcome_is_not_shown() {
        let (vault, client) = (Vault::new(&[vec![7; 32].into()]).unwrap(), ClientId::generate());
        let opened = pending(TxnId::generate(client.partition(), 0), client, AppId::generate(), Timestamp::from_millis(0));
        let outcome = seal_outcome(&vault, opened.id, &Outcome::NotVerified(Failure::event_refused(EventRefusal::Full)));
        let record = |passed| CompletedRecord {
            opened: opened.clone(),
            verified_at: opened.opened_at,
            passed,
            refused: None,
            registration: None,
            answer: AnswerDigest([1; 32]),
            outcome: outcome.clone(),
            address: None,
            is_polled: false,
        };
        assert!(reveal(&vault, record(false)).is_ok_and(|completed| !completed.outcome.passed()));
        assert_eq!(reveal(&vault, record(true)), Err(RevealError::Contradicted));
    }
}
