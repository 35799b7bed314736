//! Clients, their apps, their keys, and registered webhook URLs.
//!
//! An app is sealed for its id, because its webhook URLs can hold secrets.

use std::sync::Arc;

use rusqlite::{Row, params};
use sakshi_domain::flow::api_type::{ApiType, RegisteredUrls};
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::{AppId, ClientId, KeyId};
use sakshi_domain::tenancy::{ApiKeyRecord, App, AppPatch, Client, KeyDigest};
use sakshi_domain::time::Timestamp;

use super::credits::account;
use super::database::statements::Database;
use super::errors::{not_sealed, unreadable};
use super::rows::{optional_sealed, optional_time, parsed, sealed, signed, time, unsigned};
use super::store::EmbeddedStore;
use crate::error::{StoreError, StoreFuture};
use crate::paging::{Page, PageRequest};
use crate::sealing::{open_app, open_urls, seal_app, seal_urls};
use crate::tenancy::{KeyGrant, Tenancy, join_environments, parse_environments};
use crate::vault::{Sealed, Vault};

const CREATE_CLIENT: &str = "INSERT INTO clients (client_id, name, created_at) VALUES (?1, ?2, ?3) ON CONFLICT (client_id) DO NOTHING";
const CLIENTS: &str = "SELECT client_id, name, created_at FROM clients ORDER BY created_at, row LIMIT ?2 OFFSET ?1";
const COUNT_CLIENTS: &str = "SELECT count(*) FROM clients";
const CREATE_APP: &str = "INSERT INTO apps (app_id, client, created_at, record) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (app_id) DO NOTHING";
const APP: &str = "SELECT app_id, record FROM apps WHERE app_id = ?1";
const PATCH_APP: &str = "UPDATE apps SET record = ?2 WHERE app_id = ?1";
const RECEIVER: &str = "SELECT app_id, record, urls FROM apps WHERE app_id = ?1";
const SET_URLS: &str = "UPDATE apps SET urls = ?2 WHERE app_id = ?1";
const APPS: &str = "SELECT app_id, record FROM apps WHERE client = ?1 ORDER BY created_at, row";
const CREATE_KEY: &str = "INSERT INTO keys (key_id, digest, client, label, environments, created_at, expires_at, revoked_at) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (key_id) DO NOTHING";
const KEYS: &str = "SELECT k.key_id, c.client_id, k.label, k.environments, k.created_at, k.expires_at, k.revoked_at \
     FROM keys k JOIN clients c ON c.row = k.client WHERE k.client = ?1 ORDER BY k.created_at, k.row";
const KEY_BY_DIGEST: &str = "SELECT k.key_id, c.client_id, k.label, k.environments, k.created_at, k.expires_at, k.revoked_at \
     FROM keys k JOIN clients c ON c.row = k.client WHERE k.digest = ?1";
const KEY: &str = "SELECT k.key_id, c.client_id, k.label, k.environments, k.created_at, k.expires_at, k.revoked_at \
     FROM keys k JOIN clients c ON c.row = k.client WHERE k.key_id = ?1";
const RETIRE: &str = "UPDATE keys SET revoked_at = coalesce(revoked_at, ?2), \
     expires_at = min(coalesce(expires_at, ?3), coalesce(?3, expires_at)) WHERE key_id = ?1";

impl Tenancy for EmbeddedStore {
    fn create_client(&self, client: Client) -> StoreFuture<()> {
        let Client { client_id, name, created_at } = client;
        self.write(0, move |db| db.change(CREATE_CLIENT, params![client_id.as_str(), name, created_at.millis()]), |_, _| Ok(()))
    }

