//! Clients, their apps and their keys.
//!
//! An app is one sealed box that belongs to its id: its webhook URLs can hold secrets.

use rusqlite::{Row, params};
use sakshi_domain::flow::api_type::{ApiType, RegisteredUrls};
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::{AppId, ClientId, KeyId};
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::{ApiKeyRecord, App, AppPatch, Client, KeyDigest};
use sakshi_domain::time::Timestamp;

use super::fault::unreadable;
use super::job::Session;
use super::ledger::{account, offset, unsigned};
use super::terms::parsed;
use crate::error::StoreError;
use crate::sealing::{open_app, open_urls, seal_app, seal_urls};
use crate::transition::{Page, PageRequest};
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

pub(super) fn create_client(session: &Session<'_>, client: &Client) -> rusqlite::Result<()> {
    session.change(CREATE_CLIENT, params![client.client_id.as_str(), client.name, client.created_at.millis()]).map(drop)
}

pub(super) fn clients(session: &Session<'_>, page: PageRequest) -> rusqlite::Result<Page<Client>> {
    let items = session.all(CLIENTS, params![offset(page), page.page_size], |row| {
        Ok(Client { client_id: parsed(row, 0)?, name: row.get(1)?, created_at: Timestamp::from_millis(row.get(2)?) })
    })?;
    let total = session.first(COUNT_CLIENTS, [], |row| unsigned(row, 0))?;
    Ok(Page { items, total: total.unwrap_or(0) })
}

/// An app as its row has it.
pub(super) struct SealedApp {
    id: AppId,
    record: Sealed,
}

impl SealedApp {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let record = Sealed::from_bytes(row.get_ref(1)?.as_blob()?).ok_or_else(|| unreadable("an app cannot be read"))?;
        Ok(Self { id: parsed(row, 0)?, record })
    }

    pub(super) fn unsealed(&self, vault: &Vault) -> Result<App, StoreError> {
        open_app(vault, &self.id, &self.record)
    }
}

fn sealed(vault: &Vault, app: &App) -> rusqlite::Result<Vec<u8>> {
    seal_app(vault, app).map_err(|_| unreadable("an app cannot be written"))
}

pub(super) fn create_app(session: &Session<'_>, vault: &Vault, app: &App) -> rusqlite::Result<bool> {
    let Some(client) = account(session, &app.client_id)? else { return Ok(false) };
    session.change(CREATE_APP, params![app.app_id.as_str(), client.row, app.created_at.millis(), sealed(vault, app)?])?;
    Ok(true)
}

pub(super) fn app(session: &Session<'_>, id: &AppId) -> rusqlite::Result<Option<SealedApp>> {
    session.first(APP, [id.as_str()], SealedApp::read)
}

pub(super) fn apps(session: &Session<'_>, client: &ClientId) -> rusqlite::Result<Vec<SealedApp>> {
    let Some(client) = account(session, client)? else { return Ok(Vec::new()) };
    session.all(APPS, [client.row], SealedApp::read)
}

/// Changes the app; an app that its vault does not open stays as it is.
pub(super) fn patch_app(
    session: &Session<'_>,
    vault: &Vault,
    id: &AppId,
    patch: &AppPatch,
) -> rusqlite::Result<Option<Result<App, StoreError>>> {
    let Some(found) = app(session, id)? else { return Ok(None) };
    let mut app = match found.unsealed(vault) {
        Ok(app) => app,
        Err(error) => return Ok(Some(Err(error))),
    };
    app.apply(patch.clone());
    session.change(PATCH_APP, params![id.as_str(), sealed(vault, &app)?])?;
    Ok(Some(Ok(app)))
}

/// An app with what it has registered, as its row has them.
pub(super) struct SealedReceiver {
    app: SealedApp,
    urls: Option<Sealed>,
}

