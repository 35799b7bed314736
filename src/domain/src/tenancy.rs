//! Callers: clients, their apps, and their API keys.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::brand::{Brand, BrandPatch};
use crate::http_url::HttpUrl;
use crate::ids::{AppId, ClientId, KeyId};
use crate::network::Networks;
use crate::profile::Profile;
use crate::retention::ClientRetention;
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
    /// The id.
    pub client_id: ClientId,
    /// The name, shown to people as the requester.
    pub name: String,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of suspension.
    pub suspended_at: Option<Timestamp>,
    /// The limits.
    pub limits: ClientLimits,
    /// The brand.
    pub brand: Brand,
    /// True if users may sign in to the portal with an API key.
    pub portal_key_sign_in: bool,
}

/// Limits of a client. Where a limit is not set, that of the settings applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientLimits {
    /// API requests per second of all apps together, at each node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<NonZeroU32>,
    /// Events per app, including ended events until they are deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events_per_app: Option<u32>,
    /// Number of credits below which the balance counts as low.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low_credits: Option<u64>,
    /// Retention of shared data.
    #[serde(skip_serializing_if = "ClientRetention::is_usual")]
    pub retention: ClientRetention,
}

impl ClientLimits {
    /// Returns true if a balance counts as low; `usual` is the threshold of the settings.
    #[must_use]
    pub fn is_low(&self, balance: u64, usual: u64) -> bool {
        balance < self.low_credits.unwrap_or(usual)
    }
}

/// A change to a client: `None` leaves a field unchanged, `Some(None)` removes a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientPatch {
    /// A new name.
    pub name: Option<String>,
    /// Suspend or resume.
    pub suspended: Option<bool>,
    /// A new limit of requests.
    pub requests_per_second: Option<Option<NonZeroU32>>,
    /// A new limit of events.
    pub events_per_app: Option<Option<u32>>,
    /// A new threshold of credits.
    pub low_credits: Option<Option<u64>>,
    /// A new retention of results.
    pub result_ttl_s: Option<Option<NonZeroU32>>,
    /// A new retention of events with their guests.
    pub registration_ttl_days: Option<Option<NonZeroU32>>,
    /// Changes of the brand.
    pub brand: BrandPatch,
    /// Allow or forbid sign-in with an API key.
    pub portal_key_sign_in: Option<bool>,
}

impl Client {
    /// Creates a client that is neither suspended nor limited.
    #[must_use]
    pub fn new(client_id: ClientId, name: String, created_at: Timestamp) -> Self {
        Self {
            client_id,
            name,
            created_at,
            suspended_at: None,
            limits: ClientLimits::default(),
            brand: Brand::default(),
            portal_key_sign_in: true,
        }
    }

    /// Applies a change at `now`. A suspended client keeps its first time of suspension.
    pub fn apply(&mut self, patch: ClientPatch, now: Timestamp) {
        self.name = patch.name.unwrap_or_else(|| std::mem::take(&mut self.name));
        match patch.suspended {
            Some(true) => self.suspended_at = self.suspended_at.or(Some(now)),
            Some(false) => self.suspended_at = None,
            None => {}
        }
        self.brand.apply(patch.brand);
        self.portal_key_sign_in = patch.portal_key_sign_in.unwrap_or(self.portal_key_sign_in);
        let limits = &mut self.limits;
        limits.requests_per_second = patch.requests_per_second.unwrap_or(limits.requests_per_second);
        limits.events_per_app = patch.events_per_app.unwrap_or(limits.events_per_app);
        limits.low_credits = patch.low_credits.unwrap_or(limits.low_credits);
        let retention = &mut limits.retention;
        retention.result_ttl_s = patch.result_ttl_s.unwrap_or(retention.result_ttl_s);
        retention.registration_ttl_days = patch.registration_ttl_days.unwrap_or(retention.registration_ttl_days);
    }
}

/// An application of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct App {
    /// The id, sent as `X-API-APP-ID`.
    pub app_id: AppId,
    /// The client that owns the app.
    pub client_id: ClientId,
    /// The name, shown to people below the client's name.
    pub name: String,
    /// The case of the keys in `data` of results and webhooks.
    pub payload_spelling: KeyCase,
    /// True if evidence is stored by default; a request may override it.
    #[serde(default)]
    pub evidence: bool,
    /// URL for the webhooks of wealth-data consents.
    pub consent_webhook_url: Option<HttpUrl>,
    /// URL for the webhooks of wealth data.
    pub data_webhook_url: Option<HttpUrl>,
    /// URL for the webhooks of historical wealth data.
    pub historical_webhook_url: Option<HttpUrl>,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// A change to an app: `None` leaves a field unchanged, `Some(None)` removes a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppPatch {
    /// A new case of keys.
    pub payload_spelling: Option<KeyCase>,
    /// Store evidence by default, or not.
    pub evidence: Option<bool>,
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
        self.evidence = patch.evidence.unwrap_or(self.evidence);
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyDigest(pub [u8; 32]);

/// A stored API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKeyRecord {
    /// The id, which is not secret.
    pub key_id: KeyId,
    /// The client that owns the key.
    pub client_id: ClientId,
    /// The description for operators.
    pub label: String,
    /// The environments in which the key is valid; empty means all.
    pub environments: Vec<Profile>,
    /// The networks from which the key may be used; empty means all.
    pub networks: Networks,
    /// Time of issue.
    pub created_at: Timestamp,
    /// Time of expiry.
    pub expires_at: Option<Timestamp>,
    /// Time of revocation.
    pub revoked_at: Option<Timestamp>,
}

impl ApiKeyRecord {
    /// Returns true if the key is valid at `now` in this environment.
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
    fn a_suspension_keeps_its_first_time_and_limits_can_be_removed() {
        let at = Timestamp::from_millis;
        let mut client = Client::new(ClientId::generate(), "Acme".into(), at(0));
        client.apply(
            ClientPatch { suspended: Some(true), events_per_app: Some(Some(3)), ..ClientPatch::default() },
            at(1),
        );
        client.apply(
            ClientPatch { suspended: Some(true), name: Some("Acme Bank".into()), ..ClientPatch::default() },
            at(2),
        );
        assert_eq!(
            (client.suspended_at, client.name.as_str(), client.limits.events_per_app),
            (Some(at(1)), "Acme Bank", Some(3))
        );
        client
            .apply(ClientPatch { suspended: Some(false), events_per_app: Some(None), ..ClientPatch::default() }, at(3));
        assert_eq!((client.suspended_at, client.limits), (None, ClientLimits::default()));
    }

    #[test]
    fn a_key_is_valid_unless_expired_revoked_or_for_another_environment() {
        let at = Timestamp::from_millis;
        let key = ApiKeyRecord {
            key_id: KeyId::generate(),
            client_id: ClientId::generate(),
            label: String::new(),
            environments: vec![],
            networks: Networks::default(),
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
