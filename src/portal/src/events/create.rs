//! `/portal/events/new`: a form that creates an event like `POST /events`.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Data;
use askama::Template;
use sakshi_domain::client_log::{Action, Subject};
use sakshi_domain::ids::EventId;
use sakshi_service::Service;
use sakshi_service::events::{OPERATION, create_event};
use sakshi_web::error::ApiError;
use sakshi_web::rate_limit::RateLimits;
use sakshi_wire::events::CreateEventRequest;

use crate::error::PortalError;
use crate::form::{Form, Kind, SessionForm};
use crate::layout::{Layout, Section, page, redirect};
use crate::portal_user::PortalUser;
use crate::trial::{Choice, Group, groups, languages};
use crate::when::format_for_input;

/// Kinds of the form's fields.
const SHAPE: &[(&str, Kind)] =
    &[("claims", Kind::Words), ("max_guests", Kind::Whole), ("starts_at", Kind::Moment), ("expires_at", Kind::Moment)];
/// Default time until the end of the event.
const DEFAULT_DURATION: Duration = Duration::from_secs(7 * 24 * 3_600);

/// The page with the form for a new event.
#[derive(Template)]
#[template(path = "event_new.html")]
struct NewEventPage {
    layout: Layout,
    groups: Vec<Group>,
    languages: Vec<Choice>,
    form: Form,
    /// Idempotency key in a hidden field.
    once: String,
}

fn render_page(status: StatusCode, user: &PortalUser, form: Form, service: &Service) -> HttpResponse {
    let layout = user.layout(Section::Events, service);
    let (groups, languages, once) = (groups(&form), languages(&form), form.next_once_value(status));
    page(status, &NewEventPage { layout, groups, languages, form, once })
}

/// Shows the form.
///
/// # Errors
/// 303 to the sign-in page without a session.
pub(crate) async fn show(user: PortalUser, service: Data<Service>) -> Result<HttpResponse, PortalError> {
    let end = format_for_input(service.clock.now() + DEFAULT_DURATION);
    let zone = service.rules.time_zone.name();
    let defaults =
        [("time_zone", zone), ("claims", "name"), ("language", "english"), ("max_guests", "100"), ("expires_at", &end)];
    Ok(render_page(StatusCode::OK, &user, Form::prefilled(&defaults), &service))
}

/// Creates the event and redirects to it.
///
/// # Errors
/// Any error that does not concern the form.
pub(crate) async fn create(
    submitted: SessionForm,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, PortalError> {
    let SessionForm { user, form } = submitted;
    match create_from_form(&user, &form, &service, &rates).await {
        Ok(id) => Ok(redirect(&format!("/portal/events/{id}?done=created"))),
        Err(error) => {
            let (status, form) = form.with_error(error)?;
            Ok(render_page(status, &user, form, &service))
        }
    }
}

/// Creates the event that the form describes; a repeated form creates no second event.
async fn create_from_form(
    user: &PortalUser,
    form: &Form,
    service: &Service,
    rates: &RateLimits,
) -> Result<EventId, ApiError> {
    let caller = &user.caller;
    // Events count towards the client's limit on orders, as in the API.
    rates.orders.take(&caller.client)?;
    let request: CreateEventRequest = form.to_object(SHAPE).into_request(service.request_context())?;
    let terms = request.terms(service.rules.time_zone);
    let id = create_event(service, caller.clone(), terms, form.idempotent_request(caller, OPERATION))
        .await?
        .into_answer()?
        .event_id;
    user.log(service, Action::EventCreated, vec![Subject::Event(id)]).await?;
    Ok(id)
}
