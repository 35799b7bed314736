//! Idempotency keys.

use std::time::Duration;

use super::Store;
use crate::engine::Query;
use crate::error::{StoreError, StoreFuture};
use crate::idempotency::{IdempotencyScope, IdempotentAnswer, OrderLease};
use crate::records::idempotency::idempotency;
use crate::transitions::idempotency as transitions;
use crate::vault::Sealed;

impl Store {
    /// Returns the response stored under an idempotency key, while it is replayed.
    pub fn load_idempotent_answer(&self, scope: IdempotencyScope) -> StoreFuture<Option<IdempotentAnswer>> {
        self.run(move |store| async move {
            let Some(kept) = store.engine().read_confirmed(vec![Query::Record(idempotency(&scope))]).await?.record()?
            else {
                return Ok(None);
            };
            let unreadable = || StoreError::unreadable("a kept answer");
            Ok(Some(IdempotentAnswer {
                scope,
                request: kept.array("request")?,
                answer: Sealed::from_bytes(kept.bytes("answer")).ok_or_else(unreadable)?,
                until: kept.time("until").ok_or_else(unreadable)?,
            }))
        })
    }

    /// Lets one request, on any node, place the order of its idempotency key until the lease ends;
    /// `false` while another request holds the lease. Repeatable by its holder.
    ///
    /// A store of one node has no other node to exclude.
    pub fn take_order_lease(&self, lease: OrderLease, lasting: Duration) -> StoreFuture<bool> {
        self.run(move |store| async move {
            if !store.engine().is_shared() {
                return Ok(true);
            }
            let applied = store.engine().commit(transitions::take_lease(&lease, lasting).into()).await?;
            Ok(transitions::has_lease(&applied))
        })
    }

    /// Releases a lease before its end, if this holder still has it.
    pub fn end_order_lease(&self, lease: OrderLease) -> StoreFuture<()> {
        self.run(move |store| async move {
            if store.engine().is_shared() {
                store.commit(transitions::end_lease(&lease)).await?;
            }
            Ok(())
        })
    }
}
