//! Clients and their apps.

use std::num::NonZeroU32;

use sakshi_domain::brand::BrandPatch;
use sakshi_domain::http_url::{HttpUrl, Schemes};
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_domain::tenancy::{App, AppPatch, Client, ClientPatch, KeyCase};
use sakshi_domain::time::Timestamp;

use crate::body::{Field, body, described};
use crate::fields::Place;
use crate::json::Json;
use crate::text::{Change, Label, Whole};

body! { request
    /// A client to be created.
    #[derive(Clone, PartialEq)]
    pub struct CreateClientRequest {
        /// The name, which people who are verified read as the requester.
        name: Label,
    }
}

/// The highest limit of requests.
const RATE_MAX: u64 = 1_000_000;
/// The highest limit of events.
const EVENTS_MAX: u64 = 1_000_000;
/// The highest threshold of credits: the largest integer that a JSON number holds without loss.
const CREDITS_MAX: u64 = (1 << 53) - 1;

/// The maximum of `ovse.result_ttl_s`.
const RESULT_TTL_MAX: u64 = 366 * 86_400;
/// The maximum of `ovse.registration_ttl_days`.
const REGISTRATION_TTL_MAX: u64 = 3_660;

body! { request
    /// A change of a client; null removes a limit.
    #[derive(Clone, Default, PartialEq)]
    pub struct PatchClientRequest {
        /// The name.
        name: Change<Label>,
        /// True if its keys are refused and its events take no guests.
        suspended: Change<bool>,
        /// Requests to the API per second, of all its apps together, at each node.
        requests_per_second: Change<Option<Whole<1, RATE_MAX>>>,
        /// Events of each of its apps, including ended ones that are still kept.
        events_per_app: Change<Option<Whole<0, EVENTS_MAX>>>,
        /// The number of credits below which its balance is low.
        low_credits: Change<Option<Whole<0, CREDITS_MAX>>>,
        /// Seconds for which results are kept, at most as the settings say. Applies to what begins later.
        result_ttl_s: Change<Option<Whole<1, RESULT_TTL_MAX>>>,
        /// Days for which events are kept after their end, at most as the settings say. Applies to events created
        /// later.
        registration_ttl_days: Change<Option<Whole<1, REGISTRATION_TTL_MAX>>>,
        /// True if its people may sign in to the portal with an API key.
        portal_key_sign_in: Change<bool>,
    }
}

impl PatchClientRequest {
    /// Returns the change.
    #[must_use]
    pub fn patch(self) -> ClientPatch {
        // The bounds of the fields are below those of these types.
        let small = |Whole(most): Whole<0, EVENTS_MAX>| u32::try_from(most).unwrap_or(u32::MAX);
        let positive = |most: u64| u32::try_from(most).ok().and_then(NonZeroU32::new);
        ClientPatch {
            name: self.name.0.map(|name| name.0.0),
            suspended: self.suspended.0,
            requests_per_second: self.requests_per_second.0.map(|most| most.and_then(|most| positive(most.0))),
            events_per_app: self.events_per_app.0.map(|most| most.map(small)),
            low_credits: self.low_credits.0.map(|most| most.map(|most| most.0)),
            result_ttl_s: self.result_ttl_s.0.map(|seconds| seconds.and_then(|seconds| positive(seconds.0))),
            registration_ttl_days: self.registration_ttl_days.0.map(|days| days.and_then(|days| positive(days.0))),
            brand: BrandPatch::default(),
            portal_key_sign_in: self.portal_key_sign_in.0,
        }
    }
}

body! { answer
    /// A client that was created.
    pub struct CreateClientResponse {
        /// Identifies the client.
        client_id: ClientId,
    }
}

body! { answer
    /// A page of clients.
    pub struct ClientsPage {
        /// From 1.
        page: u32,
        /// Rows of a page.
        page_size: u32,
        /// Clients on all pages.
        total: u64,
        /// Oldest first.
        clients: Vec<ClientResponse>,
        /// Path and query of the next page; absent on the last.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        next: Option<String>,
    }
}

body! { answer
    /// A client.
    #[derive(Clone)]
    pub struct ClientResponse {
        /// Identifies the client.
        client_id: ClientId,
        /// The name.
        name: String,
        /// The time of creation.
        created_at: Timestamp,
        /// The time since which it is suspended: its keys are refused, and its events take no guests.
        suspended_at: Option<Timestamp>,
        /// Requests to the API per second, of all its apps together, at each node.
        requests_per_second: Option<Whole<1, RATE_MAX>>,
        /// Events of each of its apps, including ended ones that are still kept.
        events_per_app: Option<Whole<0, EVENTS_MAX>>,
        /// The number of credits below which its balance is low.
        low_credits: Option<Whole<0, CREDITS_MAX>>,
        /// Seconds for which results are kept, if fewer than the settings say.
        result_ttl_s: Option<Whole<1, RESULT_TTL_MAX>>,
        /// Days for which events are kept after their end, if fewer than the settings say.
        registration_ttl_days: Option<Whole<1, REGISTRATION_TTL_MAX>>,
        /// True if its people may sign in to the portal with an API key.
        portal_key_sign_in: bool,
    }
}