    fn list_clients(&self, page: PageRequest) -> StoreFuture<Page<Client>> {
        let list = move |db: &Database<'_>| {
            let items = db.all(CLIENTS, params![signed(page.offset()), page.page_size], |row| {
                Ok(Client { client_id: parsed(row, 0)?, name: row.get(1)?, created_at: time(row, 2)? })
            })?;
            let total = db.first(COUNT_CLIENTS, [], |row| unsigned(row, 0))?;
            Ok(Page { items, total: total.unwrap_or(0) })
        };
        self.read(list, |page, _| Ok(page))
    }

    fn create_app(&self, app: App) -> StoreFuture<bool> {
        let vault = Arc::clone(self.vault());
        let create = move |db: &Database<'_>| {
            let Some(client) = account(db, &app.client_id)? else { return Ok(false) };
            let record = seal_app(&vault, &app).map_err(not_sealed)?;
            db.change(CREATE_APP, params![app.app_id.as_str(), client.row, app.created_at.millis(), record])?;
            Ok(true)
        };
        self.write(0, create, |created, _| Ok(created))
    }

    fn load_app(&self, app: AppId) -> StoreFuture<Option<App>> {
        self.read(move |db| find_app(db, &app), |found, vault| found.map(|app| app.unsealed(vault)).transpose())
    }

    /// An app that the vault cannot open stays as it is.
    fn patch_app(&self, id: AppId, patch: AppPatch) -> StoreFuture<Option<App>> {
        let vault = Arc::clone(self.vault());
        let change = move |db: &Database<'_>| {
            let Some(found) = find_app(db, &id)? else { return Ok(None) };
            let mut app = found.unsealed(&vault).map_err(not_sealed)?;
            app.apply(patch.clone());
            db.change(PATCH_APP, params![id.as_str(), seal_app(&vault, &app).map_err(not_sealed)?])?;
            Ok(Some(app))
        };
        self.write(0, change, |patched, _| Ok(patched))
    }

    fn list_apps(&self, client: ClientId) -> StoreFuture<Vec<App>> {
        let list = move |db: &Database<'_>| {
            let Some(client) = account(db, &client)? else { return Ok(Vec::new()) };
            db.all(APPS, [client.row], SealedApp::read)
        };
        self.read(list, |apps, vault| apps.iter().map(|app| app.unsealed(vault)).collect())
    }

    fn create_key(&self, key: ApiKeyRecord, digest: KeyDigest) -> StoreFuture<bool> {
        let create = move |db: &Database<'_>| {
            let Some(client) = account(db, &key.client_id)? else { return Ok(false) };
            let ApiKeyRecord { key_id, label, environments, created_at, .. } = &key;
            let millis = |at: Option<Timestamp>| at.map(Timestamp::millis);
            let (expires_at, revoked_at) = (millis(key.expires_at), millis(key.revoked_at));
            let (environments, created_at) = (join_environments(environments), created_at.millis());
            let row = params![key_id.as_str(), digest.0, client.row, label, environments, created_at, expires_at, revoked_at];
            db.change(CREATE_KEY, row)?;
            Ok(true)
        };
        self.write(0, create, |created, _| Ok(created))
    }

    fn list_keys(&self, client: ClientId) -> StoreFuture<Vec<ApiKeyRecord>> {
        let list = move |db: &Database<'_>| {
            let Some(client) = account(db, &client)? else { return Ok(Vec::new()) };
            db.all(KEYS, [client.row], key)
        };
        self.read(list, |keys, _| Ok(keys))
    }

    fn retire_key(&self, id: KeyId, revoked_at: Option<Timestamp>, expires_at: Option<Timestamp>) -> StoreFuture<Option<ApiKeyRecord>> {
        let retire = move |db: &Database<'_>| {
            db.change(RETIRE, params![id.as_str(), revoked_at.map(Timestamp::millis), expires_at.map(Timestamp::millis)])?;
            db.first(KEY, [id.as_str()], key)
        };
        self.write(0, retire, |key, _| Ok(key))
    }

    fn find_key(&self, digest: KeyDigest, app: AppId) -> StoreFuture<Option<KeyGrant>> {
        let find = move |db: &Database<'_>| {
            let Some(key) = db.first(KEY_BY_DIGEST, [digest.0], key)? else { return Ok(None) };
            Ok(Some((key, find_app(db, &app)?)))
        };
        self.read(find, |found, vault| {
            let Some((key, app)) = found else { return Ok(None) };
            Ok(Some(KeyGrant { key, app: app.map(|app| app.unsealed(vault)).transpose()? }))
        })
    }

    /// URLs that the vault cannot open stay as they are.
    fn set_webhook_url(&self, app: AppId, api_type: ApiType, url: Option<WebhookUrl>) -> StoreFuture<Option<RegisteredUrls>> {
        let vault = Arc::clone(self.vault());
        let set = move |db: &Database<'_>| {
            let Some(found) = receiver(db, &app)? else { return Ok(None) };
            let mut urls = found.urls(&vault).map_err(not_sealed)?;
            urls.set(api_type, url.clone());
            db.change(SET_URLS, params![app.as_str(), seal_urls(&vault, &app, &urls).map_err(not_sealed)?])?;
            Ok(Some(urls))
        };
        self.write(0, set, |urls, _| Ok(urls))
    }

    fn webhook_urls(&self, app: AppId) -> StoreFuture<Option<RegisteredUrls>> {
        self.read(move |db| receiver(db, &app), |found, vault| found.map(|found| found.urls(vault)).transpose())
    }
}

/// An app as it is stored.
pub(crate) struct SealedApp {
    id: AppId,
    record: Sealed,
}

impl SealedApp {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { id: parsed(row, 0)?, record: sealed(row, 1, "an app cannot be read")? })
    }

    pub(crate) fn unsealed(&self, vault: &Vault) -> Result<App, StoreError> {
        open_app(vault, &self.id, &self.record)
    }
}

pub(crate) fn find_app(db: &Database<'_>, id: &AppId) -> rusqlite::Result<Option<SealedApp>> {
    db.first(APP, [id.as_str()], SealedApp::read)
}

/// An app with the webhook URLs that it has registered, as they are stored.
pub(crate) struct SealedReceiver {
    app: SealedApp,
    urls: Option<Sealed>,
}

impl SealedReceiver {
    pub(crate) fn unsealed(&self, vault: &Vault) -> Result<(App, RegisteredUrls), StoreError> {
        Ok((self.app.unsealed(vault)?, self.urls(vault)?))
    }

    fn urls(&self, vault: &Vault) -> Result<RegisteredUrls, StoreError> {
        self.urls.as_ref().map_or_else(|| Ok(RegisteredUrls::default()), |urls| open_urls(vault, &self.app.id, urls))
    }
}

pub(crate) fn receiver(db: &Database<'_>, id: &AppId) -> rusqlite::Result<Option<SealedReceiver>> {
    db.first(RECEIVER, [id.as_str()], |row| {
        Ok(SealedReceiver { app: SealedApp::read(row)?, urls: optional_sealed(row, 2, "the URLs of an app cannot be read")? })
    })
}

fn key(row: &Row<'_>) -> rusqlite::Result<ApiKeyRecord> {
    let environments = parse_environments(row.get_ref(3)?.as_str()?);
    Ok(ApiKeyRecord {
        key_id: parsed(row, 0)?,
        client_id: parsed(row, 1)?,
        label: row.get(2)?,
        environments: environments.ok_or_else(|| unreadable("the environments of a key cannot be read"))?,
        created_at: time(row, 4)?,
        expires_at: optional_time(row, 5)?,
        revoked_at: optional_time(row, 6)?,
    })
}
