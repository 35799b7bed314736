//! Handing a client over. What an import writes is in several slots, so it is several steps, each of which can be
//! repeated. Everything is held against the store before the first of them. Keys come last: until they are
//! there, nobody can use anything of a new client. An import that was cut short is completed by repeating it.

use redis::cmd;
use sakshi_domain::client_transfer::{ClientImport, ClientTransfer, ImportedRecord, KnownClient, TransferredApp, TransferredKey};
use sakshi_domain::ids::{ClientId, KeyId};
use sakshi_domain::invalid::Invalid;
use sakshi_domain::tenancy::{App, Client, KeyDigest};
use sakshi_domain::time::Timestamp;

use super::arguments::arguments;
use super::keys;
use super::reply::Reply;
use super::script::{IMPORT_CLIENT, IMPORT_KEY, INDEX_CLIENT, NAME_KEY};
use super::shared::Shared;
use super::store::RedisStore;
use super::tenancy::{key, key_fields, record_of};
use crate::error::{StoreError, StoreFuture};
use crate::sealing::{open_app, seal_app};
use crate::tenancy::join_environments;
use crate::transfers::Transfers;

impl Transfers for RedisStore {
    fn export_client(&self, client: ClientId) -> StoreFuture<Option<ClientTransfer>> {
        self.run(|store| async move {
            let Some(known) = store.load_client(&client).await? else { return store.confirm(None).await };
            let apps = store.apps_of(&client).await?.into_iter().map(Into::into).collect();
            Ok(Some(ClientTransfer { client: known, apps, keys: store.keys_of(&client).await? }))
        })
    }

    fn import_client(&self, transfer: ClientTransfer, at: Timestamp) -> StoreFuture<Result<Vec<ImportedRecord>, Invalid>> {
        self.run(move |store| async move {
            let import = match transfer.onto(&store.known(&transfer).await?) {
                Ok(import) => import,
                Err(invalid) => return Ok(Err(invalid)),
            };
            if import.does_something() {
                store.put(&transfer, &import, at).await?;
            }
            Ok(Ok(import.records))
        })
    }

    fn imported_at(&self, client: ClientId) -> StoreFuture<Option<Timestamp>> {
        self.run(|store| async move {
            let asked = cmd("HGET").arg(keys::client(client.partition(), &client)).arg("m").to_owned();
            Ok(store.read("a client", &asked).await?.optional_parsed()?.map(Timestamp::from_millis))
        })
    }
}

impl Shared {
    /// What the store has under the ids and digests of a transfer.
    async fn known(&self, transfer: &ClientTransfer) -> Result<KnownClient, StoreError> {
        let records = self.read_all("an app", transfer.apps.iter().map(|app| record_of(&app.app_id))).await?;
        let apps: Result<Vec<Option<App>>, StoreError> =
            transfer.apps.iter().zip(records).map(|(app, record)| self.opened_app(&app.app_id, record)).collect();
        let id_under = |sent: &TransferredKey| cmd("HGET").arg(keys::key(&keys::key_digest(&sent.digest))).arg("i").to_owned();
        let by_digest = self.read_all("a key", transfer.keys.iter().map(id_under)).await?;
        let ids: Vec<KeyId> = transfer.keys.iter().map(|sent| sent.key.key_id.clone()).collect();
        let by_id = self.keys_named(&ids).await?;
        let both = by_id.into_iter().zip(by_digest);
        let keys: Result<_, StoreError> = both.map(|(by_id, by_digest)| Ok((by_id, by_digest.optional_parsed()?))).collect();
        Ok(KnownClient { client: self.load_client(&transfer.client.client_id).await?, apps: apps?, keys: keys? })
    }

    async fn put(&self, transfer: &ClientTransfer, import: &ClientImport, at: Timestamp) -> Result<(), StoreError> {
        let Client { client_id, name, created_at, .. } = &import.client;
        self.call(&INDEX_CLIENT, vec![keys::clients()], arguments![*created_at, client_id.as_str()]).await?;
        let args = arguments![name.as_str(), *created_at, at];
        self.call(&IMPORT_CLIENT, vec![keys::client(client_id.partition(), client_id)], args).await?;
        for app in &import.apps {
            let sent = transfer.apps.iter().find(|sent| sent.app_id == app.app_id);
            self.put_app(app, sent.ok_or_else(|| StoreError::unreadable("an app"))?).await?;
        }
        for key in &import.keys {
            self.put_key(key).await?;
        }
        Ok(())
    }

    /// Creates an app, or changes what there is of it by now.
    async fn put_app(&self, app: &App, sent: &TransferredApp) -> Result<(), StoreError> {
        let App { app_id, client_id, created_at, .. } = app;
        self.listed(client_id, keys::apps_of_client(client_id), app_id.as_str(), *created_at).await?;
        self.ensure_app(app_id, client_id, Some(seal_app(&self.vault, app)?)).await?;
        let change = |record: &[u8], _: Option<&[u8]>| {
            let before = open_app(&self.vault, app_id, record)?;
            let after = sent.onto(client_id, Some(&before));
            // To seal it anew would make another record of the same app.
            let record = if after == before { record.to_vec() } else { seal_app(&self.vault, &after)? };
            Ok((record, ()))
        };
        self.change_app(app_id, "r", change).await.map(drop)
    }

    /// Creates a key, or changes what there is of it by now.
    async fn put_key(&self, key: &TransferredKey) -> Result<(), StoreError> {
        let TransferredKey { key, digest } = key;
        let digest = keys::key_digest(digest);
        self.listed(&key.client_id, keys::keys_of_client(&key.client_id), key.key_id.as_str(), key.created_at).await?;
        self.call(&NAME_KEY, vec![keys::key_name(&key.key_id)], arguments![digest.as_str()]).await?;
        let (id, client, environments) = (key.key_id.as_str(), key.client_id.as_str(), join_environments(&key.environments));
        let args = arguments![id, client, key.label.as_str(), environments, key.created_at, key.revoked_at, key.expires_at];
        self.call(&IMPORT_KEY, vec![keys::key(&digest)], args).await.map(drop)
    }

    /// The keys with these ids, in their order.
    pub(crate) async fn keys_named(&self, ids: &[KeyId]) -> Result<Vec<Option<TransferredKey>>, StoreError> {
        let names = ids.iter().map(|id| cmd("GET").arg(keys::key_name(id)).to_owned());
        let digests = self.read_all("a key's name", names).await?.into_iter().map(Reply::text).collect::<Result<Vec<_>, _>>()?;
        let mut found = self.read_all("a key", digests.iter().flatten().map(|digest| key_fields(digest))).await?.into_iter();
        let mut named = Vec::with_capacity(digests.len());
        for digest in digests {
            let record = if digest.is_some() { found.next().map(key).transpose()?.flatten() } else { None };
            let digest =
                digest.map(|digest| keys::parse_digest(&digest).ok_or_else(|| StoreError::unreadable("a key's name"))).transpose()?;
            named.push(record.zip(digest).map(|(key, digest): (_, KeyDigest)| TransferredKey { key, digest }));
        }
        Ok(named)
    }
}
