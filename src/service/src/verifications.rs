//! The verifications of an app, the newest first.
//!
//! They are found by the client's ledger, which has one entry for each transaction, so that opening one writes nothing for this
//! list. The ledger is of all apps of the client and outlives its transactions; a listing therefore reads a bounded number of
//! entries and says where to go on.

use futures_util::future::try_join_all;
use sakshi_domain::credits::{EntryKind, LedgerEntry};
use sakshi_domain::ids::{EventId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_store::{PageRequest, TransactionRecord};

use crate::authentication::Caller;
use crate::{Service, ServiceError};

/// Verifications of one listing.
pub const LISTED_MAX: usize = 20;
/// Ledger entries that one listing reads at most.
const READ_MAX: u64 = 200;
/// Ledger entries read at once.
const PAGE_SIZE: u32 = 50;
/// Transactions read at once; each may hold a photo.
const LOADED_AT_ONCE: usize = 8;

/// How a verification stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerificationStatus {
    /// The person has not answered yet.
    Waiting,
    /// The person was verified and shared every requested claim; a guest got a place.
    Verified,
    /// The person declined or could not be verified, or the guest's event had no place.
    NotVerified,
    /// Nobody answered in time.
    Expired,
}

/// One verification of the list, without anything personal but the client's own reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// The transaction.
    pub txn: TxnId,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// How it stands.
    pub status: VerificationStatus,
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
    pub status: Option<VerificationStatus>,
    /// With a channel of this name.
    pub channel: Option<String>,
    /// Of guests of this event.
    pub event: Option<EventId>,
    /// Whose reference contains this text, in any case of its ASCII letters.
    pub reference: Option<String>,
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
    }
}

/// A part of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// At most [`LISTED_MAX`], the newest first.
    pub verifications: Vec<Verification>,
    /// Give this as `before` to go on; `None` at the end of what is kept.
    pub older: Option<u64>,
    /// When the oldest entry that was read was written; `None` when there was none.
    pub read_back_to: Option<Timestamp>,
}

/// Lists verifications of the caller's app whose ledger entries come before this number, or the newest ones.
///
/// # Errors
/// A store that is away.
pub async fn list(service: &Service, caller: &Caller, filter: &Filter, before: Option<u64>) -> Result<Listing, ServiceError> {
    let statement = |page| service.store.statement(caller.client.clone(), PageRequest { page, page_size: PAGE_SIZE });
    let mut next = match before {
        Some(before) => before.saturating_sub(1),
        None => statement(1).await?.total,
    };
    let end = next.saturating_sub(READ_MAX);
    let mut listing = Listing { verifications: Vec::new(), older: None, read_back_to: None };
    let mut any_kept = false;
    while next > end {
        let page = u32::try_from(next.div_ceil(u64::from(PAGE_SIZE))).unwrap_or(u32::MAX);
        let mut entries = statement(page).await?.items;
        entries.retain(|entry| entry.seq <= next && entry.seq > end);
        entries.reverse();
        if entries.is_empty() {
            return Ok(listing);
        }
        for chunk in entries.chunks(LOADED_AT_ONCE) {
            let loaded = try_join_all(chunk.iter().map(|entry| load(service, entry))).await?;
            for (entry, record) in chunk.iter().zip(loaded) {
                next = entry.seq - 1;
                listing.read_back_to = Some(entry.at);
                any_kept |= record.is_some();
                let own = record.filter(|record| record.opened().app == caller.app.app_id);
                let found = own.map(|record| verification(&record));
                listing.verifications.extend(found.filter(|found| filter.admits(found)));
                if listing.verifications.len() == LISTED_MAX {
                    listing.older = (next > 0).then_some(next + 1);
                    return Ok(listing);
                }
            }
        }
    }
    // Transactions go in about the order in which they came: behind so many that are gone, no other is kept.
    let kept = service.rules.window + service.rules.result_ttl;
    let is_end = !any_kept && listing.read_back_to.is_some_and(|at| at + kept < service.clock.now());
    listing.older = (next > 0 && !is_end).then_some(next + 1);
    Ok(listing)
}

async fn load(service: &Service, entry: &LedgerEntry) -> Result<Option<TransactionRecord>, ServiceError> {
    let id = (entry.kind == EntryKind::Debit).then(|| entry.reference.parse::<TxnId>().ok()).flatten();
    Ok(match id {
        Some(id) => service.store.load_transaction(id).await?,
        None => None,
    })
}

fn verification(record: &TransactionRecord) -> Verification {
    let opened = record.opened();
    let status = match record {
        TransactionRecord::Pending(_) => VerificationStatus::Waiting,
        TransactionRecord::Expired(_) => VerificationStatus::Expired,
        TransactionRecord::Completed(record) if record.passed => VerificationStatus::Verified,
        TransactionRecord::Completed(_) => VerificationStatus::NotVerified,
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
    use super::*;

    #[test]
    fn a_filter_admits_what_has_all_that_it_asks_for() {
        let event = EventId::generate(sakshi_domain::ids::ClientId::generate().partition(), 0);
        let guest = Verification {
            txn: TxnId::generate(sakshi_domain::ids::ClientId::generate().partition(), 0),
            opened_at: Timestamp::from_millis(0),
            status: VerificationStatus::Verified,
            channel: "web",
            event: Some(event),
            reference: Some("Order 7".into()),
        };
        let other = Verification { status: VerificationStatus::Waiting, channel: "qr", event: None, reference: None, ..guest.clone() };
        let filters = [
            Filter { status: Some(VerificationStatus::Verified), ..Filter::default() },
            Filter { channel: Some("web".into()), ..Filter::default() },
            Filter { event: Some(event), ..Filter::default() },
            Filter { reference: Some("oRDER".into()), ..Filter::default() },
        ];
        for filter in filters {
            assert!(filter.admits(&guest) && !filter.admits(&other), "{filter:?}");
            let one_more = Filter { status: Some(VerificationStatus::Expired), ..filter };
            assert!(!one_more.admits(&guest), "{one_more:?}");
        }
        assert!(Filter::default().admits(&other));
    }
}
