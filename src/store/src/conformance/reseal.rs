//! A store with every kind of sealed value, which the tests of each store reseal and read.
#![allow(missing_docs)] // The name of each function states the property that it checks.

use sakshi_domain::client_log::Action;
use sakshi_domain::delivery::{QueuedDelivery, Subject};
use sakshi_domain::event::Event;
use sakshi_domain::flow::api_type::RegisteredUrls;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::grant_request::GrantRequest;
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::{AppId, ClientId, TxnId};
use sakshi_domain::operator::OperatorRecord;
use sakshi_domain::refused_request::RefusedRequest;
use sakshi_domain::tenancy::{App, KeyDigest};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::Pending;

use super::client_log::build_log_entry;
use super::fixture::{
    WINDOW, build_app, build_completion, build_event, build_idempotent_answer, build_opening, client_with,
    open_and_complete, open_guest_scan, receiver, store_event,
};
use super::flow_fixture::{
    Flow, ShortReport, accept_report, build_report, create_client_app, document_flow, locker_flow, open_flow,
    register_webhooks, wealth_flow,
};
use super::operators::build_operator;
use super::refusals::build_refused_request;
use super::sessions::build_session;
use super::users::join_user;
use super::{TestStore, console};
use crate::{
    AuditRecord, CompleteOutcome, ConsentPage, ConsentPosition, ConsentQuery, ConsoleSession, IdempotencyScope,
    LogPage, LogQuery, PageRequest, ReportFlowOutcome, ResealCursor, Resealed, SessionDigest, SessionHolder,
    SessionRecord, SignInCandidate, Store, TransactionRecord, Vault,
};

/// Plain text of every outcome.
const OUTCOME: &[u8] = b"shared claims";
/// Plain text of every proof.
const PROOF: &[u8] = b"a proof";
/// Plain text of the response that is stored for an `Idempotency-Key`.
const ANSWER: &[u8] = b"a response";

/// Ids of the records in the filled store.
pub(crate) struct FilledStore {
    client: ClientId,
    app: AppId,
    event: Event,
    transactions: Vec<TxnId>,
    flows: Vec<Flow>,
    /// A flow with a fetch.
    flow_with_fetch: Flow,
    scope: IdempotencyScope,
}

/// Fills a store with every kind of sealed value. Outcomes, proofs and responses are sealed by this vault.
pub(crate) async fn fill_store(test: &impl TestStore, vault: &Vault) -> FilledStore {
    let store = test.store();
    let client = client_with(test, 50).await;
    let app = build_app(test, &client);
    assert!(store.create_app(app.clone()).await.unwrap());
    store.keep_refusal(app.app_id.clone(), build_refused_request(test, 1)).await.unwrap();
    store.add_operator(build_operator(test, "Asha Rao"), KeyDigest([6; 32])).await.unwrap();
    let times = [test.now() + WINDOW, test.now() + WINDOW * 10];
    let person = join_user(test, &client, "planted-one@example.com", 1).await;
    let holder = SessionHolder::User { id: person.user_id, epoch: 0 };
    let session = SessionRecord { holder, idle_until: times[0], ends_at: times[1], ..build_session(test, 1) };
    store.open_session(session).await.unwrap();
    store.append_client_log(client.clone(), build_log_entry(test, Action::SignedIn)).await.unwrap();
    console::use_console(test).await;
    for number in 1..=3 {
        store.append_audit(format!("{{\"entry\":{number}}}")).await.unwrap();
    }

    let mut pending = build_opening(test, &client);
    let scope = build_idempotent_answer(test, &client, 1, 1).scope;
    pending.idempotency = Some(crate::IdempotentAnswer {
        answer: vault.seal(&scope.digest, ANSWER),
        ..build_idempotent_answer(test, &client, 1, 1)
    });
    let completed = build_opening(test, &client);
    let mut transactions = vec![pending.pending.id, completed.pending.id];
    for open in [pending, completed] {
        store.open_transaction(open).await.unwrap();
    }
    let event = store_event(test, build_event(test, &client, 100)).await;
    for _ in 0..20 {
        transactions.push(open_guest_scan(test, &event).await);
    }
    for id in transactions.iter().copied().skip(1) {
        let complete = build_completion(id, 1);
        let (outcome, evidence) = (vault.seal(id.as_bytes(), OUTCOME), Some(vault.seal(id.as_bytes(), PROOF)));
        let complete = crate::CompleteTransaction { outcome, evidence, ..complete };
        assert!(matches!(store.complete_transaction(complete).await, Ok(CompleteOutcome::Completed { .. })));
    }
    let (flows, flow_with_fetch, app) = fill_flows(test, app).await;
    FilledStore { client, app, event, transactions, flows, flow_with_fetch, scope }
}

/// Adds flows with reports, deliveries and a fetch. Returns them, the flow with the fetch, and their app.
async fn fill_flows(test: &impl TestStore, app: App) -> (Vec<Flow>, Flow, AppId) {
    let client_app = create_client_app(test).await;
    register_webhooks(test, &client_app).await;
    drop(app);
    let document = open_flow(test, document_flow(test, &client_app, Some("https://own.example/planted-path"))).await;
    let locker = open_flow(test, locker_flow(test, &client_app)).await;
    accept_report(test, &locker, ShortReport::Locker { status: "Fetched", content: 1 }).await.unwrap();
    let consent = open_flow(test, wealth_flow(test, &client_app)).await;
    accept_report(test, &consent, ShortReport::Consent { status: "Accepted", content: 1 }).await.unwrap();
    accept_report(test, &consent, ShortReport::Data { fetch: 1, form: "RAW", content: 1 }).await.unwrap();
    (vec![document, locker, consent.clone()], consent, client_app.app)
}

