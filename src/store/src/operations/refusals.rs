//! Refused requests of an app, for its developers. They are sealed because they contain ids and field names that the
//! client chose.

use sakshi_domain::ids::AppId;
use sakshi_domain::limits::REFUSALS_KEPT_MAX;
use sakshi_domain::refused_request::RefusedRequest;

use super::{Store, is_done, new_call_id};
use crate::engine::Query;
use crate::error::{ATTEMPTS, StoreError, StoreFuture};
use crate::records::refusal::{key_of_refusal, key_of_refusals};
use crate::sealing::{seal_refusal, unseal_refusal};
use crate::transitions::refusal::{slot, store_refusal};

impl Store {
    /// Stores a refused request for [`REFUSAL_TTL`]. Only the newest [`REFUSALS_KEPT_MAX`] of an app are stored.
    ///
    /// [`REFUSALS_KEPT_MAX`]: sakshi_domain::limits::REFUSALS_KEPT_MAX
    /// [`REFUSAL_TTL`]: sakshi_domain::limits::REFUSAL_TTL
    pub fn keep_refusal(&self, app: AppId, refused: RefusedRequest) -> StoreFuture<()> {
        self.run(|store| async move {
            let (sealed, call) = (seal_refusal(store.vault(), &app, &refused)?, new_call_id());
            for _ in 0..ATTEMPTS {
                let count = store.record(key_of_refusals(&app)).await?;
                let batch = store_refusal(&app, &refused, sealed.clone(), count.as_ref(), call);
                if is_done(&store.commit(batch).await?) {
                    return Ok(());
                }
            }
            Err(StoreError::Overloaded)
        })
    }

    /// Returns the stored refused requests of an app, newest first.
    pub fn refusals(&self, app: AppId) -> StoreFuture<Vec<RefusedRequest>> {
        self.run(|store| async move {
            // One read returns the count and all slots, so that their order is known.
            let slots = (0..REFUSALS_KEPT_MAX).map(|slot| key_of_refusal(&app, slot));
            let mut answers =
                store.read([key_of_refusals(&app)].into_iter().chain(slots).map(Query::Record).collect()).await?;
            let total = answers.record()?.map_or(0, |count| count.integer("kept"));
            let mut records = (0..REFUSALS_KEPT_MAX).map(|_| answers.record()).collect::<Result<Vec<_>, _>>()?;
            let newest_first = (1..=i64::from(REFUSALS_KEPT_MAX)).map(|back| slot(total - back));
            let newest_first = newest_first.filter_map(|slot| records.get_mut(usize::try_from(slot).ok()?)?.take());
            newest_first.map(|record| unseal_refusal(store.vault(), &app, record.bytes("refused"))).collect()
        })
    }
}
