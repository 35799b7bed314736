//! Clients, their apps, their keys, and registered webhook URLs.
//!
//! Apps and keys are looked up across clients, so each has a slot of its own, and the client's
//! partition lists them. An operation of several steps is ordered so that it can be repeated after a
//! crash between two of them: first the list, whose readers skip entries without a record; then the
//! key's id; last the key itself, which makes it valid.

use redis::{Cmd, Value, cmd};
use sakshi_domain::flow::api_type::{ApiType, RegisteredUrls};
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::{AppId, ClientId, KeyId};
use sakshi_domain::tenancy::{ApiKeyRecord, App, AppPatch, Client, KeyDigest};
use sakshi_domain::time::Timestamp;

use super::arguments::arguments;
use super::credits::places;
use super::keys;
use super::reply::{Fields, bytes, number, text, unreadable};
use super::script::{CREATE_APP, CREATE_CLIENT, CREATE_KEY, INDEX_CLIENT, INDEX_OF_CLIENT, NAME_KEY, PATCH_APP, RETIRE_KEY};
use super::shared::Shared;
use super::store::RedisStore;
use crate::error::{StoreError, StoreFuture};
use crate::paging::{Page, PageRequest};
use crate::sealing::{open_app, open_urls, seal_app, seal_urls};
use crate::tenancy::{KeyGrant, Tenancy, join_environments, parse_environments};
use crate::vault::Sealed;

/// Attempts at a change while other changes come first.
const ATTEMPTS: usize = 64;

fn get(key: &[u8], field: &str) -> Cmd {
    cmd("HGET").arg(key).arg(field).to_owned()
}

fn key_fields(digest: &str) -> Cmd {
    cmd("HMGET").arg(keys::key(digest)).arg(["i", "c", "l", "e", "t", "x", "v"].as_slice()).to_owned()
}

/// The key, if there is one.
fn key(value: Value) -> Result<Option<ApiKeyRecord>, StoreError> {
    let mut fields = Fields::of("a key", value)?;
    let Some(key_id) = fields.optional_parsed()? else { return Ok(None) };
    let (client_id, label) = (fields.parsed()?, fields.text()?);
    let environments = parse_environments(&fields.text()?).ok_or_else(|| unreadable("the environments of a key"))?;
    let (created_at, expires_at, revoked_at) = (fields.time()?, fields.optional_time()?, fields.optional_time()?);
    Ok(Some(ApiKeyRecord { key_id, client_id, label, environments, created_at, expires_at, revoked_at }))
}

impl Tenancy for RedisStore {
    fn create_client(&self, client: Client) -> StoreFuture<()> {
        self.run(|store| async move {
            let Client { client_id, name, created_at } = client;
            store.call(&INDEX_CLIENT, vec![keys::clients()], arguments![created_at, client_id.as_str()]).await?;
            let key = keys::client(client_id.partition(), &client_id);
            store.call(&CREATE_CLIENT, vec![key], arguments![name, created_at]).await.map(drop)
        })
    }

    fn list_clients(&self, page: PageRequest) -> StoreFuture<Page<Client>> {
        self.run(move |store| async move {
            let total = number("the clients", store.link.read(cmd("ZCARD").arg(keys::clients()).to_owned()).await?)?;
            let (first, last) = places(page);
            let ids = if first < total { store.client_ids(first, last).await? } else { vec![] };
            let asked = ids.iter().map(|id| cmd("HMGET").arg(keys::client(id.partition(), id)).arg("n").arg("t").to_owned());
            let mut items = Vec::with_capacity(ids.len());
            for (client_id, found) in ids.iter().zip(store.link.read_all(asked.collect()).await?) {
                let mut fields = Fields::of("a client", found)?;
                let (name, created_at) = (fields.text()?, fields.optional_time()?);
                items.extend(created_at.map(|created_at| Client { client_id: client_id.clone(), name, created_at }));
            }
            Ok(Page { items, total })
        })
    }

    fn create_app(&self, app: App) -> StoreFuture<bool> {
        self.run(|store| async move {
            let index = keys::apps_of_client(&app.client_id);
            if !store.listed(&app.client_id, index, app.app_id.as_str(), app.created_at).await? {
                return Ok(false);
            }
            store.place_app(&app.app_id, &app.client_id, Some(seal_app(&store.vault, &app)?)).await?;
            Ok(true)
        })
    }

    fn load_app(&self, app: AppId) -> StoreFuture<Option<App>> {
        self.run(|store| async move { store.load_app(&app).await })
    }

