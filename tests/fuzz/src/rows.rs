//! Reads of damaged columns in the embedded store, and the content of sealed records.
//!
//! An input of `rows` has a few lines: four bytes choose a table, a column, a row and a type; a value follows. Then
//! every record is read: each read returns a record or an error, and never panics.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use rusqlite::types::Value;
use sakshi_domain::client_log::{LogEntry, LogFilter};
use sakshi_domain::clock::ManualClock;
use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::event::{Event, EventTerms};
use sakshi_domain::flow::api_type::{ApiType, RegisteredUrls};
use sakshi_domain::flow::flow_state::{FetchState, FlowState};
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};
use sakshi_domain::operator::OperatorRecord;
use sakshi_domain::profile::Profile;
use sakshi_domain::refused_request::RefusedRequest;
use sakshi_domain::tenancy::{ApiKeyRecord, App, Client, ClientLimits, KeyDigest};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{AnswerDigest, Outcome, Pending, Terms};
use sakshi_domain::user::{User, UserRole};
use sakshi_store::Retention;
use sakshi_store::embedded::{EmbeddedStore, LooseTable};
use sakshi_store::{
    CompleteTransaction, CreateEvent, Credential, InviteDigest, LogQuery, OpenFlow, OpenTransaction, Ownership,
    PageRequest, Rows, Sealed, SessionDigest, SessionHolder, SessionRecord, StoreError, StoreFuture, Vault,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use zeroize::Zeroizing;

use crate::choice;

pub(crate) const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// Returns a vault with a fixed key.
pub(crate) fn vault() -> Arc<Vault> {
    Arc::new(Vault::new(&[Zeroizing::new(vec![7; 32])]).unwrap())
}

/// Ids of the records in the store.
pub(crate) struct Ids {
    pub(crate) client: ClientId,
    pub(crate) app: AppId,
    pub(crate) event: EventId,
    pub(crate) txn: TxnId,
    pub(crate) flow: sakshi_domain::flow::flow_id::FlowId,
}

impl Ids {
    pub(crate) fn new() -> Self {
        let client: ClientId = "cl_5f0c1d2e3b4a49788695a4b3c2d1e0f9".parse().unwrap();
        let number = client.partition().number() << 2;
        let mut id = [0x41; 16];
        id[0] = number;
        let mut short = [0x41; 12];
        short[0] = number;
        Self {
            app: "app_0c1d2e3b4a5f49788695a4b3c2d1e0f9".parse().unwrap(),
            event: EventId::from_bytes(short),
            txn: TxnId::from_bytes(id),
            flow: sakshi_domain::flow::flow_id::FlowId::from_bytes(id),
            client,
        }
    }

    /// Returns the owners of sealed records.
    pub(crate) fn owners(&self) -> Vec<Vec<u8>> {
        let texts = [self.app.as_str(), "op_4a5f0c1d2e3b49788695a4b3c2d1e0f9", "audit:1"];
        let ids = [self.txn.as_bytes().to_vec(), self.event.as_bytes().to_vec(), self.flow.as_bytes().to_vec()];
        ids.into_iter().chain(texts.iter().map(|text| text.as_bytes().to_vec())).collect()
    }
}

/// Reads a record that must be valid.
fn parse<T: DeserializeOwned>(value: serde_json::Value) -> T {
    serde_json::from_value(value).expect("a valid record")
}

/// Returns the terms of a transaction with a webhook.
pub(crate) fn terms() -> Terms {
    parse(json!({
        "claims": ["name", "dob"], "channel": "web", "language": 23, "face_auth": true,
        "webhook_url": "https://hooks.example/secret", "request_id": "r-1",
    }))
}

/// Returns the terms of an event for five guests.
pub(crate) fn event_terms() -> EventTerms {
    parse(json!({
        "name": "Garden party", "claims": ["name"], "language": 23, "time_zone": "Asia/Kolkata", "max_guests": 5,
        "expires_at": (START + Duration::from_secs(8 * 3_600)).to_string(),
        "webhook_url": "https://events.example/list", "is_active": true,
        "secret": "00000000-0000-0000-0000-000000000001",
    }))
}

/// A store whose columns take any value.
struct LooseStore {
    store: EmbeddedStore,
    tables: Vec<LooseTable>,
    ids: Ids,
    vault: Arc<Vault>,
}

/// Returns the result of a store in memory, which is available at once.
fn immediate<T>(answer: StoreFuture<T>) -> Result<T, StoreError> {
    answer.now_or_never().expect("the result is available at once")
}

/// Returns the store of all inputs, filled at the first call.
fn loose_store() -> &'static Mutex<LooseStore> {
    static STORE: OnceLock<Mutex<LooseStore>> = OnceLock::new();
    STORE.get_or_init(|| {
        let (vault, ids) = (vault(), Ids::new());
        let clock = Arc::new(ManualClock::starting_at(START));
        let store = EmbeddedStore::in_memory(
            clock,
            Arc::clone(&vault),
            Retention {
                expired: Duration::from_secs(600),
                events: Duration::from_secs(86_400),
                consents: Duration::from_secs(86_400),
            },
            &Ownership::new(Profile::Sandbox, "https://issuer.test"),
        )
        .unwrap();
        fill(&store, &ids, &vault);
        let tables = store.loosen().unwrap();
        Mutex::new(LooseStore { store, tables, ids, vault })
    })
}

