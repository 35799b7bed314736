//! `/portal/events/{eventId}/settings`: the settings of an event, and its doors.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use askama::Template;
use sakshi_domain::client_log::{Action, Subject};
use sakshi_domain::event::{CreditBudget, Event, EventText, OnDuplicate};
use sakshi_domain::ids::AppId;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::time::Timestamp;
use sakshi_service::doors::{close_door, door_url, open_door, open_doors};
use sakshi_service::events::{change_event, own_event};
use sakshi_service::{Service, ServiceError};
use sakshi_store::event_tag;
use sakshi_wire::guests::CreateDoorRequest;

use super::event_time;
use crate::curl::{Command, Curl};
use crate::error::PortalError;
use crate::field::Field;
use crate::form::{Form, Kind, SessionForm};
use crate::layout::{Layout, Section, page, redirect};
use crate::portal_user::PortalUser;
use crate::when::{EventTime, format_for_input};

/// Kinds of the forms' fields.
const SHAPE: &[(&str, Kind)] = &[
    ("is_active", Kind::Flag),
    ("max_guests", Kind::Whole),
    ("credit_budget", Kind::RemovableWhole),
    ("starts_at", Kind::RemovableMoment),
    ("expires_at", Kind::Moment),
    ("place", Kind::Removable),
    ("organiser", Kind::Removable),
    ("purpose", Kind::Removable),
    ("webhook_url", Kind::Removable),
];
/// Field for the name of a door's gate.
const GATE: &str = "gate";
/// Hidden field with the tag of the event's version when the form was opened.
const TAG: &str = "if_match";

/// An open door of the event: a page for staff at the entrance, with its PIN.
struct DoorRow {
    id: String,
    name: String,
    url: String,
    pin: String,
    until: EventTime,
}

/// The page of an event's settings.
#[derive(Template)]
#[template(path = "event_settings.html")]
struct Page {
    layout: Layout,
    event: Arc<Event>,
    /// Success message.
    confirmation: Option<&'static str>,
    /// Form of the settings.
    form: Form,
    /// Form that opens a door.
    door_form: Form,
    /// Value of the field [`TAG`].
    tag: String,
    doors: Vec<DoorRow>,
    commands: Vec<Command>,
}

/// The outcome of a request, for the page.
#[derive(Default)]
struct Outcome {
    status: StatusCode,
    confirmation: Option<&'static str>,
    form: Form,
    door_form: Form,
    /// Value of the field [`TAG`]; `None` for the event's current version.
    tag: Option<String>,
}

impl Page {
    /// Builds a field with the submitted value, or else the event's value.
    fn input<'a>(&'a self, name: &'a str, label: &'a str, kind: &'a str) -> Field<'a> {
        let value = self.form.submitted(name).map_or_else(|| event_value(&self.event, name), str::to_owned);
        Field::new(name, label, kind, value, self.form.problem(name))
    }

    /// Returns the choices for a person who registers again.
    fn choices(&self) -> [(&'static str, &'static str, bool); 3] {
        let chosen = self.form.submitted("on_duplicate").unwrap_or(self.event.terms.on_duplicate.as_str());
        [
            (OnDuplicate::Flag.as_str(), "register and mark the guest"),
            (OnDuplicate::Refuse.as_str(), "refuse"),
            (OnDuplicate::Allow.as_str(), "register without a check"),
        ]
        .map(|(value, words)| (value, words, value == chosen))
    }
}

/// Returns the value of a field in the event.
fn event_value(event: &Event, name: &str) -> String {
    let terms = &event.terms;
    let text = |text: &Option<EventText>| text.as_ref().map_or_else(String::new, |text| text.as_str().to_owned());
    match name {
        "name" => terms.name.as_str().to_owned(),
        "max_guests" => terms.max_guests.get().to_string(),
        "credit_budget" => {
            terms.credit_budget.map_or_else(String::new, |budget: CreditBudget| budget.get().to_string())
        }
        "starts_at" => terms.starts_at.map_or_else(String::new, format_for_input),
        "expires_at" => format_for_input(terms.expires_at),
        "place" => text(&terms.place),
        "organiser" => text(&terms.organiser),
        "purpose" => text(&terms.purpose),
        "webhook_url" => terms.webhook_url.as_ref().map_or_else(String::new, |url| url.as_str().to_owned()),
        _ => String::new(),
    }
}

