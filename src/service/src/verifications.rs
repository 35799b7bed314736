//! The verifications of an app, the newest first.
//!
//! They are found by the client's ledger, which has one entry for each transaction, so that opening one writes nothing
//! for this list. The ledger covers all apps of the client and outlives its transactions. A listing therefore reads a
//! bounded number of entries and returns where to continue.

use sakshi_domain::credits::{EntryKind, LedgerEntry};
use sakshi_domain::delivery::WebhookState;
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{Pending, TransactionStatus};
use sakshi_store::{Page, Store, TransactionSummary};

use crate::authentication::Caller;
use crate::{Service, ServiceError};

/// Number of verifications in one listing of the portal.
pub const LISTED: usize = 50;
/// Maximum number of ledger entries that one listing reads.
const READ_MAX: u64 = 2_000;
/// Number of ledger entries read at first; each further read takes twice as many, up to [`CHUNK_MAX`].
const CHUNK_FIRST: u64 = 64;
const CHUNK_MAX: u64 = 512;
/// Length of the shortest part of an id that is searched for.
const ID_PART_MIN: usize = 4;

/// Returns the client's own reference of a transaction.
#[must_use]
pub fn reference(opened: &Pending) -> Option<&str> {
    opened.terms.extras.as_ref()?.client_reference_id.as_deref()
}

/// Filter of listed verifications; an absent field admits all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// With this status.
    pub status: Option<TransactionStatus>,
    /// With a channel of this name.
    pub channel: Option<String>,
    /// Of guests of this event.
    pub event: Option<EventId>,
    /// Failed with this code.
    pub code: Option<String>,
    /// With a webhook in this state.
    pub webhook: Option<WebhookState>,
    /// With a reference that contains this text, in any case of its ASCII letters, or an id that begins or ends with
    /// it.
    pub text: Option<String>,
    /// Of these events as well, whose names contain the text.
    pub events: Vec<EventId>,
    /// With exactly this reference.
    pub exact_reference: Option<String>,
    /// Opened at this time or later.
    pub from: Option<Timestamp>,
}

impl Filter {
    fn admits(&self, found: &TransactionSummary) -> bool {
        let TransactionSummary { opened, status, code, delivery, .. } = found;
        self.status.is_none_or(|asked| asked == *status)
            && self.channel.as_deref().is_none_or(|channel| channel == opened.terms.channel.name())
            && self.event.is_none_or(|event| Some(event) == opened.event)
            && self.code.as_ref().is_none_or(|asked| Some(asked) == code.as_ref())
            && self.webhook.is_none_or(|state| state == WebhookState::of(delivery.as_ref()))
            && self.text.as_ref().is_none_or(|text| self.contains(text, opened))
            && self.exact_reference.as_deref().is_none_or(|exact| Some(exact) == reference(opened))
            && self.from.is_none_or(|from| opened.opened_at >= from)
    }

    fn contains(&self, text: &str, opened: &Pending) -> bool {
        let text = text.to_ascii_lowercase();
        let id = opened.id.to_string();
        reference(opened).is_some_and(|reference| reference.to_ascii_lowercase().contains(&text))
            || (text.len() >= ID_PART_MIN && (id.starts_with(&text) || id.ends_with(&text)))
            || opened.event.is_some_and(|event| self.events.contains(&event))
    }
}

/// A part of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing {
    /// At most the requested number, newest first.
    pub verifications: Vec<TransactionSummary>,
    /// Value of `before` for the next part; `None` at the end of the retained ones.
    pub older: Option<u64>,
    /// Time of the oldest entry that was read; `None` when there was none.
    pub read_back_to: Option<Timestamp>,
    /// Number of the app's verifications that were read and are retained, admitted ones included.
    pub looked_at: usize,
}

