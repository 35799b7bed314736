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

/// Creates the client unless the store has clients already.
///
/// # Errors
/// The store or the random source failed.
pub async fn ensure(store: &Store, now: Timestamp) -> Result<Option<FirstClient>, FirstClientError> {
    let clients = store.list_clients(PageRequest { page: 1, page_size: 1 }).await?;
    if clients.total > 0 {
        return Ok(None);
    }
    let client = Client::new(ClientId::generate(), NAME.to_owned(), now);
    let app = App {
        app_id: AppId::generate(),
        client_id: client.client_id.clone(),
        name: "Sandbox app".to_owned(),
        payload_spelling: KeyCase::SnakeCase,
        evidence: false,
        consent_webhook_url: None,
        data_webhook_url: None,
        historical_webhook_url: None,
        created_at: now,
    };
    let (key, digest) = ApiKey::issue().ok_or_else(|| FirstClientError::Key(io::ErrorKind::Other.into()))?;
    let record = ApiKeyRecord {
        key_id: KeyId::generate(),
        client_id: client.client_id.clone(),
        label: "sandbox".to_owned(),
        environments: Vec::new(),
        networks: Networks::default(),
        created_at: now,
        expires_at: None,
        revoked_at: None,
    };
    let grant = CreditMove { kind: EntryKind::Grant, amount: CREDITS, reference: "sandbox-start".to_owned() };
    let first = FirstClient { client: client.client_id.clone(), app: app.app_id.clone(), key };
    store.create_client(client).await?;
    store.create_app(app).await?;
    store.create_key(record, digest).await?;
    store.move_credits(first.client.clone(), grant).await?;
    Ok(Some(first))
}
