//! The chosen intent key. Without a record the settings decide.

use super::Store;
use crate::engine::{Batch, Op};
use crate::error::{StoreError, StoreFuture};
use crate::intent_key::ChosenIntentKey;
use crate::records::installation::key_of_intent_key;

impl Store {
    /// Returns the chosen key; `None` when the settings decide.
    pub fn chosen_intent_key(&self) -> StoreFuture<Option<ChosenIntentKey>> {
        self.run(|store| async move {
            let Some(record) = store.record_unless_lost(key_of_intent_key()).await? else { return Ok(None) };
            let since = record.time("since").ok_or_else(|| StoreError::unreadable("the choice of an intent key"))?;
            Ok(Some(ChosenIntentKey { kid: record.text("kid").to_owned(), since }))
        })
    }

    /// Chooses an intent key; `None` lets the settings decide again.
    pub fn choose_intent_key(&self, chosen: Option<ChosenIntentKey>) -> StoreFuture<()> {
        self.run(|store| async move {
            let op = match chosen {
                Some(ChosenIntentKey { kid, since }) => {
                    Op::Put(key_of_intent_key(), vec![("kid", kid.into()), ("since", since.into())])
                }
                None => Op::Remove(key_of_intent_key()),
            };
            store.commit(Batch { ops: vec![op], ..Batch::default() }).await.map(drop)
        })
    }
}
