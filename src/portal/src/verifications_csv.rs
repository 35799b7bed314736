//! `GET /portal/verifications.csv`: the filtered list for a spreadsheet (RFC 4180), without shared data.

use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::claims::Claim;
use sakshi_domain::delivery::WebhookState;
use sakshi_service::Service;
use sakshi_service::budget::Stage;
use sakshi_service::verifications::{list, reference};
use sakshi_store::TransactionSummary;
use sakshi_web::held_body::hold_until_sent;
use sakshi_web::html::private;
use sakshi_wire::csv::{BYTE_ORDER_MARK, quote_cell};

use super::delivery::status_or_reason;
use super::error::PortalError;
use super::list_filters::ListFilters;
use super::portal_user::PortalUser;
use super::verifications::{event_names, newest_events};

/// Most lines of a file.
const LINES_MAX: usize = 10_000;
/// Most reads of the list for a file. Each covers some thousand verifications.
const LISTINGS_MAX: usize = 50;
/// First line, with the names of the columns.
const HEADER: &str = "txn_id,client_reference_id,status,code,channel,event_id,event,claims,opened_at,page_seen_at,\
    answered_at,took_s,webhook,webhook_result,polled_at\r\n";

/// Responds with the list, newest first.
///
/// # Errors
/// 303 to the sign-in page without a session; 503 while the store is unavailable.
pub(crate) async fn csv(
    user: PortalUser,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let filters = ListFilters::from_query(request.query_string());
    let events = newest_events(&service, &user.caller.app.app_id).await?;
    let (filter, mut before) = filters.filter(&service, &user.caller, &events).await?;
    // The memory of the response counts for the client, and may be revoked.
    let mut permit = service.memory.answers.permit(user.caller.owners(), Stage::Leaving);
    let (mut sheet, mut lines) = (format!("{BYTE_ORDER_MARK}{HEADER}"), 0);
    for _ in 0..LISTINGS_MAX {
        let listing = list(&service, &user.caller, &filter, before, LINES_MAX - lines).await?;
        let names = event_names(&service, &events, &listing.verifications).await?;
        lines += listing.verifications.len();
        for summary in &listing.verifications {
            let event = summary.opened.event.and_then(|event| names.get(&event)).map_or("", String::as_str);
            sheet.push_str(&line(summary, event));
        }
        permit.grow_to(sheet.len()).map_err(sakshi_web::error::ApiError::from)?;
        before = listing.older;
        if before.is_none() || lines >= LINES_MAX {
            break;
        }
    }
    Ok(private(StatusCode::OK)
        .insert_header((CONTENT_TYPE, "text/csv; charset=utf-8; header=present"))
        .insert_header((CONTENT_DISPOSITION, "attachment; filename=\"verifications.csv\""))
        .body(hold_until_sent(&request, sheet.into_bytes(), permit)))
}

/// Returns the line of a verification; `event` is the name of its event.
fn line(summary: &TransactionSummary, event: &str) -> String {
    let TransactionSummary { opened, status, page_seen_at, verified_at, code, polled_at, delivery } = summary;
    let time = |at: Option<sakshi_domain::time::Timestamp>| at.map(|at| at.to_string()).unwrap_or_default();
    let claims: Vec<&str> = opened.terms.claims.iter().map(Claim::name).collect();
    let duration = verified_at.map(|at| format!("{:.3}", at.since(opened.opened_at).as_secs_f64())).unwrap_or_default();
    [
        opened.id.to_string(),
        quote_cell(reference(opened).unwrap_or_default()),
        status.as_str().to_owned(),
        // Anybody with the address of the callback chooses the code of a failure.
        quote_cell(code.as_deref().unwrap_or_default()),
        opened.terms.channel.name().to_owned(),
        opened.event.map(|event| event.to_string()).unwrap_or_default(),
        quote_cell(event),
        claims.join(" "),
        opened.opened_at.to_string(),
        time(*page_seen_at),
        time(*verified_at),
        duration,
        WebhookState::from_delivery(delivery.as_ref()).as_str().to_owned(),
        delivery.as_ref().and_then(|delivery| delivery.attempt).map(status_or_reason).unwrap_or_default(),
        time(*polled_at),
    ]
    .join(",")
        + "\r\n"
}
