//! Clients, their apps, their API keys, and the webhook URLs that an app has registered.

use sakshi_domain::flow::api_type::{ApiType, RegisteredUrls};
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::{AppId, ClientId, KeyId};
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::{ApiKeyRecord, App, AppPatch, Client, ClientLimits, ClientPatch, KeyDigest};
use sakshi_domain::time::Timestamp;

use crate::error::{StoreError, StoreFuture};
use crate::paging::{Page, PageRequest};

/// Clients, apps and keys.
pub trait Tenancy {
    /// Creates a client. Repeatable by client id.
    fn create_client(&self, client: Client) -> StoreFuture<()>;

    /// All clients by creation time.
    fn list_clients(&self, page: PageRequest) -> StoreFuture<Page<Client>>;

    /// The client.
    fn load_client(&self, client: ClientId) -> StoreFuture<Option<Client>>;

    /// Changes a client at this time; `None` when there is no such client.
    fn patch_client(&self, client: ClientId, patch: ClientPatch, at: Timestamp) -> StoreFuture<Option<Client>>;

    /// Creates an app; `false` when its client does not exist. Repeatable by app id.
    fn create_app(&self, app: App) -> StoreFuture<bool>;

    /// The app.
    fn load_app(&self, app: AppId) -> StoreFuture<Option<App>>;

    /// Changes an app; `None` when there is no such app.
    fn patch_app(&self, app: AppId, patch: AppPatch) -> StoreFuture<Option<App>>;

    /// The apps of a client by creation time.
    fn list_apps(&self, client: ClientId) -> StoreFuture<Vec<App>>;

    /// Stores a key's digest; `false` when its client does not exist. Repeatable by key id.
    fn create_key(&self, key: ApiKeyRecord, digest: KeyDigest) -> StoreFuture<bool>;

    /// The keys of a client by creation time, revoked ones included.
    fn list_keys(&self, client: ClientId) -> StoreFuture<Vec<ApiKeyRecord>>;

    /// Changes when a key stops working: `revoked_at` at once, `expires_at` later; with neither, the
    /// key is only read. `None` when there is no such key. A key that is revoked stays revoked as of the first time, and of two
    /// expiry times the earlier one stands.
    fn retire_key(&self, key: KeyId, revoked_at: Option<Timestamp>, expires_at: Option<Timestamp>) -> StoreFuture<Option<ApiKeyRecord>>;

    /// The key with this digest, with its client and an app.
    fn find_key(&self, digest: KeyDigest, app: AppId) -> StoreFuture<Option<KeyGrant>>;

    /// Registers where webhooks of an API type go, or removes the URL; what the app has registered
    /// from now on, or `None` when there is no such app.
    fn set_webhook_url(&self, app: AppId, api_type: ApiType, url: Option<WebhookUrl>) -> StoreFuture<Option<RegisteredUrls>>;

    /// The URLs that the app has registered.
    fn webhook_urls(&self, app: AppId) -> StoreFuture<Option<RegisteredUrls>>;
}

/// Everything needed to judge an API key and app pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyGrant {
    /// The key.
    pub key: ApiKeyRecord,
    /// Whose it is.
    pub client: Client,
    /// The app, if it exists; it may belong to another client.
    pub app: Option<App>,
}

/// The environments of a key as they are stored: one word each.
pub(crate) fn join_environments(environments: &[Profile]) -> String {
    environments.iter().map(|profile| profile.as_str()).collect::<Vec<_>>().join(" ")
}

/// The environments in a stored text.
pub(crate) fn parse_environments(text: &str) -> Result<Vec<Profile>, StoreError> {
    let environments = text.split_terminator(' ').map(|word| word.parse().ok()).collect::<Option<_>>();
    environments.ok_or_else(|| StoreError::unreadable("the environments of a key"))
}

/// The limits of a client as they are stored; nothing when there are none.
pub(crate) fn limits_text(limits: &ClientLimits) -> Option<String> {
    if *limits == ClientLimits::default() {
        return None;
    }
    serde_json::to_string(limits).ok()
}

/// The limits in a stored text.
pub(crate) fn parse_limits(text: &str) -> Result<ClientLimits, StoreError> {
    serde_json::from_str(text).map_err(|_| StoreError::unreadable("the limits of a client"))
}
