//! Sealing and unsealing of personal and secret data in records.
//!
//! The terms of a transaction can hold a person's name (`name_hint`) and the secret in a webhook's
//! path; an event and an app can hold the secrets of their URLs. Each value is sealed for the id of its
//! record. Sealing takes about a microsecond, and is done on the caller's side.

use sakshi_domain::client_log::LogEntry;
use sakshi_domain::consent::Consent;
use sakshi_domain::event::{CreditBudget, EventTerms};
use sakshi_domain::flow::api_type::RegisteredUrls;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::{AppId, EventId, OperatorId, TxnId, UserId};
use sakshi_domain::operator::OperatorRecord;
use sakshi_domain::refused_request::RefusedRequest;
use sakshi_domain::tenancy::App;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{Outcome, Terms};
use serde::Serialize;
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use crate::error::StoreError;
use crate::sessions::{SessionDigest, SessionGrant};
use crate::transitions::user::Profile;
use crate::users::Credential;
use crate::vault::{Sealed, Vault};

/// Initial capacity of the buffer for a sealed value; most values are smaller.
const JSON_BYTES: usize = 512;

/// Seals a value as JSON for its owner; `name` names the value in the error.
fn seal(vault: &Vault, owner: &[u8], value: &impl Serialize, name: &str) -> Result<Vec<u8>, StoreError> {
    let sealed = vault.seal_with_writer(owner, JSON_BYTES, |bytes| serde_json::to_writer(bytes, value));
    sealed.map(Sealed::into_bytes).map_err(|_| StoreError::Unavailable(format!("{name} cannot be written")))
}

/// Opens a value that [`seal`] has sealed; `name` names the value in the error.
fn unseal<T: DeserializeOwned>(
    vault: &Vault,
    owner: &[u8],
    sealed: impl Into<Vec<u8>>,
    name: &str,
) -> Result<T, StoreError> {
    let sealed = Sealed::from_bytes(sealed).ok_or_else(|| StoreError::unreadable(name))?;
    let json = vault.open_in_place(owner, sealed).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    serde_json::from_slice(&Zeroizing::new(json)).map_err(|_| StoreError::unreadable(name))
}

/// Seals an outcome for its transaction.
///
/// # Panics
/// Never: strings, numbers and maps with string keys always serialise into memory.
#[must_use]
#[allow(clippy::expect_used)]
pub fn seal_outcome(vault: &Vault, id: TxnId, outcome: &Outcome) -> Sealed {
    let plain = Zeroizing::new(serde_json::to_vec(outcome).expect("an outcome serialises"));
    vault.seal(id.as_bytes(), &plain)
}

/// Seals an entry of the register of consents for its list.
///
/// # Panics
/// Never, for the same reason as [`seal_outcome`].
#[must_use]
#[allow(clippy::expect_used)]
pub(crate) fn seal_consent(vault: &Vault, list: &[u8], entry: &Consent) -> Sealed {
    vault.seal(list, &serde_json::to_vec(entry).expect("a consent serialises"))
}

/// Opens an entry of the register of consents.
pub(crate) fn unseal_consent(vault: &Vault, list: &[u8], sealed: impl Into<Vec<u8>>) -> Result<Consent, StoreError> {
    unseal(vault, list, sealed, "a consent")
}

/// Seals an entry of the log of a client.
pub(crate) fn seal_log_entry(vault: &Vault, list: &[u8], entry: &LogEntry) -> Result<Vec<u8>, StoreError> {
    seal(vault, list, entry, "an entry of the log of a client")
}

/// Opens an entry of the log of a client.
pub(crate) fn unseal_log_entry(vault: &Vault, list: &[u8], sealed: impl Into<Vec<u8>>) -> Result<LogEntry, StoreError> {
    unseal(vault, list, sealed, "an entry of the log of a client")
}

/// Seals the terms of a transaction.
pub(crate) fn seal_terms(vault: &Vault, id: TxnId, terms: &Terms) -> Result<Vec<u8>, StoreError> {
    seal(vault, id.as_bytes(), terms, "the terms of a transaction")
}

