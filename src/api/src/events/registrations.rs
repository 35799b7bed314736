//! `GET /api/v1/nationalid-ovse/events/{eventId}/registrations`: the guests with their claims.
//!
//! A list leaves as it is read: the next slice is read only when the client has taken the one before, so that no more than a
//! slice of it is ever in memory.

use actix_web::body::SizedStream;
use actix_web::http::header::ContentType;
use actix_web::web::{Bytes, Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use futures_util::stream::{Stream, StreamExt as _, iter, try_unfold};
use sakshi_domain::limits::{GUEST_LIST_BYTES_MAX, GUEST_SLICE_BYTES};
use sakshi_service::budget::{MemoryPermit, Stage};
use sakshi_service::events::own_event;
use sakshi_service::guest_list::{GuestList, Slice};
use sakshi_service::{Service, ServiceError};
use sakshi_store::PageRequest;
use sakshi_web::authenticated::Authenticated;
use sakshi_web::error::ApiError;
use sakshi_web::listener::{CloseWatch, close_connection_when};
use sakshi_web::query::Query;
use sakshi_wire::events::{RegistrationRow, RegistrationsPage};

/// The registered guests of an event.
///
/// # Errors
/// 404 unless the app has such an event, 400 when the page is out of bounds.
#[utoipa::path(
    get, path = "/api/v1/nationalid-ovse/events/{eventId}/registrations", tag = "Events", operation_id = "listEventRegistrations",
    params(("eventId" = String, Path), ("page" = Option<u32>, Query, minimum = 1),
           ("page_size" = Option<u32>, Query, minimum = 1),
           ("after" = Option<u32>, Query, maximum = 99, description = "Rows of the page that are left out because they are known.")),
    responses((status = 200, body = RegistrationsPage, description = "Oldest first; stable while guests are added."),
              (status = 404, description = "No such event of this app."))
)]
pub(crate) async fn list(
    Authenticated(caller): Authenticated,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    let mut query = Query::of(request.query_string());
    let page = query.page();
    let after = query.number(&["after"], 0..=page.page_size - 1, 0);
    query.finish()?;
    let event = own_event(&service, &caller.app.app_id, &path).await?;
    let permit = service.memory.answers.permit(caller.owners(), Stage::Leaving);
    let watch = close_connection_when(&request, permit.revoked());
    let mut list = GuestList::new(&service, &caller, event.id, page);
    list.skip(after);
    let mut document = Document { list, page, permit, bytes: 0, is_whole: false, _watch: watch };
    let (first, total) = document.write().await?;
    let PageRequest { page, page_size } = page;
    let head = format!(r#"{{"event_id":"{}","page":{page},"page_size":{page_size},"total":{total},"registrations":["#, event.id);
    let (is_whole, bytes) = (document.is_whole, head.len() + first.len());
    let pieces = iter([Ok(Bytes::from(head)), Ok(first.into())]).chain(document.into_stream());
    let mut response = HttpResponse::Ok();
    response.content_type(ContentType::json());
    Ok(if is_whole { response.body(SizedStream::new(bytes as u64, pieces)) } else { response.streaming(pieces) })
}

/// The list ends in the middle, after its beginning was sent.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a list of guests was cut off")]
struct CutOff;

impl CutOff {
    fn because(error: &ApiError) -> Self {
        tracing::warn!(error.type = error.code(), error.detail = error.detail().as_deref(), "a list of guests was cut off");
        Self
    }
}

/// The guests of a page as the end of a JSON document, which is written while it is sent.
struct Document {
    list: GuestList,
    page: PageRequest,
    permit: MemoryPermit,
    /// Bytes of all guests so far.
    bytes: usize,
    is_whole: bool,
    /// Closes the connection when the memory permit is revoked.
    _watch: Option<CloseWatch>,
}

impl Document {
    /// The next guests, and the end behind the last; with how many guests the event has.
    async fn write(&mut self) -> Result<(Vec<u8>, u64), ApiError> {
        self.permit.grow_to(GUEST_SLICE_BYTES)?;
        let is_begun = self.bytes > 0;
        let Slice { mut made, bytes, total } = self.list.next(move |rows| json_of(&rows, is_begun)).await?;
        self.permit.grow_to(made.len())?;
        self.bytes += bytes;
        let is_last = self.list.is_read(total);
        self.is_whole = is_last || self.bytes >= GUEST_LIST_BYTES_MAX;
        if is_last {
            made.extend_from_slice(b"]}");
        } else if self.is_whole {
            made.extend_from_slice(format!(r#"],"next":"{}"}}"#, self.next()).as_bytes());
        }
        Ok((made, total))
    }

    /// Where the rest of the page is.
    fn next(&self) -> String {
        let (event, PageRequest { page, page_size }) = (self.list.event(), self.page);
        let after = page_size - self.list.left();
        format!("/api/v1/nationalid-ovse/events/{event}/registrations?page={page}&page_size={page_size}&after={after}")
    }

    /// The pieces of the document that are still to be written; each is written when the one before has been taken.
    fn into_stream(self) -> impl Stream<Item = Result<Bytes, CutOff>> {
        try_unfold(self, |mut document| async move {
            if document.is_whole {
                return Ok(None);
            }
            document.permit.shrink_to(0);
            let (piece, _) = document.write().await.map_err(|error| CutOff::because(&error))?;
            Ok(Some((Bytes::from(piece), document)))
        })
    }
}

/// The rows as members of a JSON array, after a comma if others come before.
fn json_of(rows: &[RegistrationRow], is_begun: bool) -> Result<Vec<u8>, ServiceError> {
    let mut json = Vec::new();
    for row in rows {
        if is_begun || !json.is_empty() {
            json.push(b',');
        }
        serde_json::to_writer(&mut json, row).map_err(ServiceError::internal)?;
    }
    Ok(json)
}