impl From<Client> for ClientResponse {
    fn from(client: Client) -> Self {
        let Client { client_id, name, created_at, suspended_at, limits, brand: _, portal_key_sign_in } = client;
        Self {
            client_id,
            name,
            created_at,
            suspended_at,
            requests_per_second: limits.requests_per_second.map(|most| Whole(most.get().into())),
            events_per_app: limits.events_per_app.map(|most| Whole(most.into())),
            low_credits: limits.low_credits.map(Whole),
            result_ttl_s: limits.retention.result_ttl_s.map(|seconds| Whole(seconds.get().into())),
            registration_ttl_days: limits.retention.registration_ttl_days.map(|days| Whole(days.get().into())),
            portal_key_sign_in,
        }
    }
}

body! { request
    /// An app to be created.
    #[derive(Clone, PartialEq)]
    pub struct CreateAppRequest {
        /// The operator's name for it.
        name: Label,
    }
}

body! { answer
    /// An app that was created.
    pub struct CreateAppResponse {
        /// Identifies the app.
        app_id: AppId,
    }
}

body! { request
    /// A change of an app; null removes a URL.
    #[derive(Clone, Default, PartialEq)]
    pub struct PatchAppRequest {
        /// The spelling of the keys in its payloads.
        payload_spelling: Change<KeyCase>,
        /// Keep evidence of each verification that `init` opens without saying otherwise.
        evidence: Change<bool>,
        /// Receives changes of wealth-data consents.
        consent_webhook_url: Change<Option<HttpUrl>>,
        /// Receives wealth data.
        data_webhook_url: Change<Option<HttpUrl>>,
        /// Receives historical wealth data.
        historical_webhook_url: Change<Option<HttpUrl>>,
    }
}

impl PatchAppRequest {
    /// Returns the change.
    #[must_use]
    pub fn patch(self) -> AppPatch {
        AppPatch {
            payload_spelling: self.payload_spelling.0,
            evidence: self.evidence.0,
            consent_webhook_url: self.consent_webhook_url.0,
            data_webhook_url: self.data_webhook_url.0,
            historical_webhook_url: self.historical_webhook_url.0,
        }
    }
}

body! { answer
    /// The apps of a client.
    pub struct AppsResponse {
        /// All of them.
        apps: Vec<AppResponse>,
    }
}

body! { answer
    /// An app.
    #[derive(Clone)]
    pub struct AppResponse {
        /// Identifies the app; its client sends it as `X-API-APP-ID`.
        app_id: AppId,
        /// The client that owns it.
        client_id: ClientId,
        /// The operator's name for it.
        name: String,
        /// The spelling of the keys in its payloads.
        payload_spelling: KeyCase,
        /// True if evidence is kept of each verification that `init` opens without saying otherwise.
        evidence: bool,
        /// Receives changes of wealth-data consents.
        consent_webhook_url: Option<HttpUrl>,
        /// Receives wealth data.
        data_webhook_url: Option<HttpUrl>,
        /// Receives historical wealth data.
        historical_webhook_url: Option<HttpUrl>,
        /// The time of creation.
        created_at: Timestamp,
    }
}

impl From<App> for AppResponse {
    fn from(app: App) -> Self {
        Self {
            app_id: app.app_id,
            client_id: app.client_id,
            name: app.name,
            payload_spelling: app.payload_spelling,
            evidence: app.evidence,
            consent_webhook_url: app.consent_webhook_url,
            data_webhook_url: app.data_webhook_url,
            historical_webhook_url: app.historical_webhook_url,
            created_at: app.created_at,
        }
    }
}

impl AppResponse {
    /// Returns it with each URL cut to its origin.
    #[must_use]
    pub fn without_paths(self) -> Self {
        let origin =
            |url: Option<HttpUrl>| url.and_then(|url| HttpUrl::parse(&url.origin(), Schemes::HttpAndHttps).ok());
        Self {
            consent_webhook_url: origin(self.consent_webhook_url),
            data_webhook_url: origin(self.data_webhook_url),
            historical_webhook_url: origin(self.historical_webhook_url),
            ..self
        }
    }
}

impl Field for KeyCase {
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self> {
        place.one_of(&value, [("snake_case", Self::SnakeCase), ("camelCase", Self::CamelCase)])
    }
}

described! { KeyCase: { "type": "string", "enum": ["snake_case", "camelCase"] } }