/// Lists at most `most` verifications of the caller's app with ledger entries before this number, or the newest ones.
///
/// # Errors
/// The store is unavailable.
pub async fn list(
    service: &Service,
    caller: &Caller,
    filter: &Filter,
    before: Option<u64>,
    most: usize,
) -> Result<Listing, ServiceError> {
    let kept_since = service.clock.now() - (service.rules.window + service.rules.result_ttl);
    let ledger = Ledger {
        store: &service.store,
        client: &caller.client,
        app: Some(&caller.app.app_id),
        kept_since,
        read_max: READ_MAX,
    };
    ledger.list(filter, before, most).await
}

/// Lists the same of all apps of a client, for the operator. A transaction that was opened before `kept_since` may be
/// gone.
///
/// # Errors
/// The store is unavailable.
pub async fn list_of_client(
    store: &Store,
    client: &ClientId,
    kept_since: Timestamp,
    filter: &Filter,
    before: Option<u64>,
    most: usize,
) -> Result<Listing, ServiceError> {
    Ledger { store, client, app: None, kept_since, read_max: READ_MAX }.list(filter, before, most).await
}

/// The ledger in which the verifications of an app are found.
struct Ledger<'a> {
    store: &'a Store,
    client: &'a ClientId,
    /// One app, or all.
    app: Option<&'a AppId>,
    /// Time before which an opened transaction may be gone.
    kept_since: Timestamp,
    /// Maximum number of entries that one listing reads.
    read_max: u64,
}

