//! `GET /portal/events`: the app's events, newest first.

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::event::Event;
use sakshi_service::Service;
use sakshi_web::query::Query;

use super::{EventState, event_time};
use crate::curl::{Command, Curl};
use crate::error::PortalError;
use crate::layout::{Layout, Section, page};
use crate::paging::{Pages, newest};
use crate::portal_user::PortalUser;
use crate::when::EventTime;

/// An event in the list.
struct Row {
    id: String,
    name: String,
    state: EventState,
    registrations: u32,
    places: u32,
    scans: u64,
    until: EventTime,
}

#[derive(Template)]
#[template(path = "events.html")]
struct List {
    layout: Layout,
    rows: Vec<Row>,
    pages: Pages,
    commands: Vec<Command>,
}

/// Shows a page of the list.
///
/// # Errors
/// 303 to the sign-in page without a session; 503 while the store is unavailable.
pub(crate) async fn show(
    user: PortalUser,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let page_number = Query::parse(request.query_string()).number(&["page"], 1..=u32::MAX, 1);
    let app = &user.caller.app.app_id;
    let events = newest(page_number, |page| service.store.list_events(app.clone(), page)).await?;
    let row = |event: &Event| Row {
        id: event.id.to_string(),
        name: event.terms.name.as_str().to_owned(),
        state: EventState::new(event, &service),
        registrations: event.counts.registrations,
        places: event.terms.max_guests.get(),
        scans: event.counts.scans,
        until: event_time(event, event.terms.expires_at),
    };
    let template = List {
        layout: user.layout(Section::Events, &service),
        rows: events.items.iter().map(row).collect(),
        pages: events.pages,
        commands: vec![Curl(&service.authority.public_base).events()],
    };
    Ok(page(StatusCode::OK, &template))
}
