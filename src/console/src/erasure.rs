//! `/console/erasures`: erasure of personal data before its time. The id is typed twice, because nothing restores the
//! data.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use sakshi_domain::erasure::ErasureKind;
use sakshi_web::error::ApiError;
use sakshi_web::field::Field;
use sakshi_wire::operator::erasure::EraseResponse;

use crate::error::ConsoleError;
use crate::layout::Section;
use crate::staff::Staff;
use crate::submitted::{Form, Submitted};
use crate::view::{Cell, Choices, FormView, Part, View};

/// Shows the form.
///
/// # Errors
/// Nobody has signed in, or the store is unavailable.
pub(crate) async fn show(staff: Staff) -> Result<HttpResponse, ConsoleError> {
    Ok(page(&staff, &Form::default(), None).ok())
}

fn page(staff: &Staff, form: &Form, erased: Option<&EraseResponse>) -> View {
    let words = "What was shared and asked, references, kept answers and webhooks that are not under way. The ledger \
        and the register of consents keep their entries. Suspend a client first, for what arises meanwhile may stay.";
    let part = Part::new("erase", "Erase").words(words);
    let part = if staff.may("erase") { part.form(fields(staff, form)) } else { part.words("Only an owner may erase.") };
    let view = View::new(staff, Some(Section::Erasure), "Erasure")
        .lead("It cannot be taken back.")
        .problems_if(form.problems());
    let Some(erased) = erased else { return view.part(part) };
    let EraseResponse { transactions, registrations, events, flows, answers, refusals, users } = erased;
    let done = Part::new("erased", "Erased")
        .fact("Transactions", Cell::number(*transactions))
        .fact("Registrations", Cell::number(*registrations))
        .fact("Events", Cell::number(*events))
        .fact("Flows", Cell::number(*flows))
        .fact("Kept answers", Cell::number(*answers))
        .fact("Refused requests", Cell::number(*refusals))
        .fact("Users", Cell::number(*users))
        .words("The same again erases what is left.");
    view.part(done).part(part)
}

fn fields(staff: &Staff, form: &Form) -> FormView {
    let kinds = ErasureKind::ALL.iter().map(|kind| (kind.as_str().to_owned(), kind.as_str().to_owned()));
    let kinds =
        Choices { name: "kind", label: "Kind", options: kinds.collect(), chosen: form.value("kind").to_owned() };
    FormView::of(staff, "/console/erasures", "Erase for good")
        .field(Field::new("id", "Id", "text", form.value("id").to_owned(), None).required())
        .field(Field::new("again", "The same id again", "text", "", None).required())
        .choices(kinds)
        .dangerous()
}

/// Erases the data.
///
/// # Errors
/// As for every form.
pub(crate) async fn erase(mut submitted: Submitted) -> Result<HttpResponse, ConsoleError> {
    let again = submitted.form.take("again");
    if again.trim() != submitted.form.value("id").trim() {
        let Submitted { staff, form } = submitted;
        let form = form.with_problem("The two ids differ.");
        return Ok(page(&staff, &form, None).answer(StatusCode::BAD_REQUEST));
    }
    match submitted.carry_out("erase", Some(submitted.form.sent(&[]))).await {
        Ok(erased) => {
            let erased: EraseResponse = serde_json::from_value(erased).map_err(ApiError::internal)?;
            Ok(page(&submitted.staff, &Form::default(), Some(&erased)).ok())
        }
        Err(error) => {
            let Submitted { staff, form } = submitted;
            let (status, form) = form.refused(error)?;
            Ok(page(&staff, &form, None).answer(status))
        }
    }
}
