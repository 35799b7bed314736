//! `GET /portal/events/{eventId}/guests.csv`: all guests of an event for a spreadsheet (RFC 4180).
//!
//! Photos are left out. The list is streamed as it is read, so only a slice is in memory at a time.

use std::io;
use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use actix_web::web::{Bytes, Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use futures_util::stream::{Stream, StreamExt as _, iter, try_unfold};
use sakshi_authority::claims::credential_name;
use sakshi_domain::claims::{Claim, ClaimSet};
use sakshi_domain::client_log::{Action, Subject};
use sakshi_domain::limits::GUEST_SLICE_BYTES;
use sakshi_service::Service;
use sakshi_service::budget::{MemoryPermit, Stage};
use sakshi_service::events::own_event;
use sakshi_service::guest_list::GuestList;
use sakshi_store::PageRequest;
use sakshi_web::error::ApiError;
use sakshi_web::html::private;
use sakshi_web::listener::{CloseWatch, close_connection_when};
use sakshi_wire::csv::{BYTE_ORDER_MARK, quote_cell};
use sakshi_wire::guests::RegistrationRow;

use crate::error::PortalError;
use crate::portal_user::PortalUser;
use crate::transaction::unquote;

/// Responds with the guests, oldest first.
///
/// # Errors
/// 404 unless the app has such an event.
pub(crate) async fn csv(
    user: PortalUser,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let event = own_event(&service, &user.caller.app.app_id, &path).await?;
    user.log(&service, Action::GuestsListed, vec![Subject::Event(event.id)]).await?;
    // The memory of the response counts for the client, and may be revoked.
    let permit = service.memory.answers.permit(user.caller.owners(), Stage::Leaving);
    let watch = close_connection_when(&request, permit.wait_until_revoked());
    let list = GuestList::new(&service, &user.caller, &event, PageRequest { page: 1, page_size: u32::MAX });
    let claims = column_claims(event.terms.claims);
    let first_line = format!("{BYTE_ORDER_MARK}{}", header(&claims));
    let mut sheet = Sheet { list, claims, permit, is_complete: false, _watch: watch };
    let first_slice = sheet.write_slice().await?;
    let pieces = iter([Ok(Bytes::from(first_line)), Ok(first_slice)]).chain(sheet.into_stream());
    Ok(private(StatusCode::OK)
        .insert_header((CONTENT_TYPE, "text/csv; charset=utf-8; header=present"))
        .insert_header((CONTENT_DISPOSITION, format!("attachment; filename=\"guests-{}.csv\"", event.id)))
        .streaming(pieces))
}

/// The guests that remain to be written.
struct Sheet {
    list: GuestList,
    claims: Arc<[Claim]>,
    permit: MemoryPermit,
    is_complete: bool,
    /// Closes the connection when the memory permit is revoked.
    _watch: Option<CloseWatch>,
}

impl Sheet {
    /// Reads the next guests, and returns their lines.
    async fn write_slice(&mut self) -> Result<Bytes, ApiError> {
        self.permit.grow_to(GUEST_SLICE_BYTES)?;
        let claims = Arc::clone(&self.claims);
        let slice =
            self.list.next(move |rows| Ok(rows.iter().map(|row| line(&claims, row)).collect::<String>())).await?;
        self.permit.grow_to(slice.converted.len())?;
        self.is_complete = self.list.is_exhausted(slice.total);
        Ok(slice.converted.into())
    }

    /// Streams the slices. A slice is written when the client has taken the previous slice.
    fn into_stream(self) -> impl Stream<Item = io::Result<Bytes>> {
        try_unfold(self, |mut sheet| async move {
            if sheet.is_complete {
                return Ok(None);
            }
            sheet.permit.shrink_to(0);
            let piece = sheet.write_slice().await.map_err(|error| {
                tracing::warn!(error.type = error.code(), error.detail = error.detail().as_deref(), "a list of guests \
                    was cut off");
                io::Error::other("a list of guests was cut off")
            })?;
            Ok(Some((piece, sheet)))
        })
    }
}

/// Returns the claims that have columns.
pub(super) fn column_claims(claims: ClaimSet) -> Arc<[Claim]> {
    claims.iter().filter(|claim| *claim != Claim::Photo).collect()
}

/// Columns beside the claims.
const FIXED_COLUMNS: [&str; 6] =
    ["txn_id", "registration_code", "verified_at", "possible_duplicate_of", "checked_in_at", "gate"];

/// Returns the values of the fixed columns.
pub(super) fn fixed_values(guest: &RegistrationRow) -> [String; 6] {
    let text = |value: Option<String>| value.unwrap_or_default();
    [
        guest.txn_id.to_string(),
        guest.registration_code.clone(),
        guest.verified_at.to_string(),
        text(guest.possible_duplicate_of.map(|id| id.to_string())),
        text(guest.checked_in_at.map(|at| at.to_string())),
        text(guest.gate.clone()),
    ]
}

/// Returns the first line, with the names of the columns.
fn header(claims: &[Claim]) -> String {
    let names = claims.iter().map(|claim| claim.name());
    format!("{}\r\n", FIXED_COLUMNS.into_iter().chain(names).collect::<Vec<_>>().join(","))
}

fn line(claims: &[Claim], guest: &RegistrationRow) -> String {
    let shared = guest.verified_claims.as_map();
    let claim = |claim: &Claim| shared.get(credential_name(*claim)).map(unquote).unwrap_or_default();
    let [id, code, verified_at, earlier, checked_in_at, gate] = fixed_values(guest);
    let mut line = [id, quote_cell(&code), verified_at, earlier, checked_in_at, quote_cell(&gate)].join(",");
    for value in claims.iter().map(claim) {
        line.push(',');
        line.push_str(&quote_cell(&value));
    }
    line + "\r\n"
}

#[cfg(test)]
mod tests {
    use sakshi_domain::ids::TxnId;
    use sakshi_domain::time::Timestamp;
    use sakshi_domain::transaction::VerifiedClaims;
    use sakshi_wire::Always;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_guest_is_a_line_with_the_requested_claims_without_the_photo() {
        let claims = column_claims([Claim::Photo, Claim::Name, Claim::AgeAbove18, Claim::Dob].into_iter().collect());
        assert_eq!(
            header(&claims),
            "txn_id,registration_code,verified_at,possible_duplicate_of,checked_in_at,gate,name,dob,age_above_18\r\n"
        );
        let shared = json!({"residentName": "आशा राव", "residentImage": "/9j/AAAA", "ageAbove18": true});
        let txn: TxnId = "00000000-0000-4000-8000-000000000000".parse().unwrap();
        let at = Timestamp::parse_iso8601("2026-03-01T10:00:00Z").unwrap();
        let guest = RegistrationRow {
            txn_id: txn,
            registration_code: "2E3456".into(),
            verified_at: at,
            possible_duplicate_of: None,
            checked_in_at: Some(at),
            gate: Some("=B".into()),
            verification_passed: Always,
            verified_claims: VerifiedClaims::new(shared.as_object().unwrap().clone()).into(),
        };
        let (id, at) = ("00000000-0000-4000-8000-000000000000", "2026-03-01T10:00:00.000Z");
        let expected = format!("{id},\"'2E3456\",{at},,{at},\"'=B\",\"आशा राव\",\"\",\"true\"\r\n");
        assert_eq!(line(&claims, &guest), expected);
    }
}
