//! `GET /api/v1/nationalid-ovse/events/{eventId}/registrations`: the guests with their claims.
//!
//! The list is streamed. A slice is read after the client has received the previous slice, so only one slice is in
//! memory.

use actix_web::body::SizedStream;
use actix_web::http::header::ContentType;
use actix_web::web::{Bytes, Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use futures_util::stream::{Stream, StreamExt as _, iter, try_unfold};
use sakshi_domain::limits::GUEST_SLICE_BYTES;
use sakshi_service::budget::{MemoryPermit, Stage};
use sakshi_service::events::own_event;
use sakshi_service::guest_list::{GuestList, Slice};
use sakshi_service::{Service, ServiceError};
use sakshi_store::PageRequest;
use sakshi_web::authenticated::Authenticated;
use sakshi_web::error::ApiError;
use sakshi_web::listener::{CloseWatch, close_connection_when};
use sakshi_web::query::{next_page, parse_page};
use sakshi_web::rate_limit::RateLimits;
use sakshi_wire::guests::{RegistrationRow, RegistrationsPage};

/// Lists the registered guests of an event.
///
/// # Errors
/// 404 unless the app has such an event, 400 when the page is out of bounds.
#[utoipa::path(
    get, path = "/api/v1/nationalid-ovse/events/{eventId}/registrations", tag = "Events",
    operation_id = "listEventRegistrations",
    summary = "List registered guests",
    description = "Oldest first. Guests keep their place in the list, so pages stay the same when guests are added. \
        Follow `next` until it is absent.",
    params(("eventId" = String, Path), ("page" = Option<u32>, Query, minimum = 1), ("page_size" = Option<u32>, Query,
        minimum = 1)),
    responses((status = 200, body = RegistrationsPage, description = "A page of guests."),
              (status = 404, description = "The application has no such event."))
)]
pub(crate) async fn list(
    Authenticated(caller): Authenticated,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.polls.count(&request, &caller.app.app_id)?;
    let page = parse_page(request.query_string())?;
    let event = own_event(&service, &caller.app.app_id, &path).await?;
    let permit = service.memory.answers.permit(caller.owners(), Stage::Leaving);
    let watch = close_connection_when(&request, permit.wait_until_revoked());
    let list = GuestList::new(&service, &caller, &event, page);
    let mut body = StreamedPage {
        path: request.path().to_owned(),
        list,
        page,
        permit,
        is_begun: false,
        is_complete: false,
        _watch: watch,
    };
    let (first_slice, total) = body.write_slice().await?;
    let PageRequest { page, page_size } = page;
    let head = format!(
        r#"{{"event_id":"{}","page":{page},"page_size":{page_size},"total":{total},"registrations":["#,
        event.id
    );
    let (is_complete, bytes) = (body.is_complete, head.len() + first_slice.len());
    let pieces = iter([Ok(Bytes::from(head)), Ok(first_slice.into())]).chain(body.into_stream());
    let mut response = HttpResponse::Ok();
    response.content_type(ContentType::json());
    Ok(if is_complete { response.body(SizedStream::new(bytes as u64, pieces)) } else { response.streaming(pieces) })
}

/// Error that cuts off a list of guests after its beginning was sent.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a list of guests was cut off")]
struct CutOff;

impl CutOff {
    /// Logs the cause, which the client cannot be sent any more.
    fn log(error: &ApiError) -> Self {
        tracing::warn!(error.type = error.code(), error.detail = error.detail().as_deref(), "a list of guests was cut \
            off");
        Self
    }
}

/// The body of the response: a page of guests, serialized slice by slice while it is sent.
struct StreamedPage {
    /// The path of the request.
    path: String,
    list: GuestList,
    page: PageRequest,
    /// Share of the memory budget for the slice in memory.
    permit: MemoryPermit,
    /// True after the first guest.
    is_begun: bool,
    /// True after the closing bracket.
    is_complete: bool,
    /// Closes the connection when the memory permit is revoked.
    _watch: Option<CloseWatch>,
}

impl StreamedPage {
    /// Serializes the next slice of guests, and the end of the page after the last slice. Also returns the number of
    /// guests of the event.
    async fn write_slice(&mut self) -> Result<(Vec<u8>, u64), ApiError> {
        self.permit.grow_to(GUEST_SLICE_BYTES)?;
        let is_begun = self.is_begun;
        let Slice { converted: mut json, total } = self.list.next(move |rows| rows_to_json(&rows, is_begun)).await?;
        self.permit.grow_to(json.len())?;
        self.is_begun = self.is_begun || !json.is_empty();
        self.is_complete = self.list.is_exhausted(total);
        if self.is_complete {
            json.extend_from_slice(
                match next_page(&self.path, self.page, total) {
                    Some(next) => format!(r#"],"next":"{next}"}}"#),
                    None => "]}".to_owned(),
                }
                .as_bytes(),
            );
        }
        Ok((json, total))
    }

    /// Streams the remaining pieces. Each piece is serialized after the client has received the previous piece.
    fn into_stream(self) -> impl Stream<Item = Result<Bytes, CutOff>> {
        try_unfold(self, |mut body| async move {
            if body.is_complete {
                return Ok(None);
            }
            body.permit.shrink_to(0);
            let (piece, _) = body.write_slice().await.map_err(|error| CutOff::log(&error))?;
            Ok(Some((Bytes::from(piece), body)))
        })
    }
}

/// Serializes rows as elements of a JSON array, with a leading comma if the array has earlier elements.
fn rows_to_json(rows: &[RegistrationRow], is_begun: bool) -> Result<Vec<u8>, ServiceError> {
    let mut json = Vec::new();
    for row in rows {
        if is_begun || !json.is_empty() {
            json.push(b',');
        }
        serde_json::to_writer(&mut json, row).map_err(ServiceError::internal)?;
    }
    Ok(json)
}
