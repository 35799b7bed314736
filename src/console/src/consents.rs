//! `/console/clients/{client_id}/consents`: what people were asked on behalf of a client, and their answers.

use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::consent::ConsentAnswer;
use sakshi_domain::ids::ClientId;
use sakshi_domain::limits::CONSENT_SEARCH_AHEAD;
use sakshi_domain::time::Timestamp;
use sakshi_service::ServiceError;
use sakshi_store::{ConsentPosition, ConsentQuery, StoredConsent};
use sakshi_web::query::Query;

use crate::error::ConsoleError;
use crate::layout::Section;
use crate::records::find_client;
use crate::staff::Staff;
use crate::view::{Cell, Part, Table, View};

/// Number of entries on one page.
const ROWS: u32 = 25;

/// Shows a page of the register, oldest week first.
///
/// # Errors
/// 404 for an unknown client.
pub(crate) async fn show(staff: Staff, path: Path<String>, request: HttpRequest) -> Result<HttpResponse, ConsoleError> {
    let id: ClientId = path.parse().map_err(|_| ServiceError::NotFound("client"))?;
    let mut query = Query::parse(request.query_string());
    let week = query.number(&["week"], 0..=i64::from(u32::MAX), 0);
    let number = query.number(&["number"], 0..=i64::MAX.cast_unsigned(), 0);
    query.finish()?;
    let client = find_client(&staff, &id).await?;
    let query = ConsentQuery {
        client: id.clone(),
        from: Timestamp::from_millis(0),
        to: staff.api.clock.now() + CONSENT_SEARCH_AHEAD,
        after: ConsentPosition { week, number },
        limit: ROWS,
    };
    let page = staff.api.store.consents(query).await?;
    let table = Table {
        caption: "Register of consents",
        columns: &["Of", "Kind", "Asked", "Purpose", "At", "Answer", "Answered", "Code"],
        rows: page.entries.into_iter().map(|(_, consent)| consent_row(consent)).collect(),
    };
    let folder = format!("/console/clients/{id}/consents");
    let next = page.next.map(|place| format!("{folder}?week={}&number={}", place.week, place.number));
    let part = Part::new("register", "Register")
        .words("The register contains no values of details. An erasure does not change it.");
    let view = View::new(&staff, Some(Section::Clients), format!("Consents of {}", client.name));
    Ok(view
        .back(format!("/console/clients/{id}"), client.name)
        .part(part.table(table, "No entries."))
        .page(next, "Later")
        .ok())
}

fn consent_row(StoredConsent { consent, answered_at }: StoredConsent) -> Vec<Cell> {
    let answer = match consent.answer {
        ConsentAnswer::Given => Cell::tag("good", "given"),
        ConsentAnswer::NotGiven => Cell::tag("", "not given"),
    };
    vec![
        Cell::search_link(consent.id),
        Cell::text(consent.kind),
        Cell::text(consent.requested.join(", ")),
        Cell::or_none(consent.purpose, Cell::Text),
        Cell::at(consent.opened_at),
        answer,
        Cell::at(answered_at),
        Cell::or_none(consent.code, Cell::Code),
    ]
}
