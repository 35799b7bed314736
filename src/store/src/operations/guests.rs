//! Registered guests of events.

use sakshi_domain::event::CheckIn;
use sakshi_domain::ids::{EventId, TxnId};

use super::{Store, is_done};
use crate::engine::{Query, Value};
use crate::error::{ATTEMPTS, StoreError, StoreFuture};
use crate::events::{CheckInOutcome, Guest, Registration};
use crate::paging::{Page, Rows};
use crate::records::event;
use crate::transitions::guests;
use crate::vault::Sealed;

impl Store {
    /// Returns the registered guests, in the order of registration. Registrations are only appended, so offsets are
    /// stable. A replaced primary does not answer: it may have what was erased since.
    pub fn list_guests(&self, id: EventId, rows: Rows) -> StoreFuture<Page<Guest>> {
        self.run(move |store| async move {
            let list = event::key_of_guests(id.partition(), id);
            let Rows { offset, limit, max_bytes } = rows;
            let entries = Query::Entries { list: list.clone(), first: offset + 1, limit: limit.into(), max_bytes };
            let mut answers = store.read_confirmed(vec![Query::Length(list), entries]).await?;
            Ok(Page { total: answers.number()?, items: decode_guests(offset, answers.entries()?)? })
        })
    }

    /// As [`Store::list_guests`], with the shared claims.
    pub fn list_registrations(&self, id: EventId, rows: Rows) -> StoreFuture<Page<Registration>> {
        self.run(move |store| async move {
            let list = event::key_of_guests(id.partition(), id);
            let Rows { offset, limit, max_bytes } = rows;
            let (first, limit) = (offset + 1, limit.into());
            let shared = Query::Entries { list: list.in_table(&event::SHARED), first, limit, max_bytes };
            let mut answers = store
                .read_confirmed(vec![Query::Length(list.clone()), shared, Query::entries(list, first, limit)])
                .await?;
            let (total, shared) = (answers.number()?, answers.entries()?);
            let guests = decode_guests(offset, answers.entries()?)?;
            let registration = |(guest, shared): (Guest, Vec<Value>)| {
                let outcome = decode_outcome(guest.txn, &shared)?;
                Some(Registration { guest, outcome })
            };
            let items = guests.into_iter().zip(shared).map(registration).collect::<Option<_>>();
            Ok(Page { items: items.ok_or_else(|| StoreError::unreadable("a registration"))?, total })
        })
    }

    /// Returns the guest with this number, with the shared claims.
    pub fn load_registration(&self, id: EventId, number: u64) -> StoreFuture<Option<Registration>> {
        self.run(move |store| async move {
            let Some(offset) = number.checked_sub(1) else { return Ok(None) };
            let page = store.list_registrations(id, Rows { offset, limit: 1, max_bytes: usize::MAX }).await?;
            Ok(page.items.into_iter().next())
        })
    }

    /// Checks in a guest who is not checked in yet. The check-in is never earlier than the registration. A retry after
    /// a lost response uses the same id.
    pub fn check_in(&self, id: EventId, number: u64, check_in: CheckIn) -> StoreFuture<CheckInOutcome> {
        self.run(move |store| async move {
            let Some(offset) = number.checked_sub(1) else { return Ok(CheckInOutcome::NotFound) };
            for attempt in 0..ATTEMPTS {
                // Another gate may act on this check-in, so it must survive a failover.
                let entry = Query::entry(event::key_of_guests(id.partition(), id), number);
                let guests = decode_guests(offset, store.read_confirmed(vec![entry]).await?.entries()?)?;
                let Some(guest) = guests.into_iter().next() else {
                    return store.unless_records_were_lost(CheckInOutcome::NotFound).await;
                };
                match &guest.check_in {
                    // An earlier attempt of this call checked the guest in, and its response was lost.
                    Some(known) if known.id == check_in.id && attempt > 0 => {
                        return Ok(CheckInOutcome::CheckedIn(guest));
                    }
                    Some(known) if known.id == check_in.id => return Ok(CheckInOutcome::Repeated(guest)),
                    Some(_) => return Ok(CheckInOutcome::AlreadyCheckedIn(guest)),
                    None => {}
                }
                let at = check_in.at.max(guest.verified_at);
                let after = Guest { check_in: Some(CheckIn { at, ..check_in.clone() }), ..guest.clone() };
                if is_done(&store.commit(guests::check_in(id, &guest, &after)).await?) {
                    return Ok(CheckInOutcome::CheckedIn(after));
                }
            }
            Err(StoreError::Overloaded)
        })
    }
}

/// Decodes the guests in entries. The first entry has the number `offset + 1`.
pub(super) fn decode_guests(offset: u64, entries: Vec<Vec<Value>>) -> Result<Vec<Guest>, StoreError> {
    let guests: Option<_> =
        (offset + 1..).zip(entries).map(|(number, entry)| guests::decode_guest(number, &entry)).collect();
    guests.ok_or_else(|| StoreError::unreadable("a guest"))
}

/// Decodes the claims that a guest shared.
fn decode_outcome(txn: TxnId, shared: &[Value]) -> Option<Sealed> {
    match shared {
        [Value::Bytes(guest), Value::Bytes(outcome)] if guest == txn.as_bytes() => Sealed::from_bytes(outcome.clone()),
        _ => None,
    }
}
