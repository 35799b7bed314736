//! The verifications of an app, the newest first.
//!
//! They are found by the client's ledger, which has one entry for each transaction, so that opening one writes nothing for this
//! list. The ledger is of all apps of the client and outlives its transactions; a listing therefore reads a bounded number of
//! entries and says where to go on.

use futures_util::future::try_join_all;
use sakshi_domain::credits::{EntryKind, LedgerEntry};
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::TransactionStatus;
use sakshi_store::{Page, PageRequest, Store, TransactionRecord};

use crate::authentication::Caller;
use crate::{Service, ServiceError};

/// Verifications of one listing of the portal.
pub const LISTED: usize = 20;
/// Ledger entries that one listing reads at most.
const READ_MAX: u64 = 200;
/// Ledger entries read at once.
const PAGE_SIZE: u32 = 50;
/// Transactions read at once; each may hold a photo.
const LOADED_AT_ONCE: usize = 8;

/// One verification of the list, without anything personal but the client's own reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// The transaction.
    pub txn: TxnId,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// How it stands.
    pub status: TransactionStatus,
    /// The channel's name in the API.
    pub channel: &'static str,
    /// The event of a guest.
    pub event: Option<EventId>,
    /// The client's own reference.
    pub reference: Option<String>,
}

/// Which verifications are listed; an absent field admits all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// With this status.
    pub status: Option<TransactionStatus>,
    /// With a channel of this name.
    pub channel: Option<String>,
    /// Of guests of this event.
    pub event: Option<EventId>,
    /// Whose reference contains this text, in any case of its ASCII letters.
    pub reference: Option<String>,
    /// Whose reference is this text.
    pub exact_reference: Option<String>,
    /// That were opened at this time or later.
    pub from: Option<Timestamp>,
}

impl Filter {
    fn admits(&self, verification: &Verification) -> bool {
        let contains = |text: &String| {
            let reference = verification.reference.as_deref().unwrap_or_default().to_ascii_lowercase();
            reference.contains(&text.to_ascii_lowercase())
        };
        self.status.is_none_or(|status| status == verification.status)
            && self.channel.as_deref().is_none_or(|channel| channel == verification.channel)
            && self.event.is_none_or(|event| Some(event) == verification.event)
            && self.reference.as_ref().is_none_or(contains)
            && self.exact_reference.as_ref().is_none_or(|exact| Some(exact) == verification.reference.as_ref())
            && self.from.is_none_or(|from| verification.opened_at >= from)
    }
}

/// A part of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// As many as were asked for at most, the newest first.
    pub verifications: Vec<Verification>,
    /// Give this as `before` to go on; `None` at the end of what is kept.
    pub older: Option<u64>,
    /// When the oldest entry that was read was written; `None` when there was none.
    pub read_back_to: Option<Timestamp>,
}

/// Lists `most` verifications of the caller's app at most, whose ledger entries come before this number, or the newest ones.
///
/// # Errors
/// A store that is away.
pub async fn list(service: &Service, caller: &Caller, filter: &Filter, before: Option<u64>, most: usize) -> Result<Listing, ServiceError> {
    let kept_since = service.clock.now() - (service.rules.window + service.rules.result_ttl);
    let ledger = Ledger { store: &service.store, client: &caller.client, app: Some(&caller.app.app_id), kept_since };
    ledger.list(filter, before, most).await
}

/// The same of all apps of a client, for the operator. A transaction that was opened before `kept_since` may be gone.
///
/// # Errors
/// A store that is away.
pub async fn list_of_client(
    store: &Store,
    client: &ClientId,
    kept_since: Timestamp,
    filter: &Filter,
    before: Option<u64>,
    most: usize,
) -> Result<Listing, ServiceError> {
    Ledger { store, client, app: None, kept_since }.list(filter, before, most).await
}

/// The ledger in which the verifications of an app are found.
struct Ledger<'a> {
    store: &'a Store,
    client: &'a ClientId,
    /// One app, or all.
    app: Option<&'a AppId>,
    /// A transaction that was opened before may be gone.
    kept_since: Timestamp,
}

