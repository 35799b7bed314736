//! The verifications of an app, newest first.
//!
//! A listing reads the client's ledger, which has an entry for each transaction, so that opening a transaction writes
//! nothing for the list. The ledger covers all apps of the client and outlives its transactions. A listing therefore
//! reads a bounded number of entries and returns where to continue.

use sakshi_domain::credits::{EntryKind, LedgerEntry};
use sakshi_domain::delivery::WebhookState;
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{Pending, TransactionStatus};
use sakshi_store::{Page, Store, TransactionSummary};

use crate::authentication::Caller;
use crate::{Service, ServiceError};

/// Number of verifications on a page of the portal and the console.
pub const LISTED_MAX: usize = 50;
/// Maximum ledger entries that a listing reads.
const ENTRIES_READ_MAX: u64 = 2_000;
/// Number of ledger entries in the first read; it doubles with each read, up to [`CHUNK_MAX`].
const CHUNK_FIRST: u64 = 64;
const CHUNK_MAX: u64 = 512;
/// Minimum length of a part of an id in a search.
const ID_PART_MIN: usize = 4;

/// Returns the client's own reference of a transaction.
#[must_use]
pub fn reference(opened: &Pending) -> Option<&str> {
    opened.terms.extras.as_ref()?.client_reference_id.as_deref()
}

/// Filter of listed verifications; an absent field admits all of them.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Status of the verification.
    pub status: Option<TransactionStatus>,
    /// Name of the channel.
    pub channel: Option<String>,
    /// Event of the guest.
    pub event: Option<EventId>,
    /// Failure code.
    pub code: Option<String>,
    /// State of the webhook.
    pub webhook: Option<WebhookState>,
    /// Text that the reference contains, or with which the id begins or ends; ASCII letters in any case.
    pub text: Option<String>,
    /// Events whose names contain the text; their guests are admitted, too.
    pub events: Vec<EventId>,
    /// The exact reference.
    pub exact_reference: Option<String>,
    /// Earliest time of opening.
    pub from: Option<Timestamp>,
}

impl Filter {
    /// Returns true if a verification matches every field that is set.
    fn admits(&self, verification: &TransactionSummary) -> bool {
        let TransactionSummary { opened, status, code, delivery, .. } = verification;
        self.status.is_none_or(|wanted| wanted == *status)
            && self.channel.as_deref().is_none_or(|channel| channel == opened.terms.channel.name())
            && self.event.is_none_or(|event| Some(event) == opened.event)
            && self.code.as_ref().is_none_or(|wanted| Some(wanted) == code.as_ref())
            && self.webhook.is_none_or(|state| state == WebhookState::from_delivery(delivery.as_ref()))
            && self.text.as_ref().is_none_or(|text| self.matches_text(text, opened))
            && self.exact_reference.as_deref().is_none_or(|exact| Some(exact) == reference(opened))
            && self.from.is_none_or(|from| opened.opened_at >= from)
    }

    /// Returns true if the reference, the id or the event of a verification matches the text.
    fn matches_text(&self, text: &str, opened: &Pending) -> bool {
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
    /// The admitted verifications, newest first.
    pub verifications: Vec<TransactionSummary>,
    /// Value of `before` for the next part; `None` at the end of the retained verifications.
    pub older: Option<u64>,
    /// Time of the oldest entry that was read; `None` without any.
    pub read_back_to: Option<Timestamp>,
    /// Number of the app's retained verifications that were read, admitted or not.
    pub read_count: usize,
}

/// Lists the newest verifications of the caller's app, at most `limit`. With `before`, lists those with lower ledger
/// entries.
///
/// # Errors
/// Any error of the store.
pub async fn list(
    service: &Service,
    caller: &Caller,
    filter: &Filter,
    before: Option<u64>,
    limit: usize,
) -> Result<Listing, ServiceError> {
    let kept_since = service.clock.now() - (service.rules.window + service.rules.result_ttl);
    let ledger = Ledger {
        store: &service.store,
        client: &caller.client,
        app: Some(&caller.app.app_id),
        kept_since,
        read_max: ENTRIES_READ_MAX,
    };
    ledger.list(filter, before, limit).await
}

/// Like [`list`], but for all apps of a client, for the operator. Transactions opened before `kept_since` may be
/// removed.
///
/// # Errors
/// Any error of the store.
pub async fn list_of_client(
    store: &Store,
    client: &ClientId,
    kept_since: Timestamp,
    filter: &Filter,
    before: Option<u64>,
    limit: usize,
) -> Result<Listing, ServiceError> {
    Ledger { store, client, app: None, kept_since, read_max: ENTRIES_READ_MAX }.list(filter, before, limit).await
}

/// The ledger that lists the verifications.
struct Ledger<'a> {
    store: &'a Store,
    client: &'a ClientId,
    /// One app, or all.
    app: Option<&'a AppId>,
    /// Transactions opened before this time may be removed.
    kept_since: Timestamp,
    /// Maximum entries that a listing reads.
    read_max: u64,
}

