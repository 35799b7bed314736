//! What is agreed between this service and the identity authority, ready for use: the intent
//! signer, callback addresses, app links, the QR host, and whom to trust for credentials.

use sakshi_authority::callback_address::{CallbackAddressError, CallbackAddresses};
use sakshi_authority::intent::{IntentError, IntentSettings, IntentSigner};
use sakshi_authority::launch::AppLinks;
use sakshi_authority::qr;
use sakshi_authority::sdjwt::Verifier;
use sakshi_domain::ids::TxnId;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::Pending;

use crate::material::Material;
use crate::settings::Settings;

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
    /// Whether the sandbox identity app is mounted.
    pub sandbox: bool,
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

/// Why the agreement cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum AgreementError {
    /// The public base or the secret does not fit.
    #[error(transparent)]
    Callbacks(#[from] CallbackAddressError),
}

/// Puts settings and keys together.
///
/// # Errors
/// A public base URL from which no callback address can be made.
pub fn reach(settings: &Settings, material: Material, public_base: String) -> Result<Agreement, AgreementError> {
    let authority = &settings.authority;
    let intent = IntentSettings {
        kid: authority.intent_kid.clone(),
        typ: authority.intent_typ.clone(),
        issuer: authority.intent_iss.clone(),
        lifetime: authority.intent_lifetime,
        client_id: authority.client_id.clone(),
        registration: authority.registration.clone(),
        scope_length: authority.sc_length,
    };
    Ok(Agreement {
        signer: IntentSigner::new(material.intent_key, intent),
        callbacks: CallbackAddresses::new(&public_base, &material.callback_secrets)?,
        links: AppLinks {
            android_web_action: authority.android_web_action.clone(),
            android_app_action: authority.android_app_action.clone(),
            ios_scheme: authority.ios_scheme.clone(),
            ios_host: authority.ios_host.clone(),
        },
        qr_host: authority.qr_host.as_ref().map_or(public_base.as_str(), url::Url::as_str).trim_end_matches('/').to_owned(),
        verifier: Verifier::new(material.issuers, authority.key_binding),
        sandbox: material.sandbox_issuer.is_some(),
        public_base,
    })
}
