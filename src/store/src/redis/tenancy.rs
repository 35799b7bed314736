//! Clients, their apps, their keys, and registered webhook URLs.
//!
//! Apps and keys are looked up across clients, so each has a slot of its own, and the client's
//! partition lists them. An operation of several steps is ordered so that it can be repeated after a
//! crash between two of them: first the list, whose readers skip entries without a record; then the
//! key's id; last the key itself, which makes it valid.

use std::str::FromStr;

use redis::{Cmd, cmd};
use sakshi_domain::client_transfer::TransferredKey;
use sakshi_domain::flow::api_type::{ApiType, RegisteredUrls};
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::{AppId, ClientId, KeyId};
use sakshi_domain::tenancy::{ApiKeyRecord, App, AppPatch, Client, ClientPatch, KeyDigest};
use sakshi_domain::time::Timestamp;

use super::arguments::arguments;
use super::keys;
use super::reply::Reply;
use super::script::{CREATE_APP, CREATE_CLIENT, CREATE_KEY, INDEX_CLIENT, INDEX_OF_CLIENT, NAME_KEY, PATCH_APP, PATCH_CLIENT, RETIRE_KEY};
use super::shared::Shared;
use super::store::RedisStore;
use crate::error::{ATTEMPTS, StoreError, StoreFuture};
use crate::paging::{Page, PageRequest};
use crate::sealing::{open_app, open_urls, seal_app, seal_urls};
use crate::tenancy::{KeyGrant, Tenancy, join_environments, limits_text, parse_environments, parse_limits};

pub(crate) fn record_of(app: &AppId) -> Cmd {
    cmd("HGET").arg(keys::app(app)).arg("r").to_owned()
}

pub(crate) fn key_fields(digest: &str) -> Cmd {
    cmd("HMGET").arg(keys::key(digest)).arg(["i", "c", "l", "e", "t", "x", "v"].as_slice()).to_owned()
}

/// The key, if there is one.
pub(crate) fn key(found: Reply) -> Result<Option<ApiKeyRecord>, StoreError> {
    let mut fields = found.fields()?;
    let Some(key_id) = fields.optional_parsed()? else { return Ok(None) };
    let (client_id, label) = (fields.parsed()?, fields.text()?);
    let environments = parse_environments(&fields.text()?)?;
    let (created_at, expires_at, revoked_at) = (fields.time()?, fields.optional_time()?, fields.optional_time()?);
    Ok(Some(ApiKeyRecord { key_id, client_id, label, environments, created_at, expires_at, revoked_at }))
}

impl Tenancy for RedisStore {
    fn create_client(&self, client: Client) -> StoreFuture<()> {
        self.run(|store| async move {
            let Client { client_id, name, created_at, .. } = client;
            store.call(&INDEX_CLIENT, vec![keys::clients()], arguments![created_at, client_id.as_str()]).await?;
            let key = keys::client(client_id.partition(), &client_id);
            store.call(&CREATE_CLIENT, vec![key], arguments![name, created_at]).await.map(drop)
        })
    }

    fn list_clients(&self, page: PageRequest) -> StoreFuture<Page<Client>> {
        self.run(move |store| async move {
            let total = store.read("the clients", cmd("ZCARD").arg(keys::clients())).await?.parsed()?;
            let (first, last) = page.index_range();
            let ids = if first < total { store.client_ids(first, last).await? } else { vec![] };
            let asked = ids.iter().map(client_fields);
            let mut items = Vec::with_capacity(ids.len());
            let found = store.read_all("a client", asked).await?;
            for (client_id, found) in ids.into_iter().zip(found) {
                items.extend(client(client_id, found)?);
            }
            Ok(Page { items, total })
        })
    }

    fn load_client(&self, id: ClientId) -> StoreFuture<Option<Client>> {
        self.run(|store| async move {
            match store.load_client(&id).await? {
                None => store.confirm(None).await,
                client => Ok(client),
            }
        })
    }

    /// Writes the change only if the client is still as it was read; otherwise it starts again.
    fn patch_client(&self, id: ClientId, patch: ClientPatch, at: Timestamp) -> StoreFuture<Option<Client>> {
        self.run(move |store| async move {
            for _ in 0..ATTEMPTS {
                let Some(before) = store.load_client(&id).await? else { return store.confirm(None).await };
                let mut after = before.clone();
                after.apply(patch.clone(), at);
                let (old, new) = (limits_text(&before.limits), limits_text(&after.limits));
                let args = arguments![before.name, before.suspended_at, old, after.name.as_str(), after.suspended_at, new];
                if store.call(&PATCH_CLIENT, vec![keys::client(id.partition(), &id)], args).await?.succeeded()? {
                    return Ok(Some(after));
                }
            }
            Err(StoreError::Overloaded)
        })
    }

    fn create_app(&self, app: App) -> StoreFuture<bool> {
        self.run(|store| async move {
            let index = keys::apps_of_client(&app.client_id);
            if !store.listed(&app.client_id, index, app.app_id.as_str(), app.created_at).await? {
                return Ok(false);
            }
            store.ensure_app(&app.app_id, &app.client_id, Some(seal_app(&store.vault, &app)?)).await?;
            Ok(true)
        })
    }

