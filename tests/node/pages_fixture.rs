//! A fixture with the public routes, a real tree of actors, a real store and a manual clock.

use std::sync::Arc;
use std::time::Duration;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::ServiceResponse;
use actix_web::test::{TestRequest, call_service, init_service, read_body};
use sakshi::public;
use sakshi::public::Shared;
use sakshi::sandbox::first_client::{self, FirstClient};
use sakshi::settings::{Settings, Sources, load};
use sakshi::{authority, keys, upstreams};
use sakshi_actors::{ByteBounds, Complete, CompleteReply, DispatchBounds, Handles, Tree, TreeBounds, TreeConfig, View};
use sakshi_domain::clock::{Clock as _, ManualClock};
use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::event::{Event, EventTerms};
use sakshi_domain::http_url::{HttpUrl, Schemes};
use sakshi_domain::ids::{KeyId, TxnId};
use sakshi_domain::network::Networks;
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::{ApiKeyRecord, App};
use sakshi_domain::time_zone::TimeZone;
use sakshi_domain::transaction::{Answer, AnswerDigest, Failure, OptionalTerms, Pending, Terms, VerifiedClaims};
use sakshi_kit::node::write_intent_key;
use sakshi_kit::records;
pub(crate) use sakshi_kit::records::WINDOW;
use sakshi_outbound::Egress;
use sakshi_outbound::client::{WebhookClient, WebhookClientOptions};
use sakshi_portal::docs::DocsPages;
use sakshi_service::api_key::ApiKey;
use sakshi_service::budget::{CpuBudget, FlowFetches, MemoryBudgets};
use sakshi_service::drain::Drain;
use sakshi_service::idempotency_locks::IdempotencyLocks;
use sakshi_service::names::Names;
use sakshi_service::url_policy::UrlPolicy;
use sakshi_service::{Rules, Service};
use sakshi_store::OpenOutcome;
use sakshi_store::embedded::{EmbeddedOptions, EmbeddedStore};
use sakshi_store::{CreateEvent, CreateOutcome, Ownership, Retention, Upgrading};
use sakshi_web::rate_limit::{RateLimit, RateLimits};

/// Public base URL of the fixture.
const BASE: &str = "https://v.example";
pub(crate) const ANDROID: &str = "Mozilla/5.0 (Linux; Android 14; Pixel 8) Chrome/126.0 Mobile Safari/537.36";
pub(crate) const IPHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) Mobile/15E148 Safari/604.1";
pub(crate) const DESKTOP: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/126.0 Safari/537.36";

/// The public routes with their actors, store and clock, and the first client.
pub(crate) struct PagesFixture {
    pub(crate) shared: Shared,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) app: App,
    pub(crate) first: FirstClient,
    tree: Tree,
    _directory: tempfile::TempDir,
}

impl PagesFixture {
    pub(crate) async fn new() -> Self {
        Self::with_settings(&[]).await
    }

    /// Returns the query parameter with the key of the event's kiosk.
    pub(crate) fn kiosk_key(&self, event: &Event) -> String {
        let addresses = self.shared.service.authority.event_addresses(event.id);
        addresses.kiosk_url.split_once('?').unwrap().1.to_owned()
    }