/// Creates a record of every kind.
fn fill(store: &EmbeddedStore, ids: &Ids, vault: &Vault) {
    create_client(store, ids);
    create_event(store, ids);
    open_transactions(store, ids, vault);
    open_flow(store, ids);
    add_people(store, ids);
}

/// Creates the client with credits, an app, a webhook URL and a key.
fn create_client(store: &EmbeddedStore, ids: &Ids) {
    let (client, app) = (ids.client.clone(), ids.app.clone());
    immediate(store.create_client(Client::new(client.clone(), "Bank of Testing".into(), START))).unwrap();
    let grant = CreditMove { kind: EntryKind::Grant, amount: 100, reference: "first".into() };
    immediate(store.move_credits(client.clone(), grant)).unwrap();
    immediate(store.create_app(parse(json!({
        "app_id": app, "client_id": client, "name": "Onboarding", "payload_spelling": "snake_case",
        "consent_webhook_url": null, "data_webhook_url": null, "historical_webhook_url": null,
        "created_at": START.to_string(),
    }))))
    .unwrap();
    let url = parse(json!("https://docs.example/hook"));
    immediate(store.set_webhook_url(app.clone(), ApiType::ALL[0], Some(url))).unwrap();
    let key = ApiKeyRecord {
        key_id: "key_2e3b4a5f0c1d49788695a4b3c2d1e0f9".parse().unwrap(),
        client_id: client.clone(),
        label: "first".into(),
        environments: vec![Profile::Sandbox],
        networks: Default::default(),
        created_at: START,
        expires_at: None,
        revoked_at: None,
    };
    immediate(store.create_key(key, KeyDigest([9; 32]))).unwrap();
}

fn create_event(store: &EmbeddedStore, ids: &Ids) {
    let event = Event {
        id: ids.event,
        client: ids.client.clone(),
        app: ids.app.clone(),
        created_at: START,
        terms: event_terms(),
        counts: Default::default(),
        is_funded: true,
    };
    immediate(store.create_event(CreateEvent { event, events_max: None, idempotency: None })).unwrap();
}

/// Opens three transactions, and completes a transaction of the app and a transaction of the event.
fn open_transactions(store: &EmbeddedStore, ids: &Ids, vault: &Vault) {
    let sealed = |text: &str| vault.seal(ids.txn.as_bytes(), text.as_bytes());
    for (id, event) in [
        (ids.txn, None),
        (TxnId::generate(ids.client.partition(), 1), Some(ids.event)),
        (TxnId::generate(ids.client.partition(), 2), None),
    ] {
        let pending = Pending {
            id,
            client: ids.client.clone(),
            app: ids.app.clone(),
            event,
            opened_at: START,
            expires_at: START + Duration::from_secs(900),
            terms: terms(),
        };
        immediate(store.open_transaction(OpenTransaction {
            pending: Arc::new(pending),
            cost: 1,
            idempotency: None,
            pending_max: None,
            intent: None,
        }))
        .unwrap();
        if event.is_some() || id == ids.txn {
            immediate(store.complete_transaction(CompleteTransaction {
                code: None,
                evidence: None,
                guest: sakshi_store::GuestDetails::default(),
                id,
                known: None,
                passed: true,
                outcome: sealed("outcome"),
                answer: AnswerDigest([3; 32]),
                credential: None,
                replay_window: Duration::from_secs(60),
                result_ttl: Duration::from_secs(86_400),
            }))
            .unwrap();
        }
    }
}

fn open_flow(store: &EmbeddedStore, ids: &Ids) {
    let header = FlowHeader {
        id: ids.flow,
        client: ids.client.clone(),
        app: ids.app.clone(),
        opened_at: START,
        request_id: parse(json!("r-2")),
        retention: Default::default(),
    };
    let flow = FlowState::DocLocker(sakshi_domain::flow::doclocker::DocLockerFlow::new(header));
    immediate(store.open_flow(OpenFlow {
        flow,
        payload: None,
        until: START + Duration::from_secs(86_400),
        idempotency: None,
    }))
    .unwrap();
}

