//! `/portal/events/{eventId}`: an event with its counts, its arrivals, and its guests, newest first.

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_authority::claims::credential_name;
use sakshi_domain::claims::Claim;
use sakshi_domain::event::{CreditBudget, Event};
use sakshi_domain::time::Timestamp;
use sakshi_pages::qr_code::QrCode;
use sakshi_service::check_ins::{find_guest, search_guests};
use sakshi_service::events::own_event;
use sakshi_service::guest_list::GuestList;
use sakshi_service::{Service, ServiceError};
use sakshi_store::Page as GuestPage;
use sakshi_web::error::ApiError;
use sakshi_web::query::Query;
use sakshi_wire::events::EventAddresses;
use sakshi_wire::guests::RegistrationRow;

use super::arrivals::Arrivals;
use super::live::Counts;
use super::workbook::fits_workbook;
use super::{event_time, printed};
use crate::error::PortalError;
use crate::layout::{Layout, Section, page};
use crate::paging::{Newest, Pages, ROWS, newest};
use crate::portal_user::PortalUser;
use crate::transaction::SharedClaim;
use crate::trial::claim_label;
use crate::when::EventTime;

/// A verified guest.
struct Guest {
    id: String,
    code: String,
    /// Name, if it was shared.
    name: Option<String>,
    photo: Option<String>,
    at: Timestamp,
    /// Time and gate of the check-in.
    checked_in: Option<(Timestamp, Option<String>)>,
    /// Id of an earlier guest who may be the same person.
    duplicate_of: Option<String>,
    /// Other shared claims.
    shared: Vec<SharedClaim>,
}

impl Guest {
    /// Separates the name and the photo from the other shared claims.
    fn from_row(row: &RegistrationRow) -> Self {
        let mut shared = SharedClaim::list(&row.verified_claims);
        let mut take = |matches: &dyn Fn(&SharedClaim) -> bool| {
            shared.iter().position(matches).map(|index| shared.remove(index).value)
        };
        let name = take(&|claim| claim.name == credential_name(Claim::Name));
        let photo = take(&|claim| claim.is_photo);
        Self {
            id: row.txn_id.to_string(),
            code: row.registration_code.clone(),
            name,
            photo,
            at: row.verified_at,
            checked_in: row.checked_in_at.map(|at| (at, row.gate.clone())),
            duplicate_of: row.possible_duplicate_of.map(|id| id.to_string()),
            shared,
        }
    }
}

/// The page of an event.
#[derive(Template)]
#[template(path = "event.html")]
struct Page {
    layout: Layout,
    event: Arc<Event>,
    counts: Counts,
    /// `None` for an event with very many guests.
    arrivals: Option<Arrivals>,
    claims: String,
    /// True if the event has just been created.
    is_new: bool,
    search_text: String,
    addresses: EventAddresses,
    code: String,
    guests: Vec<Guest>,
    pages: Pages,
}

impl Page {
    /// Returns true if the page links the workbook.
    fn has_workbook(&self) -> bool {
        fits_workbook(&self.event)
    }

    /// Returns true if the page links the printed list.
    fn has_paper(&self) -> bool {
        printed::fits_paper(&self.event)
    }

    fn time(&self, at: &Timestamp) -> EventTime {
        event_time(&self.event, *at)
    }

    /// Returns the time of day in the event's time zone.
    fn clock(&self, at: &Timestamp) -> String {
        self.event.terms.time_zone.local(*at).time
    }

    fn budget(&self) -> Option<u32> {
        self.event.terms.credit_budget.map(CreditBudget::get)
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
    let event = own_event(&service, &user.caller.app.app_id, &path).await?;
    let mut query = Query::parse(request.query_string());
    let page_number = query.number(&["page"], 1..=u32::MAX, 1);
    let search_text = query.text("q").unwrap_or_default().trim().to_owned();
    let Newest { items: guests, pages } = if search_text.is_empty() {
        load_guests(&service, &user, &event, page_number).await?
    } else {
        Newest { items: find_guests(&service, &event, &search_text).await?, pages: Pages::new(1, 0) }
    };
    let addresses = service.authority.event_addresses(event.id);
    let code = QrCode::for_screen(&addresses.qr_url).map_err(ApiError::internal)?;
    let claims: Vec<&str> = event.terms.claims.iter().map(claim_label).collect();
    let credits = service.store.balance(user.caller.client.clone()).await?.unwrap_or(0);
    let template = Page {
        layout: user.layout(Section::Events, &service),
        counts: Counts::new(&event, &service, credits),
        arrivals: Arrivals::load(&service, &event).await?,
        claims: claims.join("\u{a0}· "),
        is_new: request.query_string() == "done=created",
        search_text,
        code: code.inline(),
        guests,
        pages,
        addresses,
        event,
    };
    Ok(page(StatusCode::OK, &template))
}

/// Loads a page of the guests.
async fn load_guests(
    service: &Service,
    user: &PortalUser,
    event: &Event,
    page_number: u32,
) -> Result<Newest<Guest>, ServiceError> {
    newest(page_number, async |page| {
        let (items, total) = GuestList::new(service, &user.caller, event, page).convert_all(Guest::from_row).await?;
        Ok(GuestPage { items, total })
    })
    .await
}

/// Finds the guests whose name or code matches a text.
async fn find_guests(service: &Service, event: &Event, text: &str) -> Result<Vec<Guest>, ServiceError> {
    let mut guests = Vec::new();
    for guest in search_guests(service, event, text, ROWS as usize).await? {
        guests.extend(find_guest(service, event, guest.code).await?.as_ref().map(Guest::from_row));
    }
    Ok(guests)
}
