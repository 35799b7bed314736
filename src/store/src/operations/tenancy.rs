//! Clients, apps, keys, and registered webhook URLs.

use std::str::FromStr;
use std::time::Duration;

use sakshi_domain::brand::LogoId;
use sakshi_domain::client_transfer::TransferredKey;
use sakshi_domain::flow::api_type::{ApiType, RegisteredUrls};
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::icon::Icon;
use sakshi_domain::ids::{AppId, ClientId, KeyId};
use sakshi_domain::tenancy::{ApiKeyRecord, App, AppPatch, Client, ClientPatch, KeyDigest};
use sakshi_domain::time::Timestamp;

use super::{Store, is_done};
use crate::engine::{Batch, Key, Op, Query, Record, ScoredMember};
use crate::error::{ATTEMPTS, StoreError, StoreFuture};
use crate::paging::{Page, PageRequest};
use crate::records::{client, tenancy};
use crate::sealing::{seal_app, seal_urls, unseal_app, unseal_urls};
use crate::tenancy::{KeyEnd, KeyGrant};
use crate::transitions::tenancy::{
    Changes, add_to_list, client_fields, create_client, decode_client, decode_key, index_key, key_fields, note_use,
    put_app, put_key, retire, write_record,
};

impl Store {
    /// Creates a client. Repeatable by client id.
    pub fn create_client(&self, new_client: Client) -> StoreFuture<()> {
        self.run(|store| async move {
            if store.record_confirmed(client::key_of_client(&new_client.client_id)).await?.is_none() {
                // A refusal means that another call has created the client.
                store.commit_in_order(create_client(&new_client, None).into()).await?;
            }
            Ok(())
        })
    }

    /// Returns all clients by creation time.
    pub fn list_clients(&self, page: PageRequest) -> StoreFuture<Page<Client>> {
        self.run(move |store| async move {
            let total = store.read(vec![Query::count(client::key_of_clients())]).await?.number()?;
            let ids = store.ids(client::key_of_clients(), page.offset(), page.page_size.into()).await?;
            let items = store.load_records(ids, client::key_of_client, |id, record| decode_client(id, &record)).await?;
            Ok(Page { items, total })
        })
    }

    /// Returns the client with this id.
    pub fn load_client(&self, id: ClientId) -> StoreFuture<Option<Client>> {
        self.run(|store| async move {
            let record = store.record_unless_lost(client::key_of_client(&id)).await?;
            record.map(|record| decode_client(id, &record)).transpose()
        })
    }

    /// Changes a client at the time `at`; `None` when there is no such client.
    pub fn patch_client(&self, id: ClientId, patch: ClientPatch, at: Timestamp) -> StoreFuture<Option<Client>> {
        self.run(move |store| async move {
            let change = |record: &Record| {
                let before = decode_client(id.clone(), record)?;
                let mut after = before.clone();
                after.apply(patch.clone(), at);
                Ok(((after != before).then(|| client_fields(&after)), after))
            };
            store.change(client::key_of_client(&id), change).await
        })
    }

    /// Stores a logo. Repeatable by its id.
    pub fn keep_logo(&self, id: LogoId, logo: Icon) -> StoreFuture<()> {
        self.run(move |store| async move {
            store
                .commit(write_record(tenancy::key_of_logo(id), None, vec![("file", logo.bytes.clone().into())]))
                .await
                .map(drop)
        })
    }

    /// Returns the logo with this id.
    pub fn load_logo(&self, id: LogoId) -> StoreFuture<Option<Icon>> {
        self.run(move |store| async move {
            let Some(record) = store.record_unless_lost(tenancy::key_of_logo(id)).await? else { return Ok(None) };
            let logo = Icon::from_picture_file(record.bytes("file").to_vec());
            logo.map(Some).ok_or_else(|| StoreError::unreadable("a logo"))
        })
    }

    /// Removes a logo that is no longer used. Repeatable.
    pub fn remove_logo(&self, id: LogoId) -> StoreFuture<()> {
        self.run(move |store| async move {
            store.commit(Batch::even_when_full(vec![], vec![Op::Remove(tenancy::key_of_logo(id))])).await.map(drop)
        })
    }