/// Every sealed value of a filled store, opened.
#[derive(Debug, PartialEq)]
pub(crate) struct ReadValues {
    apps: Vec<App>,
    urls: Option<RegisteredUrls>,
    transactions: Vec<(Pending, Option<Vec<u8>>)>,
    queued: Vec<QueuedDelivery>,
    receivers: Vec<WebhookUrl>,
    answer: Vec<u8>,
    event: Option<Event>,
    guests: Vec<(TxnId, Vec<u8>)>,
    flows: Vec<(FlowState, Option<Vec<u8>>)>,
    webhooks: Vec<Option<Vec<u8>>>,
    fetch: ReportFlowOutcome,
    session: Option<SessionRecord>,
    console_session: Option<ConsoleSession>,
    grants: Vec<GrantRequest>,
    refusals: Vec<RefusedRequest>,
    audit_log: Vec<AuditRecord>,
    evidence: Vec<Option<Vec<u8>>>,
    consents: ConsentPage,
    operators: Vec<OperatorRecord>,
    log: LogPage,
    person: Option<SignInCandidate>,
}

/// Reads every sealed value of a filled store with the keys of this vault.
pub(crate) async fn read_values(store: &Store, vault: &Vault, filled: &FilledStore) -> ReadValues {
    let all = PageRequest { page: 1, page_size: 100 };
    let apps = store.list_apps(filled.client.clone()).await.unwrap();
    let refusals = store.refusals(apps[0].app_id.clone()).await.unwrap();
    let mut transactions = Vec::new();
    for id in &filled.transactions {
        transactions.push(match store.load_transaction(*id).await.unwrap().unwrap() {
            TransactionRecord::Pending(pending) | TransactionRecord::Expired(pending) => (pending, None),
            TransactionRecord::Completed(record) => {
                (record.opened, Some(vault.open(id.as_bytes(), &record.outcome).unwrap().to_vec()))
            }
        });
    }
    let mut queued = store.first_due_deliveries(100).await.unwrap();
    queued.sort_by_key(|delivery| delivery.id);
    let (mut webhooks, mut receivers) = (Vec::new(), Vec::new());
    for delivery in &queued {
        if let Subject::Flow { flow, webhook } = delivery.subject {
            let payload = store.load_webhook(flow, webhook).await.unwrap();
            webhooks.push(payload.map(|(_, payload)| payload.open(vault).unwrap()));
        }
        receivers.push(receiver(store, delivery).await);
    }
    let mut flows = Vec::new();
    for flow in &filled.flows {
        let record = store.load_flow(flow.id, flow.app.clone()).await.unwrap().unwrap();
        flows.push((record.state, record.latest.map(|payload| payload.open(vault).unwrap())));
    }
    let mut evidence = Vec::new();
    for id in &filled.transactions {
        let proof = store.load_evidence(*id).await.unwrap();
        evidence.push(proof.map(|proof| vault.open(id.as_bytes(), &proof).unwrap().to_vec()));
    }
    let (from, to) = (Timestamp::from_millis(0), Timestamp::from_millis(4_000_000_000_000));
    let query = ConsentQuery { client: filled.client.clone(), from, to, after: ConsentPosition::default(), limit: 100 };
    let consents = store.consents(query).await.unwrap();
    let log = LogQuery::newest(filled.client.clone(), apps[0].created_at);
    let answer = store.load_idempotent_answer(filled.scope).await.unwrap().unwrap().answer;
    let guests = store.list_registrations(filled.event.id, all.into()).await.unwrap().items;
    ReadValues {
        urls: store.webhook_urls(filled.app.clone()).await.unwrap(),
        apps,
        transactions,
        queued,
        receivers,
        answer: vault.open(&filled.scope.digest, &answer).unwrap().to_vec(),
        event: store.load_event(filled.event.id).await.unwrap(),
        guests: guests
            .into_iter()
            .map(|row| (row.guest.txn, vault.open(row.guest.txn.as_bytes(), &row.outcome).unwrap().to_vec()))
            .collect(),
        flows,
        webhooks,
        // A repeated report changes nothing, but reads the stored fetch.
        fetch: store
            .report_flow(build_report(&filled.flow_with_fetch, ShortReport::Data { fetch: 1, form: "RAW", content: 1 }))
            .await
            .unwrap(),
        session: store.load_session(SessionDigest([1; 32])).await.unwrap(),
        console_session: store.load_console_session(SessionDigest([1; 32])).await.unwrap(),
        grants: store.grant_requests().await.unwrap(),
        refusals,
        audit_log: store.audit_log(0, 100).await.unwrap(),
        evidence,
        consents,
        operators: store.operators().await.unwrap(),
        log: store.client_log(log).await.unwrap(),
        person: store.find_signing_in("planted-one@example.com".parse().unwrap()).await.unwrap(),
    }
}

/// Runs a complete pass in steps of a few records.
pub(crate) async fn reseal_store(store: &Store) -> Resealed {
    let (mut total, mut next) = (Resealed::default(), Some(ResealCursor::default()));
    while let Some(from) = next.take() {
        total.add(store.reseal(from.to_string().parse().unwrap(), 3).await.unwrap());
        next.clone_from(&total.next);
    }
    total
}

pub(crate) async fn a_pass_checks_the_values_of_every_client(test: &impl TestStore) {
    let clients = 20;
    for _ in 0..clients {
        open_and_complete(test, &client_with(test, 1).await).await;
    }
    let result = reseal_store(test.store()).await;
    // The fixture seals outcomes under a key that no node has.
    let left: Vec<_> = result.left.into_iter().map(|(key, values)| (key.to_string(), values)).collect();
    assert_eq!((left, result.resealed), (vec![("01010101".to_owned(), clients)], 0));
    assert!(result.looked_at >= 2 * clients);
}