/// Shows the settings.
///
/// # Errors
/// 404 unless the app has such an event.
pub(crate) async fn show(
    user: PortalUser,
    path: Path<String>,
    request: actix_web::HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let confirmation = match request.query_string() {
        "done=saved" => Some("Saved. The change takes effect at once."),
        "done=opened" => Some("The door is open. Send its link, and tell the PIN in another way."),
        "done=closed" => Some("The door is closed."),
        _ => None,
    };
    render_page(&user, &path, Outcome { confirmation, ..Outcome::default() }, &service).await
}

/// Changes the event, unless it was changed since the form was opened.
///
/// # Errors
/// Any error that does not concern the form.
pub(crate) async fn patch(
    submitted: SessionForm,
    path: Path<String>,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let SessionForm { user, mut form } = submitted;
    let event = own_event(&service, &user.caller.app.app_id, &path).await?;
    let tag = form.take(TAG);
    // Inputs have no seconds. A time that the person has not changed is not sent, and keeps its seconds.
    for name in ["starts_at", "expires_at"] {
        let submitted_time =
            Timestamp::parse_iso8601(form.value(name)).map_or_else(|| form.value(name).to_owned(), format_for_input);
        if submitted_time == event_value(&event, name) {
            form.take(name);
        }
    }
    let only_if = tag.clone().map(|tag| vec![tag]);
    match change_event(&service, &user.caller.app.app_id, &path, form.to_object(SHAPE), only_if).await {
        Ok(event) => {
            user.log(&service, Action::EventChanged, vec![Subject::Event(event.id)]).await?;
            Ok(redirect(&format!("/portal/events/{}/settings?done=saved", event.id)))
        }
        Err(error) => {
            // If somebody else has changed the event, the page shows the current event.
            let (form, tag) = if error == ServiceError::EventChanged { (Form::default(), None) } else { (form, tag) };
            let (status, form) = form.with_error(error)?;
            render_page(&user, &path, Outcome { status, form, tag, ..Outcome::default() }, &service).await
        }
    }
}

/// Opens a door, or closes the door that the form names.
///
/// # Errors
/// Any error that does not concern the form.
pub(crate) async fn change_doors(
    submitted: SessionForm,
    path: Path<String>,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let SessionForm { user, mut form } = submitted;
    let app = &user.caller.app.app_id;
    let door = form.take("close");
    let result = match &door {
        Some(door) => close_door(&service, app, &path, door).await.map(|()| "closed"),
        None => open_named_door(&service, app, &path, form.value(GATE).trim()).await.map(|()| "opened"),
    };
    match result {
        Ok(change) => {
            user.log(&service, Action::DoorsChanged, path.parse().map(Subject::Event).into_iter().collect()).await?;
            Ok(redirect(&format!("/portal/events/{}/settings?done={change}", *path)))
        }
        Err(error) => {
            let (status, door_form) = form.with_error(error)?;
            render_page(&user, &path, Outcome { status, door_form, ..Outcome::default() }, &service).await
        }
    }
}

/// Opens a door, without a name if `gate` is empty.
async fn open_named_door(service: &Service, app: &AppId, event: &str, gate: &str) -> Result<(), ServiceError> {
    let name = match gate {
        "" => None,
        gate => Some(EventText::parse(gate).map_err(|problem| Invalid::one(GATE, problem))?),
    };
    open_door(service, app, event, CreateDoorRequest { name, ..CreateDoorRequest::default() }).await?;
    Ok(())
}

async fn render_page(
    user: &PortalUser,
    path: &str,
    outcome: Outcome,
    service: &Service,
) -> Result<HttpResponse, PortalError> {
    let Outcome { status, confirmation, form, door_form, tag } = outcome;
    let event = own_event(service, &user.caller.app.app_id, path).await?;
    let now = service.clock.now();
    let door = |door: &sakshi_domain::event::Door| DoorRow {
        id: door.id.as_str().to_owned(),
        name: door.name.as_ref().map_or_else(|| "Door".to_owned(), |name| name.as_str().to_owned()),
        url: door_url(service, event.id, &door.id),
        pin: door.pin.as_str().to_owned(),
        until: event_time(&event, door.end(event.terms.expires_at)),
    };
    let template = Page {
        layout: user.layout(Section::Events, service),
        confirmation,
        form,
        door_form,
        tag: tag.unwrap_or_else(|| event_tag(&event.terms)),
        doors: open_doors(&event, now).map(door).collect(),
        commands: Curl(&service.authority.public_base).event(event.id, &event.terms, now),
        event,
    };
    Ok(page(status, &template))
}