    fn load_app(&self, app: AppId) -> StoreFuture<Option<App>> {
        self.run(|store| async move { store.load_app(&app).await })
    }

    fn patch_app(&self, id: AppId, patch: AppPatch) -> StoreFuture<Option<App>> {
        self.run(|store| async move {
            let change = |record: &[u8], _: Option<&[u8]>| {
                let mut app = open_app(&store.vault, &id, record)?;
                app.apply(patch.clone());
                Ok((seal_app(&store.vault, &app)?, app))
            };
            store.change_app(&id, "r", change).await
        })
    }

    fn list_apps(&self, client: ClientId) -> StoreFuture<Vec<App>> {
        self.run(|store| async move { store.apps_of(&client).await })
    }

    fn create_key(&self, key: ApiKeyRecord, digest: KeyDigest) -> StoreFuture<bool> {
        self.run(move |store| async move {
            let ApiKeyRecord { key_id, client_id, label, environments, created_at, expires_at, revoked_at } = key;
            if !store.listed(&client_id, keys::keys_of_client(&client_id), key_id.as_str(), created_at).await? {
                return Ok(false);
            }
            let digest = keys::key_digest(&digest);
            let named = store.call(&NAME_KEY, vec![keys::key_name(&key_id)], arguments![digest.as_str()]).await?;
            if named.text()?.as_ref() != Some(&digest) {
                return Ok(true);
            }
            let environments = join_environments(&environments);
            let mut fields = arguments!["i", key_id.as_str(), "c", client_id.as_str(), "l", label, "e", environments, "t", created_at];
            for (field, at) in [("x", expires_at), ("v", revoked_at)] {
                fields.extend(at.map(|at| arguments![field, at]).into_iter().flatten());
            }
            store.call(&CREATE_KEY, vec![keys::key(&digest)], fields).await?;
            Ok(true)
        })
    }

    fn list_keys(&self, client: ClientId) -> StoreFuture<Vec<ApiKeyRecord>> {
        self.run(|store| async move { Ok(store.keys_of(&client).await?.into_iter().map(|named| named.key).collect()) })
    }

    fn retire_key(&self, id: KeyId, revoked_at: Option<Timestamp>, expires_at: Option<Timestamp>) -> StoreFuture<Option<ApiKeyRecord>> {
        self.run(move |store| async move {
            let digest = store.read("a key's name", cmd("GET").arg(keys::key_name(&id))).await?.text()?;
            let Some(digest) = digest else { return store.confirm(None).await };
            let retired = store.call(&RETIRE_KEY, vec![keys::key(&digest)], arguments![revoked_at, expires_at]).await?;
            if retired.is_nil() { Ok(None) } else { key(retired) }
        })
    }

    fn find_key(&self, digest: KeyDigest, app: AppId) -> StoreFuture<Option<KeyGrant>> {
        self.run(move |store| async move {
            let asked = [key_fields(&keys::key_digest(&digest)), record_of(&app)];
            let Ok([found, record]) = <[Reply; 2]>::try_from(store.read_all("a key", asked.into_iter()).await?) else {
                return Err(StoreError::unreadable("a key"));
            };
            let Some(key) = key(found)? else { return store.confirm(None).await };
            let Some(client) = store.load_client(&key.client_id).await? else { return store.confirm(None).await };
            Ok(Some(KeyGrant { key, client, app: store.opened_app(&app, record)? }))
        })
    }

    fn set_webhook_url(&self, id: AppId, api_type: ApiType, url: Option<WebhookUrl>) -> StoreFuture<Option<RegisteredUrls>> {
        self.run(move |store| async move {
            let change = |_: &[u8], urls: Option<&[u8]>| {
                let mut urls = urls.map(|urls| open_urls(&store.vault, &id, urls)).transpose()?.unwrap_or_default();
                urls.set(api_type, url.clone());
                Ok((seal_urls(&store.vault, &id, &urls)?, urls))
            };
            store.change_app(&id, "w", change).await
        })
    }

    fn webhook_urls(&self, id: AppId) -> StoreFuture<Option<RegisteredUrls>> {
        self.run(|store| async move { Ok(store.load_receiver(&id).await?.map(|(_, urls)| urls)) })
    }
}

fn client_fields(id: &ClientId) -> Cmd {
    cmd("HMGET").arg(keys::client(id.partition(), id)).arg(["n", "t", "z", "q"].as_slice()).to_owned()
}

/// The client, if there is one.
fn client(client_id: ClientId, found: Reply) -> Result<Option<Client>, StoreError> {
    let mut fields = found.fields()?;
    let (name, created_at, suspended_at) = (fields.text()?, fields.optional_time()?, fields.optional_time()?);
    let limits = fields.value()?.text()?.as_deref().map(parse_limits).transpose()?.unwrap_or_default();
    Ok(created_at.map(|created_at| Client { client_id, name, created_at, suspended_at, limits }))
}

impl Shared {
    pub(crate) async fn load_client(&self, id: &ClientId) -> Result<Option<Client>, StoreError> {
        client(id.clone(), self.read("a client", &client_fields(id)).await?)
    }

