//! Idempotency keys, and leases on placing the order of one.
//!
//! Of requests that race on several nodes under one key, one is executed at a time. A lease ends by
//! itself, so that a node that dies with it does not block others for long.

use std::time::Duration;

use super::arguments::{Argument as _, arguments};
use super::keys;
use super::reply::{Fields, number};
use super::script::{END_ORDER_LEASE, LOAD_IDEMPOTENT_ANSWER, TAKE_ORDER_LEASE};
use super::store::RedisStore;
use crate::error::StoreFuture;
use crate::idempotency::{Idempotency, IdempotencyScope, IdempotentAnswer, OrderLease};

impl Idempotency for RedisStore {
    fn load_idempotent_answer(&self, scope: IdempotencyScope) -> StoreFuture<Option<IdempotentAnswer>> {
        self.run(move |store| async move {
            let key = keys::idempotency(scope.partition, Some(&scope.digest));
            let found = Fields::maybe("a kept answer", store.call(&LOAD_IDEMPOTENT_ANSWER, vec![key], vec![]).await?)?;
            let Some(mut fields) = found else { return Ok(None) };
            let (request, answer, until) = (fields.array()?, fields.sealed()?, fields.time()?);
            Ok(Some(IdempotentAnswer { scope, request, answer, until }))
        })
    }

    fn take_order_lease(&self, lease: OrderLease, lasting: Duration) -> StoreFuture<bool> {
        self.run(move |store| async move {
            let key = keys::order_lease(lease.scope.partition, &lease.scope.digest);
            let taken = store.call(&TAKE_ORDER_LEASE, vec![key], arguments![lease.holder.as_bytes(), lasting]).await?;
            Ok(number::<u8>("a lease", taken)? == 1)
        })
    }

    fn end_order_lease(&self, lease: OrderLease) -> StoreFuture<()> {
        self.run(move |store| async move {
            let key = keys::order_lease(lease.scope.partition, &lease.scope.digest);
            store.call(&END_ORDER_LEASE, vec![key], arguments![lease.holder.as_bytes()]).await.map(drop)
        })
    }
}

/// The request's digest, the answer and its end, as the scripts take them.
pub(crate) fn asked(idempotency: Option<&IdempotentAnswer>) -> [Option<Vec<u8>>; 3] {
    let part = |of: fn(&IdempotentAnswer) -> Vec<u8>| idempotency.map(of);
    [part(|kept| kept.request.to_vec()), part(|kept| kept.answer.to_bytes()), part(|kept| kept.until.argument())]
}