    /// Creates an app; `false` when its client does not exist. Repeatable by app id.
    pub fn create_app(&self, app: App) -> StoreFuture<bool> {
        self.run(|store| async move {
            let (id, owner) = (&app.app_id, &app.client_id);
            for _ in 0..ATTEMPTS {
                let Some((listed, [record])) =
                    store.read_list_and_records(owner, tenancy::key_of_apps(owner), [tenancy::key_of_app(id)]).await?
                else {
                    return store.unless_records_were_lost(false).await;
                };
                if record.is_some() {
                    return Ok(true);
                }
                let mut batches =
                    Vec::from_iter(add_to_list(tenancy::key_of_apps(owner), &listed, [(id.as_str(), app.created_at)]));
                batches.push(put_app(&app, seal_app(store.vault(), &app)?, None));
                if store.commit_in_order(batches).await? {
                    return Ok(true);
                }
            }
            Err(StoreError::Overloaded)
        })
    }

    /// Returns the app with this id.
    pub fn load_app(&self, id: AppId) -> StoreFuture<Option<App>> {
        self.run(move |store| async move {
            let record = store.record_unless_lost(tenancy::key_of_app(&id)).await?;
            record.map(|record| unseal_app(store.vault(), &id, record.bytes("record"))).transpose()
        })
    }

    /// Changes an app; `None` when there is no such app. An app that the vault cannot open is not changed.
    pub fn patch_app(&self, id: AppId, patch: AppPatch) -> StoreFuture<Option<App>> {
        self.run(move |store| async move {
            let change = |record: &Record| {
                let before = unseal_app(store.vault(), &id, record.bytes("record"))?;
                let mut after = before.clone();
                after.apply(patch.clone());
                let sealed = (after != before).then(|| seal_app(store.vault(), &after)).transpose()?;
                Ok((sealed.map(|sealed| vec![("record", sealed.into())]), after))
            };
            store.change(tenancy::key_of_app(&id), change).await
        })
    }

    /// Returns the apps of a client by creation time.
    pub fn list_apps(&self, client: ClientId) -> StoreFuture<Vec<App>> {
        self.run(|store| async move { store.client_apps(&client).await })
    }

    /// Stores a key's digest; `false` when its client does not exist. Repeatable by key id.
    pub fn create_key(&self, key: ApiKeyRecord, digest: KeyDigest) -> StoreFuture<bool> {
        self.run(move |store| async move {
            let (id, owner) = (&key.key_id, &key.client_id);
            for _ in 0..ATTEMPTS {
                let keys = [tenancy::key_of_api_key_id(id), tenancy::key_of_api_key(&digest)];
                let Some((listed, [id_record, record])) =
                    store.read_list_and_records(owner, tenancy::key_of_api_keys(owner), keys).await?
                else {
                    return store.unless_records_were_lost(false).await;
                };
                // A key id keeps its first digest.
                if record.is_some() || id_record.as_ref().is_some_and(|known| known.bytes("digest") != digest.0) {
                    return Ok(true);
                }
                let mut batches = Vec::from_iter(add_to_list(
                    tenancy::key_of_api_keys(owner),
                    &listed,
                    [(id.as_str(), key.created_at)],
                ));
                batches.extend(id_record.is_none().then(|| index_key(id, &digest)));
                batches.push(put_key(&key, &digest, None));
                if store.commit_in_order(batches).await? {
                    return Ok(true);
                }
            }
            Err(StoreError::Overloaded)
        })
    }

    /// Returns the keys of a client by creation time, revoked ones included.
    pub fn list_keys(&self, client: ClientId) -> StoreFuture<Vec<ApiKeyRecord>> {
        self.run(|store| async move {
            Ok(store.client_keys(&client).await?.into_iter().map(|transferred| transferred.key).collect())
        })
    }

    /// Returns the last recorded use of each key of a client. Unused keys are left out.
    pub fn key_uses(&self, client: ClientId) -> StoreFuture<Vec<(KeyId, Timestamp)>> {
        self.run(|store| async move {
            let ids: Vec<KeyId> = store.all_ids(tenancy::key_of_api_keys(&client)).await?;
            let digests = store
                .load_records(ids, tenancy::key_of_api_key_id, |id, record| {
                    Ok((id, KeyDigest(record.array("digest")?)))
                })
                .await?;
            let key = |(_, digest): &(KeyId, KeyDigest)| tenancy::key_of_api_key(digest);
            let uses = store
                .load_records(digests, key, |(id, _), record| Ok(record.time("used_at").map(|at| (id, at))))
                .await?;
            Ok(uses.into_iter().flatten().collect())
        })
    }