/// Opens the terms of a transaction.
pub(crate) fn unseal_terms(vault: &Vault, id: TxnId, sealed: impl Into<Vec<u8>>) -> Result<Terms, StoreError> {
    unseal(vault, id.as_bytes(), sealed, "the terms of a transaction")
}

/// Seals an app.
pub(crate) fn seal_app(vault: &Vault, app: &App) -> Result<Vec<u8>, StoreError> {
    seal(vault, app.app_id.as_str().as_bytes(), app, "an app")
}

/// Opens an app.
pub(crate) fn unseal_app(vault: &Vault, id: &AppId, sealed: impl Into<Vec<u8>>) -> Result<App, StoreError> {
    unseal(vault, id.as_str().as_bytes(), sealed, "an app")
}

/// Seals a refused request of an app.
pub(crate) fn seal_refusal(vault: &Vault, app: &AppId, refused: &RefusedRequest) -> Result<Vec<u8>, StoreError> {
    seal(vault, app.as_str().as_bytes(), refused, "a refused request")
}

/// Opens a refused request of an app.
pub(crate) fn unseal_refusal(
    vault: &Vault,
    app: &AppId,
    sealed: impl Into<Vec<u8>>,
) -> Result<RefusedRequest, StoreError> {
    unseal(vault, app.as_str().as_bytes(), sealed, "a refused request")
}

/// Seals an entry of the audit log.
pub(crate) fn seal_audit_entry(vault: &Vault, number: u64, entry: &str) -> Result<Vec<u8>, StoreError> {
    seal(vault, &audit_owner(number), &entry, "an entry of the audit log")
}

/// Opens an entry of the audit log.
pub(crate) fn unseal_audit_entry(vault: &Vault, number: u64, sealed: impl Into<Vec<u8>>) -> Result<String, StoreError> {
    unseal(vault, &audit_owner(number), sealed, "an entry of the audit log")
}

/// Returns the owner for which the text of an audit log entry is sealed.
pub(crate) fn audit_owner(number: u64) -> Vec<u8> {
    format!("audit:{number}").into_bytes()
}

/// Seals an operator.
pub(crate) fn seal_operator(vault: &Vault, operator: &OperatorRecord) -> Result<Vec<u8>, StoreError> {
    seal(vault, operator.operator_id.as_str().as_bytes(), operator, "an operator")
}

/// Opens an operator.
pub(crate) fn unseal_operator(
    vault: &Vault,
    id: &OperatorId,
    sealed: impl Into<Vec<u8>>,
) -> Result<OperatorRecord, StoreError> {
    unseal(vault, id.as_str().as_bytes(), sealed, "an operator")
}

/// Seals a value of the operators' console for the record that has this id.
pub(crate) fn seal_of_console(vault: &Vault, owner: &[u8], value: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    seal(vault, owner, value, "a record of the console")
}

/// Opens a value that [`seal_of_console`] has sealed.
pub(crate) fn unseal_of_console<T: DeserializeOwned>(
    vault: &Vault,
    owner: &[u8],
    sealed: impl Into<Vec<u8>>,
) -> Result<T, StoreError> {
    unseal(vault, owner, sealed, "a record of the console")
}

/// Seals the name and address of a user.
pub(crate) fn seal_profile(vault: &Vault, id: &UserId, profile: &Profile) -> Result<Vec<u8>, StoreError> {
    seal(vault, id.as_str().as_bytes(), profile, "a user")
}

/// Opens the name and address of a user.
pub(crate) fn unseal_profile(vault: &Vault, id: &UserId, sealed: impl Into<Vec<u8>>) -> Result<Profile, StoreError> {
    unseal(vault, id.as_str().as_bytes(), sealed, "a user")
}

/// Seals the credential of a user.
pub(crate) fn seal_credential(vault: &Vault, id: &UserId, credential: &Credential) -> Result<Vec<u8>, StoreError> {
    seal(vault, id.as_str().as_bytes(), credential, "the credential of a user")
}

