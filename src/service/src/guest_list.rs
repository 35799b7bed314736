//! A list of an event's guests, read from the store and opened a slice at a time.
//!
//! A guest may have shared a photo of megabytes, so a slice is bounded in bytes as well as in rows, and what is large is opened
//! apart from the HTTP workers.

use std::sync::Arc;

use sakshi_actors::reveal_outcome;
use sakshi_domain::ids::EventId;
use sakshi_domain::limits::{GUEST_SLICE_BYTES, GUEST_SLICE_INLINE_BYTES};
use sakshi_domain::transaction::Outcome;
use sakshi_store::{PageRequest, Registration, Rows, Store, Vault};
use sakshi_wire::events::RegistrationRow;

use crate::authentication::Caller;
use crate::budget::{CpuBudget, OwnerPath};
use crate::entrance::registration_code;
use crate::error::ServiceError;
use crate::service::Service;

/// The guests of an event who are still to be read.
pub struct GuestList {
    store: Store,
    vault: Arc<Vault>,
    cpu: CpuBudget,
    owners: OwnerPath,
    event: EventId,
    /// How many come before the next one.
    after: u64,
    /// As many at most.
    left: u32,
}

/// Some guests, made into what is wanted of them.
pub struct Slice<T> {
    /// What was made of them.
    pub made: T,
    /// Guests of the event.
    pub total: u64,
}

impl GuestList {
    /// The guests of a page of an event, for the work of which the caller is charged.
    #[must_use]
    pub fn new(service: &Service, caller: &Caller, event: EventId, page: PageRequest) -> Self {
        let Rows { offset: after, limit: left, .. } = page.into();
        let (store, vault, cpu) = (service.store.clone(), Arc::clone(&service.vault), service.cpu.clone());
        Self { store, vault, cpu, owners: caller.owners(), event, after, left }
    }

    /// Whether all have been read, of `total` guests.
    #[must_use]
    pub fn is_read(&self, total: u64) -> bool {
        self.left == 0 || self.after >= total
    }

    /// Makes something of every guest, however many slices that takes; with how many there are on all pages.
    ///
    /// # Errors
    /// As [`GuestList::next`].
    pub async fn each<T: Send + 'static>(mut self, make: fn(&RegistrationRow) -> T) -> Result<(Vec<T>, u64), ServiceError> {
        let mut all = Vec::new();
        loop {
            let slice = self.next(move |rows| Ok(rows.iter().map(make).collect::<Vec<T>>())).await?;
            all.extend(slice.made);
            if self.is_read(slice.total) {
                return Ok((all, slice.total));
            }
        }
    }

    /// Reads the next guests and makes something of them: on this thread when they are small.
    ///
    /// # Errors
    /// What a store says, a registration that does not open, or no processor time.
    pub async fn next<T: Send + 'static>(
        &mut self,
        make: impl FnOnce(Vec<RegistrationRow>) -> Result<T, ServiceError> + Send + 'static,
    ) -> Result<Slice<T>, ServiceError> {
        let rows = Rows { offset: self.after, limit: self.left, max_bytes: GUEST_SLICE_BYTES };
        let found = self.store.list_registrations(self.event, rows).await?;
        let rows = u32::try_from(found.items.len()).unwrap_or(u32::MAX);
        let bytes: usize = found.items.iter().map(|guest| guest.outcome.size()).sum();
        let vault = Arc::clone(&self.vault);
        let work = move || make(revealed(&vault, found.items)?);
        let made = if bytes <= GUEST_SLICE_INLINE_BYTES { work() } else { self.cpu.run(self.owners.clone(), work).await? }?;
        self.after += u64::from(rows);
        // Those that were there when the list was begun may have been removed since.
        self.left = if rows == 0 { 0 } else { self.left - rows };
        Ok(Slice { made, total: found.total })
    }
}

fn revealed(vault: &Vault, guests: Vec<Registration>) -> Result<Vec<RegistrationRow>, ServiceError> {
    let reveal = |guest: Registration| {
        let outcome = reveal_outcome(vault, guest.txn, &guest.outcome).map_err(ServiceError::internal)?;
        let Outcome::Verified(claims) = outcome else {
            return Err(ServiceError::internal("a registration without a verification"));
        };
        Ok(RegistrationRow::new(guest.txn, registration_code(guest.txn), guest.verified_at, claims))
    };
    guests.into_iter().map(reveal).collect()
}
