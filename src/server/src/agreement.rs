//! What is agreed between this service and the identity authority, ready for use: the intent
//! signer, callback addresses, app links, the QR host, and whom to trust for credentials.

use sakshi_authority::callback_address::CallbackAddresses;
use sakshi_authority::intent::{IntentError, IntentSigner};
use sakshi_authority::launch::AppLinks;
use sakshi_authority::qr;
use sakshi_authority::sdjwt::Verifier;
use sakshi_domain::ids::TxnId;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::Pending;

/// Everything needed to speak with the identity app.
#[derive(Debug)]
pub struct Agreement {
    /// Signs intents.
    pub signer: IntentSigner,
    /// Makes and recognises callback addresses.
    pub callbacks: CallbackAddresses,
    /// How the app is launched on the same phone.
    pub links: AppLinks,
    /// Scheme and host of QR values.
    pub qr_host: String,
    /// Verifies credentials.
    pub verifier: Verifier,
    /// The URL under which the public sees this service, without a trailing slash.
    pub public_base: String,
}

impl Agreement {
    /// The intent of a transaction, signed afresh.
    ///
    /// # Errors
    /// Only if the cryptographic library fails.
    pub fn intent(&self, pending: &Pending, now: Timestamp) -> Result<String, IntentError> {
        self.signer.sign(pending, &self.callbacks.for_txn(pending.id), now)
    }

    /// The value of a QR code that the identity app scans.
    #[must_use]
    pub fn qr_payload(&self, intent: &str) -> String {
        qr::qr_payload(&self.qr_host, intent)
    }

    /// The verify page of a transaction (`requestUrl`).
    #[must_use]
    pub fn request_url(&self, id: TxnId) -> String {
        format!("{}/v/{id}", self.public_base)
    }
}
