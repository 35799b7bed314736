//! Upkeep: sweeping expired records, checking the store, and leaving the cluster.

use std::future::ready;
use std::sync::atomic::Ordering;

use sakshi_domain::time::Timestamp;

use super::Store;
use crate::engine::{Batch, Op, Operand};
use crate::error::StoreFuture;
use crate::records::installation::key_of_last_sweep;
use crate::redis::Finish;
use crate::upkeep::Swept;

impl Store {
    /// Removes at most `limit` records of each kind that have expired both at `now` and by the store's clock. A record
    /// with an unsettled delivery does not expire.
    pub fn sweep(&self, now: Timestamp, limit: usize) -> StoreFuture<Swept> {
        self.run(move |store| async move {
            if store.engine().is_shared() {
                return Ok(Swept::default());
            }
            let note_time =
                Batch::even_when_full(vec![], vec![Op::Put(key_of_last_sweep(), vec![("at", Operand::NOW)])]);
            let mut counts = Swept::default();
            for (table, number) in store.engine().sweep(now, limit, note_time).await? {
                if let Some(count) = counter_for(&mut counts, table.name) {
                    *count += number;
                }
            }
            Ok(counts)
        })
    }

    /// Returns the time of the last sweep, or of the store's creation; `None` for a store that needs no sweeps.
    pub fn last_sweep(&self) -> StoreFuture<Option<Timestamp>> {
        if self.engine().is_shared() {
            return Box::pin(ready(Ok(None)));
        }
        self.run(
            |store| async move { Ok(store.record(key_of_last_sweep()).await?.and_then(|record| record.time("at"))) },
        )
    }

    /// Checks that a write would succeed now.
    pub fn check(&self) -> StoreFuture<()> {
        self.engine().check()
    }

    /// Accepts a loss of data, so that nodes use the store again. Returns the time of the loss, or `None` when nothing
    /// is missing.
    pub fn accept_loss(&self) -> StoreFuture<Option<Timestamp>> {
        self.engine().accept_loss()
    }

    /// Finishes the upgrade to the schema of this release, as far as one call goes. Safe to repeat.
    pub fn finish_upgrade(&self) -> StoreFuture<Finish> {
        self.engine().finish_upgrade()
    }

    /// Takes this node out of the cluster: it begins no further attempt, and other nodes take over its waiting
    /// deliveries.
    pub fn leave(&self) -> StoreFuture<()> {
        self.0.has_left.store(true, Ordering::Relaxed);
        self.engine().leave()
    }
}

/// Returns the counter for swept records of a kind; `None` for kinds that do not expire.
fn counter_for<'a>(counts: &'a mut Swept, kind: &str) -> Option<&'a mut u64> {
    Some(match kind {
        "txn" | "evidence" => &mut counts.transactions,
        "idempotency" | "order_lease" => &mut counts.idempotency,
        "credential" => &mut counts.credentials,
        "event" | "guests" | "shared" | "people" | "waiting" => &mut counts.events,
        "flow" | "webhooks" | "report" | "webhook_name" => &mut counts.flows,
        "session" | "console_session" | "provider_logout" | "grant_request" | "user_invite" => &mut counts.sessions,
        "refusals" | "refusal" => &mut counts.refusals,
        "watch" | "snapshot" => &mut counts.nodes,
        "consent_week" | "consents" => &mut counts.consents,
        "day" => &mut counts.days,
        "client_log_month" | "client_log" => &mut counts.logs,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::counter_for;
    use crate::Swept;
    use crate::engine::Life;
    use crate::records::ALL;

    /// The reaper sweeps again immediately if a kind reaches the limit, so every kind must be counted.
    #[test]
    fn exactly_the_kinds_that_expire_are_counted() {
        for table in ALL {
            let ends = !matches!(table.life, Life::Stays);
            assert_eq!(counter_for(&mut Swept::default(), table.name).is_some(), ends, "{table:?}");
        }
    }
}
