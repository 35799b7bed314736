//! Handing a client over: an import is one transaction.

use rusqlite::params;
use sakshi_domain::client_transfer::{ClientImport, ClientTransfer, ImportedRecord, KnownClient, TransferredKey};
use sakshi_domain::ids::{ClientId, KeyId};
use sakshi_domain::invalid::Invalid;
use sakshi_domain::tenancy::{Client, KeyDigest};
use sakshi_domain::time::Timestamp;

use super::credits::account;
use super::database::statements::Database;
use super::rows::{optional_time, parsed};
use super::store::EmbeddedStore;
use super::tenancy::{apps_of, find_app, find_client, key};
use crate::error::{StoreError, StoreFuture};
use crate::sealing::seal_app;
use crate::tenancy::join_environments;
use crate::transfers::Transfers;

const IMPORTED: &str = "SELECT imported_at FROM clients WHERE client_id = ?1";
const KEYS: &str = "SELECT k.key_id, c.client_id, k.label, k.environments, k.created_at, k.expires_at, k.revoked_at, k.digest \
     FROM keys k JOIN clients c ON c.row = k.client WHERE k.client = ?1 ORDER BY k.created_at, k.row";
const KEY: &str = "SELECT k.key_id, c.client_id, k.label, k.environments, k.created_at, k.expires_at, k.revoked_at, k.digest \
     FROM keys k JOIN clients c ON c.row = k.client WHERE k.key_id = ?1";
const KEY_ID: &str = "SELECT key_id FROM keys WHERE digest = ?1";
const PUT_CLIENT: &str = "INSERT INTO clients (client_id, name, created_at, imported_at) VALUES (?1, ?2, ?3, ?4) \
     ON CONFLICT (client_id) DO UPDATE SET name = ?2, imported_at = coalesce(imported_at, ?4)";
const PUT_APP: &str = "INSERT INTO apps (app_id, client, created_at, record) VALUES (?1, ?2, ?3, ?4) \
     ON CONFLICT (app_id) DO UPDATE SET record = ?4";
const PUT_KEY: &str = "INSERT INTO keys (key_id, digest, client, label, environments, created_at, expires_at, revoked_at) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) \
     ON CONFLICT (key_id) DO UPDATE SET label = ?4, environments = ?5, expires_at = ?7, revoked_at = ?8";

impl Transfers for EmbeddedStore {
    fn export_client(&self, client: ClientId) -> StoreFuture<Option<ClientTransfer>> {
        self.read(move |db| {
            let (Some(known), Some(account)) = (find_client(db, &client)?, account(db, &client)?) else { return Ok(None) };
            let apps = apps_of(db, account.row)?.into_iter().map(Into::into).collect();
            Ok(Some(ClientTransfer { client: known, apps, keys: db.all(KEYS, [account.row], key_and_digest)? }))
        })
    }

    fn import_client(&self, transfer: ClientTransfer, at: Timestamp) -> StoreFuture<Result<Vec<ImportedRecord>, Invalid>> {
        self.write(0, move |db| {
            let import = match transfer.onto(&known(db, &transfer)?) {
                Ok(import) => import,
                Err(invalid) => return Ok(Err(invalid)),
            };
            if import.does_something() {
                put(db, &import, at)?;
            }
            Ok(Ok(import.records))
        })
    }

    fn imported_at(&self, client: ClientId) -> StoreFuture<Option<Timestamp>> {
        self.read(move |db| Ok(db.first(IMPORTED, [client.as_str()], |row| optional_time(row, 0))?.flatten()))
    }
}

fn key_and_digest(row: &rusqlite::Row<'_>) -> rusqlite::Result<TransferredKey> {
    Ok(TransferredKey { key: key(row)?, digest: KeyDigest(row.get(7)?) })
}

/// What the file has under the ids and digests of a transfer.
fn known(db: &Database, transfer: &ClientTransfer) -> rusqlite::Result<KnownClient> {
    let key = |sent: &TransferredKey| {
        let by_digest: Option<KeyId> = db.first(KEY_ID, [sent.digest.0], |row| parsed(row, 0))?;
        Ok((db.first(KEY, [sent.key.key_id.as_str()], key_and_digest)?, by_digest))
    };
    Ok(KnownClient {
        client: find_client(db, &transfer.client.client_id)?,
        apps: transfer.apps.iter().map(|app| find_app(db, &app.app_id)).collect::<Result<_, _>>()?,
        keys: transfer.keys.iter().map(key).collect::<rusqlite::Result<_>>()?,
    })
}

fn put(db: &Database, import: &ClientImport, at: Timestamp) -> rusqlite::Result<()> {
    let Client { client_id, name, created_at, .. } = &import.client;
    db.change(PUT_CLIENT, params![client_id.as_str(), name, created_at.millis(), at.millis()])?;
    let Some(client) = account(db, client_id)? else { return Err(StoreError::unreadable("a client").into()) };
    for app in &import.apps {
        let record = seal_app(&db.vault, app)?;
        db.change(PUT_APP, params![app.app_id.as_str(), client.row, app.created_at.millis(), record])?;
    }
    for TransferredKey { key, digest } in &import.keys {
        let (expires_at, revoked_at) = (key.expires_at.map(Timestamp::millis), key.revoked_at.map(Timestamp::millis));
        let environments = join_environments(&key.environments);
        let (id, created_at) = (key.key_id.as_str(), key.created_at.millis());
        db.change(PUT_KEY, params![id, digest.0, client.row, key.label, environments, created_at, expires_at, revoked_at])?;
    }
    Ok(())
}