    /// Returns a fixture with these settings in addition to the usual ones.
    pub(crate) async fn with_settings(overrides: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let settings = settings(&directory.path().join("store"), overrides);
        let clock = Arc::new(ManualClock::starting_at(sakshi_domain::time::Timestamp::from_millis(1_700_000_000_000)));
        let keys = keys::read_all(&settings, None).unwrap();
        let vault = Arc::clone(&keys.vault);
        let store = EmbeddedStore::open(EmbeddedOptions {
            directory: settings.store.path.clone(),
            clock: clock.clone(),
            vault: Arc::clone(&vault),
            retention: Retention {
                expired: Duration::from_secs(3_600),
                events: Duration::from_secs(3_600),
                consents: Duration::from_secs(3_600),
            },
            max_waiting: 64,
            ownership: Ownership::new(Profile::Sandbox, "https://issuer.test"),
            upgrading: Upgrading::default(),
        })
        .unwrap();
        let client = WebhookClient::new(&client_options());
        let first = first_client::ensure(&store, clock.now()).await.unwrap().unwrap();
        let app = store.load_app(first.app.clone()).await.unwrap().unwrap();
        let config = TreeConfig {
            store: (*store).clone(),
            vault: Arc::clone(&vault),
            clock: clock.clone(),
            client: Arc::new(client.unwrap()),
            audit_receiver: None,
            on_one_arbiter: false,
        };
        let (tree, _escalations) = Tree::start(config, bounds()).await.unwrap();
        let Handles { transactions, events, flows } = tree.start_shard().unwrap();
        let service = Service {
            transactions,
            events,
            flows,
            store: (*store).clone(),
            vault,
            clock: clock.clone(),
            authority: Arc::new(
                authority::build(&settings, keys, &Egress::default(), BASE.to_owned(), clock.clone()).unwrap(),
            ),
            rules: rules(),
            pages: Arc::new(settings.pages.clone()),
            names: Names::default(),
            drain: Drain::default(),
            upstreams: upstreams::build(&settings, &Egress::default(), ([127, 0, 0, 1], 9).into(), 1).unwrap(),
            idempotency_locks: IdempotencyLocks::new(settings.upstreams.timeout),
            flow_fetches: FlowFetches::default(),
            memory: MemoryBudgets::default(),
            cpu: CpuBudget::new(1),
        };
        let rates = RateLimits {
            pages: RateLimit::per_second("pages", settings.limits.pages_per_second_per_address),
            event_starts: RateLimit::per_second("starts", settings.limits.event_starts_per_second_per_address),
            starts_of_events: RateLimit::per_minute("starts", settings.limits.event_starts_per_minute_per_event),
            sign_ins: RateLimit::per_minute("sign_ins", settings.limits.sign_ins_per_minute_per_address),
            pins: RateLimit::per_minute("pins", 10),
            ..RateLimits::unlimited()
        };
        let shared = Shared {
            service,
            tree: tree.clone(),
            rates,
            profile: settings.profile,
            body_bytes: 4_096,
            docs: DocsPages::default(),
            stand_ins: None,
        };
        Self { shared, clock, app, first, tree, _directory: directory }
    }

    /// Opens a transaction of the first app for one credit.
    pub(crate) async fn open(&self, change: impl FnOnce(&mut Terms)) -> Pending {
        let service = &self.shared.service;
        let (client, app) = (self.app.client_id.clone(), self.app.app_id.clone());
        let mut pending = records::pending(service.transactions.new_id(&client), client, app, self.clock.now());
        change(&mut pending.terms);
        let outcome = service.transactions.open(records::opening(pending.clone())).await;
        assert!(matches!(outcome, Ok(OpenOutcome::Opened { .. })));
        pending
    }

    /// Creates an event of the first app that lasts an hour.
    pub(crate) async fn create_event(&self, change: impl FnOnce(&mut EventTerms)) -> Event {
        let service = &self.shared.service;
        let (client, app) = (self.app.client_id.clone(), self.app.app_id.clone());
        let id = service.events.new_id(&client);
        let mut event = records::event(id, client, app, self.clock.now(), Duration::from_secs(3_600));
        change(&mut event.terms);
        let created = service
            .store
            .create_event(CreateEvent { event: event.clone(), events_max: None, idempotency: None })
            .await
            .unwrap();
        assert!(matches!(created, CreateOutcome::Created));
        event
    }

    /// Loads a transaction, which must be pending.
    pub(crate) async fn load_pending(&self, id: TxnId) -> Pending {
        match self.shared.service.transactions.get(id).await.unwrap() {
            View::Pending(pending) => (*pending).clone(),
            other => panic!("{other:?}"),
        }
    }

    /// Returns the client's balance.
    pub(crate) async fn balance(&self) -> u64 {
        self.shared.service.store.balance(self.app.client_id.clone()).await.unwrap().unwrap()
    }

