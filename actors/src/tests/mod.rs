//! Guarantees of the tree, tested on a real store. Each test owns its store, its arbiters and its clock.

mod bodies;
mod bounds;
mod clock;
mod counter;
pub(super) mod dispatch;
mod events;
mod figures;
mod flow_fixture;
mod flows;
mod lapses;
mod ledger;
mod lifetime;
mod panic_origin;
mod panics;
mod restarts;
mod views;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::clock::{Clock as _, ManualClock};
use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::http_url::{HttpUrl, Schemes};
use sakshi_domain::ids::{AppId, ClientId, TxnId};
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::Client;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{Answer, AnswerDigest, Failure, Pending};
use sakshi_kit::records;
pub(super) use sakshi_kit::records::WINDOW;
use sakshi_kit::waiting::{TIMEOUT, eventually, watch_for_pauses};
use sakshi_outbound::Egress;
use sakshi_outbound::client::{SendWebhook, WebhookClient, WebhookClientOptions};
use sakshi_store::embedded::{EmbeddedOptions, EmbeddedStore};
use sakshi_store::{CompletedRecord, OpenOutcome, OpenTransaction, Ownership, Retention, Store, Upgrading, Vault};
use tokio::sync::mpsc;
use zeroize::Zeroizing;

use crate::ask::{Ask, Inquiry};
use crate::transaction::TransactionActor;
use crate::{
    AskError, ByteBounds, Complete, CompleteReply, DispatchBounds, Escalation, Events, Flows, Handles, Transactions,
    Tree, TreeBounds, TreeConfig,
};

const CREDITS: i64 = 1_000;

/// A tree with one shard on the test's own arbiter, over a store of its own.
pub(super) struct Fixture {
    pub(super) tree: Tree,
    pub(super) transactions: Transactions,
    pub(super) events: Events,
    pub(super) flows: Flows,
    pub(super) store: EmbeddedStore,
    pub(super) clock: Arc<ManualClock>,
    /// The current client; see [`Fixture::become_another_client`].
    pub(super) client: ClientId,
    pub(super) escalations: mpsc::UnboundedReceiver<Escalation>,
    pub(super) app: AppId,
    config: TreeConfig,
    _directory: tempfile::TempDir,
}

pub(super) fn large_bounds() -> TreeBounds {
    TreeBounds {
        shards: 1,
        live_transactions: 1_000,
        in_flight: 1_000,
        mailbox_depth: 1_000,
        ask_timeout: Duration::from_secs(5),
        webhooks: DispatchBounds {
            in_flight: 64,
            in_flight_per_origin: 16,
            outcome_bytes: ByteBounds::OUTCOMES,
            flow_bytes: ByteBounds::FLOWS,
        },
        live_events: 1_000,
        flow_result_ttl: WINDOW,
        flow_pending_ttl: WINDOW,
    }
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::starting_at(Timestamp::parse_iso8601("2026-01-01T00:00:00Z").unwrap()))
}

/// Creates a client with credits.
async fn create_funded_client(store: &Store, now: Timestamp) -> ClientId {
    let client = Client::new(ClientId::generate(), "Test".into(), now);
    let id = client.client_id.clone();
    store.create_client(client).await.unwrap();
    let grant = CreditMove { kind: EntryKind::Grant, amount: CREDITS, reference: "start".into() };
    store.move_credits(id.clone(), grant).await.unwrap();
    id
}

/// Builds the message in which a shard receives a question.
pub(super) fn ask<Q>(id: TxnId, question: Q) -> Ask<TransactionActor, Q> {
    Ask { id, inquiry: Inquiry { question, origin: sakshi_trace::Origin::current() }, actor_ended: false }
}

/// Runs a test on an actix system of its own.
pub(super) fn run(test: impl Future<Output = ()>) {
    actix_rt::System::new().block_on(test);
}

impl Fixture {
    pub(super) async fn new() -> Self {
        Self::with_bounds(large_bounds()).await
    }

    pub(super) async fn with_bounds(bounds: TreeBounds) -> Self {
        Self::start(bounds, Duration::from_secs(2)).await
    }

    /// Starts a fixture whose receivers and actors may take an hour: longer than any machine needs for the largest
    /// bodies.
    pub(super) async fn patient(bounds: TreeBounds) -> Self {
        let hour = Duration::from_secs(3_600);
        Self::start(TreeBounds { ask_timeout: hour, ..bounds }, hour).await
    }

    async fn start(bounds: TreeBounds, total_timeout: Duration) -> Self {
        watch_for_pauses();
        let clock = clock();
        let directory = tempfile::tempdir().unwrap();
        let vault = Arc::new(Vault::new(&[Zeroizing::new(vec![7; 32])]).unwrap());
        let options = EmbeddedOptions {
            directory: directory.path().join("store"),
            clock: clock.clone(),
            vault: vault.clone(),
            retention: Retention {
                expired: Duration::from_secs(3_600),
                events: Duration::from_secs(3_600),
                consents: Duration::from_secs(3_600),
            },
            max_waiting: 1_000,
            ownership: Ownership::new(Profile::Sandbox, "https://issuer.test"),
            upgrading: Upgrading::default(),
        };
        let store = EmbeddedStore::open(options).unwrap();
        let connect_timeout = Duration::from_secs(2);
        let options =
            WebhookClientOptions { allow_private: true, connect_timeout, total_timeout, egress: Egress::default() };
        let client = WebhookClient::new(&options).unwrap();
        let config = TreeConfig {
            store: (*store).clone(),
            vault,
            clock: clock.clone(),
            client: Arc::new(client),
            audit_receiver: None,
            on_one_arbiter: false,
        };
        let (tree, escalations) = Tree::start(config.clone(), bounds).await.unwrap();
        let Handles { transactions, events, flows } = tree.start_shard().unwrap();
        let client = create_funded_client(&store, clock.now()).await;
        Self {
            tree,
            transactions,
            events,
            flows,
            store,
            clock,
            client,
            escalations,
            app: AppId::generate(),
            config,
            _directory: directory,
        }
    }

