//! Clients, their apps, their keys, and registered webhook URLs.
//!
//! An app is sealed for its id, because its webhook URLs can hold secrets.

use rusqlite::{Row, params};
use sakshi_domain::flow::api_type::{ApiType, RegisteredUrls};
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::{AppId, ClientId, KeyId};
use sakshi_domain::tenancy::{ApiKeyRecord, App, AppPatch, Client, ClientPatch, KeyDigest};
use sakshi_domain::time::Timestamp;

use super::credits::account;
use super::database::statements::Database;
use super::rows::{optional_time, parsed, signed, time, unsigned};
use super::store::EmbeddedStore;
use crate::error::StoreFuture;
use crate::paging::{Page, PageRequest};
use crate::sealing::{open_app, open_urls, seal_app, seal_urls};
use crate::tenancy::{KeyGrant, Tenancy, join_environments, limits_text, parse_environments, parse_limits};

const CREATE_CLIENT: &str = "INSERT INTO clients (client_id, name, created_at) VALUES (?1, ?2, ?3) ON CONFLICT (client_id) DO NOTHING";
const CLIENTS: &str = "SELECT client_id, name, created_at, suspended_at, limits FROM clients ORDER BY created_at, row LIMIT ?2 OFFSET ?1";
const CLIENT: &str = "SELECT client_id, name, created_at, suspended_at, limits FROM clients WHERE client_id = ?1";
const PATCH_CLIENT: &str = "UPDATE clients SET name = ?2, suspended_at = ?3, limits = ?4 WHERE client_id = ?1";
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
        let Client { client_id, name, created_at, .. } = client;
        self.write(0, move |db| db.change(CREATE_CLIENT, params![client_id.as_str(), name, created_at.millis()]).map(drop))
    }

    fn list_clients(&self, page: PageRequest) -> StoreFuture<Page<Client>> {
        self.read(move |db| {
            let items = db.all(CLIENTS, params![signed(page.offset()), page.page_size], client)?;
            let total = db.first(COUNT_CLIENTS, [], |row| unsigned(row, 0))?;
            Ok(Page { items, total: total.unwrap_or(0) })
        })
    }

    fn load_client(&self, id: ClientId) -> StoreFuture<Option<Client>> {
        self.read(move |db| find_client(db, &id))
    }

    fn patch_client(&self, id: ClientId, patch: ClientPatch, at: Timestamp) -> StoreFuture<Option<Client>> {
        self.write(0, move |db| {
            let Some(mut client) = find_client(db, &id)? else { return Ok(None) };
            client.apply(patch.clone(), at);
            let limits = limits_text(&client.limits);
            db.change(PATCH_CLIENT, params![id.as_str(), client.name, client.suspended_at.map(Timestamp::millis), limits])?;
            Ok(Some(client))
        })
    }

    fn create_app(&self, app: App) -> StoreFuture<bool> {
        self.write(0, move |db| {
            let Some(client) = account(db, &app.client_id)? else { return Ok(false) };
            let record = seal_app(&db.vault, &app)?;
            db.change(CREATE_APP, params![app.app_id.as_str(), client.row, app.created_at.millis(), record])?;
            Ok(true)
        })
    }

    fn load_app(&self, id: AppId) -> StoreFuture<Option<App>> {
        self.read(move |db| find_app(db, &id))
    }

    /// An app that the vault cannot open stays as it is.
    fn patch_app(&self, id: AppId, patch: AppPatch) -> StoreFuture<Option<App>> {
        self.write(0, move |db| {
            let Some(mut app) = find_app(db, &id)? else { return Ok(None) };
            app.apply(patch.clone());
            db.change(PATCH_APP, params![id.as_str(), seal_app(&db.vault, &app)?])?;
            Ok(Some(app))
        })
    }

    fn list_apps(&self, client: ClientId) -> StoreFuture<Vec<App>> {
        self.read(move |db| {
            let Some(client) = account(db, &client)? else { return Ok(Vec::new()) };
            apps_of(db, client.row)
        })
    }

    fn create_key(&self, key: ApiKeyRecord, digest: KeyDigest) -> StoreFuture<bool> {
        self.write(0, move |db| {
            let Some(client) = account(db, &key.client_id)? else { return Ok(false) };
            let ApiKeyRecord { key_id, label, environments, created_at, expires_at, revoked_at, .. } = &key;
            let (expires_at, revoked_at) = (expires_at.map(Timestamp::millis), revoked_at.map(Timestamp::millis));
            let (environments, created_at) = (join_environments(environments), created_at.millis());
            let row = params![key_id.as_str(), digest.0, client.row, label, environments, created_at, expires_at, revoked_at];
            db.change(CREATE_KEY, row)?;
            Ok(true)
        })
    }

    fn list_keys(&self, client: ClientId) -> StoreFuture<Vec<ApiKeyRecord>> {
        self.read(move |db| {
            let Some(client) = account(db, &client)? else { return Ok(Vec::new()) };
            db.all(KEYS, [client.row], key)
        })
    }

    fn retire_key(&self, id: KeyId, revoked_at: Option<Timestamp>, expires_at: Option<Timestamp>) -> StoreFuture<Option<ApiKeyRecord>> {
        self.write(0, move |db| {
            db.change(RETIRE, params![id.as_str(), revoked_at.map(Timestamp::millis), expires_at.map(Timestamp::millis)])?;
            db.first(KEY, [id.as_str()], key)
        })
    }

    fn find_key(&self, digest: KeyDigest, app: AppId) -> StoreFuture<Option<KeyGrant>> {
        self.read(move |db| {
            let Some(key) = db.first(KEY_BY_DIGEST, [digest.0], key)? else { return Ok(None) };
            let Some(client) = find_client(db, &key.client_id)? else { return Ok(None) };
            Ok(Some(KeyGrant { key, client, app: find_app(db, &app)? }))
        })
    }

    /// URLs that the vault cannot open stay as they are.
    fn set_webhook_url(&self, id: AppId, api_type: ApiType, url: Option<WebhookUrl>) -> StoreFuture<Option<RegisteredUrls>> {
        self.write(0, move |db| {
            let Some((_, mut urls)) = receiver(db, &id)? else { return Ok(None) };
            urls.set(api_type, url.clone());
            db.change(SET_URLS, params![id.as_str(), seal_urls(&db.vault, &id, &urls)?])?;
            Ok(Some(urls))
        })
    }

    fn webhook_urls(&self, id: AppId) -> StoreFuture<Option<RegisteredUrls>> {
        self.read(move |db| Ok(receiver(db, &id)?.map(|(_, urls)| urls)))
    }
}

