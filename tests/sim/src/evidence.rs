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

/// A transaction in the store.
#[derive(Debug)]
pub(crate) struct StoredTransaction {
    /// Time of the debit of its credit; `None` if it was never debited.
    pub(crate) paid_at: Option<Timestamp>,
    pub(crate) record: Option<TransactionRecord>,
    pub(crate) delivery: Option<DeliveryRecord>,
}

/// An event of a client in the store.
#[derive(Debug)]
pub(crate) struct KeptEvent {
    pub(crate) tenant: usize,
    pub(crate) event: Event,
    pub(crate) listed: Vec<Registration>,
}

/// All evidence of a run.
pub(crate) struct Evidence<'a> {
    pub(crate) sim: &'a Sim,
    pub(crate) transactions: BTreeMap<TxnId, StoredTransaction>,
    /// The ledger entries of each client, oldest first, and the balance.
    pub(crate) ledgers: Vec<(Vec<LedgerEntry>, u64)>,
    /// The register of consents of each client.
    pub(crate) consents: Vec<Vec<StoredConsent>>,
    pub(crate) audits: Vec<Audit>,
    pub(crate) events: Vec<KeptEvent>,
    pub(crate) flows: BTreeMap<String, Option<FlowDeliveries>>,
    pub(crate) waiting: u64,
    /// Transactions with an actor on each running node, before the final requests.
    pub(crate) live: Vec<i64>,
    pub(crate) inbox: BTreeMap<String, Vec<Arrival>>,
}

const WEEK: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Converts a time of the store to a time of the run.
pub(crate) fn since_start(at: Timestamp) -> Duration {
    at.since(START)
}

impl<'a> Evidence<'a> {
    /// Returns true if an operator has erased a transaction, or may have.
    pub(crate) fn is_erased(&self, txn: TxnId) -> bool {
        self.sim.diary.erased.borrow().contains_key(&txn)
    }

    /// Reads everything.
    pub(crate) async fn gather(sim: &'a Rc<Sim>, live: Vec<i64>) -> Evidence<'a> {
        let store = sim.world.store();
        let mut transactions: BTreeMap<TxnId, StoredTransaction> = BTreeMap::new();
        let (mut ledgers, mut events, mut consents) = (Vec::new(), Vec::new(), Vec::new());
        for tenant in &sim.tenants {
            let entries = entries(&store, tenant).await;
            for entry in entries.iter().filter(|entry| entry.kind == EntryKind::Debit) {
                let txn = entry.reference.parse().expect("a transaction");
                transactions.insert(txn, StoredTransaction { paid_at: Some(entry.at), record: None, delivery: None });
            }
            consents.push(register(&store, tenant).await);
            ledgers.push((entries, store.balance(tenant.client.clone()).await.expect("an answer").unwrap_or(0)));
            let id: Option<EventId> = tenant.event.borrow().as_ref().and_then(|id| id.parse().ok());
            if let Some(event) = match id {
                Some(id) => store.load_event(id).await.expect("an answer"),
                None => None,
            } {
                let page = PageRequest { page: 1, page_size: 1_000 };
                let listed = store.list_registrations(event.id, page.into()).await.expect("an answer").items;
                events.push(KeptEvent { tenant: tenant.number, event, listed });
            }
        }
        for fact in sim.diary.facts.borrow().iter() {
            transactions.entry(fact.txn).or_insert(StoredTransaction { paid_at: None, record: None, delivery: None });
        }
        for (txn, kept) in &mut transactions {
            kept.record = store.load_transaction(*txn).await.expect("an answer");
            kept.delivery = store.load_delivery((*txn).into()).await.expect("an answer");
        }
        let mut flows = BTreeMap::new();
        let reported = sim.diary.reported.borrow().clone();
        for reported in reported {
            let id: FlowId = reported.flow.parse().expect("a flow");
            flows.insert(reported.flow, store.flow_deliveries(id).await.expect("an answer"));
        }
        let audits = store.audit().await.expect("an answer");
        let waiting = store.backlog().await.expect("an answer").deliveries;
        let inbox = lock(&sim.inbox).clone();
        Evidence { sim, transactions, ledgers, consents, audits, events, flows, waiting, live, inbox }
    }
}

async fn register(store: &Store, tenant: &Tenant) -> Vec<StoredConsent> {
    // A node's clock may be behind that of the run.
    let (client, from, to) = (tenant.client.clone(), START - WEEK, START + WEEK);
    let asked = ConsentQuery { client, from, to, after: ConsentPosition::default(), limit: 10_000 };
    store.consents(asked).await.expect("an answer").entries.into_iter().map(|(_, kept)| kept).collect()
}

async fn entries(store: &Store, tenant: &Tenant) -> Vec<LedgerEntry> {
    let page = PageRequest { page: 1, page_size: 10_000 };
    let mut entries = store.statement(tenant.client.clone(), page).await.expect("an answer").items;
    entries.sort_by_key(|entry| entry.seq);
    entries
}