impl Ledger<'_> {
    async fn list(&self, filter: &Filter, before: Option<u64>, most: usize) -> Result<Listing, ServiceError> {
        let mut next = match before {
            Some(before) => before.saturating_sub(1),
            None => self.statement(1).await?.total,
        };
        let end = next.saturating_sub(READ_MAX);
        let mut listing = Listing { verifications: Vec::new(), older: None, read_back_to: None };
        let mut any_kept = false;
        while next > end {
            let page = u32::try_from(next.div_ceil(u64::from(PAGE_SIZE))).unwrap_or(u32::MAX);
            let mut entries = self.statement(page).await?.items;
            entries.retain(|entry| entry.seq <= next && entry.seq > end);
            entries.reverse();
            if entries.is_empty() {
                return Ok(listing);
            }
            for chunk in entries.chunks(LOADED_AT_ONCE) {
                let loaded = try_join_all(chunk.iter().map(|entry| self.load(entry))).await?;
                for (entry, record) in chunk.iter().zip(loaded) {
                    next = entry.seq - 1;
                    if filter.from.is_some_and(|from| entry.at < from) {
                        return Ok(listing);
                    }
                    listing.read_back_to = Some(entry.at);
                    any_kept |= record.is_some();
                    let own = record.filter(|record| self.app.is_none_or(|app| record.opened().app == *app));
                    let found = own.map(|record| verification(&record));
                    listing.verifications.extend(found.filter(|found| filter.admits(found)));
                    if listing.verifications.len() == most {
                        // There is one: credits are granted before they are spent.
                        listing.older = Some(next + 1);
                        return Ok(listing);
                    }
                }
            }
        }
        // Transactions go in about the order in which they came: behind so many that are gone, no other is kept.
        let is_end = !any_kept && listing.read_back_to.is_some_and(|at| at < self.kept_since);
        listing.older = (next > 0 && !is_end).then_some(next + 1);
        Ok(listing)
    }

    async fn statement(&self, page: u32) -> Result<Page<LedgerEntry>, ServiceError> {
        Ok(self.store.statement(self.client.clone(), PageRequest { page, page_size: PAGE_SIZE }).await?)
    }

    async fn load(&self, entry: &LedgerEntry) -> Result<Option<TransactionRecord>, ServiceError> {
        let id = (entry.kind == EntryKind::Debit).then(|| entry.reference.parse::<TxnId>().ok()).flatten();
        Ok(match id {
            Some(id) => self.store.load_transaction(id).await?,
            None => None,
        })
    }
}

fn verification(record: &TransactionRecord) -> Verification {
    let opened = record.opened();
    let status = match record {
        TransactionRecord::Pending(_) => TransactionStatus::Pending,
        TransactionRecord::Expired(_) => TransactionStatus::Expired,
        TransactionRecord::Completed(record) if record.passed => TransactionStatus::Passed,
        TransactionRecord::Completed(_) => TransactionStatus::Failed,
    };
    Verification {
        txn: opened.id,
        opened_at: opened.opened_at,
        status,
        channel: opened.terms.channel.name(),
        event: opened.event,
        reference: opened.terms.extras.as_ref().and_then(|extras| extras.client_reference_id.clone()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use sakshi_domain::clock::{Clock as _, ManualClock};
    use sakshi_domain::credits::CreditMove;
    use sakshi_domain::tenancy::Client;
    use sakshi_kit::records::{self, WINDOW};
    use sakshi_store::OpenTransaction;
    use sakshi_store::embedded::EmbeddedStore;

    use super::*;
    use crate::test_store;

    const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);
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
            let mut fixture = Self { clock, store, client: client.client_id, app: AppId::generate(), opened: vec![], _directory };
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
                .open_transaction(OpenTransaction { pending, cost: 1, idempotency: None, pending_max: None, intent: None })
                .await
                .unwrap();
            id
        }

        async fn list(&self, kept_since: Timestamp, filter: &Filter, before: Option<u64>) -> Listing {
            let ledger = Ledger { store: &self.store, client: &self.client, app: Some(&self.app), kept_since };
            ledger.list(filter, before, LISTED).await.unwrap()
        }
    }

    fn ids(listing: &Listing) -> Vec<TxnId> {
        listing.verifications.iter().map(|verification| verification.txn).collect()
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
        assert_eq!(none, Listing { verifications: vec![], older: None, read_back_to: None });
    }

    #[tokio::test]
    async fn one_listing_reads_a_bounded_part_of_the_ledger_and_says_where_to_go_on() {
        let fixture = Fixture::with(2 * READ_MAX).await;
        let nothing = Filter { channel: Some("qr".into()), ..Filter::default() };
        let mut before = None;
        for older in [Some(READ_MAX + GRANT + 1), Some(GRANT + 1), None] {
            let listing = fixture.list(START, &nothing, before).await;
            assert_eq!((ids(&listing), listing.older, listing.read_back_to), (vec![], older, Some(START)));
            before = listing.older;
        }
    }

    #[tokio::test]
    async fn a_listing_ends_where_nothing_is_kept_any_more() {
        let fixture = Fixture::with(READ_MAX + 1).await;
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
        let event = EventId::generate(ClientId::generate().partition(), 0);
        let guest = Verification {
            txn: TxnId::generate(ClientId::generate().partition(), 0),
            opened_at: Timestamp::from_millis(0),
            status: TransactionStatus::Passed,
            channel: "web",
            event: Some(event),
            reference: Some("Order 7".into()),
        };
        let other = Verification { status: TransactionStatus::Pending, channel: "qr", event: None, reference: None, ..guest.clone() };
        let filters = [
            Filter { status: Some(TransactionStatus::Passed), ..Filter::default() },
            Filter { channel: Some("web".into()), ..Filter::default() },
            Filter { event: Some(event), ..Filter::default() },
            Filter { reference: Some("oRDER".into()), ..Filter::default() },
            Filter { exact_reference: Some("Order 7".into()), ..Filter::default() },
        ];
        for filter in filters {
            assert!(filter.admits(&guest) && !filter.admits(&other), "{filter:?}");
            let one_more = Filter { status: Some(TransactionStatus::Expired), ..filter };
            assert!(!one_more.admits(&guest), "{one_more:?}");
        }
        assert!(Filter::default().admits(&other));
    }
}