    /// Changes the balance to this number of credits.
    pub(crate) async fn set_balance(&self, credits: u64) {
        let amount = i64::try_from(credits).unwrap() - i64::try_from(self.balance().await).unwrap();
        let movement = CreditMove { kind: EntryKind::Adjust, amount, reference: "test".into() };
        self.shared.service.store.move_credits(self.app.client_id.clone(), movement).await.unwrap();
    }

    /// Completes the transaction with success.
    pub(crate) async fn verify(&self, pending: &Pending) {
        assert_eq!(self.deliver_credential(pending).await, CompleteReply::Accepted);
    }

    /// Completes the transaction with its own credential.
    pub(crate) async fn deliver_credential(&self, pending: &Pending) -> CompleteReply {
        self.complete(pending, credential_for(pending)).await
    }

    /// Completes the transaction with the credential of a person with this name.
    pub(crate) async fn verify_as(&self, pending: &Pending, name: &str) {
        let mut credential = credential_for(pending);
        if let Answer::Credential { claims, .. } = &mut credential {
            let mut renamed = claims.as_map().clone();
            renamed.insert("residentName".to_owned(), name.into());
            *claims = Arc::new(VerifiedClaims::new(renamed));
        }
        assert_eq!(self.complete(pending, credential).await, CompleteReply::Accepted);
    }

    /// Issues another key of the first client, which is valid for this time.
    pub(crate) async fn issue_key(&self, valid_for: Duration) -> ApiKey {
        let (key, digest) = ApiKey::issue().unwrap();
        let now = self.clock.now();
        let record = ApiKeyRecord {
            key_id: KeyId::generate(),
            client_id: self.app.client_id.clone(),
            label: String::new(),
            environments: vec![],
            networks: Networks::default(),
            created_at: now,
            expires_at: Some(now + valid_for),
            revoked_at: None,
        };
        assert!(self.shared.service.store.create_key(record, digest).await.unwrap());
        key
    }

    /// Completes the transaction with an error of the identity app.
    pub(crate) async fn fail(&self, pending: &Pending, message: &str, code: &str) {
        let failure = Failure::new(message, Some(code));
        let answer = Answer::Failure { failure, digest: AnswerDigest([2; 32]) };
        assert_eq!(self.complete(pending, answer).await, CompleteReply::Accepted);
    }

    async fn complete(&self, pending: &Pending, answer: Answer) -> CompleteReply {
        let Rules { replay_window, result_ttl, .. } = rules();
        // The name in all credentials of this fixture.
        let guest = sakshi_store::GuestDetails { name: Some("Asha Rao".into()), traits: Vec::new() };
        self.shared
            .service
            .transactions
            .complete(pending.id, Complete { answer, known: None, evidence: None, guest, replay_window, result_ttl })
            .await
            .unwrap()
    }

    /// Restarts the actors with no room for requests.
    pub(crate) async fn refuse_actor_requests(&mut self) {
        let Service { store, vault, clock, .. } = &self.shared.service;
        let client = WebhookClient::new(&client_options()).unwrap();
        let config = TreeConfig {
            store: store.clone(),
            vault: Arc::clone(vault),
            clock: Arc::clone(clock),
            client: Arc::new(client),
            audit_receiver: None,
            on_one_arbiter: false,
        };
        let (tree, _escalations) = Tree::start(config, TreeBounds { in_flight: 0, ..bounds() }).await.unwrap();
        self.tree.stop();
        self.shared.tree = tree.clone();
        let Handles { transactions, events, .. } = tree.handles(0);
        (self.shared.service.transactions, self.shared.service.events) = (transactions, events);
        self.tree = tree;
    }

    /// Sends a request from an address of the internet.
    pub(crate) async fn call(&self, request: TestRequest) -> ServiceResponse<BoxBody> {
        let request = request.peer_addr("203.0.113.7:4444".parse().unwrap()).to_request();
        call_service(&init_service(public::app(&self.shared)).await, request).await.map_into_boxed_body()
    }

    /// Repeats a request until a rate limit refuses it, because a slow machine may stay within the limit.
    pub(crate) async fn call_until_limited(&self, request: impl Fn() -> TestRequest) -> ServiceResponse<BoxBody> {
        for _ in 0..100 {
            let response = self.call(request()).await;
            if response.status() == 429 {
                return response;
            }
        }
        panic!("no request was refused")
    }

