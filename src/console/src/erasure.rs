//! `/console/erasures`: erasure of personal data before its retention ends. The id is typed twice, because nothing
//! restores the data.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use sakshi_domain::erasure::ErasureKind;
use sakshi_web::error::ApiError;
use sakshi_web::field::Field;
use sakshi_wire::operator::erasure::EraseResponse;

use crate::error::ConsoleError;
use crate::layout::Section;
use crate::staff::Staff;
use crate::submitted::{Form, SubmittedForm};
use crate::view::{Cell, Choices, FormView, Part, View};

/// Shows the form.
///
/// # Errors
/// [`ConsoleError::SignIn`] without a session; any error of the store.
pub(crate) async fn show(staff: Staff) -> Result<HttpResponse, ConsoleError> {
    Ok(erasure_page(&staff, &Form::default(), None).ok())
}

fn erasure_page(staff: &Staff, form: &Form, erased: Option<&EraseResponse>) -> View {
    let words = "Erases shared data, requested claims, references, stored responses and webhooks that are not in \
        flight. The ledger and the register of consents keep their entries. Suspend a client first: data that is \
        created during the erasure may remain.";
    let part = Part::new("erase", "Erase").words(words);
    let part = if staff.may("erase") {
        part.form(erasure_form(staff, form))
    } else {
        part.words("Only an owner can erase data.")
    };
    let view = View::new(staff, Some(Section::Erasure), "Erasure")
        .lead("An erasure cannot be undone.")
        .problems_if(form.problems());
    let Some(erased) = erased else { return view.part(part) };
    let EraseResponse { transactions, registrations, events, flows, answers, refusals, users } = erased;
    let erased_counts = Part::new("erased", "Erased")
        .fact("Transactions", Cell::number(*transactions))
        .fact("Registrations", Cell::number(*registrations))
        .fact("Events", Cell::number(*events))
        .fact("Flows", Cell::number(*flows))
        .fact("Stored responses", Cell::number(*answers))
        .fact("Refused requests", Cell::number(*refusals))
        .fact("Users", Cell::number(*users))
        .words("Repeat the erasure to erase what remains.");
    view.part(erased_counts).part(part)
}

fn erasure_form(staff: &Staff, form: &Form) -> FormView {
    let kinds = ErasureKind::ALL.iter().map(|kind| (kind.as_str().to_owned(), kind.as_str().to_owned()));
    let kinds =
        Choices { name: "kind", label: "Kind", options: kinds.collect(), chosen: form.value("kind").to_owned() };
    FormView::new(staff, "/console/erasures", "Erase for good")
        .field(Field::new("id", "Id", "text", form.value("id").to_owned(), None).required())
        .field(Field::new("again", "The same id again", "text", "", None).required())
        .choices(kinds)
        .dangerous()
}

/// Erases the data of the transaction, flow, event, app or client in the form, if its id was entered twice alike.
///
/// # Errors
/// Any error that the form cannot show.
pub(crate) async fn erase(mut submitted: SubmittedForm) -> Result<HttpResponse, ConsoleError> {
    let id_again = submitted.form.take("again");
    if id_again.trim() != submitted.form.value("id").trim() {
        let SubmittedForm { staff, form } = submitted;
        let form = form.with_problem("The two ids differ.");
        return Ok(erasure_page(&staff, &form, None).respond(StatusCode::BAD_REQUEST));
    }
    match submitted.carry_out("erase", Some(submitted.form.request_body(&[]))).await {
        Ok(erased) => {
            let erased: EraseResponse = serde_json::from_value(erased).map_err(ApiError::internal)?;
            Ok(erasure_page(&submitted.staff, &Form::default(), Some(&erased)).ok())
        }
        Err(error) => {
            let SubmittedForm { staff, form } = submitted;
            let (status, form) = form.with_error(error)?;
            Ok(erasure_page(&staff, &form, None).respond(status))
        }
    }
}
