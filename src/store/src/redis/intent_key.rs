//! The intent key that was chosen: when, a blank and its id; `-` when the settings decide again.

use redis::cmd;
use sakshi_domain::time::Timestamp;

use super::arguments::arguments;
use super::keys;
use super::script::KEEP_MARK;
use super::shared::Shared;
use super::store::RedisStore;
use crate::error::{StoreError, StoreFuture};
use crate::intent_key::{ChosenIntentKey, IntentKeyChoice};

const WHAT: &str = "the choice of an intent key";
const BY_SETTINGS: &str = "-";

impl IntentKeyChoice for RedisStore {
    fn chosen_intent_key(&self) -> StoreFuture<Option<ChosenIntentKey>> {
        self.run(|store| async move {
            let Some(kept) = store.intent_key().await? else { return store.confirm(None).await };
            if kept == BY_SETTINGS {
                return Ok(None);
            }
            let parts = kept.split_once(' ').and_then(|(since, kid)| Some((since.parse().ok()?, kid.to_owned())));
            let (since, kid) = parts.ok_or_else(|| StoreError::unreadable(WHAT))?;
            Ok(Some(ChosenIntentKey { kid, since: Timestamp::from_millis(since) }))
        })
    }

    fn choose_intent_key(&self, chosen: Option<ChosenIntentKey>) -> StoreFuture<()> {
        self.run(move |store| async move {
            let fresh = chosen.map_or_else(|| BY_SETTINGS.to_owned(), |chosen| format!("{} {}", chosen.since.millis(), chosen.kid));
            loop {
                let kept = store.intent_key().await?.unwrap_or_default();
                if store.call(&KEEP_MARK, vec![keys::intent_key()], arguments![kept, fresh.clone()]).await?.succeeded()? {
                    return Ok(());
                }
                // Another operator has chosen meanwhile; the later choice stands.
            }
        })
    }
}

impl Shared {
    async fn intent_key(&self) -> Result<Option<String>, StoreError> {
        self.read(WHAT, cmd("GET").arg(keys::intent_key())).await?.text()
    }
}
