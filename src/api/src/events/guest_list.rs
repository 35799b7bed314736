//! A list of guests as it leaves: read from the store, opened and written a slice at a time, and the
//! next slice only when the client has taken the one before.
//!
//! A guest may have shared a photo of megabytes, so a list is bounded in bytes as well as in rows, no
//! more than a slice of it is ever in memory, and what is large is opened apart from the HTTP workers.

use actix_web::web::Bytes;
use futures_util::stream::{Stream, try_unfold};
use sakshi_actors::reveal_outcome;
use sakshi_domain::ids::EventId;
use sakshi_domain::limits::{GUEST_LIST_BYTES_MAX, GUEST_SLICE_BYTES, GUEST_SLICE_INLINE_BYTES};
use sakshi_domain::transaction::Outcome;
use sakshi_service::error::ServiceError;
use sakshi_store::{PageRequest, Registration, Rows, Store, Vault};
use sakshi_web::budget::{CpuBudget, MemoryPermit, OwnerPath};
use sakshi_web::error::ApiError;
use sakshi_web::listener::{CloseWatch, ConnectionState};
use sakshi_wire::events::RegistrationRow;
use std::rc::Rc;
use std::sync::Arc;

/// The guests of an event who are still to be read.
pub struct GuestList {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) vault: Arc<Vault>,
    pub(crate) cpu: CpuBudget,
    pub(crate) owners: OwnerPath,
    pub(crate) event: EventId,
    /// How many come before the next one.
    pub(crate) after: u64,
    /// As many at most.
    pub(crate) left: u32,
}

/// Some guests, made into what is wanted of them.
pub(crate) struct Slice<T> {
    pub(crate) made: T,
    /// How many there are.
    pub(crate) rows: u32,
    /// What they held in the store.
    pub(crate) bytes: usize,
    /// Guests of the event.
    pub(crate) total: u64,
}

impl GuestList {
    /// Leaves some out.
    pub(super) fn skip(&mut self, rows: u32) {
        self.after += u64::from(rows);
        self.left = self.left.saturating_sub(rows);
    }

    /// Makes something of every guest, however many slices that takes; with how many there are on all pages.
    ///
    /// # Errors
    /// As [`GuestList::next`].
    pub async fn each<T: Send + 'static>(mut self, make: fn(&RegistrationRow) -> T) -> Result<(Vec<T>, u64), ApiError> {
        let mut all = Vec::new();
        loop {
            let slice = self.next(move |rows| Ok(rows.iter().map(make).collect::<Vec<T>>())).await?;
            all.extend(slice.made);
            if self.left == 0 || self.after >= slice.total {
                return Ok((all, slice.total));
            }
        }
    }

    /// Reads the next guests and makes something of them: on this thread when they are small.
    ///
    /// # Errors
    /// What a store says, a registration that does not open, or no processor time.
    pub(crate) async fn next<T: Send + 'static>(
        &mut self,
        make: impl FnOnce(Vec<RegistrationRow>) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<Slice<T>, ApiError> {
        let rows = Rows { after: self.after, most: self.left, bytes: GUEST_SLICE_BYTES };
        let found = self.store.list_registrations(self.event, rows).await?;
        let rows = u32::try_from(found.items.len()).unwrap_or(u32::MAX);
        let bytes = found.items.iter().map(|guest| guest.outcome.size()).sum();
        let vault = Arc::clone(&self.vault);
        let work = move || make(revealed(&vault, found.items)?);
        let made = if bytes <= GUEST_SLICE_INLINE_BYTES { work() } else { self.cpu.run(self.owners.clone(), work).await? }?;
        self.after += u64::from(rows);
        // Those that were there when the list was begun may have been removed since.
        self.left = if rows == 0 { 0 } else { self.left - rows };
        Ok(Slice { made, rows, bytes, total: found.total })
    }
}

fn revealed(vault: &Vault, guests: Vec<Registration>) -> Result<Vec<RegistrationRow>, ApiError> {
    let reveal = |guest: Registration| {
        let outcome = reveal_outcome(vault, guest.txn, &guest.outcome).map_err(ApiError::internal)?;
        let Outcome::Verified(claims) = outcome else {
            return Err(ApiError::Service(ServiceError::Internal("a registration without a verification".to_owned())));
        };
        Ok(RegistrationRow::new(guest.txn, guest.verified_at, claims))
    };
    guests.into_iter().map(reveal).collect()
}

