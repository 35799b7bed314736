//! The embedded store's reads of damaged columns, and the content of sealed records.
//!
//! An input of `rows` is a few lines of four bytes, which choose a table, a column, a row and a type, and a value. Then
//! everything is read: each read gives an answer or an error, and never a panic.

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
    AskedLog, CompleteTransaction, CreateEvent, Credential, InviteDigest, OpenFlow, OpenTransaction, Ownership,
    PageRequest, Rows, Sealed, SessionDigest, SessionHolder, SessionRecord, StoreError, StoreFuture, Vault,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use zeroize::Zeroizing;

use crate::choice;

pub(crate) const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);

pub(crate) fn vault() -> Arc<Vault> {
    Arc::new(Vault::new(&[Zeroizing::new(vec![7; 32])]).unwrap())
}

/// Ids of everything in the store.
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

    /// Returns the owners to which sealed records are bound.
    pub(crate) fn owners(&self) -> Vec<Vec<u8>> {
        let texts = [self.app.as_str(), "op_4a5f0c1d2e3b49788695a4b3c2d1e0f9", "audit:1"];
        let ids = [self.txn.as_bytes().to_vec(), self.event.as_bytes().to_vec(), self.flow.as_bytes().to_vec()];
        ids.into_iter().chain(texts.iter().map(|text| text.as_bytes().to_vec())).collect()
    }
}

fn read<T: DeserializeOwned>(value: serde_json::Value) -> T {
    serde_json::from_value(value).expect("a record of ours")
}

pub(crate) fn terms() -> Terms {
    read(json!({
        "claims": ["name", "dob"], "channel": "web", "language": 23, "face_auth": true,
        "webhook_url": "https://hooks.example/secret", "request_id": "r-1",
    }))
}

pub(crate) fn event_terms() -> EventTerms {
    read(json!({
        "name": "Garden party", "claims": ["name"], "language": 23, "time_zone": "Asia/Kolkata", "max_guests": 5,
        "expires_at": (START + Duration::from_secs(8 * 3_600)).to_string(),
        "webhook_url": "https://events.example/list", "is_active": true,
        "secret": "00000000-0000-0000-0000-000000000001",
    }))
}

struct World {
    store: EmbeddedStore,
    tables: Vec<LooseTable>,
    ids: Ids,
    vault: Arc<Vault>,
}

/// Returns the answer of a store in memory, which is immediate.
fn now<T>(answer: StoreFuture<T>) -> Result<T, StoreError> {
    answer.now_or_never().expect("a store in memory answers at once")
}

fn world() -> &'static Mutex<World> {
    static WORLD: OnceLock<Mutex<World>> = OnceLock::new();
    WORLD.get_or_init(|| {
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
            &Ownership::of(Profile::Sandbox, "https://issuer.test"),
        )
        .unwrap();
        fill(&store, &ids, &vault);
        let tables = store.loosen().unwrap();
        Mutex::new(World { store, tables, ids, vault })
    })
}