impl Ledger<'_> {
    /// Lists at most `limit` verifications that the filter admits; see the function [`list`].
    async fn list(&self, filter: &Filter, before: Option<u64>, limit: usize) -> Result<Listing, ServiceError> {
        let mut next = match before {
            Some(before) => before.saturating_sub(1),
            None => self.entries(0, 1).await?.total,
        };
        let (end, mut chunk) = (next.saturating_sub(self.read_max), CHUNK_FIRST);
        let mut listing = Listing { verifications: Vec::new(), older: None, read_back_to: None, read_count: 0 };
        let mut any_stored = false;
        while next > end {
            let first = next.saturating_sub(chunk).max(end);
            chunk = (chunk * 2).min(CHUNK_MAX);
            let mut entries = self.entries(first, next - first).await?.items;
            entries.reverse();
            if entries.is_empty() {
                return Ok(listing);
            }
            for (entry, summary) in entries.iter().zip(self.summaries(&entries).await?) {
                next = entry.seq - 1;
                if filter.from.is_some_and(|from| entry.at < from) {
                    return Ok(listing);
                }
                listing.read_back_to = Some(entry.at);
                any_stored |= summary.is_some();
                let Some(verification) =
                    summary.filter(|summary| self.app.is_none_or(|app| summary.opened.app == *app))
                else {
                    continue;
                };
                listing.read_count += 1;
                listing.verifications.extend(Some(verification).filter(|verification| filter.admits(verification)));
                if listing.verifications.len() == limit {
                    // An older entry always exists: a grant precedes the first debit.
                    listing.older = Some(next + 1);
                    return Ok(listing);
                }
            }
        }
        // Transactions are removed in about the order of their opening, so if none of these is left, no older one is.
        let is_end = !any_stored && listing.read_back_to.is_some_and(|at| at < self.kept_since);
        listing.older = (next > 0 && !is_end).then_some(next + 1);
        Ok(listing)
    }

    /// Reads `count` entries of the ledger after the first `offset` entries.
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
        let ids_of_debits = ids.iter().flatten().copied().collect();
        let mut summaries = self.store.summarise_transactions(ids_of_debits).await?.into_iter();
        Ok(ids.into_iter().map(|id| id.and_then(|_| summaries.next().flatten())).collect())
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
    use sakshi_store::embedded::EmbeddedStore;

    use super::*;
    use crate::test_store;

    const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);
    /// Maximum entries that a listing reads in these tests.
    const ENTRIES_READ: u64 = 200;
    /// Number of the ledger entry that grants the client's credits.
    const GRANT: u64 = 1;

    /// A client with an app, and the transactions of that app, oldest first.
    struct Fixture {
        clock: Arc<ManualClock>,
        store: EmbeddedStore,
        client: ClientId,
        app: AppId,
        opened: Vec<TxnId>,
        _directory: tempfile::TempDir,
    }

    impl Fixture {
        async fn with_transactions(transactions: u64) -> Self {
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
            let pending = records::pending(id, self.client.clone(), app, self.clock.now());
            self.store.open_transaction(records::opening(pending)).await.unwrap();
            id
        }

        async fn list(&self, kept_since: Timestamp, filter: &Filter, before: Option<u64>) -> Listing {
            let ledger = Ledger {
                store: &self.store,
                client: &self.client,
                app: Some(&self.app),
                kept_since,
                read_max: ENTRIES_READ,
            };
            ledger.list(filter, before, 20).await.unwrap()
        }
    }

    fn ids(listing: &Listing) -> Vec<TxnId> {
        listing.verifications.iter().map(|verification| verification.opened.id).collect()
    }

    #[tokio::test]
    async fn each_verification_of_the_app_is_listed_once_newest_first() {
        let fixture = Fixture::with_transactions(45).await;
        fixture.open(AppId::generate()).await;
        let newest_first: Vec<_> = fixture.opened.iter().rev().copied().collect();
        let mut before = None;
        // The app's entries have the numbers 2 to 46; a part has twenty.
        for (listed, older) in [(&newest_first[..20], 27), (&newest_first[20..40], 7)] {
            let listing = fixture.list(START, &Filter::default(), before).await;
            assert_eq!((ids(&listing), listing.older), (listed.to_vec(), Some(older)));
            before = listing.older;
        }
        let last = fixture.list(START, &Filter::default(), before).await;
        assert_eq!((ids(&last), last.older, last.read_back_to), (newest_first[40..].to_vec(), None, Some(START)));
        let none = fixture.list(START, &Filter::default(), Some(GRANT)).await;
        assert_eq!(none, Listing { verifications: vec![], older: None, read_back_to: None, read_count: 0 });
    }

    #[tokio::test]
    async fn a_listing_reads_a_bounded_part_and_returns_where_to_continue() {
        let fixture = Fixture::with_transactions(2 * ENTRIES_READ).await;
        let matches_nothing = Filter { channel: Some("qr".into()), ..Filter::default() };
        let mut before = None;
        for older in [Some(ENTRIES_READ + GRANT + 1), Some(GRANT + 1), None] {
            let listing = fixture.list(START, &matches_nothing, before).await;
            assert_eq!((ids(&listing), listing.older, listing.read_back_to), (vec![], older, Some(START)));
            before = listing.older;
        }
    }

    #[tokio::test]
    async fn a_listing_ends_where_no_transaction_is_stored() {
        let fixture = Fixture::with_transactions(ENTRIES_READ + 1).await;
        let (matches_nothing, older) = (Filter { channel: Some("qr".into()), ..Filter::default() }, Some(GRANT + 2));
        let later = START + Duration::from_millis(1);
        assert_eq!(fixture.list(later, &matches_nothing, None).await.older, older, "some are not removed yet");
        fixture.clock.advance(WINDOW + test_store::RETENTION.expired);
        fixture.store.sweep(fixture.clock.now(), fixture.opened.len()).await.unwrap();
        assert_eq!(fixture.list(START, &matches_nothing, None).await.older, older, "older transactions may be stored");
        assert_eq!(fixture.list(later, &matches_nothing, None).await.older, None);
    }

    #[test]
    fn a_filter_admits_a_verification_that_matches_all_its_fields() {
        let client = ClientId::generate();
        let event = EventId::generate(client.partition(), 0);
        let pending_verification = TransactionSummary {
            opened: records::pending(TxnId::generate(client.partition(), 0), client, AppId::generate(), START),
            status: TransactionStatus::Pending,
            page_seen_at: None,
            verified_at: None,
            code: None,
            polled_at: None,
            delivery: None,
        };
        let mut guest = TransactionSummary {
            status: TransactionStatus::Failed,
            code: Some("301".into()),
            ..pending_verification.clone()
        };
        guest.opened.id = TxnId::generate(guest.opened.client.partition(), 0);
        guest.opened.event = Some(event);
        guest.opened.terms.channel = Channel::Qr;
        guest.opened.terms.extras.get_or_insert_default().client_reference_id = Some("Order 7".into());
        guest.delivery = Some(DeliveryRecord {
            id: DeliveryId(1),
            origin: "https://client.example".into(),
            queued_at: START,
            claimed_at: None,
            attempt: Some(Attempt::from_status(503, 1)),
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
        assert!(!with_text(&id[33..]).admits(&guest), "three characters are part of many ids");
        for filter in filters {
            assert!(filter.admits(&guest) && !filter.admits(&pending_verification), "{filter:?}");
            let later = Filter { from: Some(START + Duration::from_millis(1)), ..filter };
            assert!(!later.admits(&guest), "{later:?}");
        }
        assert!(Filter::default().admits(&pending_verification));
        let webhook = |attempt| {
            WebhookState::from_delivery(
                guest.delivery.clone().map(|delivery| DeliveryRecord { attempt, ..delivery }).as_ref(),
            )
        };
        assert_eq!(
            (webhook(None), webhook(Some(Attempt::from_status(200, 1)))),
            (WebhookState::Waiting, WebhookState::Delivered)
        );
    }
}