    /// Continues as another client. Returns the previous client.
    pub(super) async fn become_another_client(&mut self) -> ClientId {
        let next_client = create_funded_client(&self.store, self.clock.now()).await;
        std::mem::replace(&mut self.client, next_client)
    }

    /// Starts another tree on the same store, with this webhook client.
    pub(super) async fn start_with_client(
        &self,
        client: Arc<dyn SendWebhook>,
    ) -> (Tree, mpsc::UnboundedReceiver<Escalation>) {
        Tree::start(TreeConfig { client, ..self.config.clone() }, large_bounds()).await.unwrap()
    }

    /// Starts another tree with the same configuration.
    pub(super) async fn start_again(&self) -> (Tree, mpsc::UnboundedReceiver<Escalation>) {
        Tree::start(self.config.clone(), large_bounds()).await.unwrap()
    }

    /// Builds the opening of a transaction whose outcome goes to this webhook.
    pub(super) fn opening(&self, id: TxnId, webhook: Option<&str>) -> OpenTransaction {
        let mut pending = records::pending(id, self.client.clone(), self.app.clone(), self.clock.now());
        pending.terms.webhook_url = webhook.map(|url| HttpUrl::parse(url, Schemes::HttpAndHttps).unwrap());
        records::opening(pending)
    }

    pub(super) async fn open(&self) -> TxnId {
        self.open_with_webhook(None).await.unwrap()
    }

    pub(super) async fn open_with_webhook(&self, webhook: Option<&str>) -> Result<TxnId, AskError> {
        let id = self.transactions.new_id(&self.client);
        let outcome = self.transactions.open(self.opening(id, webhook)).await?;
        assert!(matches!(outcome, OpenOutcome::Opened { .. }), "{outcome:?}");
        Ok(id)
    }

    /// Opens a transaction as another node would.
    pub(super) async fn open_elsewhere(&self) -> Arc<Pending> {
        let opening = self.opening(self.transactions.new_id(&self.client), None);
        let pending = Arc::clone(&opening.pending);
        assert!(matches!(self.store.open_transaction(opening).await, Ok(OpenOutcome::Opened { .. })));
        pending
    }

    /// Completes a transaction that the caller has just seen pending.
    pub(super) async fn complete_known(&self, pending: &Arc<Pending>, answer: Answer) -> CompleteReply {
        let complete = Complete { known: Some(Arc::clone(pending)), ..completion(answer) };
        self.transactions.complete(pending.id, complete).await.unwrap()
    }

    /// Completes a transaction with the person's answer.
    pub(super) async fn complete(&self, id: TxnId, answer: Answer) -> CompleteReply {
        self.transactions.complete(id, completion(answer)).await.unwrap()
    }

    pub(super) async fn credits_spent(&self) -> u64 {
        u64::try_from(CREDITS).unwrap() - self.store.balance(self.client.clone()).await.unwrap().unwrap()
    }

    /// Checks that every ledger adds up and nothing has escalated, then stops the tree.
    pub(super) async fn end(mut self) {
        assert!(self.store.audit().await.unwrap().iter().all(sakshi_store::Audit::is_clean));
        assert!(self.escalations.try_recv().is_err(), "something escalated");
        self.tree.stop();
    }
}

/// Builds an answer that verifies the person. Equal marks give equal answers.
pub(super) fn verified(mark: u8) -> Answer {
    records::credential([mark; 32])
}

/// Builds the answer of a person who declines.
pub(super) fn declined() -> Answer {
    Answer::Failure { failure: Failure::new("User Reject", Some("301")), digest: AnswerDigest([1; 32]) }
}

/// Lets the other tasks and actors of this thread run.
pub(super) async fn yield_often() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Lets other tasks run until the condition holds.
pub(super) async fn wait_until(goal: &str, holds: impl Fn() -> bool) {
    eventually(goal, TIMEOUT, || async { holds().then_some(()) }).await;
}

/// Builds the message that submits an answer.
pub(crate) fn completion(answer: Answer) -> Complete {
    Complete {
        answer,
        known: None,
        evidence: None,
        guest: sakshi_store::GuestDetails::default(),
        replay_window: WINDOW,
        result_ttl: WINDOW,
    }
}

/// Builds a transaction completed by a credential with this mark. Equal marks give equal transactions.
pub(crate) fn completed_record(mark: u8) -> CompletedRecord {
    let client: ClientId = "cl_1".parse().unwrap();
    let mut id = *TxnId::generate(client.partition(), 0).as_bytes();
    id[1..].fill(mark);
    let opened = records::pending(TxnId::from_bytes(id), client, "app_1".parse().unwrap(), Timestamp::from_millis(0));
    let outcome = verified(mark).outcome();
    CompletedRecord {
        outcome: sakshi_store::seal_outcome(&vault(), opened.id, &outcome),
        opened,
        verified_at: Timestamp::from_millis(1),
        passed: true,
        refused: None,
        registration: None,
        answer: AnswerDigest([mark; 32]),
        address: None,
        is_polled: false,
    }
}

/// Builds a vault with its own key.
pub(crate) fn vault() -> Vault {
    Vault::new(&[Zeroizing::new(vec![7; 32])]).unwrap()
}