    /// Writes the change only if the app is still as it was read; otherwise it starts again.
    fn patch_app(&self, id: AppId, patch: AppPatch) -> StoreFuture<Option<App>> {
        self.run(|store| async move {
            for _ in 0..ATTEMPTS {
                let before = store.app_record(&id).await?;
                let Some(mut app) = store.opened_app(&id, before.clone())? else { return store.absent(None).await };
                app.apply(patch.clone());
                let args = arguments!["r", before, seal_app(&store.vault, &app)?];
                let patched: u32 = number("an app", store.call(&PATCH_APP, vec![keys::app(&id)], args).await?)?;
                if patched == 1 {
                    return Ok(Some(app));
                }
            }
            Err(StoreError::Overloaded)
        })
    }

    fn list_apps(&self, client: ClientId) -> StoreFuture<Vec<App>> {
        self.run(|store| async move {
            let ids = store.members(keys::apps_of_client(&client)).await?;
            let ids = ids.iter().map(|id| id.parse()).collect::<Result<Vec<AppId>, _>>().map_err(|_| unreadable("an app"))?;
            let records = store.link.read_all(ids.iter().map(|id| get(&keys::app(id), "r")).collect()).await?;
            let mut apps = Vec::with_capacity(ids.len());
            for (id, record) in ids.iter().zip(records) {
                apps.extend(store.opened_app(id, bytes("an app", record)?)?);
            }
            Ok(apps)
        })
    }

