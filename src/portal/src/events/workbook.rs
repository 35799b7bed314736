//! `GET /portal/events/{eventId}/guests.xlsx`: all guests of an event as a workbook. Every value is text, so no
//! spreadsheet takes a telephone number for a number, or a name for a formula.
//!
//! A workbook is built in memory, so large events have none. The CSV file has no such limit.

use actix_web::http::StatusCode;
use actix_web::http::header::CONTENT_DISPOSITION;
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use rust_xlsxwriter::{Format, Workbook, XlsxError};
use sakshi_authority::claims::credential_name;
use sakshi_domain::claims::Claim;
use sakshi_domain::client_log::{Action, Subject};
use sakshi_domain::event::Event;
use sakshi_domain::limits::GUEST_SLICE_BYTES;
use sakshi_service::budget::Stage;
use sakshi_service::events::own_event;
use sakshi_service::guest_list::GuestList;
use sakshi_service::{Service, ServiceError};
use sakshi_store::PageRequest;
use sakshi_web::error::ApiError;
use sakshi_web::held_body::hold_until_sent;
use sakshi_web::html::private;
use sakshi_wire::guests::RegistrationRow;

use super::guests::{column_claims, fixed_values};
use crate::error::PortalError;
use crate::portal_user::PortalUser;
use crate::transaction::unquote;
use crate::trial::claim_label;

/// Most cells of a workbook.
const CELLS_MAX: usize = 200_000;
/// Estimated memory of a cell without its text.
const CELL_BYTES: usize = 200;
/// Estimated memory per byte of text: in the cell, in the shared texts, and twice in the file.
const TEXT_FACTOR: usize = 4;
/// Most characters of a cell in the file format; longer texts are cut.
const CELL_CHARS_MAX: usize = 32_000;
/// Columns beside the claims.
const FIXED_COLUMNS: [&str; 6] =
    ["Transaction", "Code", "Verified at (UTC)", "Possible duplicate of", "Checked in at (UTC)", "Gate"];
const XLSX_TYPE: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";

/// Returns true if the guests of an event fit into a workbook.
pub(super) fn fits_workbook(event: &Event) -> bool {
    event.counts.registrations as usize * (FIXED_COLUMNS.len() + column_claims(event.terms.claims).len()) <= CELLS_MAX
}

/// Responds with the guests, oldest first.
///
/// # Errors
/// 404 unless the app has such an event, and its guests fit.
pub(crate) async fn xlsx(
    user: PortalUser,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let event = own_event(&service, &user.caller.app.app_id, &path).await?;
    if !fits_workbook(&event) {
        return Err(ServiceError::NotFound("workbook").into());
    }
    user.log(&service, Action::GuestsListed, vec![Subject::Event(event.id)]).await?;
    let claims = column_claims(event.terms.claims);
    let mut permit = service.memory.answers.permit(user.caller.owners(), Stage::Leaving);
    let mut list = GuestList::new(
        &service,
        &user.caller,
        &event,
        PageRequest { page: 1, page_size: event.counts.registrations.max(1) },
    );
    let (mut rows, mut bytes) = (Vec::new(), 0_usize);
    loop {
        permit.grow_to(bytes + GUEST_SLICE_BYTES).map_err(ApiError::from)?;
        let row_claims = claims.clone();
        let slice =
            list.next(move |guests| Ok(guests.iter().map(|guest| row(&row_claims, guest)).collect::<Vec<_>>())).await?;
        bytes += slice.converted.iter().flatten().map(|text| text.len() * TEXT_FACTOR + CELL_BYTES).sum::<usize>();
        permit.grow_to(bytes).map_err(ApiError::from)?;
        rows.extend(slice.converted);
        if list.is_exhausted(slice.total) {
            break;
        }
    }
    permit.shrink_to(bytes);
    // The workbook is built in one step, during which the memory cannot be revoked.
    permit.pin().map_err(ApiError::from)?;
    let head = FIXED_COLUMNS.map(str::to_owned).into_iter();
    let head: Vec<String> = head.chain(claims.iter().map(|claim| claim_label(*claim).to_owned())).collect();
    // The work keeps the permit, because it continues when the client breaks off the request.
    let (file, mut permit) =
        service.cpu.run(user.caller.owners(), move || (build_workbook(&head, &rows), permit)).await?;
    let file = file.map_err(ApiError::internal)?;
    permit.unpin();
    permit.grow_to(file.len()).map_err(ApiError::from)?;
    permit.shrink_to(file.len());
    Ok(private(StatusCode::OK)
        .insert_header((CONTENT_DISPOSITION, format!("attachment; filename=\"guests-{}.xlsx\"", event.id)))
        .content_type(XLSX_TYPE)
        .body(hold_until_sent(&request, file, permit)))
}

/// Returns the cells of a guest.
fn row(claims: &[Claim], guest: &RegistrationRow) -> Vec<String> {
    let shared = guest.verified_claims.as_map();
    let value = |claim: &Claim| {
        shared.get(credential_name(*claim)).map(unquote).unwrap_or_default().chars().take(CELL_CHARS_MAX).collect()
    };
    fixed_values(guest).into_iter().chain(claims.iter().map(value)).collect()
}

/// Builds a workbook with one sheet of texts. The first line stays in view.
fn build_workbook(head: &[String], rows: &[Vec<String>]) -> Result<Vec<u8>, XlsxError> {
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
    fn every_value_of_a_workbook_is_text() {
        let texts = ["=1+1", "0560001", "+919999900000", "1990-02-14", "12345678901234567890", "आशा"];
        let rows: Vec<_> = texts.iter().map(|text| vec![(*text).to_owned()]).collect();
        let file = build_workbook(&["Name".to_owned()], &rows).unwrap();
        let mut read = Xlsx::new(Cursor::new(file)).unwrap();
        let sheet = read.worksheet_range("Guests").unwrap();
        let cells: Vec<_> = sheet.rows().map(|row| row[0].clone()).collect();
        assert_eq!(
            cells,
            ["Name"].iter().chain(&texts).map(|text| Data::String((*text).to_owned())).collect::<Vec<_>>()
        );
    }
}