/// Adds a session, a user, an operator, entries of both logs, and a refused request.
fn add_people(store: &EmbeddedStore, ids: &Ids) {
    immediate(store.open_session(SessionRecord {
        digest: SessionDigest([5; 32]),
        holder: SessionHolder::Key(KeyDigest([9; 32])),
        app: ids.app.clone(),
        opened_at: START,
        network: "192.0.2.0/24".to_owned(),
        browser: "Firefox on Linux".to_owned(),
        idle_until: START + Duration::from_secs(60),
        ends_at: START + Duration::from_secs(600),
    }))
    .unwrap();
    immediate(store.invite_user(user(&ids.client), InviteDigest([4; 32]), START + Duration::from_secs(600))).unwrap();
    immediate(store.accept_invite(InviteDigest([4; 32]), credential(), 1)).unwrap().unwrap();
    immediate(store.append_client_log(ids.client.clone(), log_entry())).unwrap();
    immediate(store.add_operator(operator(), KeyDigest([8; 32]))).unwrap();
    immediate(store.append_audit("{\"what\":\"was done\"}".to_owned())).unwrap();
    immediate(store.keep_refusal(ids.app.clone(), refusal())).unwrap();
}

/// Returns a user of the client's portal.
fn user(client: &ClientId) -> User {
    User {
        user_id: parse(json!("usr_4a5f0c1d2e3b49788695a4b3c2d1e0f9")),
        client_id: client.clone(),
        name: parse(json!("Ravi")),
        email: parse(json!("ravi@example.com")),
        role: UserRole::View,
        created_at: START,
        invited_until: None,
        accepted_at: None,
        signed_in_at: None,
        disabled_at: None,
    }
}

/// Returns the hash of a password, and the secrets of a second factor.
fn credential() -> Credential {
    Credential { salt: [1; 16], iterations: 1, hash: [2; 32], totp: [3; 20], recovery: vec![[4; 32]] }
}

/// Returns an entry of the client's log of actions.
fn log_entry() -> LogEntry {
    parse(json!({"at": START.to_string(), "actor": {"kind": "link"}, "action": "signed_in", "request_id": "r-3"}))
}

/// Returns an operator of the service.
fn operator() -> OperatorRecord {
    parse(json!({"operator_id": "op_4a5f0c1d2e3b49788695a4b3c2d1e0f9", "name": "Ravi", "role": "owner",
            "created_at": START.to_string(), "expires_at": null, "revoked_at": null}))
}

/// Returns the record of a refused request.
fn refusal() -> RefusedRequest {
    parse(json!({"at": START.to_string(), "method": "POST", "route": "/api/v1/x", "status": 400,
            "code": "validation_failed", "fields": ["claims"], "request_id": "r-3"}))
}

/// Target: overwrites columns, reads every record, and restores the columns.
pub(crate) fn rows(data: &[u8]) {
    let mut store = loose_store().lock().unwrap_or_else(PoisonError::into_inner);
    let loose = &mut *store;
    let mut overwritten = Vec::new();
    for line in data.split(|byte| *byte == b'\n').take(4) {
        let Some((&[table, column, row, kind], value)) = line.split_first_chunk::<4>() else { continue };
        let table = &loose.tables[usize::from(table) % loose.tables.len()];
        let column = &table.columns[usize::from(column) % table.columns.len()];
        let row = i64::from(row % 4) + 1;
        let value = damaged_value(loose, kind, value);
        if let Some(old) =
            loose.store.overwrite(&table.name, column, row, &value).expect("a loose table takes any value")
        {
            overwritten.push((table.name.clone(), column.clone(), row, old));
        }
    }
    if !overwritten.is_empty() {
        read_everything(loose);
    }
    for (table, column, row, old) in overwritten.into_iter().rev() {
        loose.store.overwrite(&table, &column, row, &old).expect("a loose table takes any value");
    }
}

/// Returns a value of the type that `kind` chooses.
fn damaged_value(loose: &LooseStore, kind: u8, value: &[u8]) -> Value {
    let text = || String::from_utf8_lossy(value).into_owned();
    match kind % 8 {
        0 => Value::Null,
        1 => Value::Integer(
            text()
                .trim()
                .parse()
                .unwrap_or_else(|_| value.iter().fold(0, |number: i64, byte| number << 8 | i64::from(*byte))),
        ),
        2 => Value::Integer([i64::MAX, i64::MIN, -1, 0, 1, 2, i64::MAX - 1, 256][value.len() % 8]),
        3 => Value::Real(text().trim().parse().unwrap_or(f64::NAN)),
        4 => Value::Text(text()),
        5 => Value::Blob(value.to_vec()),
        _ => {
            let (owner, plain) = value.split_first().unwrap_or((&0, value));
            let owners = loose.ids.owners();
            Value::Blob(loose.vault.seal(&owners[usize::from(*owner) % owners.len()], plain).as_bytes().to_vec())
        }
    }
}

