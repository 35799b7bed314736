//! `GET /portal/events/{eventId}/guests.xlsx`: all guests of an event as a workbook, in which every value is text: no spreadsheet takes a
//! telephone number for a number, or a name for a formula.
//!
//! A workbook is made in memory as a whole, so there is none of very many guests; the CSV beside it has no bound.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::CONTENT_DISPOSITION;
use actix_web::web::{Data, Path};
use rust_xlsxwriter::{Format, Workbook, XlsxError};
use sakshi_authority::claims::credential_name;
use sakshi_domain::claims::Claim;
use sakshi_service::budget::Stage;
use sakshi_service::events::own_event;
use sakshi_service::guest_list::GuestList;
use sakshi_service::{Service, ServiceError};
use sakshi_store::PageRequest;
use sakshi_web::error::ApiError;
use sakshi_web::html::private;
use sakshi_wire::events::RegistrationRow;

use super::guests::columns;
use crate::error::PortalError;
use crate::portal_user::PortalUser;
use crate::transaction::plain;
use crate::trial::asked;

/// Guests of a workbook.
pub(super) const GUESTS_MAX: u32 = 50_000;
/// Bytes that the library holds for each byte of text, about.
const FACTOR: usize = 4;
const TYPE: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";

/// Answers with the guests, oldest first.
///
/// # Errors
/// 404 unless the app has such an event, or when it has too many guests.
pub(crate) async fn xlsx(user: PortalUser, path: Path<String>, service: Data<Service>) -> Result<HttpResponse, PortalError> {
    let event = own_event(&service, &user.caller.app.app_id, &path).await?;
    if event.counts.registrations > GUESTS_MAX {
        return Err(ServiceError::NotFound("workbook of so many guests").into());
    }
    let claims = columns(event.terms.claims);
    let mut permit = service.memory.answers.permit(user.caller.owners(), Stage::Leaving);
    let mut list = GuestList::new(&service, &user.caller, event.id, PageRequest { page: 1, page_size: GUESTS_MAX });
    let (mut rows, mut bytes) = (Vec::new(), 0);
    loop {
        let wanted = claims.clone();
        let slice = list.next(move |guests| Ok(guests.iter().map(|guest| row(&wanted, guest)).collect::<Vec<_>>())).await?;
        bytes += slice.made.iter().flatten().map(|text| (text.len() + size_of::<String>()) * FACTOR).sum::<usize>();
        permit.grow_to(bytes).map_err(ApiError::from)?;
        rows.extend(slice.made);
        if list.is_read(slice.total) {
            break;
        }
    }
    let head = ["Transaction", "Code", "Verified at (UTC)"].map(str::to_owned).into_iter();
    let head: Vec<String> = head.chain(claims.iter().map(|claim| asked(*claim).to_owned())).collect();
    let made = service.cpu.run(user.caller.owners(), move || workbook(&head, &rows)).await?.map_err(ApiError::internal)?;
    Ok(private(StatusCode::OK)
        .insert_header((CONTENT_DISPOSITION, format!("attachment; filename=\"guests-{}.xlsx\"", event.id)))
        .content_type(TYPE)
        .body(made))
}

fn row(claims: &[Claim], guest: &RegistrationRow) -> Vec<String> {
    let shared = guest.verified_claims.as_map();
    let known = [guest.txn_id.to_string(), guest.registration_code.clone(), guest.verified_at.to_string()];
    let value = |claim: &Claim| shared.get(credential_name(*claim)).map(plain).unwrap_or_default();
    known.into_iter().chain(claims.iter().map(value)).collect()
}

/// The bytes of a workbook with one sheet of texts, whose first line stays in view.
fn workbook(head: &[String], rows: &[Vec<String>]) -> Result<Vec<u8>, XlsxError> {
    let mut workbook = Workbook::new();
    let (text, bold) = (Format::new().set_num_format("@"), Format::new().set_bold());
    let sheet = workbook.add_worksheet().set_name("Guests")?;
    sheet.set_freeze_panes(1, 0)?;
    for (column, title) in (0..).zip(head) {
        sheet.write_string_with_format(0, column, title, &bold)?;
    }
    for (line, row) in (1..).zip(rows) {
        for (column, value) in (0..).zip(row) {
            sheet.write_string_with_format(line, column, value, &text)?;
        }
    }
    sheet.autofit();
    workbook.save_to_buffer()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use calamine::{Data, Reader as _, Xlsx};

    use super::*;

    #[test]
    fn every_value_of_a_workbook_is_text_also_one_that_looks_like_a_formula_or_a_number() {
        let texts = ["=1+1", "0560001", "+919999900000", "1990-02-14", "12345678901234567890", "आशा"];
        let rows: Vec<_> = texts.iter().map(|text| vec![(*text).to_owned()]).collect();
        let made = workbook(&["Name".to_owned()], &rows).unwrap();
        let mut read = Xlsx::new(Cursor::new(made)).unwrap();
        let sheet = read.worksheet_range("Guests").unwrap();
        let cells: Vec<_> = sheet.rows().map(|row| row[0].clone()).collect();
        assert_eq!(cells, ["Name"].iter().chain(&texts).map(|text| Data::String((*text).to_owned())).collect::<Vec<_>>());
    }
}
