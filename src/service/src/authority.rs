//! Everything that is agreed with the identity authority: the intent signer, callback addresses, links that launch the
//! app, the host of QR values, and the trusted issuers.

use std::sync::Arc;

use sakshi_authority::callback_address::CallbackAddresses;
use sakshi_authority::intent::{IntentSigner, SignedIntent};
use sakshi_authority::launch::AppLinks;
use sakshi_authority::qr;
use sakshi_authority::sdjwt::Verifier;
use sakshi_domain::ids::{EventId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::Pending;

use crate::ServiceError;
use crate::authority_answers::AuthorityAnswers;
use crate::clock_suspicion::ClockSuspicion;
use crate::credential_status::StatusChecks;
use crate::issuer_keys::IssuerKeys;

/// Dependencies for exchanges with the identity app.
#[derive(Debug)]
pub struct AuthorityContext {
    /// Signs intents.
    pub signer: Arc<IntentSigner>,
    /// Makes and checks callback addresses.
    pub callbacks: CallbackAddresses,
    /// Links that launch the app on the same phone.
    pub links: AppLinks,
    /// Scheme and host of QR values.
    pub qr_host: String,
    /// Verifies credentials.
    pub verifier: Arc<Verifier>,
    /// Checks with the issuer whether a credential was revoked.
    pub status: StatusChecks,
    /// Detects by the times of credentials that this node's clock may be wrong.
    pub clock_suspicion: ClockSuspicion,
    /// Counts the identity app's answers.
    pub answers: AuthorityAnswers,
    /// Requests a new read of the issuer's keys.
    pub issuer_keys: IssuerKeys,
    /// True if the sandbox identity app is mounted.
    pub sandbox: bool,
    /// Public URL of this service, without a trailing slash.
    pub public_base: String,
}

impl AuthorityContext {
    /// Signs a new intent for a transaction.
    ///
    /// # Errors
    /// [`ServiceError::Unavailable`] while the signing token is unavailable; [`ServiceError::Internal`] if the
    /// cryptographic library fails.
    pub async fn sign_intent(&self, pending: &Pending, now: Timestamp) -> Result<SignedIntent, ServiceError> {
        let signed = self.signer.sign(pending, &self.callbacks.for_txn(pending.id), now).await?;
        metrics::counter!("sakshi_intents_total", "made" => "signed").increment(1);
        Ok(signed)
    }

    /// Rebuilds the intent that was signed when the transaction was opened, from its stored bytes, if possible.
    #[must_use]
    pub fn rebuild_intent(&self, pending: &Pending, stored: &[u8], now: Timestamp) -> Option<String> {
        let jwt = self.signer.rebuild(pending, &self.callbacks.for_txn(pending.id), stored, now)?;
        metrics::counter!("sakshi_intents_total", "made" => "again").increment(1);
        Some(jwt)
    }

    /// Builds the value of a QR code that the identity app scans.
    #[must_use]
    pub fn qr_payload(&self, intent: &str) -> String {
        qr::qr_payload(&self.qr_host, intent)
    }

    /// Builds the URL in an event's QR code (`qr_url`).
    #[must_use]
    pub fn event_url(&self, id: EventId) -> String {
        format!("{}/e/{id}", self.public_base)
    }

    /// Builds the URL of a transaction's verify page (`requestUrl`).
    #[must_use]
    pub fn request_url(&self, id: TxnId) -> String {
        format!("{}/v/{id}", self.public_base)
    }
}
