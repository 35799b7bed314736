//! `GET /api/v1/nationalid-ovse/events/{eventId}/registrations`: the guests with their claims.
//!
//! A list leaves as it is read: the next slice is read only when the client has taken the one before, so that no more than a
//! slice of it is ever in memory.

use std::rc::Rc;

use actix_web::body::SizedStream;
use actix_web::http::header::ContentType;
use actix_web::web::{Bytes, Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use futures_util::stream::{Stream, try_unfold};
use sakshi_domain::limits::{GUEST_LIST_BYTES_MAX, GUEST_SLICE_BYTES};
use sakshi_service::events::own_event;
use sakshi_service::service::Service;
use sakshi_store::PageRequest;
use sakshi_web::authenticated::Authenticated;
use sakshi_web::budget::{CpuBudget, MemoryBudgets, MemoryPermit, OwnerPath, Stage};
use sakshi_web::error::ApiError;
use sakshi_web::guest_list::{GuestList, Slice};
use sakshi_web::listener::{CloseWatch, ConnectionState};
use sakshi_web::query::Query;
use sakshi_wire::events::{RegistrationRow, RegistrationsPage};

/// The registered guests of an event.
///
/// # Errors
/// 404 unless the app has such an event, 400 when the page is out of bounds.
#[utoipa::path(
    get, path = "/api/v1/nationalid-ovse/events/{eventId}/registrations", tag = "Events",
    params(("eventId" = String, Path), ("page" = Option<u32>, Query, minimum = 1),
           ("page_size" = Option<u32>, Query, minimum = 1, maximum = 100),
           ("after" = Option<u32>, Query, maximum = 99, description = "Rows of the page that are left out because they are known.")),
    responses((status = 200, body = RegistrationsPage, description = "Oldest first; stable while guests are added."),
              (status = 404, description = "No such event of this app.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn list(
    Authenticated(caller): Authenticated,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    memory: Data<MemoryBudgets>,
    cpu: Data<CpuBudget>,
) -> Result<HttpResponse, ApiError> {
    let mut query = Query::of(request.query_string());
    let page = query.page();
    let after = query.number(&["after"], 0..=page.page_size - 1, 0);
    query.finish()?;
    let event = own_event(&service, &caller.app.app_id, &path).await?;
    let owners = OwnerPath::app(&caller.client, &caller.app.app_id);
    let permit = memory.answers.permit(owners.clone(), Stage::Leaving);
    let mut list = GuestList::new(&service, &cpu, owners, event.id, page);
    list.skip(after);
    let connection = request.conn_data::<Rc<ConnectionState>>().cloned();
    let document = Document::begin(list, page, permit, connection).await?;
    let mut response = HttpResponse::Ok();
    response.content_type(ContentType::json());
    Ok(match document.size() {
        Some(bytes) => response.body(SizedStream::new(bytes, document.into_stream())),
        None => response.streaming(document.into_stream()),
    })
}

/// The list ends in the middle, after its beginning was sent.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a list of guests was cut off")]
struct CutOff;

impl CutOff {
    fn because(error: &ApiError) -> Self {
        tracing::warn!(error.code = error.code(), error.detail = error.detail().as_deref(), "a list of guests was cut off");
        Self
    }
}

/// A page of guests as a JSON document that is written while it is sent.
struct Document {
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
    async fn begin(
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
    fn size(&self) -> Option<u64> {
        self.is_whole.then_some(self.written.len() as u64)
    }

    /// Writes the next guests, and the end behind the last.
    async fn write(&mut self) -> Result<(), ApiError> {
        self.permit.grow_to(GUEST_SLICE_BYTES)?;
        let has_rows = self.has_rows;
        let Slice { made, rows, bytes, total } = self.list.next(move |rows| json_of(&rows, has_rows)).await?;
        self.permit.grow_to(made.len())?;
        if !self.is_begun {
            let (event, PageRequest { page, page_size }) = (self.list.event(), self.page);
            let head = format!(r#"{{"event_id":"{event}","page":{page},"page_size":{page_size},"total":{total},"registrations":["#);
            self.written = head.into_bytes();
            self.is_begun = true;
        }
        self.written.extend_from_slice(&made);
        self.has_rows |= rows > 0;
        self.bytes += bytes;
        let is_last = self.list.is_read(total);
        if is_last || self.bytes >= GUEST_LIST_BYTES_MAX {
            self.written.extend_from_slice(if is_last { "]".to_owned() } else { format!(r#"],"next":"{}""#, self.next()) }.as_bytes());
            self.written.push(b'}');
            self.is_whole = true;
        }
        Ok(())
    }

    /// Where the rest of the page is.
    fn next(&self) -> String {
        let (event, PageRequest { page, page_size }) = (self.list.event(), self.page);
        let after = page_size - self.list.left();
        format!("/api/v1/nationalid-ovse/events/{event}/registrations?page={page}&page_size={page_size}&after={after}")
    }

    /// The pieces of the document; the next one is written when the one before has been taken.
    fn into_stream(self) -> impl Stream<Item = Result<Bytes, CutOff>> {
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
