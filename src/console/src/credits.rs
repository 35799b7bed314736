//! `/console/clients/{client_id}/credits`: the statement of a client, and grants.

use actix_web::http::StatusCode;
use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::credits::{EntryKind, LedgerEntry};
use sakshi_domain::grant_request::GrantState;
use sakshi_domain::ids::ClientId;
use sakshi_service::ServiceError;
use sakshi_web::field::Field;
use sakshi_web::form::Kind;
use sakshi_web::html::redirect;
use sakshi_web::paging::newest;
use sakshi_web::query::Query;
use sakshi_wire::operator::credits::MoveCreditsResponse;

use crate::error::ConsoleError;
use crate::layout::Section;
use crate::records::find_client;
use crate::staff::Staff;
use crate::submitted::{Form, SubmittedForm};
use crate::view::{Cell, Choices, FormView, Part, Table, View};

/// Conversions of the form's fields that are not texts.
const FIELD_KINDS: &[(&str, Kind)] = &[("amount", Kind::Whole)];

/// The problem of a grant that was requested and refused before.
const REFUSED_BEFORE: &str =
    "A grant with this reference was refused or withdrawn. Use another reference to request it again.";

/// Shows the statement, newest entry first.
///
/// # Errors
/// 404 for an unknown client.
pub(crate) async fn show(staff: Staff, path: Path<String>, request: HttpRequest) -> Result<HttpResponse, ConsoleError> {
    let id = path.parse().map_err(|_| ServiceError::NotFound("client"))?;
    let mut query = Query::parse(request.query_string());
    let number = query.number(&["page"], 1..=u32::MAX, 1);
    query.text("done");
    query.finish()?;
    Ok(credits_page(&staff, id, number, &Form::default()).await?.ok())
}

async fn credits_page(staff: &Staff, id: ClientId, number: u32, form: &Form) -> Result<View, ConsoleError> {
    let client = find_client(staff, &id).await?;
    let balance = staff.api.store.balance(id.clone()).await?.unwrap_or_default();
    let list = newest(number, |page| staff.api.store.statement(id.clone(), page)).await?;
    let rows = list.items.into_iter().map(entry_row).collect();
    let columns = &["No.", "At", "Kind", "Credits", "Balance after", "Reference"];
    let table = Table { caption: "Movements, newest first", columns, rows };
    let folder = format!("/console/clients/{id}");
    let mut view = View::new(staff, Some(Section::Clients), format!("Credits of {}", client.name))
        .back(folder.clone(), client.name)
        .problems_if(form.problems())
        .part(Part::new("balance", "Balance").fact("Credits", Cell::number(balance)));
    if staff.may("grantCredits") {
        view = view.part(grant_part(staff, &folder, form));
    }
    let page_path = |page: Option<u32>| page.map(|page| format!("{folder}/credits?page={page}"));
    let pages = list.pages;
    let statement = Part::new("statement", "Statement").table(table, "There are no entries yet.");
    Ok(view.part(statement).page(page_path(pages.newer_page()), "Newer").page(page_path(pages.older_page()), "Older"))
}

fn entry_row(entry: LedgerEntry) -> Vec<Cell> {
    let reference = match entry.kind {
        EntryKind::Debit => Cell::link("transactions", &entry.reference),
        EntryKind::Grant | EntryKind::Adjust => Cell::text(entry.reference),
    };
    vec![
        Cell::number(entry.seq),
        Cell::at(entry.at),
        Cell::text(entry.kind.as_str()),
        Cell::number(entry.kind.signed(entry.amount)),
        Cell::number(entry.balance_after),
        reference,
    ]
}

fn grant_part(staff: &Staff, folder: &str, form: &Form) -> Part {
    let value = |name: &str| form.value(name).to_owned();
    let kind = |kind: EntryKind, label: &str| (kind.as_str().to_owned(), label.to_owned());
    let kinds = Choices {
        name: "kind",
        label: "Kind",
        options: vec![kind(EntryKind::Grant, "Grant"), kind(EntryKind::Adjust, "Correction, up or down")],
        chosen: value("kind"),
    };
    let form = FormView::new(staff, format!("{folder}/credits"), "Grant credits")
        .field(Field::new("amount", "Credits", "text", value("amount"), None).required())
        .field(
            Field::new("reference", "Your reference, such as an invoice number", "text", value("reference"), None)
                .required(),
        )
        .choices(kinds);
    let limit_note =
        staff.api.second_person_above.map(|limit| format!(" A grant above {limit} credits needs a second operator."));
    let words =
        format!("The same movement under the same reference changes nothing.{}", limit_note.unwrap_or_default());
    Part::new("grant", "Grant credits").words(words).form(form)
}

/// Grants credits, or stores a request that a second operator must confirm.
///
/// # Errors
/// Any error that the form cannot show.
pub(crate) async fn change(submitted: SubmittedForm, path: Path<String>) -> Result<HttpResponse, ConsoleError> {
    let id: ClientId = path.parse().map_err(|_| ServiceError::NotFound("client"))?;
    match submitted.carry_out("grantCredits", Some(submitted.form.request_body(FIELD_KINDS))).await {
        Ok(response) => {
            let response: Option<MoveCreditsResponse> = serde_json::from_value(response).ok();
            let is_granted = response.as_ref().is_some_and(|response| response.entry.is_some());
            let request = response.and_then(|response| response.request);
            if !is_granted && request.is_some_and(|request| request.state == GrantState::Refused) {
                let SubmittedForm { staff, form } = submitted;
                let form = form.with_problem(REFUSED_BEFORE);
                return Ok(credits_page(&staff, id, 1, &form).await?.respond(StatusCode::CONFLICT));
            }
            let done = if is_granted { "granted" } else { "asked" };
            Ok(redirect(&format!("/console/clients/{id}/credits?done={done}")))
        }
        Err(error) => {
            let SubmittedForm { staff, form } = submitted;
            let (status, form) = form.with_error(error)?;
            Ok(credits_page(&staff, id, 1, &form).await?.respond(status))
        }
    }
}
