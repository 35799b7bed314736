//! `/portal/events/{eventId}`: an event with its counts, what can be changed of it, and its guests.

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_authority::claims::credential_name;
use sakshi_domain::claims::Claim;
use sakshi_domain::event::Event;
use sakshi_domain::time::Timestamp;
use sakshi_pages::qr_code::QrCode;
use sakshi_service::Service;
use sakshi_service::events::change_event;
use sakshi_service::events::own_event;
use sakshi_service::guest_list::GuestList;
use sakshi_store::PageRequest;
use sakshi_web::error::ApiError;
use sakshi_web::query::Query;
use sakshi_wire::events::{EventAddresses, RegistrationRow};

use super::event_time;
use super::live::Counts;
use super::workbook::fits;
use crate::curl::{Command, Curl};
use crate::error::PortalError;
use crate::field::Field;
use crate::form::{Form, Kind, Submitted};
use crate::layout::{Layout, Section, page, redirect};
use crate::paging::{Pages, ROWS};
use crate::portal_user::PortalUser;
use crate::transaction::Shared;
use crate::trial::asked;
use crate::when::{EventTime, input};

/// How the fields of the forms stand for those of the request.
const SHAPE: &[(&str, Kind)] = &[
    ("is_active", Kind::Flag),
    ("max_guests", Kind::Whole),
    ("credit_budget", Kind::RemovableWhole),
    ("expires_at", Kind::Moment),
    ("webhook_url", Kind::Removable),
];

/// A guest who was verified.
struct Guest {
    id: String,
    code: String,
    /// The name, if it was shared.
    name: Option<String>,
    at: Timestamp,
    /// What else was shared.
    shared: Vec<Shared>,
}

impl Guest {
    fn of(row: &RegistrationRow) -> Self {
        let mut shared = Shared::all(&row.verified_claims);
        let mut names = shared.extract_if(.., |claim| claim.name == credential_name(Claim::Name));
        let name = names.next().map(|claim| claim.value);
        drop(names);
        Self { id: row.txn_id.to_string(), code: row.registration_code.clone(), name, at: row.verified_at, shared }
    }
}

#[derive(Template)]
#[template(path = "event.html")]
struct Page {
    layout: Layout,
    event: Arc<Event>,
    counts: Counts,
    asked: String,
    /// What has just been done.
    done: Option<&'static str>,
    form: Form,
    /// What the inputs hold: the event as it is, or what was sent.
    cap: String,
    budget: String,
    end: String,
    webhook: String,
    name: String,
    addresses: EventAddresses,
    code: String,
    guests: Vec<Guest>,
    total: u64,
    pages: Pages,
    commands: Vec<Command>,
}

impl Page {
    fn has_workbook(&self) -> bool {
        fits(&self.event)
    }

    fn time(&self, at: &Timestamp) -> EventTime {
        event_time(&self.event, *at)
    }

    fn input<'a>(&'a self, name: &'a str, label: &'a str, kind: &'a str, value: &'a str) -> Field<'a> {
        Field::new(name, label, kind, value, self.form.problem(name))
    }
}

/// Shows the event.
///
/// # Errors
/// 404 unless the app has such an event.
pub(crate) async fn show(
    user: PortalUser,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    shown(StatusCode::OK, &user, &path, Form::default(), request.query_string(), &service).await
}

/// Changes the event in the one field that the form has.
///
/// # Errors
/// What is not about the form.
pub(crate) async fn patch(submitted: Submitted, path: Path<String>, service: Data<Service>) -> Result<HttpResponse, PortalError> {
    let Submitted { user, form } = submitted;
    match change_event(&service, &user.caller.app.app_id, &path, form.sent(SHAPE), None).await {
        Ok(event) => Ok(redirect(&format!("/portal/events/{}?done=saved", event.id))),
        Err(error) => {
            let (status, form) = form.refused(error)?;
            shown(status, &user, &path, form, "", &service).await
        }
    }
}

async fn shown(
    status: StatusCode,
    user: &PortalUser,
    path: &str,
    form: Form,
    query: &str,
    service: &Service,
) -> Result<HttpResponse, PortalError> {
    let event = own_event(service, &user.caller.app.app_id, path).await?;
    let number = Query::of(query).number(&["page"], 1..=u32::MAX, 1);
    let page_request = PageRequest { page: number, page_size: ROWS };
    let (guests, total) = GuestList::new(service, &user.caller, event.id, page_request).each(Guest::of).await?;
    let addresses = service.authority.event_addresses(event.id);
    let code = QrCode::for_screen(&addresses.qr_url).map_err(ApiError::internal)?;
    let asked: Vec<&str> = event.terms.claims.iter().map(asked).collect();
    let credits = service.store.balance(user.caller.client.clone()).await?.unwrap_or(0);
    let terms = &event.terms;
    let sent = |name: &str, now: String| if form.problem(name).is_some() { form.value(name).to_owned() } else { now };
    let webhook = terms.webhook_url.as_ref().map(|url| url.as_str().to_owned());
    let template = Page {
        layout: user.layout(Section::Events, service),
        counts: Counts::of(&event, service, credits),
        asked: asked.join("\u{a0}· "),
        done: match query {
            "done=created" => Some("The event was created. Print its code, or show it on a screen."),
            "done=saved" => Some("Saved. The change takes effect at once."),
            _ => None,
        },
        cap: sent("max_guests", terms.max_guests.get().to_string()),
        budget: sent("credit_budget", terms.credit_budget.map_or_else(String::new, |budget| budget.get().to_string())),
        end: sent("expires_at", input(terms.expires_at)),
        webhook: sent("webhook_url", webhook.unwrap_or_default()),
        name: sent("name", terms.name.as_str().to_owned()),
        form,
        code: code.inline(),
        guests,
        total,
        pages: Pages::of(number, total),
        commands: Curl(&service.authority.public_base).event(event.id, terms, service.clock.now()),
        addresses,
        event,
    };
    Ok(page(status, &template))
}