fn fill(store: &EmbeddedStore, ids: &Ids, vault: &Vault) {
    let (client, app) = (ids.client.clone(), ids.app.clone());
    now(store.create_client(Client::new(client.clone(), "Bank of Testing".into(), START))).unwrap();
    let grant = CreditMove { kind: EntryKind::Grant, amount: 100, reference: "first".into() };
    now(store.move_credits(client.clone(), grant)).unwrap();
    now(store.create_app(read(json!({
        "app_id": app, "client_id": client, "name": "Onboarding", "payload_spelling": "snake_case",
        "consent_webhook_url": null, "data_webhook_url": null, "historical_webhook_url": null,
        "created_at": START.to_string(),
    }))))
    .unwrap();
    let url = read(json!("https://docs.example/hook"));
    now(store.set_webhook_url(app.clone(), ApiType::ALL[0], Some(url))).unwrap();
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
    now(store.create_key(key, KeyDigest([9; 32]))).unwrap();
    let event = Event {
        id: ids.event,
        client: client.clone(),
        app: app.clone(),
        created_at: START,
        terms: event_terms(),
        counts: Default::default(),
        is_funded: true,
    };
    now(store.create_event(CreateEvent { event, most: None, idempotency: None })).unwrap();
    let sealed = |text: &str| vault.seal(ids.txn.as_bytes(), text.as_bytes());
    for (id, event) in [
        (ids.txn, None),
        (TxnId::generate(client.partition(), 1), Some(ids.event)),
        (TxnId::generate(client.partition(), 2), None),
    ] {
        let pending = Pending {
            id,
            client: client.clone(),
            app: app.clone(),
            event,
            opened_at: START,
            expires_at: START + Duration::from_secs(900),
            terms: terms(),
        };
        now(store.open_transaction(OpenTransaction {
            pending: Arc::new(pending),
            cost: 1,
            idempotency: None,
            pending_max: None,
            intent: None,
        }))
        .unwrap();
        if event.is_some() || id == ids.txn {
            now(store.complete_transaction(CompleteTransaction {
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
    let header = FlowHeader {
        id: ids.flow,
        client: client.clone(),
        app: app.clone(),
        opened_at: START,
        request_id: read(json!("r-2")),
        retention: Default::default(),
    };
    let flow = FlowState::DocLocker(sakshi_domain::flow::doclocker::DocLockerFlow::new(header));
    now(store.open_flow(OpenFlow {
        flow,
        payload: None,
        until: START + Duration::from_secs(86_400),
        idempotency: None,
    }))
    .unwrap();
    now(store.open_session(SessionRecord {
        digest: SessionDigest([5; 32]),
        holder: SessionHolder::Key(KeyDigest([9; 32])),
        app: app.clone(),
        opened_at: START,
        network: "192.0.2.0/24".to_owned(),
        browser: "Firefox on Linux".to_owned(),
        idle_until: START + Duration::from_secs(60),
        ends_at: START + Duration::from_secs(600),
    }))
    .unwrap();
    now(store.invite_user(user(&client), InviteDigest([4; 32]), START + Duration::from_secs(600))).unwrap();
    now(store.accept_invite(InviteDigest([4; 32]), credential())).unwrap().unwrap();
    now(store.append_client_log(client, logged())).unwrap();
    now(store.add_operator(operator(), KeyDigest([8; 32]))).unwrap();
    now(store.append_audit("{\"what\":\"was done\"}".to_owned())).unwrap();
    now(store.keep_refusal(app, refusal())).unwrap();
}

fn user(client: &ClientId) -> User {
    User {
        user_id: read(json!("usr_4a5f0c1d2e3b49788695a4b3c2d1e0f9")),
        client_id: client.clone(),
        name: read(json!("Ravi")),
        email: read(json!("ravi@example.com")),
        role: UserRole::View,
        created_at: START,
        invited_until: None,
        accepted_at: None,
        signed_in_at: None,
        disabled_at: None,
    }
}

fn credential() -> Credential {
    Credential { salt: [1; 16], iterations: 1, hash: [2; 32], totp: [3; 20], recovery: vec![[4; 32]] }
}

fn logged() -> LogEntry {
    read(json!({"at": START.to_string(), "actor": {"kind": "link"}, "action": "signed_in", "request_id": "r-3"}))
}

fn operator() -> OperatorRecord {
    read(json!({"operator_id": "op_4a5f0c1d2e3b49788695a4b3c2d1e0f9", "name": "Ravi", "role": "owner",
            "created_at": START.to_string(), "expires_at": null, "revoked_at": null}))
}

fn refusal() -> RefusedRequest {
    read(json!({"at": START.to_string(), "method": "POST", "route": "/api/v1/x", "status": 400,
            "code": "validation_failed", "fields": ["claims"], "request_id": "r-3"}))
}

pub(crate) fn rows(data: &[u8]) {
    let mut world = world().lock().unwrap_or_else(PoisonError::into_inner);
    let world = &mut *world;
    let mut before = Vec::new();
    for line in data.split(|byte| *byte == b'\n').take(4) {
        let Some((&[table, column, row, kind], value)) = line.split_first_chunk::<4>() else { continue };
        let table = &world.tables[usize::from(table) % world.tables.len()];
        let column = &table.columns[usize::from(column) % table.columns.len()];
        let row = i64::from(row % 4) + 1;
        let value = damaged(world, kind, value);
        if let Some(old) =
            world.store.overwrite(&table.name, column, row, &value).expect("a loose table takes any value")
        {
            before.push((table.name.clone(), column.clone(), row, old));
        }
    }
    if !before.is_empty() {
        everything(world);
    }
    for (table, column, row, old) in before.into_iter().rev() {
        world.store.overwrite(&table, &column, row, &old).expect("a loose table takes any value");
    }
}

fn damaged(world: &World, kind: u8, value: &[u8]) -> Value {
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
            let owners = world.ids.owners();
            Value::Blob(world.vault.seal(&owners[usize::from(*owner) % owners.len()], plain).as_bytes().to_vec())
        }
    }
}

/// Reads everything; any answer of the store is valid.
fn everything(world: &World) {
    let World { store, ids, .. } = world;
    let page = || PageRequest { page: 1, page_size: 20 };
    let _ = now(store.load_client(ids.client.clone()));
    let _ = now(store.list_clients(page()));
    let _ = now(store.balance(ids.client.clone()));
    let _ = now(store.statement(ids.client.clone(), page()));
    let _ = now(store.audit());
    let _ = now(store.load_app(ids.app.clone()));
    let _ = now(store.list_apps(ids.client.clone()));
    let _ = now(store.list_keys(ids.client.clone()));
    let _ = now(store.find_key(KeyDigest([9; 32]), ids.app.clone()));
    let _ = now(store.webhook_urls(ids.app.clone()));
    let _ = now(store.export_client(ids.client.clone()));
    let _ = now(store.load_event(ids.event));
    let _ = now(store.list_events(ids.app.clone(), page()));
    let _ = now(store.list_events(ids.app.clone(), PageRequest { page: 2_147_483_647, page_size: 100 }));
    let _ = now(store.list_registrations(ids.event, Rows { offset: 0, limit: 10, max_bytes: 100_000 }));
    if let Ok(Some(sakshi_store::TransactionRecord::Pending(pending))) = now(store.load_transaction(ids.txn)) {
        assert_eq!(pending.id, ids.txn);
    }
    let _ = now(store.load_transaction_with_app(ids.txn, ids.app.clone()));
    let _ = now(store.load_delivery(ids.txn.into()));
    let _ = now(store.due_deliveries(None, None, 10));
    let _ = now(store.backlog());
    let _ = now(store.load_flow(ids.flow, ids.app.clone()));
    let _ = now(store.flow_deliveries(ids.flow));
    let _ = now(store.lapsed_flows(10));
    let _ = now(store.load_session(SessionDigest([5; 32])));
    let _ = now(store.list_users(ids.client.clone()));
    let _ = now(store.find_signing_in(read(json!("ravi@example.com"))));
    let (client, filter) = (ids.client.clone(), LogFilter::default());
    let _ = now(store.client_log(AskedLog { client, filter, before: None, limit: 10, now: START }));
    let _ = now(store.key_uses(ids.client.clone()));
    let _ = now(store.operators());
    let _ = now(store.find_operator(KeyDigest([8; 32])));
    let _ = now(store.audit_log(0, 10));
    let _ = now(store.audit_head());
    let _ = now(store.refusals(ids.app.clone()));
}

fn same<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(json: &[u8]) {
    let Ok(value) = serde_json::from_slice::<T>(json) else { return };
    // A time beyond the year 9999 cannot be written.
    let Ok(written) = serde_json::to_vec(&value) else { return };
    let Ok(again) = serde_json::from_slice::<T>(&written) else {
        assert!(
            String::from_utf8_lossy(&written).contains("\"+") || String::from_utf8_lossy(&written).contains("\"-"),
            "what is written is read"
        );
        return;
    };
    assert_eq!(serde_json::to_vec(&again).ok(), Some(written));
}

/// Opens sealed content, and the sealing itself. Letters choose, `A` the first.
pub(crate) fn sealed(data: &[u8]) {
    let Some((&first, json)) = data.split_first() else { return };
    let Some((kind, _)) = choice(&[first.wrapping_sub(b'A')], 11) else { return };
    match kind {
        0 => same::<Terms>(json),
        1 => same::<App>(json),
        2 => same::<EventTerms>(json),
        3 => same::<RefusedRequest>(json),
        4 => same::<OperatorRecord>(json),
        5 => same::<RegisteredUrls>(json),
        6 => same::<FlowState>(json),
        7 => same::<FetchState>(json),
        8 => same::<Outcome>(json),
        9 => same::<ClientLimits>(json),
        _ => {
            static VAULT: OnceLock<Arc<Vault>> = OnceLock::new();
            let vault = VAULT.get_or_init(vault);
            if let Some(sealed) = Sealed::from_bytes(json) {
                assert!(vault.open(b"owner", &sealed).is_err(), "nobody has sealed it");
            }
            let sealed = vault.seal(b"owner", json);
            assert_eq!(vault.open(b"owner", &sealed).expect("we have sealed it").as_slice(), json);
            assert!(vault.open(b"other", &sealed).is_err());
        }
    }
}
