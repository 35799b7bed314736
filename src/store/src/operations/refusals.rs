//! Refused requests of an app, for its developers. They are sealed, because the names of fields and the id are the
//! client's own.

use sakshi_domain::ids::AppId;
use sakshi_domain::limits::REFUSALS_KEPT_MAX;
use sakshi_domain::refused_request::RefusedRequest;

use super::{Store, call, is_done};
use crate::engine::Query;
use crate::error::{ATTEMPTS, StoreError, StoreFuture};
use crate::records::refusal::{refusal, refusals};
use crate::sealing::{seal_refusal, unseal_refusal};
use crate::transitions::refusal::{keep, place};

impl Store {
    /// Stores a refused request. Each app keeps its newest [`REFUSALS_KEPT_MAX`], each for [`REFUSAL_TTL`].
    ///
    /// [`REFUSALS_KEPT_MAX`]: sakshi_domain::limits::REFUSALS_KEPT_MAX
    /// [`REFUSAL_TTL`]: sakshi_domain::limits::REFUSAL_TTL
    pub fn keep_refusal(&self, app: AppId, refused: RefusedRequest) -> StoreFuture<()> {
        self.run(|store| async move {
            let (sealed, call) = (seal_refusal(store.vault(), &app, &refused)?, call());
            for _ in 0..ATTEMPTS {
                let counted = store.record(refusals(&app)).await?;
                if is_done(&store.commit(keep(&app, &refused, sealed.clone(), counted.as_ref(), call)).await?) {
                    return Ok(());
                }
            }
            Err(StoreError::Overloaded)
        })
    }

    /// Returns the stored refused requests of an app, newest first.
    pub fn refusals(&self, app: AppId) -> StoreFuture<Vec<RefusedRequest>> {
        self.run(|store| async move {
            // In one step: a place that is reused meanwhile has another number.
            let places = (0..REFUSALS_KEPT_MAX).map(|place| refusal(&app, place));
            let mut answers =
                store.read([refusals(&app)].into_iter().chain(places).map(Query::Record).collect()).await?;
            let kept = answers.record()?.map_or(0, |counted| counted.integer("kept"));
            let mut found = (0..REFUSALS_KEPT_MAX).map(|_| answers.record()).collect::<Result<Vec<_>, _>>()?;
            let newest_first = (1..=i64::from(REFUSALS_KEPT_MAX)).map(|back| place(kept - back));
            let newest_first = newest_first.filter_map(|place| found.get_mut(usize::try_from(place).ok()?)?.take());
            newest_first.map(|record| unseal_refusal(store.vault(), &app, record.bytes("refused"))).collect()
        })
    }
}