impl Ledger<'_> {
    async fn list(&self, filter: &Filter, before: Option<u64>, most: usize) -> Result<Listing, ServiceError> {
        let mut next = match before {
            Some(before) => before.saturating_sub(1),
            None => self.entries(0, 1).await?.total,
        };
        let (end, mut chunk) = (next.saturating_sub(self.read_max), CHUNK_FIRST);
        let mut listing = Listing { verifications: Vec::new(), older: None, read_back_to: None, looked_at: 0 };
        let mut any_kept = false;
        while next > end {
            let first = next.saturating_sub(chunk).max(end);
            chunk = (chunk * 2).min(CHUNK_MAX);
            let mut entries = self.entries(first, next - first).await?.items;
            entries.reverse();
            if entries.is_empty() {
                return Ok(listing);
            }
            for (entry, found) in entries.iter().zip(self.summaries(&entries).await?) {
                next = entry.seq - 1;
                if filter.from.is_some_and(|from| entry.at < from) {
                    return Ok(listing);
                }
                listing.read_back_to = Some(entry.at);
                any_kept |= found.is_some();
                let Some(own) = found.filter(|found| self.app.is_none_or(|app| found.opened.app == *app)) else {
                    continue;
                };
                listing.looked_at += 1;
                listing.verifications.extend(Some(own).filter(|own| filter.admits(own)));
                if listing.verifications.len() == most {
                    // An older entry always exists: a grant precedes the first debit.
                    listing.older = Some(next + 1);
                    return Ok(listing);
                }
            }
        }
        // Transactions are removed in about the order of their opening: behind a listing that finds none, no other is
        // kept.
        let is_end = !any_kept && listing.read_back_to.is_some_and(|at| at < self.kept_since);
        listing.older = (next > 0 && !is_end).then_some(next + 1);
        Ok(listing)
    }

    async fn entries(&self, offset: u64, count: u64) -> Result<Page<LedgerEntry>, ServiceError> {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        Ok(self.store.ledger_entries(self.client.clone(), offset, count).await?)
    }

    /// Loads the transactions of these entries: `None` for an entry of another kind, and for a removed transaction.
    async fn summaries(&self, entries: &[LedgerEntry]) -> Result<Vec<Option<TransactionSummary>>, ServiceError> {
        let id = |entry: &LedgerEntry| {
            (entry.kind == EntryKind::Debit).then(|| entry.reference.parse::<TxnId>().ok()).flatten()
        };
        let ids: Vec<_> = entries.iter().map(id).collect();
        let mut found = self.store.summarise_transactions(ids.iter().flatten().copied().collect()).await?.into_iter();
        Ok(ids.into_iter().map(|id| id.and_then(|_| found.next().flatten())).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use sakshi_domain::channel::Channel;
    use sakshi_domain::clock::{Clock as _, ManualClock};
    use sakshi_domain::credits::CreditMove;
    use sakshi_domain::delivery::{Attempt, DeliveryId, DeliveryRecord};
    use sakshi_domain::tenancy::Client;
    use sakshi_kit::records::{self, WINDOW};
    use sakshi_store::OpenTransaction;
    use sakshi_store::embedded::EmbeddedStore;

    use super::*;
    use crate::test_store;

    const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);
    /// Entries that a listing reads here.
    const READ: u64 = 200;
    /// The ledger entry of the credits that a client was granted.
    const GRANT: u64 = 1;

    /// A client with an app, and the transactions of that app, the oldest first.
    struct Fixture {
        clock: Arc<ManualClock>,
        store: EmbeddedStore,
        client: ClientId,
        app: AppId,
        opened: Vec<TxnId>,
        _directory: tempfile::TempDir,
    }

    impl Fixture {
        async fn with(transactions: u64) -> Self {
            let clock = Arc::new(ManualClock::starting_at(START));
            let (_directory, store) = test_store::store(clock.clone());
            let client = Client::new(ClientId::generate(), "Bank".into(), START);
            store.create_client(client.clone()).await.unwrap();
            let grant = CreditMove { kind: EntryKind::Grant, amount: 1_000, reference: "first".into() };
            store.move_credits(client.client_id.clone(), grant).await.unwrap();
            let mut fixture =
                Self { clock, store, client: client.client_id, app: AppId::generate(), opened: vec![], _directory };
            for _ in 0..transactions {
                let id = fixture.open(fixture.app.clone()).await;
                fixture.opened.push(id);
            }
            fixture
        }

        async fn open(&self, app: AppId) -> TxnId {
            let id = TxnId::generate(self.client.partition(), 0);
            let pending = Arc::new(records::pending(id, self.client.clone(), app, self.clock.now()));
            self.store
                .open_transaction(OpenTransaction {
                    pending,
                    cost: 1,
                    idempotency: None,
                    pending_max: None,
                    intent: None,
                })
                .await
                .unwrap();
            id
        }

        async fn list(&self, kept_since: Timestamp, filter: &Filter, before: Option<u64>) -> Listing {
            let ledger =
                Ledger { store: &self.store, client: &self.client, app: Some(&self.app), kept_since, read_max: READ };
            ledger.list(filter, before, 20).await.unwrap()
        }
    }

    fn ids(listing: &Listing) -> Vec<TxnId> {
        listing.verifications.iter().map(|found| found.opened.id).collect()
    }

    #[tokio::test]
    async fn each_verification_of_the_app_is_listed_once_the_newest_first() {
        let fixture = Fixture::with(45).await;
        fixture.open(AppId::generate()).await;
        let newest_first: Vec<_> = fixture.opened.iter().rev().copied().collect();
        let mut before = None;
        for (listed, older) in [(&newest_first[..20], 27), (&newest_first[20..40], 7)] {
            let listing = fixture.list(START, &Filter::default(), before).await;
            assert_eq!((ids(&listing), listing.older), (listed.to_vec(), Some(older)));
            before = listing.older;
        }
        let last = fixture.list(START, &Filter::default(), before).await;
        assert_eq!((ids(&last), last.older, last.read_back_to), (newest_first[40..].to_vec(), None, Some(START)));
        let none = fixture.list(START, &Filter::default(), Some(GRANT)).await;
        assert_eq!(none, Listing { verifications: vec![], older: None, read_back_to: None, looked_at: 0 });
    }

    #[tokio::test]
    async fn one_listing_reads_a_bounded_part_of_the_ledger_and_says_where_to_go_on() {
        let fixture = Fixture::with(2 * READ).await;
        let nothing = Filter { channel: Some("qr".into()), ..Filter::default() };
        let mut before = None;
        for older in [Some(READ + GRANT + 1), Some(GRANT + 1), None] {
            let listing = fixture.list(START, &nothing, before).await;
            assert_eq!((ids(&listing), listing.older, listing.read_back_to), (vec![], older, Some(START)));
            before = listing.older;
        }
    }

    #[tokio::test]
    async fn a_listing_ends_where_nothing_is_kept_any_more() {
        let fixture = Fixture::with(READ + 1).await;
        let (nothing, older) = (Filter { channel: Some("qr".into()), ..Filter::default() }, Some(GRANT + 2));
        let later = START + Duration::from_millis(1);
        assert_eq!(fixture.list(later, &nothing, None).await.older, older, "some are kept all the same");
        fixture.clock.advance(WINDOW + test_store::RETENTION.expired);
        fixture.store.sweep(fixture.clock.now(), fixture.opened.len()).await.unwrap();
        assert_eq!(fixture.list(START, &nothing, None).await.older, older, "older ones may be kept");
        assert_eq!(fixture.list(later, &nothing, None).await.older, None);
    }

    #[test]
    fn a_filter_admits_what_has_all_that_it_asks_for() {
        let client = ClientId::generate();
        let event = EventId::generate(client.partition(), 0);
        let other = TransactionSummary {
            opened: records::pending(TxnId::generate(client.partition(), 0), client, AppId::generate(), START),
            status: TransactionStatus::Pending,
            page_seen_at: None,
            verified_at: None,
            code: None,
            polled_at: None,
            delivery: None,
        };
        let mut guest =
            TransactionSummary { status: TransactionStatus::Failed, code: Some("301".into()), ..other.clone() };
        guest.opened.id = TxnId::generate(guest.opened.client.partition(), 0);
        guest.opened.event = Some(event);
        guest.opened.terms.channel = Channel::Qr;
        guest.opened.terms.extras.get_or_insert_default().client_reference_id = Some("Order 7".into());
        guest.delivery = Some(DeliveryRecord {
            id: DeliveryId(1),
            origin: "https://client.example".into(),
            queued_at: START,
            claimed_at: None,
            attempt: Some(Attempt::answered(503, 1)),
        });
        let id = guest.opened.id.to_string();
        let with_text = |text: &str| Filter { text: Some(text.into()), ..Filter::default() };
        let filters = [
            Filter { status: Some(TransactionStatus::Failed), ..Filter::default() },
            Filter { channel: Some("qr".into()), ..Filter::default() },
            Filter { event: Some(event), ..Filter::default() },
            Filter { code: Some("301".into()), ..Filter::default() },
            Filter { webhook: Some(WebhookState::Lost), ..Filter::default() },
            with_text("oRDER"),
            with_text(&id[..30]),
            with_text(&id[24..].to_uppercase()),
            Filter { events: vec![event], ..with_text("the name of the event") },
            Filter { exact_reference: Some("Order 7".into()), ..Filter::default() },
        ];
        assert!(!with_text(&id[33..]).admits(&guest), "a part of three characters is in many ids");
        for filter in filters {
            assert!(filter.admits(&guest) && !filter.admits(&other), "{filter:?}");
            let one_more = Filter { from: Some(START + Duration::from_millis(1)), ..filter };
            assert!(!one_more.admits(&guest), "{one_more:?}");
        }
        assert!(Filter::default().admits(&other));
        let webhook = |attempt| {
            WebhookState::of(guest.delivery.clone().map(|delivery| DeliveryRecord { attempt, ..delivery }).as_ref())
        };
        assert_eq!(
            (webhook(None), webhook(Some(Attempt::answered(200, 1)))),
            (WebhookState::Waiting, WebhookState::Delivered)
        );
    }
}
