//! Stub.
#![allow(unused_imports)]

use super::{RecordStore, unbuilt};
use crate::tenancy::*;
use sakshi_domain::flow::api_type::{ApiType, RegisteredUrls};
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::{AppId, ClientId, KeyId};
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::{ApiKeyRecord, App, AppPatch, Client, ClientLimits, ClientPatch, KeyDigest};
use sakshi_domain::time::Timestamp;
use crate::error::{StoreError, StoreFuture};
use crate::paging::{Page, PageRequest};

impl Tenancy for RecordStore {
    fn create_client(&self, client: Client) -> StoreFuture<()> {
        self.run(|store| async move {
            use crate::engine::*;
            use crate::records::client as records;
            let key = records::client(&client.client_id);
            store.commit(Batch::new(vec![Guard::Absent(key.clone())], vec![Op::Put(key, vec![("balance", 0.into())])])).await?;
            store.commit(Batch { ops: vec![Op::Index(records::clients(), client.client_id.as_str().as_bytes().to_vec(), client.created_at.into())], ..Batch::default() }).await?;
            Ok(())
        })
    }

    fn list_clients(&self, _: PageRequest) -> StoreFuture<Page<Client>> {
        unbuilt()
    }

    fn load_client(&self, _: ClientId) -> StoreFuture<Option<Client>> {
        unbuilt()
    }

    fn patch_client(&self, _: ClientId, _: ClientPatch, _: Timestamp) -> StoreFuture<Option<Client>> {
        unbuilt()
    }

    fn create_app(&self, _: App) -> StoreFuture<bool> {
        unbuilt()
    }

    fn load_app(&self, _: AppId) -> StoreFuture<Option<App>> {
        unbuilt()
    }

    fn patch_app(&self, _: AppId, _: AppPatch) -> StoreFuture<Option<App>> {
        unbuilt()
    }

    fn list_apps(&self, _: ClientId) -> StoreFuture<Vec<App>> {
        unbuilt()
    }

    fn create_key(&self, _: ApiKeyRecord, _: KeyDigest) -> StoreFuture<bool> {
        unbuilt()
    }

    fn list_keys(&self, _: ClientId) -> StoreFuture<Vec<ApiKeyRecord>> {
        unbuilt()
    }

    fn retire_key(&self, _: KeyId, _: Option<Timestamp>, _: Option<Timestamp>) -> StoreFuture<Option<ApiKeyRecord>> {
        unbuilt()
    }

    fn find_key(&self, _: KeyDigest, _: AppId) -> StoreFuture<Option<KeyGrant>> {
        unbuilt()
    }

    fn set_webhook_url(&self, _: AppId, _: ApiType, _: Option<WebhookUrl>) -> StoreFuture<Option<RegisteredUrls>> {
        unbuilt()
    }

    fn webhook_urls(&self, _: AppId) -> StoreFuture<Option<RegisteredUrls>> {
        unbuilt()
    }
}
