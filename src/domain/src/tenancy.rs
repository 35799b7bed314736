//! Who may call: clients, their apps, and their API keys.

use serde::{Deserialize, Serialize};

use crate::http_url::HttpUrl;
use crate::ids::{AppId, ClientId, KeyId};
use crate::profile::Profile;
use crate::time::Timestamp;

/// The case of the keys in `data` of results and webhooks; the specification shows both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum KeyCase {
    /// `txn_id`, as on the webhooks page; the default.
    #[default]
    #[serde(rename = "snake_case")]
    SnakeCase,
    /// `txnId`, as in the reference.
    #[serde(rename = "camelCase")]
    CamelCase,
}

/// A paying client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// Its id.
    pub client_id: ClientId,
    /// Its name among operators.
    pub name: String,
    /// When it was created.
    pub created_at: Timestamp,
}

/// An application of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct App {
    /// Its id, sent as `X-API-APP-ID`.
    pub app_id: AppId,
    /// The client that it belongs to.
    pub client_id: ClientId,
    /// Its name among operators.
    pub name: String,
    /// The case of the keys in its payloads.
    pub payload_spelling: KeyCase,
    /// Receives the webhooks of wealth-data consents.
    pub consent_webhook_url: Option<HttpUrl>,
    /// Receives the webhooks of wealth data.
    pub data_webhook_url: Option<HttpUrl>,
    /// Receives the webhooks of historical wealth data.
    pub historical_webhook_url: Option<HttpUrl>,
    /// When it was created.
    pub created_at: Timestamp,
}

/// A change to an app: `None` leaves a field unchanged, `Some(None)` removes a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppPatch {
    /// A new case of keys.
    pub payload_spelling: Option<KeyCase>,
    /// A new URL for consents.
    pub consent_webhook_url: Option<Option<HttpUrl>>,
    /// A new URL for data.
    pub data_webhook_url: Option<Option<HttpUrl>>,
    /// A new URL for historical data.
    pub historical_webhook_url: Option<Option<HttpUrl>>,
}

impl App {
    /// Applies a change.
    pub fn apply(&mut self, patch: AppPatch) {
        self.payload_spelling = patch.payload_spelling.unwrap_or(self.payload_spelling);
        let urls = [
            (&mut self.consent_webhook_url, patch.consent_webhook_url),
            (&mut self.data_webhook_url, patch.data_webhook_url),
            (&mut self.historical_webhook_url, patch.historical_webhook_url),
        ];
        for (current, change) in urls {
            if let Some(url) = change {
                *current = url;
            }
        }
    }
}

/// SHA-256 of an API key; the key itself is never stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyDigest(pub [u8; 32]);

/// An API key as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKeyRecord {
    /// Its name among operators.
    pub key_id: KeyId,
    /// The client that holds it.
    pub client_id: ClientId,
    /// Its description among operators.
    pub label: String,
    /// The environments in which it is valid; empty means all.
    pub environments: Vec<Profile>,
    /// When it was issued.
    pub created_at: Timestamp,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

impl ApiKeyRecord {
    /// Whether the key is valid at `now` in this environment.
    #[must_use]
    pub fn is_valid(&self, now: Timestamp, profile: Profile) -> bool {
        let current = self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end);
        current && (self.environments.is_empty() || self.environments.contains(&profile))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_works_everywhere_unless_issued_for_one_environment_expired_or_revoked() {
        let at = Timestamp::from_millis;
        let key = ApiKeyRecord {
            key_id: KeyId::generate(),
            client_id: ClientId::generate(),
            label: String::new(),
            environments: vec![],
            created_at: at(0),
            expires_at: Some(at(10)),
            revoked_at: None,
        };
        assert!(key.is_valid(at(9), Profile::Production) && key.is_valid(at(9), Profile::Stage));
        assert!(!key.is_valid(at(10), Profile::Production));
        let stage = ApiKeyRecord { environments: vec![Profile::Stage], ..key.clone() };
        assert!(!stage.is_valid(at(1), Profile::Production));
        let revoked = ApiKeyRecord { revoked_at: Some(at(1)), ..key };
        assert!(!revoked.is_valid(at(1), Profile::Stage));
    }
}
