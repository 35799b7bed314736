//! Decrypts outcomes that are read from the store.

use sakshi_domain::ids::TxnId;
use sakshi_domain::transaction::{Completed, Outcome};
use sakshi_store::{CompletedRecord, Sealed, Vault, VaultError};
use sakshi_trace::invariant::{Broken, Part, ensure};

/// The error when a stored outcome cannot be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RevealError {
    /// No configured key decrypts the outcome.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The decrypted bytes are not an outcome.
    #[error("the sealed outcome is malformed")]
    Malformed,
    /// The outcome belongs to another record.
    #[error(transparent)]
    Broken(#[from] Broken),
}

/// Decrypts a stored transaction's outcome.
///
/// # Errors
/// [`RevealError`] when no configured key opens it, or its content is not an outcome.
pub(crate) fn reveal(vault: &Vault, record: CompletedRecord) -> Result<Completed, RevealError> {
    let CompletedRecord { opened, verified_at, answer, outcome, passed, .. } = record;
    let outcome = reveal_outcome(vault, opened.id, &outcome)?;
    let claim_count = if let Outcome::Verified(claims) = &outcome { claims.as_map().len() } else { 0 };
    ensure(Part::Live, "an outcome that opens says what its record says", outcome.passed() == passed)?;
    ensure(
        Part::Live,
        "an outcome has no more claims than were asked for",
        claim_count <= opened.terms.claims.iter().count(),
    )?;
    Ok(Completed { opened, verified_at, outcome, answer })
}

/// Decrypts the outcome of the transaction with this id.
///
/// # Errors
/// [`RevealError`] when no configured key opens it, or its content is not an outcome.
pub fn reveal_outcome(vault: &Vault, id: TxnId, sealed: &Sealed) -> Result<Outcome, RevealError> {
    let plain = vault.open(id.as_bytes(), sealed)?;
    serde_json::from_slice(&plain).map_err(|_| RevealError::Malformed)
}

#[cfg(test)]
mod tests {
    use sakshi_domain::claims::ClaimSet;
    use sakshi_domain::transaction::Failure;
    use sakshi_store::seal_outcome;

    use super::*;
    use crate::tests::{completed_record, vault};

    #[test]
    fn an_outcome_that_contradicts_its_record_is_not_shown() {
        let (vault, record) = (vault(), completed_record(1));
        let broken = |record| match reveal(&vault, record) {
            Err(RevealError::Broken(broken)) => Some(broken.name()),
            _ => None,
        };
        assert_eq!(broken(record.clone()), None);
        let failed = seal_outcome(&vault, record.opened.id, &Outcome::NotVerified(Failure::new("no", None)));
        let other = CompletedRecord { outcome: failed, ..record.clone() };
        assert_eq!(broken(other), Some("an outcome that opens says what its record says"));
        let mut without_claims = record;
        without_claims.opened.terms.claims = ClaimSet::default();
        assert_eq!(broken(without_claims), Some("an outcome has no more claims than were asked for"));
    }
}
