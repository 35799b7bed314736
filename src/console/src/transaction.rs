//! `/console/transactions/{txn_id}`: a transaction step by step, from its opening to its webhook, without any shared
//! data.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Path;
use askama::Template;
use sakshi_domain::delivery::{Attempt, DeliveryOutcome, DeliveryRecord, Sent};
use sakshi_domain::ids::TxnId;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::Pending;
use sakshi_service::ServiceError;
use sakshi_store::{CompletedRecord, TransactionRecord, TransactionSummary};
use sakshi_web::delivery::advice;
use sakshi_web::html::form_page;
use sakshi_web::when::{When, format_duration};
use sakshi_web::why::failure_words;

use crate::error::ConsoleError;
use crate::layout::{Layout, Section};
use crate::records::{app_cell, client_cell};
use crate::staff::Staff;
use crate::view::Cell;

/// A step of a transaction.
#[derive(Debug)]
pub(crate) struct Step {
    /// CSS class: `good`, `bad`, `waiting`, or empty.
    pub(crate) class: &'static str,
    pub(crate) at: Option<When>,
    pub(crate) title: String,
    /// Details of the step, and what to do.
    pub(crate) details: Vec<String>,
}

impl Step {
    fn new(class: &'static str, at: impl Into<Option<Timestamp>>, title: impl Into<String>) -> Self {
        Self { class, at: at.into().map(When::second), title: title.into(), details: Vec::new() }
    }

    /// Adds a sentence to the details.
    fn detail(mut self, words: impl Into<String>) -> Self {
        self.details.push(words.into());
        self
    }
}

