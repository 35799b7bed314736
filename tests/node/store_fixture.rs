//! A fixture with a real embedded store, a manual clock, and the dependencies of the internal listener.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use sakshi_authority::intent::{IntentKey, IntentSettings, IntentSigner};
use sakshi_domain::clock::ManualClock;
use sakshi_domain::credits::CreditMove;
use sakshi_domain::ids::{AppId, ClientId, KeyId};
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::{ApiKeyRecord, Client};
use sakshi_domain::time::Timestamp;
use sakshi_kit::node::intent_key;
use sakshi_kit::records;
use sakshi_operator::{
    ConnectorTokens, CreditDesk, FailedLogins, FlowDesk, Health, InternalDeps, LogLevel, RetentionMax,
};
use sakshi_service::api_key::ApiKey;
use sakshi_service::budget::MemoryBudgets;
use sakshi_service::url_policy::UrlPolicy;
use sakshi_store::Retention;
use sakshi_store::embedded::{EmbeddedOptions, EmbeddedStore};
use sakshi_store::{CreditOutcome, Ownership, ReportFlow, ReportFlowOutcome, Store, StoreFuture, Upgrading, Vault};
use sakshi_web::error::{ApiError, DocsBase};
use sakshi_wire::operator::nodes::NodesResponse;
use sakshi_wire::operator::views::TreeNode;
use sakshi_wire::reports::FlowReport;
use secrecy::SecretString;

/// The admin token of the settings.
pub(crate) const TOKEN: &str = "an-admin-token-of-more-than-32-characters";
pub(crate) const CONNECTOR_TOKEN: &str = "a-connector-token-of-more-than-32-characters";
/// Time for which the result of a flow is available.
pub(crate) const RESULT_TTL: Duration = Duration::from_secs(3_600);

/// A store with its clock, and the state of the internal listener.
pub(crate) struct StoreFixture {
    pub(crate) store: EmbeddedStore,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) health: Arc<HealthSwitch>,
    pub(crate) directory: tempfile::TempDir,
}

/// Health that is good until the test changes it.
#[derive(Default)]
pub(crate) struct HealthSwitch {
    pub(crate) hung: AtomicBool,
    pub(crate) draining: AtomicBool,
}

impl Health for HealthSwitch {
    fn livez(&self) -> Result<(), String> {
        if self.hung.load(Ordering::SeqCst) { Err("arbiter 1 hangs".to_owned()) } else { Ok(()) }
    }

    fn readyz(&self) -> Result<(), String> {
        if self.draining.load(Ordering::SeqCst) { Err("it is draining".to_owned()) } else { Ok(()) }
    }
}

/// A desk without actors: credits and reports go straight to the store.
struct StoreDesk(EmbeddedStore);

impl CreditDesk for StoreDesk {
    fn move_credits(&self, client: ClientId, movement: CreditMove) -> StoreFuture<CreditOutcome> {
        self.0.move_credits(client, movement)
    }
}

impl FlowDesk for StoreDesk {
    fn report(&self, report: FlowReport) -> LocalBoxFuture<'static, Result<ReportFlowOutcome, ApiError>> {
        let reported = self.0.report_flow(ReportFlow { report, result_ttl: RESULT_TTL, pending_ttl: RESULT_TTL });
        Box::pin(async move { Ok(reported.await?) })
    }
}

/// Returns a signer with the key in the document's examples.
fn signer() -> IntentSigner {
    let settings = IntentSettings {
        kid: "sakshi-2".into(),
        typ: "JWT".into(),
        issuer: "verifier.example".into(),
        lifetime: RESULT_TTL,
        client_id: String::new(),
        registration: String::new(),
        scope_length: 64,
        ..IntentSettings::default()
    };
    IntentSigner::new(IntentKey::from_pem(intent_key()).unwrap(), settings)
}

impl StoreFixture {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::starting_at(Timestamp::from_millis(1_700_000_000_000)));
        let vault = Arc::new(Vault::new(&[vec![7; 32].into()]).unwrap());
        let ownership = Ownership::new(Profile::Sandbox, "https://issuer.test");
        let options = EmbeddedOptions {
            directory: directory.path().join("store"),
            clock: clock.clone(),
            vault,
            retention: Retention {
                expired: Duration::from_secs(3_600),
                events: Duration::from_secs(3_600),
                consents: Duration::from_secs(3_600),
            },
            max_waiting: 64,
            ownership,
            upgrading: Upgrading::default(),
        };
        Self { store: EmbeddedStore::open(options).unwrap(), clock, health: Arc::default(), directory }
    }

    pub(crate) fn shared_store(&self) -> Store {
        (*self.store).clone()
    }

    /// Returns the dependencies of the internal listener.
    pub(crate) fn internal(&self) -> InternalDeps {
        InternalDeps {
            retention_max: RetentionMax {
                result_ttl: Duration::from_secs(24 * 3_600),
                registration_ttl: Duration::from_secs(90 * 24 * 3_600),
            },
            store: self.shared_store(),
            clock: self.clock.clone(),
            accept_clock: Arc::new(|| None),
            log_level: LogLevel::default(),
            credits: Arc::new(StoreDesk(self.store.clone())),
            flows: Arc::new(StoreDesk(self.store.clone())),
            signer: Arc::new(signer()),
            memory: MemoryBudgets::default(),
            health: self.health.clone(),
            tree: Arc::new(|| TreeNode {
                name: "root".into(),
                kind: "root".into(),
                state: "running".into(),
                live: 1,
                restarts: 0,
                last_exit: None,
                last_panic: None,
                age_s: None,
                mailbox: 0,
                children: Vec::new(),
            }),
            nodes: Arc::new(|| {
                Box::pin(std::future::ready(NodesResponse { now: Timestamp::from_millis(0), nodes: Vec::new() }))
            }),
            metrics: Arc::new(String::new),
            admin_token: SecretString::from(TOKEN),
            connector_tokens: ConnectorTokens {
                shared: SecretString::from(CONNECTOR_TOKEN),
                ..ConnectorTokens::default()
            },
            failed_logins: FailedLogins::per_minute(0),
            connectors_apart: false,
            trusted_proxies: [].into(),
            urls: UrlPolicy::PUBLIC,
            docs: DocsBase::default(),
            provider_roles: None,
            second_person_above: None,
            body_bytes: 4_096,
        }
    }

    /// Creates the client "Acme".
    pub(crate) async fn create_client(&self) -> ClientId {
        let client = Client::new(ClientId::generate(), "Acme".into(), Timestamp::from_millis(0));
        self.store.create_client(client.clone()).await.unwrap();
        client.client_id
    }

    pub(crate) async fn create_app(&self, client: &ClientId) -> AppId {
        let id = AppId::generate();
        assert!(self.store.create_app(records::app(id.clone(), client.clone())).await.unwrap());
        id
    }

    /// Issues a key that works everywhere and never expires, unless `change` restricts it.
    pub(crate) async fn create_key(
        &self,
        client: &ClientId,
        change: impl FnOnce(&mut ApiKeyRecord),
    ) -> (ApiKey, KeyId) {
        let (key, digest) = ApiKey::issue().unwrap();
        let mut record = ApiKeyRecord {
            key_id: KeyId::generate(),
            client_id: client.clone(),
            label: String::new(),
            environments: vec![],
            networks: Default::default(),
            created_at: Timestamp::from_millis(0),
            expires_at: None,
            revoked_at: None,
        };
        change(&mut record);
        let id = record.key_id.clone();
        assert!(self.store.create_key(record, digest).await.unwrap());
        (key, id)
    }
}
