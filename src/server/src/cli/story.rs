//! A transaction as text for people: the request, its outcome and its webhook; ids come last.

use sakshi_domain::delivery::DeliveryOutcome;
use sakshi_domain::time::Timestamp;
use sakshi_web::when::format_span;
use sakshi_wire::operator::views::{DeliveryResponse, TransactionResponse};
use serde_json::json;

use super::paint::cell;
use super::style::{Line, Tone};

/// Returns the lines of a transaction. Ages count up to `now`.
pub(super) fn lines(transaction: &TransactionResponse, now: Timestamp) -> Vec<Line> {
    let TransactionResponse { txn_id, client_id, app_id, event_id, client_name, app_name, event_name, .. } =
        transaction;
    let event = event_name.as_deref().map(|name| format!(", for the event {}", quoted(name))).unwrap_or_default();
    let (client, app) =
        (quoted(client_name.as_deref().unwrap_or("a client")), quoted(app_name.as_deref().unwrap_or("an app")));
    let title = format!("A verification for {client}, by {app}{event}");
    let mut lines = vec![Line::new(Tone::Bold, title), Line::default()];
    lines.push(labelled("asked for", Tone::Plain, &transaction.claims.join(", ")));
    let opened = format!(
        "{} ago, by {} ({})",
        format_span(now.since(transaction.opened_at).as_secs()),
        transaction.channel,
        transaction.opened_at
    );
    lines.push(labelled("opened", Tone::Plain, &opened));
    let (tone, outcome) = outcome(transaction, now);
    lines.push(labelled("answered", tone, &outcome));
    let (tone, webhook) = webhook(transaction);
    lines.push(labelled("webhook", tone, &webhook));
    lines.push(Line::default());
    let event = event_id.as_ref().map(|id| ("event", id.to_string()));
    let trace = transaction.trace_id.as_ref().map(|id| ("trace", id.clone()));
    let ids = [("transaction", txn_id.to_string()), ("client", client_id.to_string()), ("app", app_id.to_string())];
    let ids = ids.into_iter().chain(event).chain([("request", transaction.request_id.to_string())]).chain(trace);
    lines.extend(ids.map(|(name, id)| labelled(name, Tone::Dim, &id)));
    lines
}

/// Returns a line with a name in a column of its own and a value in this tone.
fn labelled(name: &str, tone: Tone, value: &str) -> Line {
    Line::new(Tone::Plain, format!("{name:<13}")).and(tone, value)
}

/// Returns a name in quotes, without characters that move the cursor.
fn quoted(name: &str) -> String {
    format!("\u{201c}{}\u{201d}", cell(&json!(name)))
}

/// Returns the outcome in words, with its tone.
fn outcome(transaction: &TransactionResponse, now: Timestamp) -> (Tone, String) {
    let TransactionResponse { status, expires_at, opened_at, verified_at, verification_passed, refused, .. } =
        transaction;
    let time_taken = |at: &Timestamp| match at.since(*opened_at).as_secs() {
        0 => "within a second".to_owned(),
        seconds => format!("{} after it was opened", format_span(seconds)),
    };
    match (&**status, verified_at, refused) {
        (_, Some(at), Some(reason)) => {
            (Tone::Warn, format!("verified, but not registered: {reason}; {}", time_taken(at)))
        }
        (_, Some(at), None) if *verification_passed == Some(true) => {
            (Tone::Good, format!("verified, {}", time_taken(at)))
        }
        (_, Some(at), None) => (Tone::Warn, format!("not verified, {}", time_taken(at))),
        ("expired", ..) => {
            (Tone::Warn, format!("not in time; the window ended {} ago", format_span(now.since(*expires_at).as_secs())))
        }
        _ => (Tone::Plain, format!("not yet; the window ends in {}", format_span(expires_at.since(now).as_secs()))),
    }
}

/// Returns the state of the webhook in words, with its tone.
fn webhook(transaction: &TransactionResponse) -> (Tone, String) {
    let origin = transaction.webhook_origin.as_deref();
    let Some(delivery) = &transaction.delivery else {
        return match origin {
            Some(origin) if transaction.verified_at.is_none() => {
                (Tone::Plain, format!("to {origin}, when it is answered"))
            }
            Some(origin) => (Tone::Warn, format!("none was queued for {origin}")),
            None => (Tone::Plain, "none: no URL was given".to_owned()),
        };
    };
    let DeliveryResponse { origin, claimed_at, attempt, .. } = delivery;
    let Some(attempt) = attempt else {
        let state = if claimed_at.is_some() { "is being sent" } else { "waits" };
        return (Tone::Plain, format!("{state}, to {origin}"));
    };
    let words = [
        Some(cell(&json!(attempt.outcome))),
        attempt.reason.map(|reason| cell(&json!(reason))),
        attempt.status.map(|status| format!("status {status}")),
        Some(format!("{} ms", attempt.duration_ms)),
    ];
    let is_delivered = attempt.outcome == DeliveryOutcome::Delivered;
    let tone = if is_delivered { Tone::Good } else { Tone::Bad };
    (tone, format!("{}, to {origin}", words.into_iter().flatten().collect::<Vec<_>>().join(", ")))
}