/// Reads every record; any result but a panic is valid.
fn read_everything(loose: &LooseStore) {
    let LooseStore { store, ids, .. } = loose;
    let page = || PageRequest { page: 1, page_size: 20 };
    let _ = immediate(store.load_client(ids.client.clone()));
    let _ = immediate(store.list_clients(page()));
    let _ = immediate(store.balance(ids.client.clone()));
    let _ = immediate(store.statement(ids.client.clone(), page()));
    let _ = immediate(store.audit());
    let _ = immediate(store.load_app(ids.app.clone()));
    let _ = immediate(store.list_apps(ids.client.clone()));
    let _ = immediate(store.list_keys(ids.client.clone()));
    let _ = immediate(store.find_key(KeyDigest([9; 32]), ids.app.clone()));
    let _ = immediate(store.webhook_urls(ids.app.clone()));
    let _ = immediate(store.export_client(ids.client.clone()));
    let _ = immediate(store.load_event(ids.event));
    let _ = immediate(store.list_events(ids.app.clone(), page()));
    let _ = immediate(store.list_events(ids.app.clone(), PageRequest { page: 2_147_483_647, page_size: 100 }));
    let _ = immediate(store.list_registrations(ids.event, Rows { offset: 0, limit: 10, max_bytes: 100_000 }));
    if let Ok(Some(sakshi_store::TransactionRecord::Pending(pending))) = immediate(store.load_transaction(ids.txn)) {
        assert_eq!(pending.id, ids.txn);
    }
    let _ = immediate(store.load_transaction_with_app(ids.txn, ids.app.clone()));
    let _ = immediate(store.load_delivery(ids.txn.into()));
    let _ = immediate(store.due_deliveries(None, None, 10));
    let _ = immediate(store.backlog());
    let _ = immediate(store.load_flow(ids.flow, ids.app.clone()));
    let _ = immediate(store.flow_deliveries(ids.flow));
    let _ = immediate(store.lapsed_flows(10));
    let _ = immediate(store.load_session(SessionDigest([5; 32])));
    let _ = immediate(store.list_users(ids.client.clone()));
    let _ = immediate(store.find_signing_in(parse(json!("ravi@example.com"))));
    let (client, filter) = (ids.client.clone(), LogFilter::default());
    let _ = immediate(store.client_log(LogQuery { client, filter, before: None, limit: 10, now: START }));
    let _ = immediate(store.key_uses(ids.client.clone()));
    let _ = immediate(store.operators());
    let _ = immediate(store.find_operator(KeyDigest([8; 32])));
    let _ = immediate(store.audit_log(0, 10));
    let _ = immediate(store.audit_head());
    let _ = immediate(store.refusals(ids.app.clone()));
}

/// Checks that a record in JSON is the same after writing and reading, if it can be read.
fn assert_same_after_writing<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(json: &[u8]) {
    let Ok(value) = serde_json::from_slice::<T>(json) else { return };
    // A time beyond the year 9999 cannot be written.
    let Ok(written) = serde_json::to_vec(&value) else { return };
    let Ok(again) = serde_json::from_slice::<T>(&written) else {
        assert!(
            String::from_utf8_lossy(&written).contains("\"+") || String::from_utf8_lossy(&written).contains("\"-"),
            "a written record cannot be read"
        );
        return;
    };
    assert_eq!(serde_json::to_vec(&again).ok(), Some(written));
}

/// Target: the content of a sealed record, or a sealed value. The letter chooses; `A` is the first.
pub(crate) fn sealed(data: &[u8]) {
    let Some((&first, json)) = data.split_first() else { return };
    let Some((kind, _)) = choice(&[first.wrapping_sub(b'A')], 11) else { return };
    match kind {
        0 => assert_same_after_writing::<Terms>(json),
        1 => assert_same_after_writing::<App>(json),
        2 => assert_same_after_writing::<EventTerms>(json),
        3 => assert_same_after_writing::<RefusedRequest>(json),
        4 => assert_same_after_writing::<OperatorRecord>(json),
        5 => assert_same_after_writing::<RegisteredUrls>(json),
        6 => assert_same_after_writing::<FlowState>(json),
        7 => assert_same_after_writing::<FetchState>(json),
        8 => assert_same_after_writing::<Outcome>(json),
        9 => assert_same_after_writing::<ClientLimits>(json),
        _ => {
            static VAULT: OnceLock<Arc<Vault>> = OnceLock::new();
            let vault = VAULT.get_or_init(vault);
            if let Some(sealed) = Sealed::from_bytes(json) {
                assert!(vault.open(b"owner", &sealed).is_err(), "an input opens as a sealed value");
            }
            let sealed = vault.seal(b"owner", json);
            assert_eq!(vault.open(b"owner", &sealed).expect("a sealed value opens").as_slice(), json);
            assert!(vault.open(b"other", &sealed).is_err());
        }
    }
}
