//! `/console/clients/{client_id}/consents`: the questions to people for a client, and their answers.

use std::time::Duration;

use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::consent::ConsentAnswer;
use sakshi_domain::ids::ClientId;
use sakshi_domain::time::Timestamp;
use sakshi_service::ServiceError;
use sakshi_store::{AskedConsents, ConsentPlace, KeptConsent};
use sakshi_web::query::Query;

use crate::error::ConsoleError;
use crate::layout::Section;
use crate::records::client_of;
use crate::staff::Staff;
use crate::view::{Cell, Part, Table, View};

/// Number of entries on one page.
const ROWS: u32 = 25;
/// Largest time by which the clock of a node may be ahead.
const AHEAD: Duration = Duration::from_secs(24 * 3_600);

/// Shows a part of the register, oldest week first.
///
/// # Errors
/// 404 for an unknown client.
pub(crate) async fn show(staff: Staff, path: Path<String>, request: HttpRequest) -> Result<HttpResponse, ConsoleError> {
    let id: ClientId = path.parse().map_err(|_| ServiceError::NotFound("client"))?;
    let mut query = Query::parse(request.query_string());
    let week = query.number(&["week"], 0..=i64::from(u32::MAX), 0);
    let number = query.number(&["number"], 0..=i64::MAX.cast_unsigned(), 0);
    query.finish()?;
    let client = client_of(&staff, &id).await?;
    let asked = AskedConsents {
        client: id.clone(),
        from: Timestamp::from_millis(0),
        to: staff.api.clock.now() + AHEAD,
        after: ConsentPlace { week, number },
        limit: ROWS,
    };
    let page = staff.api.store.consents(asked).await?;
    let table = Table {
        caption: "Register of consents",
        columns: &["Of", "Kind", "Asked", "Purpose", "At", "Answer", "Answered", "Code"],
        rows: page.entries.into_iter().map(|(_, kept)| row(kept)).collect(),
    };
    let folder = format!("/console/clients/{id}/consents");
    let next = page.next.map(|place| format!("{folder}?week={}&number={}", place.week, place.number));
    let part = Part::new("register", "Register").words("It holds no value of a detail. An erasure leaves it as it is.");
    let view = View::new(&staff, Some(Section::Clients), format!("Consents of {}", client.name));
    Ok(view
        .back(format!("/console/clients/{id}"), client.name)
        .part(part.table(table, "No entry here."))
        .page(next, "Later")
        .ok())
}

fn row(KeptConsent { consent, answered_at }: KeptConsent) -> Vec<Cell> {
    let answer = match consent.answer {
        ConsentAnswer::Given => Cell::tag("good", "given"),
        ConsentAnswer::NotGiven => Cell::tag("", "not given"),
    };
    vec![
        Cell::Link { href: format!("/console/find?id={}", consent.id), text: consent.id },
        Cell::text(consent.kind),
        Cell::text(consent.asked.join(", ")),
        Cell::or_none(consent.purpose, Cell::Text),
        Cell::at(consent.opened_at),
        answer,
        Cell::at(answered_at),
        Cell::or_none(consent.code, Cell::Code),
    ]
}
