//! A list of an event's guests, read from the store and decrypted one slice at a time.
//!
//! A guest may have shared a photo of megabytes, so a slice is bounded in bytes as well as in rows. Large slices are
//! decrypted off the HTTP workers. A slice is read when the client has taken the previous one, which can take long, so
//! the caller is checked before each.

use std::sync::Arc;

use sakshi_actors::reveal_outcome;
use sakshi_domain::event::{Event, EventSecret};
use sakshi_domain::ids::EventId;
use sakshi_domain::limits::{GUEST_SLICE_BYTES, GUEST_SLICE_INLINE_BYTES};
use sakshi_domain::transaction::Outcome;
use sakshi_store::{Guest, PageRequest, Registration, Rows, Store, Vault};
use sakshi_wire::Always;
use sakshi_wire::guests::RegistrationRow;

use crate::authentication::Caller;
use crate::budget::CpuBudget;
use crate::check_ins::named_gate;
use crate::error::ServiceError;
use crate::registration_codes::code_of;
use crate::service::Service;

/// The guests of an event that are not read yet.
pub struct GuestList {
    store: Store,
    vault: Arc<Vault>,
    cpu: CpuBudget,
    caller: Caller,
    event: EventId,
    secret: EventSecret,
    /// Number of guests before the next guest.
    after: u64,
    /// Maximum number of guests left to read.
    remaining: u32,
}

/// A slice of guests, converted.
pub struct Slice<T> {
    /// Result of the conversion.
    pub converted: T,
    /// Number of guests of the event.
    pub total: u64,
}

impl GuestList {
    /// Creates the list of one page of an event's guests; the caller is charged for its work.
    #[must_use]
    pub fn new(service: &Service, caller: &Caller, event: &Event, page: PageRequest) -> Self {
        let Rows { offset: after, limit: remaining, .. } = page.into();
        let (store, vault, cpu) = (service.store.clone(), Arc::clone(&service.vault), service.cpu.clone());
        Self {
            store,
            vault,
            cpu,
            caller: caller.clone(),
            event: event.id,
            secret: event.terms.secret,
            after,
            remaining,
        }
    }

    /// Returns true when all guests have been read; `total` is the number of the event's guests.
    #[must_use]
    pub fn is_exhausted(&self, total: u64) -> bool {
        self.remaining == 0 || self.after >= total
    }

    /// Reads all slices and converts every guest. Also returns the number of guests on all pages.
    ///
    /// # Errors
    /// As [`GuestList::next`].
    pub async fn convert_all<T: Send + 'static>(
        mut self,
        convert: fn(&RegistrationRow) -> T,
    ) -> Result<(Vec<T>, u64), ServiceError> {
        let mut all = Vec::new();
        loop {
            let slice = self.next(move |rows| Ok(rows.iter().map(convert).collect::<Vec<T>>())).await?;
            all.extend(slice.converted);
            if self.is_exhausted(slice.total) {
                return Ok((all, slice.total));
            }
        }
    }

    /// Reads and converts the next slice, on this thread if it is small.
    ///
    /// # Errors
    /// [`ServiceError::Unauthorized`] when the caller is no longer valid; any error of the store;
    /// [`ServiceError::Internal`] when a registration cannot be decrypted; [`ServiceError::Overloaded`] without
    /// processor time.
    pub async fn next<T: Send + 'static>(
        &mut self,
        convert: impl FnOnce(Vec<RegistrationRow>) -> Result<T, ServiceError> + Send + 'static,
    ) -> Result<Slice<T>, ServiceError> {
        self.caller.recheck().await?;
        let rows = Rows { offset: self.after, limit: self.remaining, max_bytes: GUEST_SLICE_BYTES };
        let page = self.store.list_registrations(self.event, rows).await?;
        let rows = u32::try_from(page.items.len()).unwrap_or(u32::MAX);
        let bytes: usize = page.items.iter().map(|guest| guest.outcome.size()).sum();
        let (vault, secret) = (Arc::clone(&self.vault), self.secret);
        let work = move || {
            convert(
                page.items
                    .into_iter()
                    .map(|guest| open_registration(&vault, &secret, guest))
                    .collect::<Result<_, _>>()?,
            )
        };
        let converted =
            if bytes <= GUEST_SLICE_INLINE_BYTES { work() } else { self.cpu.run(self.caller.owners(), work).await? }?;
        self.after += u64::from(rows);
        // Guests may have been removed since the first slice.
        self.remaining = if rows == 0 { 0 } else { self.remaining - rows };
        Ok(Slice { converted, total: page.total })
    }
}

/// Decrypts a registration, and builds the row of its guest with the shared details.
pub(crate) fn open_registration(
    vault: &Vault,
    secret: &EventSecret,
    registration: Registration,
) -> Result<RegistrationRow, ServiceError> {
    let Registration { guest, outcome } = registration;
    let Guest { number, txn, verified_at, check_in, duplicate_of, .. } = guest;
    let outcome = reveal_outcome(vault, txn, &outcome).map_err(ServiceError::internal)?;
    let Outcome::Verified(verified_claims) = outcome else {
        return Err(ServiceError::internal("a registration without a verification"));
    };
    Ok(RegistrationRow {
        txn_id: txn,
        registration_code: code_of(secret, number).to_string(),
        verified_at,
        possible_duplicate_of: duplicate_of,
        checked_in_at: check_in.as_ref().map(|check_in| check_in.at),
        gate: check_in.and_then(named_gate),
        verification_passed: Always,
        verified_claims,
    })
}
