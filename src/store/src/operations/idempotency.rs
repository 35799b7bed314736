//! Idempotency keys, and leases for placing orders.

use std::time::Duration;

use super::Store;
use crate::engine::Query;
use crate::error::{StoreError, StoreFuture};
use crate::idempotency::{IdempotencyScope, IdempotentAnswer, OrderLease};
use crate::records::idempotency::key_of_idempotency;
use crate::transitions::idempotency as transitions;
use crate::vault::Sealed;

impl Store {
    /// Returns the response stored under an idempotency key, while it is replayed.
    pub fn load_idempotent_answer(&self, scope: IdempotencyScope) -> StoreFuture<Option<IdempotentAnswer>> {
        self.run(move |store| async move {
            let Some(record) = store.read_confirmed(vec![Query::Record(key_of_idempotency(&scope))]).await?.record()?
            else {
                return Ok(None);
            };
            let unreadable = || StoreError::unreadable("a stored response");
            Ok(Some(IdempotentAnswer {
                scope,
                request: record.array("request")?,
                answer: Sealed::from_bytes(record.bytes("answer")).ok_or_else(unreadable)?,
                until: record.time("until").ok_or_else(unreadable)?,
            }))
        })
    }

    /// Takes the lease that lets one request, on any node, place the order (the request to an upstream) of its
    /// idempotency key. Returns false while another request holds the lease. Repeatable by the holder.
    ///
    /// A store of one node needs no lease.
    pub fn take_order_lease(&self, lease: OrderLease, duration: Duration) -> StoreFuture<bool> {
        self.run(move |store| async move {
            if !store.engine().is_shared() {
                return Ok(true);
            }
            let applied = store.engine().commit(transitions::take_lease(&lease, duration).into()).await?;
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
