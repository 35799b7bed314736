//! `GET /e/{eventId}/event.ics`: the event for a guest's calendar (RFC 5545), if its start is known.

use actix_web::http::StatusCode;
use actix_web::http::header::CONTENT_DISPOSITION;
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::event::{Event, EventText};
use sakshi_domain::time::Timestamp;
use sakshi_service::{Service, ServiceError};
use sakshi_web::error::ApiError;
use sakshi_web::html::private;
use sakshi_web::rate_limit::RateLimits;

use super::find_event;

/// Most octets of a line; longer lines are folded (RFC 5545 §3.1).
const LINE_BYTES_MAX: usize = 75;

/// Responds with the calendar file.
///
/// # Errors
/// 404 for an unknown event or one without a start; 429 when one address sends too many requests.
pub(crate) async fn download(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.pages.take(&rates.client_address(&request))?;
    let event = find_event(&service, &path).await?;
    let start = event.terms.starts_at.ok_or(ServiceError::NotFound("calendar file"))?;
    let text = render_calendar(&event, start, &service.authority.event_url(event.id), service.clock.now());
    Ok(private(StatusCode::OK)
        .insert_header((CONTENT_DISPOSITION, "attachment; filename=\"event.ics\""))
        .content_type("text/calendar; charset=utf-8")
        .body(text))
}

/// Renders the calendar file of an event that starts at `start`.
fn render_calendar(event: &Event, start: Timestamp, url: &str, now: Timestamp) -> String {
    let place = event.terms.place.as_ref().map(|place| format!("LOCATION:{}", escape(place.as_str())));
    let purpose =
        event.terms.purpose.as_ref().map(EventText::as_str).map(|purpose| format!("DESCRIPTION:{}", escape(purpose)));
    let first_lines = [
        "BEGIN:VCALENDAR".to_owned(),
        "VERSION:2.0".to_owned(),
        "PRODID:-//sakshi//events//EN".to_owned(),
        "BEGIN:VEVENT".to_owned(),
        format!("UID:{}@sakshi", event.id),
        format!("DTSTAMP:{}", format_utc(now)),
        format!("DTSTART:{}", format_utc(start)),
        format!("SUMMARY:{}", escape(event.terms.name.as_str())),
    ];
    let last_lines = [format!("URL:{url}"), "END:VEVENT".to_owned(), "END:VCALENDAR".to_owned()];
    first_lines.into_iter().chain(place).chain(purpose).chain(last_lines).map(|line| fold(&line)).collect()
}

/// Formats a time in UTC: `20261129T152900Z`.
fn format_utc(at: Timestamp) -> String {
    let text = at.to_string();
    format!("{}Z", text.split('.').next().unwrap_or_default().replace(['-', ':'], ""))
}

/// Escapes a text value (RFC 5545 §3.3.11).
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '\\' | ';' | ',') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

/// Folds a line into pieces of at most [`LINE_BYTES_MAX`] octets, between characters, and ends it.
fn fold(line: &str) -> String {
    let (mut folded, mut length) = (String::new(), 0);
    for letter in line.chars() {
        if length + letter.len_utf8() > LINE_BYTES_MAX {
            folded.push_str("\r\n ");
            length = 1;
        }
        folded.push(letter);
        length += letter.len_utf8();
    }
    folded + "\r\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_escaped_and_folded_between_characters() {
        assert_eq!(escape("Hall B; 2nd floor, left\\right"), "Hall B\\; 2nd floor\\, left\\\\right");
        assert_eq!(format_utc(Timestamp::parse_iso8601("2026-11-29T15:29:00.250Z").unwrap()), "20261129T152900Z");
        let line = fold(&format!("SUMMARY:{}", "आ".repeat(60)));
        assert!(line.split("\r\n").all(|piece| piece.len() <= LINE_BYTES_MAX), "{line}");
        assert_eq!(line.replace("\r\n ", "").trim_end(), format!("SUMMARY:{}", "आ".repeat(60)));
    }
}
