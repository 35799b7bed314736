//! `GET /api/v1/nationalid-ovse/events/{eventId}/registrations`: the guests with their claims.

use actix_web::body::SizedStream;
use actix_web::http::header::ContentType;
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::ids::EventId;
use sakshi_service::events::own_event;
use sakshi_service::service::Service;
use sakshi_store::{PageRequest, Rows};
use sakshi_web::authenticated::Authenticated;
use sakshi_web::budget::{CpuBudget, MemoryBudgets, OwnerPath, Stage};
use sakshi_web::error::ApiError;
use sakshi_web::listener::ConnectionState;
use sakshi_web::query::Query;
use sakshi_wire::events::RegistrationsPage;
use std::rc::Rc;
use std::sync::Arc;

use super::guest_list::{Document, GuestList};

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
    let mut list = guests(&service, &cpu, owners, event.id, page);
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

/// The guests of a page of an event.
pub fn guests(service: &Service, cpu: &CpuBudget, owners: OwnerPath, event: EventId, page: PageRequest) -> GuestList {
    let Rows { after, most: left, .. } = page.into();
    let (store, vault) = (Arc::clone(&service.store), Arc::clone(&service.vault));
    GuestList { store, vault, cpu: cpu.clone(), owners, event, after, left }
}
