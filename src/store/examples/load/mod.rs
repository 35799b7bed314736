//! The work that both stores are measured with: callers that each wait for their answer before they ask
//! again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use sakshi_domain::channel::Channel;
use sakshi_domain::claims::Claim;
use sakshi_domain::clock::{Clock, SystemClock};
use sakshi_domain::credits::{CreditMove, EntryKind};
use sakshi_domain::event::{Event, EventCounts, EventName, EventTerms, MaxGuests};
use sakshi_domain::http_url::{HttpUrl, Schemes};
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};
use sakshi_domain::language::Language;
use sakshi_domain::request_id::RequestId;
use sakshi_domain::tenancy::Client;
use sakshi_domain::transaction::{AnswerDigest, CredentialIdentity, Pending, Terms};
use sakshi_store::{CompleteTransaction, CreateEvent, GuestOutcomes, OpenTransaction, PresentedCredential, Store, Vault};
use zeroize::Zeroizing;

pub(crate) type Failure = Box<dyn std::error::Error>;

pub(crate) struct Bench {
    store: Arc<dyn Store>,
    pub(crate) vault: Arc<Vault>,
    client: ClientId,
    app: AppId,
    hook: HttpUrl,
    event: EventId,
}

/// Guests who wait while their event is read.
const WAITING: usize = 5_000;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Opens a transaction.
    Open,
    /// Opens one and completes it with a 1 KiB outcome and a webhook.
    OpenAndComplete,
    /// Opens one as a guest of one event that all guests share.
    Scan,
    /// Opens one as a guest and registers the guest, with a 1 KiB outcome and the event's webhook.
    ScanAndRegister,
    /// Reads that event, at which [`WAITING`] guests have scanned and are yet to answer.
    LoadEvent,
}

impl Work {
    const fn of_event(self) -> bool {
        matches!(self, Self::Scan | Self::ScanAndRegister)
    }
}

impl Bench {
    /// A client with credits and an event, in a store that the vault belongs to.
    pub(crate) async fn start(store: Arc<dyn Store>, vault: Arc<Vault>) -> Result<Self, Failure> {
        let client = ClientId::generate();
        store.create_client(Client { client_id: client.clone(), name: "bench".into(), created_at: SystemClock.now() }).await?;
        let grant = CreditMove { kind: EntryKind::Grant, amount: 1_000_000_000, reference: "bench".into() };
        store.move_credits(client.clone(), grant).await?;
        let hook = HttpUrl::parse("https://hooks.example/in/0123456789", Schemes::HttpsOnly)?;
        let bench = Self { store, vault, event: EventId::generate(client.partition(), 0), client, app: AppId::generate(), hook };
        bench.create_event().await?;
        Ok(bench)
    }

    async fn create_event(&self) -> Result<(), Failure> {
        let created_at = SystemClock.now();
        let terms = EventTerms {
            name: EventName::parse("Open day")?,
            claims: [Claim::Name, Claim::Dob, Claim::Address].into_iter().collect(),
            language: Language::ENGLISH,
            max_guests: MaxGuests::new(1_000_000)?,
            expires_at: created_at + Duration::from_secs(86_400),
            webhook_url: Some(self.hook.clone()),
            is_active: true,
        };
        let (client, app, counts) = (self.client.clone(), self.app.clone(), EventCounts::default());
        let event = Event { id: self.event, client, app, created_at, terms, counts };
        self.store.create_event(CreateEvent { event, idempotency: None }).await?;
        Ok(())
    }

