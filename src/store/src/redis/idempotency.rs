//! Idempotency keys, and leases on placing the order of one.
//!
//! Of requests that race on several nodes under one key, one is executed at a time. A lease ends by
//! itself, so that a node that dies with it does not block others for long.

use std::time::Duration;

use super::arguments::{Argument, arguments};
use super::keys;
use super::script::{CONFIRM_IDEMPOTENT_ANSWER, END_ORDER_LEASE, LOAD_IDEMPOTENT_ANSWER, Script, TAKE_ORDER_LEASE};
use super::shared::Shared;
use super::store::RedisStore;
use crate::error::{StoreError, StoreFuture};
use crate::idempotency::{CreateOutcome, Idempotency, IdempotencyScope, IdempotentAnswer, OrderLease};

impl Idempotency for RedisStore {
    fn load_idempotent_answer(&self, scope: IdempotencyScope) -> StoreFuture<Option<IdempotentAnswer>> {
        self.run(move |store| async move {
            let key = keys::idempotency(scope.partition, Some(&scope.digest));
            let mut found = store.call(&LOAD_IDEMPOTENT_ANSWER, vec![key.clone()], vec![]).await?;
            // It is given as if it was the first answer, so no failover may lose what it tells.
            if !found.is_nil() && store.link.waits_for_replicas() {
                found = store.call(&CONFIRM_IDEMPOTENT_ANSWER, vec![key], vec![]).await?;
            }
            let Some(mut fields) = found.optional_fields()? else { return Ok(None) };
            let (request, answer, until) = (fields.array()?, fields.sealed()?, fields.time()?);
            Ok(Some(IdempotentAnswer { scope, request, answer, until }))
        })
    }

    fn take_order_lease(&self, lease: OrderLease, lasting: Duration) -> StoreFuture<bool> {
        self.run(move |store| async move {
            let key = keys::order_lease(lease.scope.partition, &lease.scope.digest);
            let taken = store.call(&TAKE_ORDER_LEASE, vec![key], arguments![lease.holder.as_bytes(), lasting]).await?;
            taken.succeeded()
        })
    }

    fn end_order_lease(&self, lease: OrderLease) -> StoreFuture<()> {
        self.run(move |store| async move {
            let key = keys::order_lease(lease.scope.partition, &lease.scope.digest);
            store.call(&END_ORDER_LEASE, vec![key], arguments![lease.holder.as_bytes()]).await.map(drop)
        })
    }
}

impl Shared {
    /// Calls a script that creates an event or a flow, whose last arguments are those of its idempotency key.
    pub(crate) async fn create(
        &self,
        script: &'static Script,
        keys: Vec<Vec<u8>>,
        mut args: Vec<Vec<u8>>,
        idempotency: Option<&IdempotentAnswer>,
    ) -> Result<CreateOutcome, StoreError> {
        args.extend(asked(idempotency).map(Argument::argument));
        let mut answer = self.call(script, keys, args).await?.fields()?;
        match answer.text()?.as_str() {
            "created" | "opened" => Ok(CreateOutcome::Created),
            "replayed" => Ok(CreateOutcome::Replayed(answer.sealed()?)),
            "reused" => Ok(CreateOutcome::KeyReused),
            "limit" => Ok(CreateOutcome::LimitReached),
            "no client" => self.confirm(CreateOutcome::ClientNotFound).await,
            _ => Err(answer.unreadable()),
        }
    }
}

/// The request's digest, the answer and its end, as the scripts take them.
pub(crate) fn asked(idempotency: Option<&IdempotentAnswer>) -> [Option<Vec<u8>>; 3] {
    let part = |of: fn(&IdempotentAnswer) -> Vec<u8>| idempotency.map(of);
    [part(|kept| kept.request.to_vec()), part(|kept| kept.answer.to_bytes()), part(|kept| kept.until.argument())]
}