impl SealedReceiver {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let read = |bytes: &[u8]| Sealed::from_bytes(bytes).ok_or_else(|| unreadable("the URLs of an app cannot be read"));
        Ok(Self { app: SealedApp::read(row)?, urls: row.get_ref(2)?.as_blob_or_null()?.map(read).transpose()? })
    }

    pub(super) fn unsealed(&self, vault: &Vault) -> Result<(App, RegisteredUrls), StoreError> {
        Ok((self.app.unsealed(vault)?, self.urls(vault)?))
    }

    pub(super) fn urls(&self, vault: &Vault) -> Result<RegisteredUrls, StoreError> {
        self.urls.as_ref().map_or_else(|| Ok(RegisteredUrls::default()), |urls| open_urls(vault, &self.app.id, urls))
    }
}

pub(super) fn receiver(session: &Session<'_>, id: &AppId) -> rusqlite::Result<Option<SealedReceiver>> {
    session.first(RECEIVER, [id.as_str()], SealedReceiver::read)
}

/// Changes one URL; URLs that the vault does not open stay as they are.
pub(super) fn set_url(
    session: &Session<'_>,
    vault: &Vault,
    id: &AppId,
    api_type: ApiType,
    url: Option<&WebhookUrl>,
) -> rusqlite::Result<Option<Result<RegisteredUrls, StoreError>>> {
    let Some(found) = receiver(session, id)? else { return Ok(None) };
    let mut urls = match found.urls(vault) {
        Ok(urls) => urls,
        Err(error) => return Ok(Some(Err(error))),
    };
    urls.set(api_type, url.cloned());
    let sealed = seal_urls(vault, id, &urls).map_err(|_| unreadable("the URLs of an app cannot be written"))?;
    session.change(SET_URLS, params![id.as_str(), sealed])?;
    Ok(Some(Ok(urls)))
}

fn key(row: &Row<'_>) -> rusqlite::Result<ApiKeyRecord> {
    let environments: String = row.get(3)?;
    let environment = |word: &str| word.parse::<Profile>().map_err(|_| unreadable("the environments of a key cannot be read"));
    Ok(ApiKeyRecord {
        key_id: parsed(row, 0)?,
        client_id: parsed(row, 1)?,
        label: row.get(2)?,
        environments: environments.split_terminator(' ').map(environment).collect::<rusqlite::Result<_>>()?,
        created_at: Timestamp::from_millis(row.get(4)?),
        expires_at: row.get::<_, Option<i64>>(5)?.map(Timestamp::from_millis),
        revoked_at: row.get::<_, Option<i64>>(6)?.map(Timestamp::from_millis),
    })
}

pub(super) fn create_key(session: &Session<'_>, key: &ApiKeyRecord, digest: &KeyDigest) -> rusqlite::Result<bool> {
    let Some(client) = account(session, &key.client_id)? else { return Ok(false) };
    let environments = key.environments.iter().map(|profile| profile.as_str()).collect::<Vec<_>>().join(" ");
    let millis = |at: Option<Timestamp>| at.map(Timestamp::millis);
    let (expires_at, revoked_at) = (millis(key.expires_at), millis(key.revoked_at));
    let row = params![key.key_id.as_str(), digest.0, client.row, key.label, environments, key.created_at.millis(), expires_at, revoked_at];
    session.change(CREATE_KEY, row)?;
    Ok(true)
}

pub(super) fn keys(session: &Session<'_>, client: &ClientId) -> rusqlite::Result<Vec<ApiKeyRecord>> {
    let Some(client) = account(session, client)? else { return Ok(Vec::new()) };
    session.all(KEYS, [client.row], key)
}

pub(super) fn find_key(
    session: &Session<'_>,
    digest: &KeyDigest,
    id: &AppId,
) -> rusqlite::Result<Option<(ApiKeyRecord, Option<SealedApp>)>> {
    let Some(key) = session.first(KEY_BY_DIGEST, [digest.0], key)? else { return Ok(None) };
    Ok(Some((key, app(session, id)?)))
}

/// Retiring never prolongs: of two times at which a key stops working the earlier stands.
pub(super) fn retire_key(
    session: &Session<'_>,
    id: &KeyId,
    revoked_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
) -> rusqlite::Result<Option<ApiKeyRecord>> {
    session.change(RETIRE, params![id.as_str(), revoked_at.map(Timestamp::millis), expires_at.map(Timestamp::millis)])?;
    session.first(KEY, [id.as_str()], key)
}
