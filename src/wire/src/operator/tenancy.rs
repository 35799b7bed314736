//! Clients and their apps.

use std::num::NonZeroU32;

use sakshi_domain::brand::BrandPatch;
use sakshi_domain::http_url::{HttpUrl, Schemes};
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_domain::tenancy::{App, AppPatch, Client, ClientPatch, KeyCase};
use sakshi_domain::time::Timestamp;

use crate::body::{Field, body, described};
use crate::fields::FieldReader;
use crate::json::Json;
use crate::text::{Change, Label, Whole};

body! { request
    /// The client to create.
    #[derive(Clone, PartialEq)]
    pub struct CreateClientRequest {
        /// The name, shown to people as the requester, 1 to 100 characters.
        name: Label,
    }
}

/// The largest limit on requests per second.
const RATE_MAX: u64 = 1_000_000;
/// The largest limit on events per app.
const EVENTS_MAX: u64 = 1_000_000;
/// The largest threshold of credits: the largest integer that a JSON number represents exactly.
const CREDITS_MAX: u64 = (1 << 53) - 1;

/// The maximum of `ovse.result_ttl_s` and `flows.result_ttl_s`.
pub const RESULT_TTL_MAX: u64 = 366 * 86_400;
/// The maximum of `ovse.registration_ttl_days`.
const REGISTRATION_TTL_MAX: u64 = 3_660;

body! { request
    /// A change of a client. Absent fields stay unchanged; null removes a limit.
    #[derive(Clone, Default, PartialEq)]
    pub struct PatchClientRequest {
        /// The new name, 1 to 100 characters.
        name: Change<Label>,
        /// `true` suspends the client: its keys are refused, and its events accept no guests. `false` resumes it.
        suspended: Change<bool>,
        /// The limit on API requests per second of all apps of the client together, at each node.
        requests_per_second: Change<Option<Whole<1, RATE_MAX>>>,
        /// The limit on events per app, including ended events until they are deleted.
        events_per_app: Change<Option<Whole<0, EVENTS_MAX>>>,
        /// The number of credits below which the balance counts as low.
        low_credits: Change<Option<Whole<0, CREDITS_MAX>>>,
        /// The retention of results in seconds, at most that of the settings. Applies to later transactions and flows.
        result_ttl_s: Change<Option<Whole<1, RESULT_TTL_MAX>>>,
        /// The retention of events after their end in days, at most that of the settings. Applies to events created
        /// later.
        registration_ttl_days: Change<Option<Whole<1, REGISTRATION_TTL_MAX>>>,
        /// `true` if users may sign in to the portal with an API key.
        portal_key_sign_in: Change<bool>,
    }
}

impl PatchClientRequest {
    /// Returns the change.
    #[must_use]
    pub fn patch(self) -> ClientPatch {
        // The bounds of these fields fit into 32 bits, so neither conversion changes a number.
        let to_u32 = |Whole(limit): Whole<0, EVENTS_MAX>| u32::try_from(limit).unwrap_or(u32::MAX);
        let to_positive = |number: u64| u32::try_from(number).ok().and_then(NonZeroU32::new);
        ClientPatch {
            name: self.name.0.map(Label::into_string),
            suspended: self.suspended.0,
            requests_per_second: self.requests_per_second.0.map(|limit| limit.and_then(|limit| to_positive(limit.0))),
            events_per_app: self.events_per_app.0.map(|limit| limit.map(to_u32)),
            low_credits: self.low_credits.0.map(|threshold| threshold.map(|threshold| threshold.0)),
            result_ttl_s: self.result_ttl_s.0.map(|seconds| seconds.and_then(|seconds| to_positive(seconds.0))),
            registration_ttl_days: self.registration_ttl_days.0.map(|days| days.and_then(|days| to_positive(days.0))),
            brand: BrandPatch::default(),
            portal_key_sign_in: self.portal_key_sign_in.0,
        }
    }
}

body! { response
    /// A client that was created.
    pub struct CreateClientResponse {
        /// Identifies the client.
        client_id: ClientId,
    }
}

