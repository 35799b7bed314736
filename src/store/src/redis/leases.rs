//! Leases on orders: of requests that race on several nodes under one idempotency key, one is carried
//! out at a time. A lease ends by itself, so that a node that dies with it keeps nobody waiting for long.

use std::time::Duration;

use super::answer::{arguments, number};
use super::script::{END_ORDER_LEASE, TAKE_ORDER_LEASE};
use super::{Shared, keys};
use crate::error::StoreError;
use crate::transition::OrderLease;

impl Shared {
    pub(super) async fn take_order_lease(&self, lease: OrderLease, lasting: Duration) -> Result<bool, StoreError> {
        let key = keys::order_lease(lease.scope.partition, &lease.scope.digest);
        let taken = self.call(&TAKE_ORDER_LEASE, vec![key], arguments![lease.holder.as_bytes(), lasting]).await?;
        Ok(number::<u8>("a lease", taken)? == 1)
    }

    pub(super) async fn end_order_lease(&self, lease: OrderLease) -> Result<(), StoreError> {
        let key = keys::order_lease(lease.scope.partition, &lease.scope.digest);
        self.call(&END_ORDER_LEASE, vec![key], arguments![lease.holder.as_bytes()]).await.map(drop)
    }
}