#[derive(Template)]
#[template(path = "transaction.html")]
struct Page {
    layout: Layout,
    id: TxnId,
    tag: Cell,
    steps: Vec<Step>,
    facts: Vec<(&'static str, Cell)>,
}

/// Shows a transaction.
///
/// # Errors
/// 404 if the transaction does not exist or is deleted.
pub(crate) async fn show(staff: Staff, path: Path<String>) -> Result<HttpResponse, ConsoleError> {
    let id: TxnId = path.parse().map_err(|_| ServiceError::TransactionNotFound)?;
    let record = staff.api.store.load_transaction(id).await?.ok_or(ServiceError::TransactionNotFound)?;
    let summary = staff
        .api
        .store
        .summarise_transactions(vec![id])
        .await?
        .pop()
        .flatten()
        .ok_or(ServiceError::TransactionNotFound)?;
    let (tag, mut steps) = (state_tag(&record), vec![opened_step(&summary.opened), page_step(&summary)]);
    steps.push(answer_step(&record, summary.code.as_deref()));
    if let TransactionRecord::Completed(completed) = &record {
        steps.extend(webhook_steps(summary.delivery.as_ref(), &fetch_hint(&staff, completed)));
        steps.push(poll_step(&summary));
    }
    let facts = facts(&staff, &summary.opened).await?;
    let layout = Layout::new(&staff.request, Some(Section::Clients));
    Ok(form_page(StatusCode::OK, &Page { layout, id, tag, steps, facts }))
}

fn state_tag(record: &TransactionRecord) -> Cell {
    match record {
        TransactionRecord::Pending(_) => Cell::tag("pending", "waiting"),
        TransactionRecord::Expired(_) => Cell::tag("", "expired"),
        TransactionRecord::Completed(CompletedRecord { passed: true, .. }) => Cell::tag("good", "verified"),
        TransactionRecord::Completed(_) => Cell::tag("bad", "not verified"),
    }
}

fn opened_step(opened: &Pending) -> Step {
    let claims: Vec<&str> = opened.terms.claims.iter().map(sakshi_domain::claims::Claim::name).collect();
    let channel = opened.terms.channel.name();
    let beginning = if opened.event.is_some() {
        "A guest of an event began the transaction"
    } else {
        "The app opened the transaction"
    };
    let step = Step::new(
        "good",
        opened.opened_at,
        format!("{beginning}, for the channel {channel}, and one credit was debited."),
    );
    step.detail(format!("Requested claims: {}.", claims.join(", "))).detail(format!(
        "Webhook: {}.",
        match &opened.terms.webhook_url {
            Some(url) => format!("to {}", url.origin()),
            None if opened.event.is_some() => "to the URL of the event, if it has one".to_owned(),
            None => "none, because the request named no URL".to_owned(),
        }
    ))
}

/// Describes the first view of the transaction's page, or the first request of the identity app.
fn page_step(summary: &TransactionSummary) -> Step {
    match summary.page_seen_at {
        Some(at) => Step::new("good", at, "The person opened its page, or the identity app fetched the request."),
        None => Step::new(
            "waiting",
            None,
            "Nobody has opened its page, and the identity app has not fetched the request.",
        )
        .detail(
            "The link or code may not have reached the person. A native app that starts the identity app itself \
                opens no page.",
        ),
    }
}

/// Describes the client's first poll that returned the outcome.
fn poll_step(summary: &TransactionSummary) -> Step {
    match summary.polled_at {
        Some(at) => Step::new("good", at, "The client fetched the outcome."),
        None => Step::new("waiting", None, "The client has not fetched the outcome."),
    }
}

/// Describes the answer of the identity app, or its absence.
fn answer_step(record: &TransactionRecord, code: Option<&str>) -> Step {
    match record {
        TransactionRecord::Pending(opened) => {
            Step::new("waiting", None, "No answer of the identity app has arrived yet.").detail(format!(
                "The window ends at {}. Until then polls return pending.",
                format_time(opened.expires_at)
            ))
        }
        TransactionRecord::Expired(opened) => Step::new(
            "bad",
            opened.expires_at,
            "Nobody answered in time, and the \
            transaction expired.",
        )
        .detail(
            "Polls return 410, no webhook is sent, and the credit stays spent. The client opens \
                another transaction.",
        ),
        TransactionRecord::Completed(record) => {
            let duration = format_duration(record.verified_at.since(record.opened.opened_at));
            match (record.passed, record.refused) {
                (true, _) => {
                    Step::new("good", record.verified_at, format!("The person was verified, after {duration}."))
                }
                (false, Some(refused)) => {
                    let words =
                        format!("The person was verified after {duration}, but got no place ({}).", refused.code());
                    Step::new("bad", record.verified_at, words)
                }
                (false, None) => {
                    let step =
                        Step::new("bad", record.verified_at, format!("The person was not verified, after {duration}."));
                    let step = match code {
                        Some(code) => step.detail(format!("{}, code {code}.", failure_words(Some(code)))),
                        None => step,
                    };
                    step.detail("The client gets this in the result.")
                }
            }
        }
    }
}

/// Formats a time for a sentence.
fn format_time(at: Timestamp) -> String {
    format!("{} UTC", at.to_string().get(..16).unwrap_or_default().replace('T', " "))
}

/// Describes how the client gets the outcome without a webhook.
fn fetch_hint(staff: &Staff, completed: &CompletedRecord) -> String {
    let own_retention =
        completed.opened.terms.retention().result_ttl_s.map(|seconds| Duration::from_secs(seconds.get().into()));
    let maximum = staff.api.retention_max.result_ttl;
    let until = completed.verified_at + own_retention.map_or(maximum, |own| own.min(maximum));
    format!(
        "The client fetches the result with GET /api/v1/nationalid-ovse/result/{} until {}.",
        completed.opened.id,
        format_time(until)
    )
}

/// Describes the queuing and the delivery of the webhook.
fn webhook_steps(delivery: Option<&DeliveryRecord>, fetch_hint: &str) -> Vec<Step> {
    let Some(delivery) = delivery else {
        return vec![Step::new("waiting", None, "No webhook was sent, because no URL was known.").detail(fetch_hint)];
    };
    let queued = Step::new("", delivery.queued_at, format!("Its webhook was queued for {}.", delivery.origin));
    let outcome = match (delivery.attempt, delivery.claimed_at) {
        (Some(attempt), at) => attempt_step(at, attempt, fetch_hint),
        (None, Some(at)) => Step::new("waiting", at, "The webhook is being sent."),
        (None, None) => Step::new(
            "waiting",
            None,
            "The webhook is queued behind others of this receiver, or the receiver's name does not resolve.",
        ),
    };
    vec![queued, outcome]
}

/// Describes the outcome of the one attempt to deliver the webhook.
fn attempt_step(at: Option<Timestamp>, attempt: Attempt, fetch_hint: &str) -> Step {
    let duration = format!("{} ms", attempt.duration_ms);
    if attempt.outcome == DeliveryOutcome::Delivered {
        let status = attempt.status.map(|status| format!(" with {status}")).unwrap_or_default();
        return Step::new("good", at, format!("The receiver took the webhook{status}, in {duration}."));
    }
    let receipt = match attempt.outcome.sent() {
        Sent::Yes => "The receiver has seen it and did not take it",
        Sent::No => "The receiver does not have it",
        Sent::Unknown => "Nobody knows if the receiver has it",
    };
    let status = attempt.status.map(|status| format!(", status {status}")).unwrap_or_default();
    let step = Step::new(
        "bad",
        at,
        format!("The webhook was lost: {}{status}, after {duration}. {receipt}.", attempt.outcome),
    );
    let reason = attempt.failure.map(|failure| format!("Why: {} ({}).", advice(failure), failure.reason));
    let step = reason.into_iter().fold(step, Step::detail);
    step.detail("A webhook is sent once and never repeated.")
        .detail(format!("What to do: {fetch_hint} Then the receiver must be repaired."))
}

/// Returns names and values of the transaction's fields.
async fn facts(staff: &Staff, opened: &Pending) -> Result<Vec<(&'static str, Cell)>, ConsoleError> {
    let reference = opened.terms.extras.as_ref().and_then(|extras| extras.client_reference_id.clone());
    let trace = opened.terms.trace().and_then(|trace| trace.split('-').nth(1)).map(str::to_owned);
    Ok(vec![
        ("Id", Cell::code(opened.id)),
        ("Client", client_cell(staff, &opened.client).await?),
        ("App", app_cell(staff, &opened.app).await?),
        ("Event", Cell::or_none(opened.event, |event| Cell::link("events", event))),
        ("Client’s reference", Cell::or_none(reference, Cell::Text)),
        ("Request", Cell::link("requests", opened.terms.request_id.as_str())),
        ("Trace", Cell::or_none(trace, Cell::Code)),
        ("Window ends", Cell::at(opened.expires_at)),
    ])
}

#[cfg(test)]
mod tests {
    use sakshi_domain::delivery::{AttemptPart, DeliveryId, FailureReason};