body! { response
    /// A page of clients.
    pub struct ClientsPage {
        /// The number of this page, from 1.
        page: u32,
        /// Clients per page.
        page_size: u32,
        /// The number of clients on all pages.
        total: u64,
        /// The clients of this page, oldest first.
        clients: Vec<ClientResponse>,
        /// Path and query of the next page; absent on the last page.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        next: Option<String>,
    }
}

body! { response
    /// A client.
    #[derive(Clone)]
    pub struct ClientResponse {
        /// Identifies the client.
        client_id: ClientId,
        /// The name, shown to people as the requester.
        name: String,
        /// The time of creation.
        created_at: Timestamp,
        /// The time of suspension, or null. Keys of a suspended client are refused, and its events accept no guests.
        suspended_at: Option<Timestamp>,
        /// The limit on API requests per second of all apps of the client together, at each node.
        requests_per_second: Option<Whole<1, RATE_MAX>>,
        /// The limit on events per app, including ended events until they are deleted.
        events_per_app: Option<Whole<0, EVENTS_MAX>>,
        /// The number of credits below which the balance counts as low.
        low_credits: Option<Whole<0, CREDITS_MAX>>,
        /// The client's own retention of results in seconds, or null for that of the settings.
        result_ttl_s: Option<Whole<1, RESULT_TTL_MAX>>,
        /// The client's own retention of events after their end in days, or null for that of the settings.
        registration_ttl_days: Option<Whole<1, REGISTRATION_TTL_MAX>>,
        /// `true` if users may sign in to the portal with an API key.
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
            requests_per_second: limits.requests_per_second.map(|limit| Whole(limit.get().into())),
            events_per_app: limits.events_per_app.map(|limit| Whole(limit.into())),
            low_credits: limits.low_credits.map(Whole),
            result_ttl_s: limits.retention.result_ttl_s.map(|seconds| Whole(seconds.get().into())),
            registration_ttl_days: limits.retention.registration_ttl_days.map(|days| Whole(days.get().into())),
            portal_key_sign_in,
        }
    }
}

body! { request
    /// The app to create.
    #[derive(Clone, PartialEq)]
    pub struct CreateAppRequest {
        /// The name of the app, 1 to 100 characters.
        name: Label,
    }
}

body! { response
    /// An app that was created.
    pub struct CreateAppResponse {
        /// Identifies the app.
        app_id: AppId,
    }
}

body! { request
    /// A change of an app. Absent fields stay unchanged; null removes a URL.
    #[derive(Clone, Default, PartialEq)]
    pub struct PatchAppRequest {
        /// The spelling of the keys in `data` of results and webhooks: `snake_case` or `camelCase`.
        payload_spelling: Change<KeyCase>,
        /// The default of `evidence` in `init`: `true` stores evidence of each verification.
        evidence: Change<bool>,
        /// Receives webhooks of wealth-data consents.
        consent_webhook_url: Change<Option<HttpUrl>>,
        /// Receives webhooks of wealth data.
        data_webhook_url: Change<Option<HttpUrl>>,
        /// Receives webhooks of historical wealth data.
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

body! { response
    /// The apps of a client.
    pub struct AppsResponse {
        /// All apps of the client.
        apps: Vec<AppResponse>,
    }
}

body! { response
    /// An app.
    #[derive(Clone)]
    pub struct AppResponse {
        /// Identifies the app. Backends send it as `X-API-APP-ID`.
        app_id: AppId,
        /// The client that owns it.
        client_id: ClientId,
        /// The name of the app.
        name: String,
        /// The spelling of the keys in `data` of results and webhooks: `snake_case` or `camelCase`.
        payload_spelling: KeyCase,
        /// The default of `evidence` in `init`: `true` stores evidence of each verification.
        evidence: bool,
        /// Receives webhooks of wealth-data consents.
        consent_webhook_url: Option<HttpUrl>,
        /// Receives webhooks of wealth data.
        data_webhook_url: Option<HttpUrl>,
        /// Receives webhooks of historical wealth data.
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
    /// Cuts each URL to its origin.
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
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        reader.one_of(&value, [("snake_case", Self::SnakeCase), ("camelCase", Self::CamelCase)])
    }
}

described! { KeyCase: { "type": "string", "enum": ["snake_case", "camelCase"] } }
