//! Clients and their apps.

use sakshi_domain::http_url::HttpUrl;
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_domain::tenancy::{App, AppPatch, Client, KeyCase};
use sakshi_domain::time::Timestamp;

use crate::body::{Field, body, described};
use crate::fields::Place;
use crate::json::Json;
use crate::text::{Change, Label};

body! { request
    /// A client to be created.
    #[derive(Clone, PartialEq)]
    pub struct CreateClientRequest {
        /// What the operator calls it.
        name: Label,
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
    }
}

body! { answer
    /// A client.
    #[derive(Clone)]
    pub struct ClientResponse {
        /// Identifies the client.
        client_id: ClientId,
        /// What the operator calls it.
        name: String,
        /// When it was created.
        created_at: Timestamp,
    }
}

impl From<Client> for ClientResponse {
    fn from(client: Client) -> Self {
        let Client { client_id, name, created_at } = client;
        Self { client_id, name, created_at }
    }
}

body! { request
    /// An app to be created.
    #[derive(Clone, PartialEq)]
    pub struct CreateAppRequest {
        /// What the operator calls it.
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
    /// What is to change of an app; null removes a URL.
    #[derive(Clone, Default, PartialEq)]
    pub struct PatchAppRequest {
        /// How its payloads are spelled.
        payload_spelling: Change<KeyCase>,
        /// Receives changes of wealth-data consents.
        consent_webhook_url: Change<Option<HttpUrl>>,
        /// Receives wealth data.
        data_webhook_url: Change<Option<HttpUrl>>,
        /// Receives historical wealth data.
        historical_webhook_url: Change<Option<HttpUrl>>,
    }
}

impl PatchAppRequest {
    /// The change.
    #[must_use]
    pub fn patch(self) -> AppPatch {
        AppPatch {
            payload_spelling: self.payload_spelling.0,
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
        /// Whose it is.
        client_id: ClientId,
        /// What the operator calls it.
        name: String,
        /// How its payloads are spelled.
        payload_spelling: KeyCase,
        /// Receives changes of wealth-data consents.
        consent_webhook_url: Option<HttpUrl>,
        /// Receives wealth data.
        data_webhook_url: Option<HttpUrl>,
        /// Receives historical wealth data.
        historical_webhook_url: Option<HttpUrl>,
        /// When it was created.
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
            consent_webhook_url: app.consent_webhook_url,
            data_webhook_url: app.data_webhook_url,
            historical_webhook_url: app.historical_webhook_url,
            created_at: app.created_at,
        }
    }
}

impl Field for KeyCase {
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self> {
        place.one_of(&value, [("snake_case", Self::SnakeCase), ("camelCase", Self::CamelCase)])
    }
}

described! { KeyCase: { "type": "string", "enum": ["snake_case", "camelCase"] } }