#[cfg(test)]
mod tests {
    use super::super::style::Capabilities;
    use super::*;

    /// Renders a delivered transaction after this change of its fields.
    fn rendered(change: &serde_json::Value) -> Vec<String> {
        let mut transaction = json!({
            "txn_id": "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11", "status": "completed", "client_id": "cl_1",
            "app_id": "app_1",
            "event_id": null, "client_name": "Example\u{1b} Bank", "app_name": "Kiosk", "event_name": null,
            "claims": ["name", "dob"],
            "webhook_origin": "https://client.example", "channel": "web", "request_id": "order-42", "trace_id": null,
            "opened_at": "2026-01-15T10:00:00.000Z", "expires_at": "2026-01-15T10:15:00.000Z",
            "verified_at": "2026-01-15T10:00:41.000Z",
            "verification_passed": true, "refused": null,
            "delivery": { "id": 7, "origin": "https://client.example", "queued_at": "2026-01-15T10:00:41.000Z",
                "claimed_at": "2026-01-15T10:00:41.000Z",
                "attempt": { "outcome": "delivered", "reason": null, "part": null, "sent": "yes", "status": 200,
                    "duration_ms": 41 } },
        });
        for (field, value) in change.as_object().unwrap() {
            transaction[field] = value.clone();
        }
        let now = Timestamp::parse_iso8601("2026-01-15T10:05:00Z").unwrap();
        let transaction = serde_json::from_value(transaction).unwrap();
        lines(&transaction, now).iter().map(|line| line.render(Capabilities::default())).collect()
    }

    #[test]
    fn a_transaction_is_shown_from_opening_to_webhook_with_ids_last() {
        assert_eq!(
            rendered(&json!({})),
            [
                "A verification for \u{201c}Example\u{fffd} Bank\u{201d}, by \u{201c}Kiosk\u{201d}",
                "",
                "asked for    name, dob",
                "opened       5 min ago, by web (2026-01-15T10:00:00.000Z)",
                "answered     verified, 41 s after it was opened",
                "webhook      delivered, status 200, 41 ms, to https://client.example",
                "",
                "transaction  3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11",
                "client       cl_1",
                "app          app_1",
                "request      order-42",
            ]
        );
    }

    #[test]
    fn each_outcome_has_its_own_words() {
        let open = json!({ "status": "pending", "verified_at": null, "verification_passed": null, "delivery": null });
        let pending = rendered(&open);
        assert_eq!(pending[4], "answered     not yet; the window ends in 10 min");
        assert_eq!(pending[5], "webhook      to https://client.example, when it is answered");
        let mut expired = open;
        expired["status"] = "expired".into();
        expired["expires_at"] = "2026-01-15T10:04:00.000Z".into();
        expired["webhook_origin"] = json!(null);
        assert_eq!(rendered(&expired)[4], "answered     not in time; the window ended 60 s ago");
        assert_eq!(rendered(&expired)[5], "webhook      none: no URL was given");
        assert_eq!(
            rendered(&json!({ "verified_at": "2026-01-15T10:00:00.400Z" }))[4],
            "answered     verified, within a second"
        );
        let full =
            rendered(&json!({ "refused": "event_full", "event_id": "1R8swWyefAkVT2e0k", "event_name": "Open day" }));
        assert!(full[0].ends_with(", for the event \u{201c}Open day\u{201d}"), "{full:?}");
        assert_eq!(full[4], "answered     verified, but not registered: event_full; 41 s after it was opened");
        let lost = json!({ "outcome": "unreachable", "reason": "tls_expired", "part": "tls", "sent": "no",
            "status": null, "duration_ms": 9 });
        let delivery = json!({ "id": 7, "origin": "https://c.example", "queued_at": "2026-01-15T10:00:41.000Z",
            "claimed_at": null, "attempt": lost });
        assert_eq!(
            rendered(&json!({ "delivery": delivery }))[5],
            "webhook      unreachable, tls_expired, 9 ms, to https://c.example"
        );
    }
}
