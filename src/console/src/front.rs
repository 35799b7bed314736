//! `/console`: the overview of open work: grants that wait for a second operator, clients low on credits, and the
//! node's health.

use actix_web::HttpResponse;
use sakshi_domain::grant_request::{GrantRequest, GrantState};
use sakshi_service::ServiceError;
use sakshi_store::PageRequest;
use sakshi_web::html::redirect;

use crate::error::ConsoleError;
use crate::layout::Section;
use crate::records::{ClientBalance, load_balances};
use crate::staff::Staff;
use crate::submitted::SubmittedForm;
use crate::view::{Cell, FormView, Part, Table, View};

/// Maximum number of clients checked for low balances.
const CLIENTS_CHECKED_MAX: u32 = 100;

/// Shows the overview.
///
/// # Errors
/// [`ConsoleError::SignIn`] without a session; any error of the store.
pub(crate) async fn show(staff: Staff) -> Result<HttpResponse, ConsoleError> {
    overview_page(&staff, &[]).await.map(|view| view.ok())
}

async fn overview_page(staff: &Staff, problems: &[String]) -> Result<View, ConsoleError> {
    let grants = staff.api.store.grant_requests().await?;
    let view =
        View::new(staff, Some(Section::Front), "Overview").lead("Open work. To find a record, enter its id above.");
    Ok(view
        .problems_if(problems)
        .part(grants_part(staff, &grants))
        .part(low_credits_part(staff).await?)
        .part(node_part(staff)))
}

fn grants_part(staff: &Staff, grants: &[GrantRequest]) -> Part {
    let row = |grant: &GrantRequest| {
        let (class, may_decide) = match grant.state {
            GrantState::Pending => ("pending", staff.may("confirmGrant")),
            GrantState::Confirmed => ("good", false),
            GrantState::Refused => ("bad", false),
        };
        let is_own = grant.requested_by.is_same_as(&staff.caller.signatory());
        let button = |action: &str, label: &str| {
            FormView::new(staff, format!("/console/grants/{}/{action}", grant.id), label).cell()
        };
        let decision = match &grant.decision {
            Some((by, at)) => Cell::Many(vec![Cell::text(by.name.clone()), Cell::at(*at)]),
            None if may_decide && is_own => {
                Cell::Many(vec![Cell::text("Another operator must confirm it."), button("refuse", "Withdraw")])
            }
            None if may_decide => Cell::Many(vec![button("confirm", "Confirm"), button("refuse", "Refuse")]),
            None => Cell::text("An owner decides."),
        };
        vec![
            Cell::link("clients", &grant.client),
            Cell::number(grant.movement.amount),
            Cell::text(grant.movement.reference.clone()),
            Cell::Many(vec![Cell::text(grant.requested_by.name.clone()), Cell::at(grant.requested_at)]),
            Cell::at(grant.ends_at),
            Cell::tag(class, grant.state.as_str()),
            decision,
        ]
    };
    let limit = staff.api.second_person_above;
    let words = limit.map_or_else(
        || "No grant needs a second operator: the setting admin.second_person_above is off.".to_owned(),
        |limit| format!("A grant of more than {limit} credits needs a second operator within a day."),
    );
    let table = Table {
        caption: "Grants that wait for a second operator",
        columns: &["Client", "Credits", "Reference", "Asked by", "Ends", "State", "Decision"],
        rows: grants.iter().rev().map(row).collect(),
    };
    let part = Part::new("grants", "Grants").words(words);
    if limit.is_some() || !grants.is_empty() { part.table(table, "No grants wait.") } else { part }
}

async fn low_credits_part(staff: &Staff) -> Result<Part, ConsoleError> {
    let oldest = PageRequest { page: 1, page_size: CLIENTS_CHECKED_MAX };
    let clients = staff.api.store.list_clients(oldest).await?;
    let checked = clients.items.len() as u64;
    let balances = load_balances(staff, clients.items).await?;
    let rows = balances.into_iter().filter(|balance| balance.is_low && balance.client.suspended_at.is_none());
    let rows = rows.map(|ClientBalance { client, balance, .. }| {
        let name = Cell::Link { href: format!("/console/clients/{}", client.client_id), text: client.name };
        vec![name, Cell::code(client.client_id), Cell::number(balance)]
    });
    let table =
        Table { caption: "Clients low on credits", columns: &["Client", "Id", "Credits"], rows: rows.collect() };
    let part = Part::new("low", "Low on credits");
    let part = if checked < clients.total {
        part.words(format!("Of the oldest {checked} of {} clients. The list of clients shows all.", clients.total))
    } else {
        part
    };
    Ok(part.table(table, "No client is low on credits."))
}

fn node_part(staff: &Staff) -> Part {
    let state = |health: Result<(), String>| match health {
        Ok(()) => Cell::tag("good", "yes"),
        Err(reason) => Cell::tag("bad", reason),
    };
    let health = &staff.api.health;
    let words = "A node that reports a loss of data writes nothing until sakshi admin accept-loss; after a jump of \
        its clock it deletes nothing until sakshi admin accept-clock.";
    Part::new("node", "This node")
        .fact("Alive", state(health.livez()))
        .fact("Ready for requests", state(health.readyz()))
        .fact("Encryption key in use", Cell::code(staff.api.store.sealing_key()))
        .words(words)
}

/// Redirects `/console/` to `/console`.
pub(crate) async fn redirect_to_overview(_: Staff) -> HttpResponse {
    redirect("/console")
}

/// Responds to an address without a page.
///
/// # Errors
/// 404, always.
pub(crate) async fn unknown_page(_: Staff) -> Result<HttpResponse, ConsoleError> {
    Err(ServiceError::NotFound("page").into())
}

/// Confirms a grant.
///
/// # Errors
/// Any error that the form cannot show.
pub(crate) async fn confirm(submitted: SubmittedForm) -> Result<HttpResponse, ConsoleError> {
    decide(submitted, "confirmGrant", "confirmed").await
}

/// Refuses or withdraws a grant.
///
/// # Errors
/// Any error that the form cannot show.
pub(crate) async fn refuse(submitted: SubmittedForm) -> Result<HttpResponse, ConsoleError> {
    decide(submitted, "refuseGrant", "refused").await
}

/// Performs the operation that decides on a grant; `done` names the notice on the next page.
async fn decide(submitted: SubmittedForm, operation: &'static str, done: &str) -> Result<HttpResponse, ConsoleError> {
    match submitted.carry_out(operation, None).await {
        Ok(_) => Ok(redirect(&format!("/console?done={done}"))),
        Err(error) => {
            let SubmittedForm { staff, form } = submitted;
            let (status, form) = form.with_error(error)?;
            Ok(overview_page(&staff, form.problems()).await?.respond(status))
        }
    }
}
