//! Upkeep.

use std::future::ready;
use std::sync::atomic::Ordering;

use sakshi_domain::time::Timestamp;

use super::Store;
use crate::engine::{Batch, Op, Operand};
use crate::error::StoreFuture;
use crate::records::installation::swept;
use crate::redis::Finish;
use crate::upkeep::Swept;

impl Store {
    /// Removes at most `limit` records of each kind that have expired, at `now` and by the store's clock. Their ends
    /// were set when they were written, by the retention of the store and of the client. A record with an unsettled
    /// delivery has no end.
    pub fn sweep(&self, now: Timestamp, limit: usize) -> StoreFuture<Swept> {
        self.run(move |store| async move {
            if store.engine().is_shared() {
                return Ok(Swept::default());
            }
            let noted = Batch::on_full(vec![], vec![Op::Put(swept(), vec![("at", Operand::Now(0))])]);
            let mut counts = Swept::default();
            for (table, number) in store.engine().sweep(now, limit, noted).await? {
                if let Some(count) = count_of(&mut counts, table.name) {
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
        self.run(|store| async move { Ok(store.record(swept()).await?.and_then(|record| record.time("at"))) })
    }

    /// Checks that a write would succeed now.
    pub fn check(&self) -> StoreFuture<()> {
        self.engine().check()
    }

    /// Accepts that the store has lost data, so that nodes use it again. Returns the time of the loss, or `None` when
    /// nothing is missing.
    pub fn accept_loss(&self) -> StoreFuture<Option<Timestamp>> {
        self.engine().accept_loss()
    }

    /// Finishes the upgrade to the schema of this release, as far as one call goes. Safe to repeat.
    pub fn finish_upgrade(&self) -> StoreFuture<Finish> {
        self.engine().finish_upgrade()
    }

    /// Takes this node out of service: it begins no further attempt, and other nodes take over its waiting deliveries.
    pub fn leave(&self) -> StoreFuture<()> {
        self.0.left.store(true, Ordering::Relaxed);
        self.engine().leave()
    }
}

/// Returns the counter for records of a kind; `None` for one that is not swept.
fn count_of<'a>(counts: &'a mut Swept, kind: &str) -> Option<&'a mut u64> {
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
    use super::count_of;
    use crate::Swept;
    use crate::engine::Life;
    use crate::records::ALL;

    /// The reaper sweeps again at once while a kind reaches its limit, so no kind may go uncounted.
    #[test]
    fn every_kind_that_ends_is_counted_and_no_other() {
        for table in ALL {
            let ends = !matches!(table.life, Life::Stays);
            assert_eq!(count_of(&mut Swept::default(), table.name).is_some(), ends, "{table:?}");
        }
    }
}
