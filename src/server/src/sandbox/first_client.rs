//! The sandbox's first client, created at the first start, so that the first request needs no operator. Its key is
//! shown once and not stored.

use std::io;

use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::ids::{AppId, ClientId, KeyId};
use sakshi_domain::network::Networks;
use sakshi_domain::tenancy::{ApiKeyRecord, App, Client, KeyCase};
use sakshi_domain::time::Timestamp;
use sakshi_service::api_key::ApiKey;
use sakshi_store::{PageRequest, Store, StoreError};

/// Initial credits of the sandbox's client.
const CREDITS: i64 = 1_000;
const NAME: &str = "Sandbox client";

/// Credentials for a client backend's first request.
#[derive(Debug)]
pub struct FirstClient {
    /// The client whose credits are spent.
    pub client: ClientId,
    /// Value of `X-API-APP-ID`.
    pub app: AppId,
    /// Value of `X-API-KEY`.
    pub key: ApiKey,
}

/// Error of the first client's creation.
#[derive(Debug, thiserror::Error)]
pub enum FirstClientError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system's random source failed.
    #[error("the API key could not be generated: {0}")]
    Key(io::Error),
}

/// Creates the client unless the store has clients already. A start that ended in between leaves the client without a
/// key; the next one completes it.
///
/// # Errors
/// The store or the random source failed.
pub async fn ensure(store: &Store, now: Timestamp) -> Result<Option<FirstClient>, FirstClientError> {
    let clients = store.list_clients(PageRequest { page: 1, page_size: 1 }).await?;
    let client_id = match clients.items.into_iter().next() {
        None => {
            let client = Client::new(ClientId::generate(), NAME.to_owned(), now);
            store.create_client(client.clone()).await?;
            client.client_id
        }
        Some(client) if clients.total > 1 || client.name != NAME => return Ok(None),
        Some(Client { client_id, .. }) => {
            if !store.list_keys(client_id.clone()).await?.is_empty() {
                return Ok(None);
            }
            client_id
        }
    };
    let app = match store.list_apps(client_id.clone()).await?.into_iter().next() {
        Some(app) => app.app_id,
        None => create_app(store, client_id.clone(), now).await?,
    };
    let grant = CreditMove { kind: EntryKind::Grant, amount: CREDITS, reference: "sandbox-start".to_owned() };
    store.move_credits(client_id.clone(), grant).await?;
    let (key, digest) = ApiKey::issue().ok_or_else(|| FirstClientError::Key(io::ErrorKind::Other.into()))?;
    let record = ApiKeyRecord {
        key_id: KeyId::generate(),
        client_id: client_id.clone(),
        label: "sandbox".to_owned(),
        environments: Vec::new(),
        networks: Networks::default(),
        created_at: now,
        expires_at: None,
        revoked_at: None,
    };
    // Last, because a client with a key is complete.
    store.create_key(record, digest).await?;
    Ok(Some(FirstClient { client: client_id, app, key }))
}

/// Creates the client's app, and returns its id.
async fn create_app(store: &Store, client_id: ClientId, now: Timestamp) -> Result<AppId, StoreError> {
    let app_id = AppId::generate();
    let app = App {
        app_id: app_id.clone(),
        client_id,
        name: "Sandbox app".to_owned(),
        payload_spelling: KeyCase::SnakeCase,
        evidence: false,
        consent_webhook_url: None,
        data_webhook_url: None,
        historical_webhook_url: None,
        created_at: now,
    };
    store.create_app(app).await?;
    Ok(app_id)
}
