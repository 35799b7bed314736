//! `/console`: open work: grants that wait for a second operator, clients that are low on credits, and the node's
//! health.

use actix_web::HttpResponse;
use sakshi_domain::grant_request::{GrantRequest, GrantState};
use sakshi_service::ServiceError;
use sakshi_store::PageRequest;
use sakshi_web::html::redirect;

use crate::error::ConsoleError;
use crate::layout::Section;
use crate::records::{Funds, funds_of};
use crate::staff::Staff;
use crate::submitted::Submitted;
use crate::view::{Cell, FormView, Part, Table, View};

/// Number of clients examined for low balances.
const CLIENTS_LOOKED_AT: u32 = 100;

/// Shows the overview.
///
/// # Errors
/// Nobody has signed in, or the store is unavailable.
pub(crate) async fn show(staff: Staff) -> Result<HttpResponse, ConsoleError> {
    page(&staff, &[]).await.map(|view| view.ok())
}

async fn page(staff: &Staff, problems: &[String]) -> Result<View, ConsoleError> {
    let grants = staff.api.store.grant_requests().await?;
    let view = View::new(staff, Some(Section::Front), "Overview")
        .lead("What needs somebody now. Find anything by its id above.");
    Ok(view.problems_if(problems).part(waiting(staff, &grants)).part(low(staff).await?).part(node(staff)))
}

fn waiting(staff: &Staff, grants: &[GrantRequest]) -> Part {
    let row = |grant: &GrantRequest| {
        let (class, may) = match grant.state {
            GrantState::Pending => ("pending", staff.may("confirmGrant")),
            GrantState::Confirmed => ("good", false),
            GrantState::Refused => ("bad", false),
        };
        let own = grant.asked_by.is(&staff.who.signatory());
        let act = |word: &str, button: &str| {
            FormView::of(staff, format!("/console/grants/{}/{word}", grant.id), button).cell()
        };
        let decision = match &grant.decided {
            Some((by, at)) => Cell::Many(vec![Cell::text(by.name.clone()), Cell::at(*at)]),
            None if may && own => {
                Cell::Many(vec![Cell::text("Another operator must confirm it."), act("refuse", "Withdraw")])
            }
            None if may => Cell::Many(vec![act("confirm", "Confirm"), act("refuse", "Refuse")]),
            None => Cell::text("An owner decides."),
        };
        vec![
            Cell::link("clients", &grant.client),
            Cell::number(grant.movement.amount),
            Cell::text(grant.movement.reference.clone()),
            Cell::Many(vec![Cell::text(grant.asked_by.name.clone()), Cell::at(grant.asked_at)]),
            Cell::at(grant.ends_at),
            Cell::tag(class, grant.state.as_str()),
            decision,
        ]
    };
    let limit = staff.api.second_person_above;
    let words = limit.map_or_else(
        || "No grant waits here: the setting admin.second_person_above is off.".to_owned(),
        |most| format!("A grant of more than {most} credits needs a second operator within a day."),
    );
    let table = Table {
        caption: "Grants that wait for a second operator",
        columns: &["Client", "Credits", "Reference", "Asked by", "Ends", "State", "Decision"],
        rows: grants.iter().rev().map(row).collect(),
    };
    let part = Part::new("grants", "Grants for two").words(words);
    if limit.is_some() || !grants.is_empty() { part.table(table, "Nothing waits.") } else { part }
}

async fn low(staff: &Staff) -> Result<Part, ConsoleError> {
    let newest = PageRequest { page: 1, page_size: CLIENTS_LOOKED_AT };
    let clients = staff.api.store.list_clients(newest).await?;
    let looked_at = clients.items.len() as u64;
    let funds = funds_of(staff, clients.items).await?;
    let rows = funds.into_iter().filter(|funds| funds.is_low && funds.client.suspended_at.is_none());
    let rows = rows.map(|Funds { client, balance, .. }| {
        let name = Cell::Link { href: format!("/console/clients/{}", client.client_id), text: client.name };
        vec![name, Cell::code(client.client_id), Cell::number(balance)]
    });
    let table =
        Table { caption: "Clients low on credits", columns: &["Client", "Id", "Credits"], rows: rows.collect() };
    let part = Part::new("low", "Low on credits");
    let part = if looked_at < clients.total {
        part.words(format!("Of the oldest {looked_at} of {} clients; the list of clients has all.", clients.total))
    } else {
        part
    };
    Ok(part.table(table, "No client is."))
}

fn node(staff: &Staff) -> Part {
    let state = |health: Result<(), String>| match health {
        Ok(()) => Cell::tag("good", "as it should be"),
        Err(why) => Cell::tag("bad", why),
    };
    let health = &staff.api.health;
    let words = "A node that reports a loss of data writes nothing until sakshi admin accept-loss; after a jump of \
        its clock it deletes nothing until sakshi admin accept-clock.";
    Part::new("node", "This node")
        .fact("It works", state(health.livez()))
        .fact("It takes requests", state(health.readyz()))
        .fact("Encryption key in use", Cell::code(staff.api.store.sealing_key()))
        .words(words)
}

/// Redirects `GET /console/`.
pub(crate) async fn back(_: Staff) -> HttpResponse {
    redirect("/console")
}

/// Answers for an address without a page, to people who have signed in.
///
/// # Errors
/// 404, always.
pub(crate) async fn lost(_: Staff) -> Result<HttpResponse, ConsoleError> {
    Err(ServiceError::NotFound("page").into())
}

/// Confirms a grant.
///
/// # Errors
/// As for every form.
pub(crate) async fn confirm(submitted: Submitted) -> Result<HttpResponse, ConsoleError> {
    decide(submitted, "confirmGrant", "confirmed").await
}

/// Refuses or withdraws a grant.
///
/// # Errors
/// As for every form.
pub(crate) async fn refuse(submitted: Submitted) -> Result<HttpResponse, ConsoleError> {
    decide(submitted, "refuseGrant", "refused").await
}

async fn decide(submitted: Submitted, operation: &'static str, done: &str) -> Result<HttpResponse, ConsoleError> {
    match submitted.carry_out(operation, None).await {
        Ok(_) => Ok(redirect(&format!("/console?done={done}"))),
        Err(error) => {
            let Submitted { staff, form } = submitted;
            let (status, form) = form.refused(error)?;
            Ok(page(&staff, form.problems()).await?.answer(status))
        }
    }
}
