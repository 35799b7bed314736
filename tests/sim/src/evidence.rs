//! The evidence of a run for the checks: observations, deliveries to receivers, and the content of the store.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use sakshi_domain::credits::{EntryKind, LedgerEntry};
use sakshi_domain::delivery::DeliveryRecord;
use sakshi_domain::event::Event;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::{EventId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_store::Store;
use sakshi_store::{
    Audit, ConsentPosition, ConsentQuery, FlowDeliveries, PageRequest, Registration, StoredConsent, TransactionRecord,
};

use crate::network::Arrival;
use crate::sim::{Sim, Tenant};
use crate::world::{START, lock};

/// A transaction in the store at the end of a run.
#[derive(Debug)]
pub(crate) struct StoredTransaction {
    /// Time of the debit of its credit; `None` if it was never debited.
    pub(crate) paid_at: Option<Timestamp>,
    pub(crate) record: Option<TransactionRecord>,
    pub(crate) delivery: Option<DeliveryRecord>,
}

/// A client's event in the store at the end of a run.
#[derive(Debug)]
pub(crate) struct StoredEvent {
    /// Number of the client.
    pub(crate) tenant: usize,
    pub(crate) event: Event,
    pub(crate) registrations: Vec<Registration>,
}

/// All evidence of a run, for the checks of the promises.
pub(crate) struct Evidence<'a> {
    pub(crate) sim: &'a Sim,
    pub(crate) transactions: BTreeMap<TxnId, StoredTransaction>,
    /// The ledger entries of each client, oldest first, and the balance.
    pub(crate) ledgers: Vec<(Vec<LedgerEntry>, u64)>,
    /// The register of consents of each client.
    pub(crate) consents: Vec<Vec<StoredConsent>>,
    /// The store's audits of the ledgers.
    pub(crate) audits: Vec<Audit>,
    pub(crate) events: Vec<StoredEvent>,
    /// The webhooks of the flows with accepted reports, by the flow's id.
    pub(crate) flow_deliveries: BTreeMap<String, Option<FlowDeliveries>>,
    /// Number of webhooks that are still to be sent.
    pub(crate) queued_webhooks: u64,
    /// Number of live transactions on each running node, before the final requests.
    pub(crate) live_transactions: Vec<i64>,
    /// Webhooks that arrived, by deduplication key.
    pub(crate) inbox: BTreeMap<String, Vec<Arrival>>,
}

const WEEK: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Converts a time of the store to the time since the start of the run.
pub(crate) fn time_in_run(at: Timestamp) -> Duration {
    at.since(START)
}

impl<'a> Evidence<'a> {
    /// Returns true if an operator has erased a transaction, or may have.
    pub(crate) fn is_erased(&self, txn: TxnId) -> bool {
        self.sim.journal.erased.borrow().contains_key(&txn)
    }

    /// Reads the store, and collects the webhooks that arrived.
    pub(crate) async fn gather(sim: &'a Rc<Sim>, live_transactions: Vec<i64>) -> Evidence<'a> {
        let store = sim.world.store();
        let mut transactions: BTreeMap<TxnId, StoredTransaction> = BTreeMap::new();
        let (mut ledgers, mut events, mut consents) = (Vec::new(), Vec::new(), Vec::new());
        for tenant in &sim.tenants {
            let entries = read_ledger(&store, tenant).await;
            for entry in entries.iter().filter(|entry| entry.kind == EntryKind::Debit) {
                let txn = entry.reference.parse().expect("a transaction");
                transactions.insert(txn, StoredTransaction { paid_at: Some(entry.at), record: None, delivery: None });
            }
            consents.push(read_consents(&store, tenant).await);
            ledgers.push((entries, store.balance(tenant.client.clone()).await.expect("an answer").unwrap_or(0)));
            let id: Option<EventId> = tenant.event.borrow().as_ref().and_then(|id| id.parse().ok());
            if let Some(event) = match id {
                Some(id) => store.load_event(id).await.expect("an answer"),
                None => None,
            } {
                let page = PageRequest { page: 1, page_size: 1_000 };
                let registrations = store.list_registrations(event.id, page.into()).await.expect("an answer").items;
                events.push(StoredEvent { tenant: tenant.number, event, registrations });
            }
        }
        for fact in sim.journal.facts.borrow().iter() {
            transactions.entry(fact.txn).or_insert(StoredTransaction { paid_at: None, record: None, delivery: None });
        }
        for (txn, stored) in &mut transactions {
            stored.record = store.load_transaction(*txn).await.expect("an answer");
            stored.delivery = store.load_delivery((*txn).into()).await.expect("an answer");
        }
        let mut flow_deliveries = BTreeMap::new();
        let reports = sim.journal.accepted_reports.borrow().clone();
        for report in reports {
            let id: FlowId = report.flow.parse().expect("a flow");
            flow_deliveries.insert(report.flow, store.flow_deliveries(id).await.expect("an answer"));
        }
        let audits = store.audit().await.expect("an answer");
        let queued_webhooks = store.backlog().await.expect("an answer").deliveries;
        let inbox = lock(&sim.inbox).clone();
        Evidence {
            sim,
            transactions,
            ledgers,
            consents,
            audits,
            events,
            flow_deliveries,
            queued_webhooks,
            live_transactions,
            inbox,
        }
    }
}

/// Reads the whole register of a client's consents.
async fn read_consents(store: &Store, tenant: &Tenant) -> Vec<StoredConsent> {
    // The period begins before the run, because a node's clock may be behind.
    let (client, from, to) = (tenant.client.clone(), START - WEEK, START + WEEK);
    let query = ConsentQuery { client, from, to, after: ConsentPosition::default(), limit: 10_000 };
    store.consents(query).await.expect("an answer").entries.into_iter().map(|(_, consent)| consent).collect()
}

/// Reads all ledger entries of a client, oldest first.
async fn read_ledger(store: &Store, tenant: &Tenant) -> Vec<LedgerEntry> {
    let page = PageRequest { page: 1, page_size: 10_000 };
    let mut entries = store.statement(tenant.client.clone(), page).await.expect("an answer").items;
    entries.sort_by_key(|entry| entry.seq);
    entries
}
