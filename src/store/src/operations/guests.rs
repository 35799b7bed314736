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
    /// Returns the registered guests, in the order of registration.
    ///
    /// Registrations are only appended, so an offset always finds the same ones.
    pub fn list_guests(&self, id: EventId, rows: Rows) -> StoreFuture<Page<Guest>> {
        self.run(move |store| async move {
            let list = event::guests(id.partition(), id);
            let Rows { offset, limit, max_bytes } = rows;
            let entries = Query::Entries { list: list.clone(), first: offset + 1, limit: limit.into(), max_bytes };
            let mut answers = store.read(vec![Query::Length(list), entries]).await?;
            Ok(Page { total: answers.number()?, items: numbered(offset, answers.entries()?)? })
        })
    }

    /// Returns the same guests with their shared claims.
    pub fn list_registrations(&self, id: EventId, rows: Rows) -> StoreFuture<Page<Registration>> {
        self.run(move |store| async move {
            let list = event::guests(id.partition(), id);
            let Rows { offset, limit, max_bytes } = rows;
            let (first, limit) = (offset + 1, limit.into());
            let shared = Query::Entries { list: list.of(&event::SHARED), first, limit, max_bytes };
            let mut answers =
                store.read(vec![Query::Length(list.clone()), shared, Query::entries(list, first, limit)]).await?;
            let (total, shared) = (answers.number()?, answers.entries()?);
            let guests = numbered(offset, answers.entries()?)?;
            let registration = |(guest, shared): (Guest, Vec<Value>)| {
                let outcome = outcome_of(guest.txn, &shared)?;
                Some(Registration { guest, outcome })
            };
            let items = guests.into_iter().zip(shared).map(registration).collect::<Option<_>>();
            Ok(Page { items: items.ok_or_else(|| StoreError::unreadable("a registration"))?, total })
        })
    }

    /// Returns the guest with this number and the shared claims.
    pub fn load_registration(&self, id: EventId, number: u64) -> StoreFuture<Option<Registration>> {
        self.run(move |store| async move {
            let Some(offset) = number.checked_sub(1) else { return Ok(None) };
            let found = store.list_registrations(id, Rows { offset, limit: 1, max_bytes: usize::MAX }).await?;
            Ok(found.items.into_iter().next())
        })
    }

    /// Checks in a guest who was not; never before the registration. A retry after a lost response uses the same id.
    pub fn check_in(&self, id: EventId, number: u64, check_in: CheckIn) -> StoreFuture<CheckInOutcome> {
        self.run(move |store| async move {
            let Some(offset) = number.checked_sub(1) else { return Ok(CheckInOutcome::NotFound) };
            for attempt in 0..ATTEMPTS {
                // Another door learns that the guest is in, so no failover may lose it.
                let entry = Query::entries(event::guests(id.partition(), id), number, 1);
                let found = numbered(offset, store.engine().read_confirmed(vec![entry]).await?.entries()?)?;
                let Some(guest) = found.into_iter().next() else {
                    return store.confirmed(CheckInOutcome::NotFound).await;
                };
                match &guest.check_in {
                    // Done by this call, whose response was lost, or by an earlier one.
                    Some(known) if known.id == check_in.id && attempt > 0 => {
                        return Ok(CheckInOutcome::CheckedIn(guest));
                    }
                    Some(known) if known.id == check_in.id => return Ok(CheckInOutcome::Repeated(guest)),
                    Some(_) => return Ok(CheckInOutcome::Already(guest)),
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

/// Returns the guests of entries after the first `offset`.
pub(super) fn numbered(offset: u64, entries: Vec<Vec<Value>>) -> Result<Vec<Guest>, StoreError> {
    let guests: Option<_> = (offset + 1..).zip(entries).map(|(number, entry)| guests::guest(number, &entry)).collect();
    guests.ok_or_else(|| StoreError::unreadable("a guest"))
}

/// Returns the claims that this guest shared.
fn outcome_of(txn: TxnId, shared: &[Value]) -> Option<Sealed> {
    match shared {
        [Value::Bytes(of), Value::Bytes(outcome)] if of == txn.as_bytes() => Sealed::from_bytes(outcome.clone()),
        _ => None,
    }
}
