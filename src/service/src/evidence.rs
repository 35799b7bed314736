//! The use case of evidence: the stored proof of a verification, returned as a sealed file.

use sakshi_authority::evidence::{Evidence, Proof};
use sakshi_domain::ids::TxnId;
use sakshi_domain::tenancy::App;
use sakshi_domain::transaction::Completed;
use sakshi_store::Sealed;
use sakshi_wire::ovse::EvidenceFile;
use zeroize::Zeroizing;

use crate::transactions::{OpenOrCompleted, own_transaction};
use crate::{Service, ServiceError};

const NOT_FOUND: ServiceError = ServiceError::NotFound("evidence");

/// Seals a proof for its transaction.
///
/// # Errors
/// [`ServiceError::Internal`] when the proof cannot be serialised.
pub(crate) fn seal(service: &Service, id: TxnId, proof: &Proof) -> Result<Sealed, ServiceError> {
    let plain = Zeroizing::new(serde_json::to_vec(proof).map_err(ServiceError::internal)?);
    Ok(service.vault.seal(id.as_bytes(), &plain))
}

/// Returns the evidence of a completed transaction of this app.
///
/// # Errors
/// [`ServiceError::NotFound`] while no evidence is stored; [`ServiceError::TransactionNotFound`] and
/// [`ServiceError::TransactionExpired`]; [`ServiceError::Unavailable`] while the signing token is unavailable.
pub async fn evidence_file(service: &Service, app: &App, id: TxnId) -> Result<EvidenceFile, ServiceError> {
    let OpenOrCompleted::Completed(record) = own_transaction(service, app, id).await? else { return Err(NOT_FOUND) };
    let stored = service.store.load_evidence(id).await?.ok_or(NOT_FOUND)?;
    let proof = Zeroizing::new(service.vault.open(id.as_bytes(), &stored).map_err(ServiceError::internal)?);
    let proof = serde_json::from_slice(&proof).map_err(ServiceError::internal)?;
    let completed = service.transactions.reveal(*record).map_err(ServiceError::internal)?;
    let sealed = service.authority.signer.seal(&build_evidence(completed, proof), service.clock.now()).await?;
    Ok(EvidenceFile { payload: sealed.payload, protected: sealed.protected, signature: sealed.signature })
}

fn build_evidence(completed: Completed, proof: Proof) -> Evidence {
    let opened = completed.opened;
    let extras = opened.terms.extras.as_ref();
    Evidence {
        version: Evidence::VERSION,
        txn_id: opened.id,
        client_reference_id: extras.and_then(|extras| extras.client_reference_id.clone()),
        purpose: opened.terms.purpose().map(str::to_owned),
        requested: opened.terms.claims,
        opened_at: opened.opened_at,
        verified_at: completed.verified_at,
        verification_passed: completed.outcome.passed(),
        client_id: opened.client,
        app_id: opened.app,
        proof,
    }
}