fn client(row: &Row<'_>) -> rusqlite::Result<Client> {
    let limits = row.get_ref(4)?.as_str_or_null()?.map(parse_limits).transpose()?.unwrap_or_default();
    Ok(Client { client_id: parsed(row, 0)?, name: row.get(1)?, created_at: time(row, 2)?, suspended_at: optional_time(row, 3)?, limits })
}

pub(crate) fn find_client(db: &Database, id: &ClientId) -> rusqlite::Result<Option<Client>> {
    db.first(CLIENT, [id.as_str()], client)
}

fn app(db: &Database, row: &Row<'_>) -> rusqlite::Result<App> {
    Ok(open_app(&db.vault, &parsed(row, 0)?, row.get_ref(1)?.as_blob()?)?)
}

/// The apps of a client, which is given by its row.
pub(crate) fn apps_of(db: &Database, client: i64) -> rusqlite::Result<Vec<App>> {
    db.all(APPS, [client], |row| app(db, row))
}

pub(crate) fn find_app(db: &Database, id: &AppId) -> rusqlite::Result<Option<App>> {
    db.first(APP, [id.as_str()], |row| app(db, row))
}

/// The app, and the webhook URLs that it has registered.
pub(crate) fn receiver(db: &Database, id: &AppId) -> rusqlite::Result<Option<(App, RegisteredUrls)>> {
    db.first(RECEIVER, [id.as_str()], |row| {
        let urls = row.get_ref(2)?.as_blob_or_null()?.map(|urls| open_urls(&db.vault, id, urls)).transpose()?;
        Ok((app(db, row)?, urls.unwrap_or_default()))
    })
}

pub(crate) fn key(row: &Row<'_>) -> rusqlite::Result<ApiKeyRecord> {
    Ok(ApiKeyRecord {
        key_id: parsed(row, 0)?,
        client_id: parsed(row, 1)?,
        label: row.get(2)?,
        environments: parse_environments(row.get_ref(3)?.as_str()?)?,
        created_at: time(row, 4)?,
        expires_at: optional_time(row, 5)?,
        revoked_at: optional_time(row, 6)?,
    })
}