/// The list ends in the middle, after its beginning was sent.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a list of guests was cut off")]
pub(super) struct CutOff;

impl CutOff {
    fn because(error: &ApiError) -> Self {
        tracing::warn!(error.code = error.code(), error.detail = error.detail().as_deref(), "a list of guests was cut off");
        Self
    }
}

/// A page of guests as a JSON document that is written while it is sent.
pub(super) struct Document {
    list: GuestList,
    page: PageRequest,
    permit: MemoryPermit,
    /// What is written and not yet handed over.
    written: Vec<u8>,
    /// Bytes of all guests so far.
    bytes: usize,
    is_begun: bool,
    has_rows: bool,
    is_whole: bool,
    /// Closes the connection when the memory permit is revoked.
    _watch: Option<CloseWatch>,
}

impl Document {
    /// The beginning of a page.
    ///
    /// # Errors
    /// What a store says, a registration that does not open, or no memory or processor time left.
    pub(super) async fn begin(
        list: GuestList,
        page: PageRequest,
        permit: MemoryPermit,
        connection: Option<Rc<ConnectionState>>,
    ) -> Result<Self, ApiError> {
        let watch = connection.map(|connection| connection.close_when(permit.revoked()));
        let mut document =
            Self { list, page, permit, written: Vec::new(), bytes: 0, is_begun: false, has_rows: false, is_whole: false, _watch: watch };
        document.write().await?;
        Ok(document)
    }

    /// Its size, if there is nothing more to write.
    pub(super) fn size(&self) -> Option<u64> {
        self.is_whole.then_some(self.written.len() as u64)
    }

    /// Writes the next guests, and the end behind the last.
    async fn write(&mut self) -> Result<(), ApiError> {
        self.permit.grow_to(GUEST_SLICE_BYTES)?;
        let has_rows = self.has_rows;
        let Slice { made, rows, bytes, total } = self.list.next(move |rows| json_of(&rows, has_rows)).await?;
        self.permit.grow_to(made.len())?;
        if !self.is_begun {
            let (event, PageRequest { page, page_size }) = (self.list.event, self.page);
            let head = format!(r#"{{"event_id":"{event}","page":{page},"page_size":{page_size},"total":{total},"registrations":["#);
            self.written = head.into_bytes();
            self.is_begun = true;
        }
        self.written.extend_from_slice(&made);
        self.has_rows |= rows > 0;
        self.bytes += bytes;
        let is_last = self.list.left == 0 || self.list.after >= total;
        if is_last || self.bytes >= GUEST_LIST_BYTES_MAX {
            self.written.extend_from_slice(if is_last { "]".to_owned() } else { format!(r#"],"next":"{}""#, self.next()) }.as_bytes());
            self.written.push(b'}');
            self.is_whole = true;
        }
        Ok(())
    }

    /// Where the rest of the page is.
    fn next(&self) -> String {
        let (event, PageRequest { page, page_size }) = (self.list.event, self.page);
        let after = page_size - self.list.left;
        format!("/api/v1/nationalid-ovse/events/{event}/registrations?page={page}&page_size={page_size}&after={after}")
    }

    /// The pieces of the document; the next one is written when the one before has been taken.
    pub(super) fn into_stream(self) -> impl Stream<Item = Result<Bytes, CutOff>> {
        try_unfold(self, |mut document| async move {
            if document.written.is_empty() {
                if document.is_whole {
                    return Ok(None);
                }
                document.permit.shrink_to(0);
                document.write().await.map_err(|error| CutOff::because(&error))?;
            }
            let piece = Bytes::from(std::mem::take(&mut document.written));
            Ok(Some((piece, document)))
        })
    }
}

/// The rows as members of a JSON array, with the comma before them that separates them from others.
fn json_of(rows: &[RegistrationRow], has_rows: bool) -> Result<Vec<u8>, ApiError> {
    let mut json = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        if has_rows || at > 0 {
            json.push(b',');
        }
        serde_json::to_writer(&mut json, row).map_err(ApiError::internal)?;
    }
    Ok(json)
}