    /// Records the use of a key at the time `at`, unless a use was recorded within the interval. `last_use` is the last
    /// recorded use that the caller has read.
    pub fn note_key_use(
        &self,
        digest: KeyDigest,
        last_use: Option<Timestamp>,
        at: Timestamp,
        interval: Duration,
    ) -> StoreFuture<()> {
        self.run(move |store| async move { store.commit(note_use(&digest, last_use, at, interval)).await.map(drop) })
    }

    /// Returns a key.
    pub fn load_key(&self, id: KeyId) -> StoreFuture<Option<ApiKeyRecord>> {
        self.run(move |store| async move {
            let Some(id_record) = store.record_unless_lost(tenancy::key_of_api_key_id(&id)).await? else {
                return Ok(None);
            };
            let key = tenancy::key_of_api_key(&KeyDigest(id_record.array("digest")?));
            store.record_unless_lost(key).await?.map(|record| decode_key(&record)).transpose()
        })
    }

    /// Ends a key. Returns the key as it is then, or `None` if it does not exist.
    pub fn retire_key(&self, id: KeyId, end: KeyEnd) -> StoreFuture<Option<ApiKeyRecord>> {
        self.run(move |store| async move {
            let Some(id_record) = store.record_unless_lost(tenancy::key_of_api_key_id(&id)).await? else {
                return Ok(None);
            };
            let change = |record: &Record| {
                let before = decode_key(record)?;
                let after = retire(before.clone(), end);
                Ok(((after != before).then(|| key_fields(&after)), after))
            };
            store.change(tenancy::key_of_api_key(&KeyDigest(id_record.array("digest")?)), change).await
        })
    }

    /// Returns the API key with this digest, its client, and the app `app`.
    pub fn find_key(&self, digest: KeyDigest, app: AppId) -> StoreFuture<Option<KeyGrant>> {
        self.run(move |store| async move {
            let Some(record) = store.record_unless_lost(tenancy::key_of_api_key(&digest)).await? else {
                return Ok(None);
            };
            let (key, used_at) = (decode_key(&record)?, record.time("used_at"));
            let queries = [client::key_of_client(&key.client_id), tenancy::key_of_app(&app)].map(Query::Record);
            let mut answers = store.read(queries.into()).await?;
            let Some(client) = answers.record()? else { return store.unless_records_were_lost(None).await };
            let client = decode_client(key.client_id.clone(), &client)?;
            let app =
                answers.record()?.map(|record| unseal_app(store.vault(), &app, record.bytes("record"))).transpose()?;
            Ok(Some(KeyGrant { key, used_at, client, app }))
        })
    }

    /// Registers or removes the URL for webhooks of an API type. Returns all registered URLs of the app, or `None` when
    /// there is no such app. URLs that the vault cannot open are not changed.
    pub fn set_webhook_url(
        &self,
        id: AppId,
        api_type: ApiType,
        url: Option<WebhookUrl>,
    ) -> StoreFuture<Option<RegisteredUrls>> {
        self.run(move |store| async move {
            let change = |record: &Record| {
                let before = store.decode_urls(&id, record)?;
                let mut after = before.clone();
                after.set(api_type, url.clone());
                let sealed = (after != before).then(|| seal_urls(store.vault(), &id, &after)).transpose()?;
                Ok((sealed.map(|sealed| vec![("urls", sealed.into())]), after))
            };
            store.change(tenancy::key_of_app(&id), change).await
        })
    }

    /// Returns the URLs that the app has registered.
    pub fn webhook_urls(&self, id: AppId) -> StoreFuture<Option<RegisteredUrls>> {
        self.run(|store| async move {
            let record = store.record_unless_lost(tenancy::key_of_app(&id)).await?;
            record.map(|record| store.decode_urls(&id, &record)).transpose()
        })
    }