    use super::*;

    fn last_step(attempt: Option<Attempt>) -> Step {
        let at = Timestamp::from_millis(1_700_000_000_000);
        let origin = "https://client.example".to_owned();
        let delivery =
            DeliveryRecord { id: DeliveryId(1), origin, queued_at: at, claimed_at: attempt.map(|_| at), attempt };
        webhook_steps(Some(&delivery), "The client polls.").pop().unwrap()
    }

    #[test]
    fn a_lost_webhook_shows_the_cause_the_receipt_and_what_to_do() {
        let expired =
            Attempt::unanswered(DeliveryOutcome::Unreachable, FailureReason::TlsExpired, Some(AttemptPart::Tls), 12);
        let step = last_step(Some(expired));
        assert_eq!(
            (step.class, &*step.title),
            ("bad", "The webhook was lost: unreachable, after 12 ms. The receiver does not have it.")
        );
        assert_eq!(step.details[0], "Why: the receiver's certificate is not valid now (tls_expired).");
        assert!(step.details[2].starts_with("What to do: The client polls."), "{step:?}");
        assert!(
            last_step(Some(Attempt::from_status(500, 3)))
                .title
                .contains("rejected, status 500, after 3 ms. The receiver has seen it")
        );
        assert!(last_step(Some(Attempt::unknown())).title.contains("Nobody knows"));
    }

    #[test]
    fn a_delivered_or_waiting_webhook_is_not_lost() {
        assert_eq!((last_step(Some(Attempt::from_status(204, 3))).class, last_step(None).class), ("good", "waiting"));
        assert!(webhook_steps(None, "The client polls.")[0].title.contains("no URL was known"));
    }
}
