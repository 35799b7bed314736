//! Refused requests of apps. An app has a slot of its own; what was written is found again by its ciphertext.

use sakshi_domain::ids::AppId;
use sakshi_domain::limits::{REFUSAL_TTL, REFUSALS_KEPT_MAX};
use sakshi_domain::refused_request::RefusedRequest;

use super::arguments::arguments;
use super::keys;
use super::script::{KEEP_REFUSAL, LOAD_REFUSALS};
use super::store::RedisStore;
use crate::error::{StoreError, StoreFuture};
use crate::refusals::Refusals;
use crate::sealing::{open_refusal, seal_refusal};

impl Refusals for RedisStore {
    fn keep_refusal(&self, app: AppId, refused: RefusedRequest) -> StoreFuture<()> {
        self.run(|store| async move {
            let sealed = seal_refusal(&store.vault, &app, &refused)?;
            let args = arguments![refused.at, sealed, REFUSALS_KEPT_MAX, refused.at + REFUSAL_TTL];
            store.call(&KEEP_REFUSAL, vec![keys::refusals(&app)], args).await.map(drop)
        })
    }

    fn refusals(&self, app: AppId) -> StoreFuture<Vec<RefusedRequest>> {
        self.run(|store| async move {
            let found = store.call(&LOAD_REFUSALS, vec![keys::refusals(&app)], arguments![REFUSAL_TTL]).await?;
            let open = |sealed: Option<Vec<u8>>| {
                open_refusal(&store.vault, &app, sealed.ok_or_else(|| StoreError::unreadable("a refused request"))?)
            };
            found.fields()?.rest().map(|sealed| open(sealed.bytes()?)).collect()
        })
    }
}
