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
    /// Its id.
    pub client_id: ClientId,
    /// Its name, shown to people as the requester.
    pub name: String,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of suspension.
    pub suspended_at: Option<Timestamp>,
    /// Its limits.
    pub limits: ClientLimits,
    /// Its brand.
    pub brand: Brand,
    /// True if its people may sign in to the portal with an API key.
    pub portal_key_sign_in: bool,
}

/// Limits of a client. Without a value, only the limits of the settings apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientLimits {
    /// API requests per second of all its apps together, at each node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<NonZeroU32>,
    /// Events of each of its apps, including ended ones that are still kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events_per_app: Option<u32>,
    /// Threshold below which it is low on credits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low_credits: Option<u64>,
    /// Retention of shared data.
    #[serde(skip_serializing_if = "ClientRetention::is_usual")]
    pub retention: ClientRetention,
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
    /// A new time for results.
    pub result_ttl_s: Option<Option<NonZeroU32>>,
    /// A new time for events with their guests.
    pub registration_ttl_days: Option<Option<NonZeroU32>>,
    /// Changes of the brand.
    pub brand: BrandPatch,
    /// Allow sign-in with an API key, or switch it off.
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
        let kept = &mut limits.retention;
        kept.result_ttl_s = patch.result_ttl_s.unwrap_or(kept.result_ttl_s);
        kept.registration_ttl_days = patch.registration_ttl_days.unwrap_or(kept.registration_ttl_days);
    }
}

/// An application of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct App {
    /// Its id, sent as `X-API-APP-ID`.
    pub app_id: AppId,
    /// The client that it belongs to.
    pub client_id: ClientId,
    /// Its name, shown to people below the client's.
    pub name: String,
    /// The case of the keys in its payloads.
    pub payload_spelling: KeyCase,
    /// True if evidence is kept by default; a verification may override it.
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
    /// Keep evidence, or none.
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
    /// Its id for operators.
    pub key_id: KeyId,
    /// The client that holds it.
    pub client_id: ClientId,
    /// Its description for operators.
    pub label: String,
    /// The environments in which it is valid; empty means all.
    pub environments: Vec<Profile>,
    /// The networks from which it may be used; none means all.
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
    fn a_suspension_begins_once_and_limits_are_removed_by_name() {
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
    fn a_key_works_everywhere_unless_issued_for_one_environment_expired_or_revoked() {
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