    /// The ids of clients by creation time, from one place in the list to another.
    pub(crate) async fn client_ids(&self, first: u64, last: u64) -> Result<Vec<ClientId>, StoreError> {
        let found = self.read("the clients", cmd("ZRANGE").arg(keys::clients()).arg(first).arg(last)).await?;
        found.fields()?.rest().map(Reply::parsed).collect()
    }

    /// Adds an app or a key to the list of its client; `false` when there is no such client.
    pub(crate) async fn listed(&self, client: &ClientId, index: Vec<u8>, id: &str, created_at: Timestamp) -> Result<bool, StoreError> {
        let keys = vec![keys::client(client.partition(), client), index];
        self.call(&INDEX_OF_CLIENT, keys, arguments![id, created_at]).await?.succeeded()
    }

    /// The ids in a list of a client, by creation time and then by arrival.
    pub(crate) async fn members<T: FromStr>(&self, index: Vec<u8>) -> Result<Vec<T>, StoreError> {
        let found = self.read("a client's list", cmd("HGETALL").arg(index)).await?;
        let mut members = found.fields()?.all_pairs(|id, order| {
            let (created_at, place) = std::str::from_utf8(&order).ok()?.split_once(' ')?;
            let id = std::str::from_utf8(&id).ok()?.parse().ok()?;
            Some(((created_at.parse::<i64>().ok()?, place.parse::<u64>().ok()?), id))
        })?;
        members.sort_unstable_by_key(|(order, _)| *order);
        Ok(members.into_iter().map(|(_, id)| id).collect())
    }

    /// The apps of a client by creation time.
    pub(crate) async fn apps_of(&self, client: &ClientId) -> Result<Vec<App>, StoreError> {
        let ids: Vec<AppId> = self.members(keys::apps_of_client(client)).await?;
        let records = self.read_all("an app", ids.iter().map(record_of)).await?;
        let mut apps = Vec::with_capacity(ids.len());
        for (id, record) in ids.iter().zip(records) {
            apps.extend(self.opened_app(id, record)?);
        }
        Ok(apps)
    }

    /// The keys of a client by creation time.
    pub(crate) async fn keys_of(&self, client: &ClientId) -> Result<Vec<TransferredKey>, StoreError> {
        let ids: Vec<KeyId> = self.members(keys::keys_of_client(client)).await?;
        Ok(self.keys_named(&ids).await?.into_iter().flatten().collect())
    }

    /// Writes the partition of an app, and its record if it is given. What is there already stays.
    pub(crate) async fn ensure_app(&self, app: &AppId, client: &ClientId, record: Option<Vec<u8>>) -> Result<(), StoreError> {
        let args = arguments![u32::from(client.partition().number()), record];
        self.call(&CREATE_APP, vec![keys::app(app)], args).await.map(drop)
    }

    pub(crate) fn opened_app(&self, id: &AppId, record: Reply) -> Result<Option<App>, StoreError> {
        record.bytes()?.map(|record| open_app(&self.vault, id, record)).transpose()
    }

    pub(crate) async fn load_app(&self, id: &AppId) -> Result<Option<App>, StoreError> {
        match self.opened_app(id, self.read("an app", &record_of(id)).await?)? {
            None => self.confirm(None).await,
            app => Ok(app),
        }
    }

    /// The sealed app, and the sealed webhook URLs that it has registered.
    async fn app_fields(&self, id: &AppId) -> Result<Option<(Vec<u8>, Option<Vec<u8>>)>, StoreError> {
        let found = self.read("an app", cmd("HMGET").arg(keys::app(id)).arg("r").arg("w")).await?;
        let mut fields = found.fields()?;
        let Some(record) = fields.optional()? else { return self.confirm(None).await };
        Ok(Some((record, fields.optional()?)))
    }

    /// The app, and the webhook URLs that it has registered.
    pub(crate) async fn load_receiver(&self, id: &AppId) -> Result<Option<(App, RegisteredUrls)>, StoreError> {
        let Some((record, urls)) = self.app_fields(id).await? else { return Ok(None) };
        let urls = urls.map(|urls| open_urls(&self.vault, id, urls)).transpose()?;
        Ok(Some((open_app(&self.vault, id, record)?, urls.unwrap_or_default())))
    }

    /// Writes what `change` makes of the sealed app or its sealed URLs, only if it is still as it was read; otherwise it
    /// starts again.
    pub(crate) async fn change_app<T>(
        &self,
        id: &AppId,
        field: &str,
        change: impl Fn(&[u8], Option<&[u8]>) -> Result<(Vec<u8>, T), StoreError>,
    ) -> Result<Option<T>, StoreError> {
        for _ in 0..ATTEMPTS {
            let Some((record, urls)) = self.app_fields(id).await? else { return Ok(None) };
            let (after, changed) = change(&record, urls.as_deref())?;
            let before = if field == "r" { Some(record) } else { urls };
            if self.call(&PATCH_APP, vec![keys::app(id)], arguments![field, before, after]).await?.succeeded()? {
                return Ok(Some(changed));
            }
        }
        Err(StoreError::Overloaded)
    }
}
