//! Who may call: clients, their apps, and the keys they are given.

use serde::{Deserialize, Serialize};

use crate::http_url::HttpUrl;
use crate::ids::{AppId, ClientId, KeyId};
use crate::profile::Profile;
use crate::time::Timestamp;

/// How the `data` keys of results and webhooks are spelled for an app (the specification shows both).
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
    /// What the operator calls it.
    pub name: String,
    /// When it was created.
    pub created_at: Timestamp,
}

/// One application of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct App {
    /// Its id, sent as `X-API-APP-ID`.
    pub app_id: AppId,
    /// The client that it belongs to.
    pub client_id: ClientId,
    /// What the operator calls it.
    pub name: String,
    /// How its payloads are spelled.
    pub payload_spelling: KeyCase,
    /// Where consent changes of the wealth-data flow are reported.
    pub consent_webhook_url: Option<HttpUrl>,
    /// Where data of the wealth-data flow is reported.
    pub data_webhook_url: Option<HttpUrl>,
    /// Where historical fetches of the wealth-data flow are reported.
    pub historical_webhook_url: Option<HttpUrl>,
    /// When it was created.
    pub created_at: Timestamp,
}

/// A change to an app: `None` leaves a field as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppPatch {
    /// A new spelling.
    pub payload_spelling: Option<KeyCase>,
    /// A new consent URL, or its removal.
    pub consent_webhook_url: Option<Option<HttpUrl>>,
    /// A new data URL, or its removal.
    pub data_webhook_url: Option<Option<HttpUrl>>,
    /// A new historical URL, or its removal.
    pub historical_webhook_url: Option<Option<HttpUrl>>,
}

impl App {
    /// Applies a change.
    pub fn apply(&mut self, patch: AppPatch) {
        if let Some(spelling) = patch.payload_spelling {
            self.payload_spelling = spelling;
        }
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

/// What is stored of an API key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKeyRecord {
    /// Its name among operators.
    pub key_id: KeyId,
    /// The client that holds it.
    pub client_id: ClientId,
    /// What the operator calls it.
    pub label: String,
    /// Where it works; empty means in every environment.
    pub environments: Vec<Profile>,
    /// When it was issued.
    pub created_at: Timestamp,
    /// When it stops working by itself.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

impl ApiKeyRecord {
    /// Whether the key is good at `now` in this environment.
    #[must_use]
    pub fn is_valid(&self, now: Timestamp, profile: Profile) -> bool {
        let alive = self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end);
        alive && (self.environments.is_empty() || self.environments.contains(&profile))
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