    /// Commits batches in this order, or joined into one batch on a store of one node. Returns false if a guard refused
    /// a batch; the batches after it are then not committed. No batch may use the result of an operation.
    pub(super) async fn commit_in_order(&self, mut batches: Vec<Batch>) -> Result<bool, StoreError> {
        if !self.engine().is_shared() {
            let (guards, ops): (Vec<_>, Vec<_>) = batches.into_iter().map(|batch| (batch.guards, batch.ops)).unzip();
            batches = vec![Batch::new(guards.concat(), ops.concat())];
        }
        for batch in batches {
            if !is_done(&self.commit(batch).await?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads a record and writes the fields that `change` returns. Retries if the record changed between the read and
    /// the write. Returns the value that `change` returns with the fields; `None` without a record. If `change` returns
    /// no fields, nothing is written. A full store takes the change too: it may revoke a key or suspend a client.
    pub(super) async fn change<T>(
        &self,
        key: Key,
        change: impl Fn(&Record) -> Result<(Option<Changes>, T), StoreError>,
    ) -> Result<Option<T>, StoreError> {
        for _ in 0..ATTEMPTS {
            let Some(before) = self.record_confirmed(key.clone()).await? else {
                return self.unless_records_were_lost(None).await;
            };
            let (changes, after) = change(&before)?;
            let Some(changes) = changes else { return Ok(Some(after)) };
            let batch = Batch { even_when_full: true, ..write_record(key.clone(), Some(&before), changes) };
            if is_done(&self.commit(batch).await?) {
                return Ok(Some(after));
            }
        }
        Err(StoreError::Overloaded)
    }

    /// Reads the list `index` of the client `owner`, and the records under `keys`; `None` when there is no such client.
    async fn read_list_and_records<const N: usize>(
        &self,
        owner: &ClientId,
        index: Key,
        keys: [Key; N],
    ) -> Result<Option<(Vec<ScoredMember>, [Option<Record>; N])>, StoreError> {
        let mut queries = vec![Query::Fields(client::key_of_client(owner), &["created_at"]), Query::all_members(index)];
        queries.extend(keys.into_iter().map(Query::Record));
        let mut answers = self.read_confirmed(queries).await?;
        let (owner, listed, mut records) = (answers.record()?, answers.members()?, [const { None }; N]);
        for record in &mut records {
            *record = answers.record()?;
        }
        Ok(owner.map(|_| (listed, records)))
    }

    /// Returns all ids in a list.
    pub(super) async fn all_ids<T: FromStr>(&self, index: Key) -> Result<Vec<T>, StoreError> {
        self.ids(index, 0, u64::MAX).await
    }

    /// Returns the ids on a page of a list: at most `limit` after the first `offset`.
    pub(super) async fn ids<T: FromStr>(&self, index: Key, offset: u64, limit: u64) -> Result<Vec<T>, StoreError> {
        let members = self.read(vec![Query::page(index, offset, limit)]).await?.members()?;
        let ids =
            members.iter().map(|(member, _)| std::str::from_utf8(member).ok()?.parse().ok()).collect::<Option<_>>();
        ids.ok_or_else(|| StoreError::unreadable("a list"))
    }

    /// Reads and decodes the records with these ids, whose keys `key` returns. Leaves out missing records.
    pub(super) async fn load_records<I, T>(
        &self,
        ids: Vec<I>,
        key: impl Fn(&I) -> Key,
        decode: impl Fn(I, Record) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut answers = self.read(ids.iter().map(|id| Query::Record(key(id))).collect()).await?;
        let mut decoded = Vec::with_capacity(ids.len());
        for id in ids {
            decoded.extend(answers.record()?.map(|record| decode(id, record)).transpose()?);
        }
        Ok(decoded)
    }

    /// Returns the apps of a client by creation time.
    pub(super) async fn client_apps(&self, client: &ClientId) -> Result<Vec<App>, StoreError> {
        let ids = self.all_ids(tenancy::key_of_apps(client)).await?;
        self.load_records(ids, tenancy::key_of_app, |id, record| unseal_app(self.vault(), &id, record.bytes("record")))
            .await
    }

    /// Returns the keys of a client by creation time.
    pub(super) async fn client_keys(&self, client: &ClientId) -> Result<Vec<TransferredKey>, StoreError> {
        let ids = self.all_ids(tenancy::key_of_api_keys(client)).await?;
        let digests = self
            .load_records(ids, tenancy::key_of_api_key_id, |_, record| record.array("digest").map(KeyDigest))
            .await?;
        let key = |digest, record: Record| Ok(TransferredKey { key: decode_key(&record)?, digest });
        self.load_records(digests, tenancy::key_of_api_key, key).await
    }

    /// Decodes the webhook URLs in the record of an app.
    fn decode_urls(&self, id: &AppId, record: &Record) -> Result<RegisteredUrls, StoreError> {
        if record.has("urls") {
            unseal_urls(self.vault(), id, record.bytes("urls"))
        } else {
            Ok(RegisteredUrls::default())
        }
    }
}