    fn create_key(&self, key: ApiKeyRecord, digest: KeyDigest) -> StoreFuture<bool> {
        self.run(move |store| async move {
            let ApiKeyRecord { key_id, client_id, label, environments, created_at, expires_at, revoked_at } = key;
            if !store.listed(&client_id, keys::keys_of_client(&client_id), key_id.as_str(), created_at).await? {
                return Ok(false);
            }
            let digest = keys::key_digest(&digest);
            let named = store.call(&NAME_KEY, vec![keys::key_name(&key_id)], arguments![digest.as_str()]).await?;
            if text("a key's name", named)?.as_ref() != Some(&digest) {
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
        self.run(|store| async move {
            let ids = store.members(keys::keys_of_client(&client)).await?;
            let ids = ids.iter().map(|id| id.parse()).collect::<Result<Vec<KeyId>, _>>().map_err(|_| unreadable("a key"))?;
            let names = store.link.read_all(ids.iter().map(|id| cmd("GET").arg(keys::key_name(id)).to_owned()).collect()).await?;
            let digests = names.into_iter().map(|name| text("a key's name", name)).collect::<Result<Vec<_>, _>>()?;
            let found = store.link.read_all(digests.iter().flatten().map(|digest| key_fields(digest)).collect()).await?;
            found.into_iter().filter_map(|fields| key(fields).transpose()).collect()
        })
    }

    fn retire_key(&self, id: KeyId, revoked_at: Option<Timestamp>, expires_at: Option<Timestamp>) -> StoreFuture<Option<ApiKeyRecord>> {
        self.run(move |store| async move {
            let name = store.link.read(cmd("GET").arg(keys::key_name(&id)).to_owned()).await?;
            let Some(digest) = text("a key's name", name)? else { return store.absent(None).await };
            let retired = store.call(&RETIRE_KEY, vec![keys::key(&digest)], arguments![revoked_at, expires_at]).await?;
            if retired == Value::Nil { Ok(None) } else { key(retired) }
        })
    }

    fn find_key(&self, digest: KeyDigest, app: AppId) -> StoreFuture<Option<KeyGrant>> {
        self.run(move |store| async move {
            let asked = vec![key_fields(&keys::key_digest(&digest)), get(&keys::app(&app), "r")];
            let mut found = Fields::of("a key", Value::Array(store.link.read_all(asked).await?))?;
            let Some(key) = key(found.value()?)? else { return store.absent(None).await };
            let app = store.opened_app(&app, found.optional()?)?;
            Ok(Some(KeyGrant { key, app }))
        })
    }

    /// As [`Tenancy::patch_app`].
    fn set_webhook_url(&self, id: AppId, api_type: ApiType, url: Option<WebhookUrl>) -> StoreFuture<Option<RegisteredUrls>> {
        self.run(move |store| async move {
            for _ in 0..ATTEMPTS {
                let found = store.link.read(cmd("HMGET").arg(keys::app(&id)).arg("r").arg("w").to_owned()).await?;
                let mut fields = Fields::of("an app", found)?;
                if fields.optional()?.is_none() {
                    return store.absent(None).await;
                }
                let before = fields.optional()?;
                let read = |bytes: &Vec<u8>| {
                    let sealed = Sealed::from_bytes(bytes).ok_or_else(|| unreadable("the webhook URLs of an app"))?;
                    open_urls(&store.vault, &id, &sealed)
                };
                let mut urls = before.as_ref().map(read).transpose()?.unwrap_or_default();
                urls.set(api_type, url.clone());
                let args = arguments!["w", before, seal_urls(&store.vault, &id, &urls)?];
                if number::<u32>("an app", store.call(&PATCH_APP, vec![keys::app(&id)], args).await?)? == 1 {
                    return Ok(Some(urls));
                }
            }
            Err(StoreError::Overloaded)
        })
    }

    fn webhook_urls(&self, id: AppId) -> StoreFuture<Option<RegisteredUrls>> {
        self.run(|store| async move { Ok(store.load_receiver(&id).await?.map(|(_, urls)| urls)) })
    }
}

impl Shared {
    /// The ids of clients by creation time, from one place in the list to another.
    pub(crate) async fn client_ids(&self, first: u64, last: u64) -> Result<Vec<ClientId>, StoreError> {
        let found = self.link.read(cmd("ZRANGE").arg(keys::clients()).arg(first).arg(last).to_owned()).await?;
        let id = |value| text("a client", value)?.and_then(|text| text.parse().ok()).ok_or_else(|| unreadable("a client"));
        Fields::of("the clients", found)?.rest().map(id).collect()
    }

    /// Adds an app or a key to the list of its client; `false` when there is no such client.
    async fn listed(&self, client: &ClientId, index: Vec<u8>, id: &str, created_at: Timestamp) -> Result<bool, StoreError> {
        let keys = vec![keys::client(client.partition(), client), index];
        let found: u32 = number("a client", self.call(&INDEX_OF_CLIENT, keys, arguments![id, created_at]).await?)?;
        Ok(found == 1)
    }

    /// The ids in a list of a client, by creation time and then by arrival.
    async fn members(&self, index: Vec<u8>) -> Result<Vec<String>, StoreError> {
        let found = self.link.read(cmd("HGETALL").arg(index).to_owned()).await?;
        let member = |(id, order): (Vec<u8>, Vec<u8>)| {
            let order = String::from_utf8(order).ok()?;
            let (created_at, place) = order.split_once(' ')?;
            Some((created_at.parse::<i64>().ok()?, place.parse::<u64>().ok()?, String::from_utf8(id).ok()?))
        };
        let members = Fields::of("a client's list", found)?.pairs()?.into_iter().map(member);
        let mut members = members.collect::<Option<Vec<_>>>().ok_or_else(|| unreadable("a client's list"))?;
        members.sort_unstable();
        Ok(members.into_iter().map(|(.., id)| id).collect())
    }

    /// Writes the partition of an app, and its record if it is given. Existing values stay.
    pub(crate) async fn place_app(&self, app: &AppId, client: &ClientId, record: Option<Vec<u8>>) -> Result<(), StoreError> {
        let args = arguments![u32::from(client.partition().number()), record];
        self.call(&CREATE_APP, vec![keys::app(app)], args).await.map(drop)
    }

    fn opened_app(&self, id: &AppId, record: Option<Vec<u8>>) -> Result<Option<App>, StoreError> {
        let Some(bytes) = record else { return Ok(None) };
        let sealed = Sealed::from_bytes(&bytes).ok_or_else(|| unreadable("an app"))?;
        open_app(&self.vault, id, &sealed).map(Some)
    }

    async fn app_record(&self, id: &AppId) -> Result<Option<Vec<u8>>, StoreError> {
        bytes("an app", self.link.read(get(&keys::app(id), "r")).await?)
    }

    pub(crate) async fn load_app(&self, id: &AppId) -> Result<Option<App>, StoreError> {
        match self.app_record(id).await? {
            None => self.absent(None).await,
            record => self.opened_app(id, record),
        }
    }

    /// The app, and the webhook URLs that it has registered.
    pub(crate) async fn load_receiver(&self, id: &AppId) -> Result<Option<(App, RegisteredUrls)>, StoreError> {
        let found = self.link.read(cmd("HMGET").arg(keys::app(id)).arg("r").arg("w").to_owned()).await?;
        let mut fields = Fields::of("an app", found)?;
        let Some(app) = self.opened_app(id, fields.optional()?)? else { return self.absent(None).await };
        let urls = fields.optional_sealed()?.map(|sealed| open_urls(&self.vault, id, &sealed)).transpose()?;
        Ok(Some((app, urls.unwrap_or_default())))
    }
}