    /// A transaction to be opened.
    pub(crate) fn opening(&self, guest: bool) -> OpenTransaction {
        let now = SystemClock.now();
        let terms = Terms {
            claims: [Claim::Name, Claim::Dob, Claim::Address].into_iter().collect(),
            channel: Channel::Web,
            language: Language::ENGLISH,
            face_auth: true,
            webhook_url: (!guest).then(|| self.hook.clone()),
            request_id: RequestId::mint(),
            extras: None,
        };
        let id = TxnId::generate(self.client.partition(), 0);
        let expires_at = now + Duration::from_secs(900);
        let (client, app, event) = (self.client.clone(), self.app.clone(), guest.then_some(self.event));
        let pending = Arc::new(Pending { id, client, app, event, opened_at: now, expires_at, terms });
        OpenTransaction { pending, cost: 1, idempotency: None }
    }

    async fn once(&self, work: Work) -> Result<(), Failure> {
        if work == Work::LoadEvent {
            return self.store.load_event(self.event).await?.map(drop).ok_or_else(|| "the event is missing".into());
        }
        let open = self.opening(work.of_event());
        let id = open.pending.id;
        self.store.open_transaction(open).await?;
        if matches!(work, Work::OpenAndComplete | Work::ScanAndRegister) {
            let mut digest = [0; 32];
            digest[..16].copy_from_slice(id.as_bytes());
            let complete = CompleteTransaction {
                id,
                event: work.of_event().then_some(self.event),
                passed: true,
                outcome: self.vault.seal(id.as_bytes(), &[b'x'; 1_024]),
                answer: AnswerDigest(digest),
                credential: Some(PresentedCredential { digest: CredentialIdentity(digest), holder_bound: false }),
                replay_window: Duration::from_secs(3_600),
                result_ttl: Duration::from_secs(86_400),
                guest: work.of_event().then(|| self.refusals(id)),
            };
            self.store.complete_transaction(complete).await?;
        }
        Ok(())
    }

    fn refusals(&self, id: TxnId) -> GuestOutcomes {
        let seal = |words: &[u8]| self.vault.seal(id.as_bytes(), words);
        GuestOutcomes { full: seal(b"full"), disabled: seal(b"disabled"), expired: seal(b"expired") }
    }

    /// How long each piece of work took, shortest first.
    pub(crate) async fn load(&self, work: Work, callers: usize, span: Duration) -> Result<Vec<Duration>, Failure> {
        let caller = |end| async move {
            let mut took = Vec::new();
            while Instant::now() < end {
                let begin = Instant::now();
                self.once(work).await?;
                took.push(begin.elapsed());
            }
            Ok::<_, Failure>(took)
        };
        if work == Work::LoadEvent {
            let scans = (0..WAITING).map(|_| self.once(Work::Scan));
            join_all(scans).await.into_iter().collect::<Result<Vec<()>, _>>()?;
        }
        let end = Instant::now() + span;
        let mut all = Vec::new();
        for took in join_all((0..callers).map(|_| caller(end))).await {
            all.extend(took?);
        }
        all.sort_unstable();
        Ok(all)
    }
}

/// A vault with a key of its own.
pub(crate) fn vault() -> Result<Arc<Vault>, Failure> {
    Ok(Arc::new(Vault::new(&[Zeroizing::new(vec![1; 32])])?))
}

/// The rate, and how long the slowest took, of what was measured in a span.
pub(crate) fn figures(took: &[Duration], span: Duration) -> String {
    let count = took.len().max(1);
    let at = |share: usize| took.get(count * share / 10_000).copied().unwrap_or_default().as_secs_f64() * 1e3;
    format!(
        "{:.0}/s, p50 {:.2} ms, p99 {:.2} ms, p99.9 {:.2} ms, max {:.2} ms",
        count as f64 / span.as_secs_f64(),
        at(5_000),
        at(9_900),
        at(9_990),
        took.last().copied().unwrap_or_default().as_secs_f64() * 1e3,
    )
}

/// Every kind of work by its name.
pub(crate) const WORKS: [(&str, Work); 5] = [
    ("open", Work::Open),
    ("open + complete", Work::OpenAndComplete),
    ("scan", Work::Scan),
    ("scan + register", Work::ScanAndRegister),
    ("load event", Work::LoadEvent),
];
