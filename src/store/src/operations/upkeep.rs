//! Upkeep.

use std::future::ready;
use std::sync::atomic::Ordering;

use sakshi_domain::time::Timestamp;

use super::RecordStore;
use crate::engine::{Batch, Op};
use crate::error::StoreFuture;
use crate::records::installation::swept;
use crate::records::{credential, event, flow, idempotency, refusal, session, transaction};
use crate::upkeep::{Retention, Swept, Upkeep};

impl Upkeep for RecordStore {
    fn sweep(&self, now: Timestamp, _: Retention, limit: usize) -> StoreFuture<Swept> {
        self.run(move |store| async move {
            if store.engine().is_shared() {
                return Ok(Swept::default());
            }
            let noted = Batch::on_full(vec![], vec![Op::Put(swept(), vec![("at", now.into())])]);
            let mut swept = Swept::default();
            for (table, number) in store.engine().sweep(now, limit, noted).await? {
                let kind = match table.name {
                    name if name == transaction::TRANSACTION.name => &mut swept.transactions,
                    name if name == idempotency::IDEMPOTENCY.name => &mut swept.idempotency,
                    name if name == credential::CREDENTIAL.name => &mut swept.credentials,
                    name if [&event::EVENT, &event::REGISTRATIONS].iter().any(|kind| kind.name == name) => &mut swept.events,
                    name if name == flow::FLOW.name || name == flow::REPORT.name => &mut swept.flows,
                    name if name == session::SESSION.name => &mut swept.sessions,
                    name if name == refusal::REFUSAL.name => &mut swept.refusals,
                    _ => continue,
                };
                *kind += number;
            }
            Ok(swept)
        })
    }

    fn last_sweep(&self) -> StoreFuture<Option<Timestamp>> {
        if self.engine().is_shared() {
            return Box::pin(ready(Ok(None)));
        }
        self.run(|store| async move { Ok(store.record(swept()).await?.and_then(|record| record.time("at"))) })
    }

    fn check(&self) -> StoreFuture<()> {
        self.engine().check()
    }

    fn accept_loss(&self) -> StoreFuture<Option<Timestamp>> {
        self.engine().accept_loss()
    }

    fn leave(&self) -> StoreFuture<()> {
        self.0.left.store(true, Ordering::Relaxed);
        self.engine().leave()
    }
}