/// Opens the credential of a user.
pub(crate) fn unseal_credential(
    vault: &Vault,
    id: &UserId,
    sealed: impl Into<Vec<u8>>,
) -> Result<Credential, StoreError> {
    unseal(vault, id.as_str().as_bytes(), sealed, "the credential of a user")
}

/// Seals the part of a session that is stored sealed.
pub(crate) fn seal_grant(vault: &Vault, digest: SessionDigest, grant: &SessionGrant) -> Result<Vec<u8>, StoreError> {
    seal(vault, &digest.0, grant, "a session")
}

/// Opens the sealed part of a session.
pub(crate) fn unseal_grant(
    vault: &Vault,
    digest: SessionDigest,
    sealed: impl Into<Vec<u8>>,
) -> Result<SessionGrant, StoreError> {
    unseal(vault, &digest.0, sealed, "a session")
}

/// Seals the URLs that an app has registered.
pub(crate) fn seal_urls(vault: &Vault, app: &AppId, urls: &RegisteredUrls) -> Result<Vec<u8>, StoreError> {
    seal(vault, app.as_str().as_bytes(), urls, "the webhook URLs of an app")
}

/// Opens the URLs that an app has registered.
pub(crate) fn unseal_urls(
    vault: &Vault,
    app: &AppId,
    sealed: impl Into<Vec<u8>>,
) -> Result<RegisteredUrls, StoreError> {
    unseal(vault, app.as_str().as_bytes(), sealed, "the webhook URLs of an app")
}

/// Seals the state of a flow or of a fetch under it, or the URL of a flow's delivery.
pub(crate) fn seal_of_flow(vault: &Vault, id: FlowId, value: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    seal(vault, id.as_bytes(), value, "a flow")
}

/// Opens a value that [`seal_of_flow`] has sealed.
pub(crate) fn unseal_of_flow<T: DeserializeOwned>(
    vault: &Vault,
    id: FlowId,
    sealed: impl Into<Vec<u8>>,
) -> Result<T, StoreError> {
    unseal(vault, id.as_bytes(), sealed, "a flow")
}

/// Opens the terms of an event.
pub(crate) fn unseal_event(vault: &Vault, id: EventId, sealed: impl Into<Vec<u8>>) -> Result<EventTerms, StoreError> {
    unseal(vault, id.as_bytes(), sealed, "the terms of an event")
}

/// Opens the URL that a delivery copied, sealed, from its event.
pub(crate) fn unseal_webhook(vault: &Vault, id: EventId, sealed: impl Into<Vec<u8>>) -> Result<WebhookUrl, StoreError> {
    unseal(vault, id.as_bytes(), sealed, "the address of an event")
}

/// The sealed terms of an event, with plain copies of the values that guards compare.
pub(crate) struct SealedTerms {
    pub(crate) is_active: bool,
    pub(crate) expires_at: Timestamp,
    pub(crate) max_guests: u32,
    /// Maximum number of scans; `u32::MAX` without a budget.
    pub(crate) budget: u32,
    /// The webhook's URL without its path.
    pub(crate) origin: Option<String>,
    /// The sealed URL of the webhook.
    pub(crate) webhook: Option<Vec<u8>>,
    /// The sealed terms.
    pub(crate) terms: Vec<u8>,
}

impl SealedTerms {
    /// Seals the terms of an event, and copies the values that guards compare.
    pub(crate) fn seal(vault: &Vault, id: EventId, terms: &EventTerms) -> Result<Self, StoreError> {
        let webhook = terms.webhook_url.as_ref();
        Ok(Self {
            is_active: terms.is_active,
            expires_at: terms.expires_at,
            max_guests: terms.max_guests.get(),
            budget: terms.credit_budget.map_or(u32::MAX, CreditBudget::get),
            origin: webhook.map(|url| url.origin()),
            webhook: webhook.map(|url| seal(vault, id.as_bytes(), url, "the address of an event")).transpose()?,
            terms: seal(vault, id.as_bytes(), terms, "the terms of an event")?,
        })
    }
}