    /// Requests a path of the API as the first client.
    pub(crate) async fn get_as_client(&self, path: &str) -> ServiceResponse<BoxBody> {
        self.call_with_key(TestRequest::get().uri(path), &self.first.key).await
    }

    /// Sends a request to the API with a key of the first client.
    pub(crate) async fn call_with_key(&self, request: TestRequest, key: &ApiKey) -> ServiceResponse<BoxBody> {
        let (key, app) = (("x-api-key", key.reveal().to_owned()), ("x-api-app-id", self.first.app.as_str()));
        self.call(request.insert_header(key).insert_header(app)).await
    }

    /// Returns status and HTML of a page, for a browser with this user agent.
    pub(crate) async fn page(&self, path: &str, agent: &str) -> (u16, String) {
        let accept = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
        let response =
            self.call(TestRequest::get().uri(path).insert_header(("user-agent", agent)).insert_header(accept)).await;
        let status = response.status().as_u16();
        (status, text(response).await)
    }
}

impl Drop for PagesFixture {
    fn drop(&mut self) {
        self.tree.stop();
    }
}

/// Returns the credential that belongs to a transaction.
fn credential_for(pending: &Pending) -> Answer {
    records::credential(std::array::from_fn(|index| pending.id.as_bytes()[index % 16]))
}

pub(crate) async fn text(response: ServiceResponse<impl MessageBody>) -> String {
    String::from_utf8(read_body(response).await.to_vec()).unwrap()
}

/// Returns a change of terms that sets the redirect URL.
pub(crate) fn redirecting_to(address: &str) -> impl FnOnce(&mut Terms) + use<> {
    let redirect_url = Some(HttpUrl::parse(address, Schemes::HttpsOnly).unwrap());
    move |terms| terms.extras = Some(Box::new(OptionalTerms { redirect_url, ..OptionalTerms::default() }))
}

/// Returns the settings of a node with its store in this directory.
fn settings(store: &std::path::Path, overrides: &[(&str, &str)]) -> Settings {
    let mut sources = Sources::default();
    sources.overrides.push(("store.path".to_owned(), store.to_string_lossy().into_owned()));
    if let Some(directory) = store.parent() {
        sources.overrides.push(("authority.intent_key".to_owned(), write_intent_key(directory)));
    }
    sources.overrides.extend(overrides.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    *load(&sources).unwrap().settings
}

pub(crate) const RESULT_TTL: Duration = Duration::from_secs(3_600);

fn rules() -> Rules {
    Rules {
        profile: Profile::Sandbox,
        window: WINDOW,
        result_ttl: RESULT_TTL,
        time_zone: TimeZone::INDIA,
        registration_ttl: Duration::from_secs(30 * 86_400),
        replay_window: Duration::from_secs(3_600),
        has_public_base_url: true,
        urls: UrlPolicy::PUBLIC,
        callback_bytes: 4_096,
        flow_result_ttl: Duration::from_secs(3_600),
        flow_pending_ttl: Duration::from_secs(3_600),
        events_per_app: None,
        low_credits: 0,
    }
}

fn client_options() -> WebhookClientOptions {
    let second = Duration::from_secs(1);
    WebhookClientOptions {
        allow_private: true,
        connect_timeout: second,
        total_timeout: second,
        egress: Egress::default(),
    }
}

fn bounds() -> TreeBounds {
    TreeBounds {
        shards: 1,
        live_transactions: 100,
        in_flight: 100,
        mailbox_depth: 16,
        ask_timeout: Duration::from_secs(5),
        webhooks: DispatchBounds {
            in_flight: 1,
            in_flight_per_origin: 1,
            outcome_bytes: ByteBounds::OUTCOMES,
            flow_bytes: ByteBounds::FLOWS,
        },
        live_events: 100,
        flow_result_ttl: Duration::from_secs(3_600),
        flow_pending_ttl: Duration::from_secs(3_600),
    }
}
