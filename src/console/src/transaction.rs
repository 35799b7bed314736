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
use sakshi_web::when::{When, lasted};
use sakshi_web::why::why;

use crate::error::ConsoleError;
use crate::layout::{Layout, Section};
use crate::records::{app_cell, client_cell};
use crate::staff::Staff;
use crate::view::Cell;

/// A step of the story.
#[derive(Debug)]
pub(crate) struct Step {
    /// `good`, `bad`, `waiting`, or nothing.
    pub(crate) class: &'static str,
    pub(crate) at: Option<When>,
    pub(crate) what: String,
    /// More about the step, and what to do.
    pub(crate) more: Vec<String>,
}

impl Step {
    fn new(class: &'static str, at: impl Into<Option<Timestamp>>, what: impl Into<String>) -> Self {
        Self { class, at: at.into().map(When::second), what: what.into(), more: Vec::new() }
    }

    fn more(mut self, words: impl Into<String>) -> Self {
        self.more.push(words.into());
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
/// 404 when the transaction does not exist, or no longer.
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
    let (tag, mut steps) = (state(&record), vec![opening(&summary.opened), seen(&summary)]);
    steps.push(answer(&record, summary.code.as_deref()));
    if let TransactionRecord::Completed(completed) = &record {
        steps.extend(webhook(summary.delivery.as_ref(), &fetching(&staff, completed)));
        steps.push(fetched(&summary));
    }
    let facts = facts(&staff, &summary.opened).await?;
    let layout = Layout::of(&staff.request, Some(Section::Clients));
    Ok(form_page(StatusCode::OK, &Page { layout, id, tag, steps, facts }))
}

fn state(record: &TransactionRecord) -> Cell {
    match record {
        TransactionRecord::Pending(_) => Cell::tag("pending", "waiting"),
        TransactionRecord::Expired(_) => Cell::tag("", "expired"),
        TransactionRecord::Completed(CompletedRecord { passed: true, .. }) => Cell::tag("good", "verified"),
        TransactionRecord::Completed(_) => Cell::tag("bad", "not verified"),
    }
}

fn opening(opened: &Pending) -> Step {
    let asked: Vec<&str> = opened.terms.claims.iter().map(sakshi_domain::claims::Claim::name).collect();
    let channel = opened.terms.channel.name();
    let whose = if opened.event.is_some() { "A guest of an event began it" } else { "The app opened it" };
    let step =
        Step::new("good", opened.opened_at, format!("{whose}, for the channel {channel}, and one credit was debited."));
    step.more(format!("It asks for {}.", asked.join(", "))).more(format!(
        "Webhook: {}.",
        match &opened.terms.webhook_url {
            Some(url) => format!("to {}", url.origin()),
            None if opened.event.is_some() => "to the URL of the event, if it has one".to_owned(),
            None => "none, for the request named no URL".to_owned(),
        }
    ))
}

/// Describes the first view of its page, or the first request of the identity app.
fn seen(summary: &TransactionSummary) -> Step {
    match summary.page_seen_at {
        Some(at) => Step::new("good", at, "The person opened its page, or the identity app asked for it."),
        None => Step::new("waiting", None, "Nobody has opened its page, and the identity app has not asked for it.")
            .more(
                "The link or code may not have reached the person. A native app that fires the intent itself asks \
                for no page.",
            ),
    }
}

/// Describes the first time that the client fetched the outcome.
fn fetched(summary: &TransactionSummary) -> Step {
    match summary.polled_at {
        Some(at) => Step::new("good", at, "The client fetched the outcome."),
        None => Step::new("waiting", None, "The client has not fetched the outcome."),
    }
}

fn answer(record: &TransactionRecord, code: Option<&str>) -> Step {
    match record {
        TransactionRecord::Pending(opened) => {
            Step::new("waiting", None, "No answer of the identity app has arrived yet.")
                .more(format!("It can come until {}. Polls are answered with pending.", in_words(opened.expires_at)))
        }
        TransactionRecord::Expired(opened) => Step::new(
            "bad",
            opened.expires_at,
            "Nobody answered in time, and the \
            transaction expired.",
        )
        .more(
            "Polls are answered with 410, no webhook is sent, and the credit stays spent. The client opens \
                another transaction.",
        ),
        TransactionRecord::Completed(record) => {
            let took = lasted(record.verified_at.since(record.opened.opened_at));
            match (record.passed, record.refused) {
                (true, _) => Step::new("good", record.verified_at, format!("The person was verified, after {took}.")),
                (false, Some(refused)) => {
                    let words = format!("The person was verified after {took}, but got no place ({}).", refused.code());
                    Step::new("bad", record.verified_at, words)
                }
                (false, None) => {
                    let step =
                        Step::new("bad", record.verified_at, format!("The person was not verified, after {took}."));
                    let step = match code {
                        Some(code) => step.more(format!("{}, code {code}.", why(Some(code)))),
                        None => step,
                    };
                    step.more("The result says it to the client.")
                }
            }
        }
    }
}

/// Formats a time within a sentence.
fn in_words(at: Timestamp) -> String {
    format!("{} UTC", at.to_string().get(..16).unwrap_or_default().replace('T', " "))
}

/// Describes the way in which the client learns the outcome without a webhook.
fn fetching(staff: &Staff, completed: &CompletedRecord) -> String {
    let own = completed.opened.terms.retention().result_ttl_s.map(|seconds| Duration::from_secs(seconds.get().into()));
    let longest = staff.api.retention_max.result_ttl;
    let until = completed.verified_at + own.map_or(longest, |own| own.min(longest));
    format!(
        "The client fetches the result with GET /api/v1/nationalid-ovse/result/{} until {}.",
        completed.opened.id,
        in_words(until)
    )
}

fn webhook(delivery: Option<&DeliveryRecord>, fetching: &str) -> Vec<Step> {
    let Some(delivery) = delivery else {
        return vec![Step::new("waiting", None, "No webhook was sent, because no URL was known.").more(fetching)];
    };
    let queued = Step::new("", delivery.queued_at, format!("Its webhook was queued for {}.", delivery.origin));
    let outcome = match (delivery.attempt, delivery.claimed_at) {
        (Some(attempt), at) => attempted(at, attempt, fetching),
        (None, Some(at)) => Step::new("waiting", at, "The webhook is being sent."),
        (None, None) => Step::new(
            "waiting",
            None,
            "The webhook waits for its turn: others of this receiver go first, or its name does not resolve.",
        ),
    };
    vec![queued, outcome]
}

fn attempted(at: Option<Timestamp>, attempt: Attempt, fetching: &str) -> Step {
    let took = format!("{} ms", attempt.duration_ms);
    if attempt.outcome == DeliveryOutcome::Delivered {
        let status = attempt.status.map(|status| format!(" with {status}")).unwrap_or_default();
        return Step::new("good", at, format!("The receiver took the webhook{status}, in {took}."));
    }
    let has_it = match attempt.outcome.sent() {
        Sent::Yes => "The receiver has seen it and did not take it",
        Sent::No => "The receiver does not have it",
        Sent::Unknown => "Nobody knows if the receiver has it",
    };
    let status = attempt.status.map(|status| format!(", status {status}")).unwrap_or_default();
    let step =
        Step::new("bad", at, format!("The webhook was lost: {}{status}, after {took}. {has_it}.", attempt.outcome));
    let why = attempt.failure.map(|failure| format!("Why: {} ({}).", advice(failure), failure.reason));
    let step = why.into_iter().fold(step, Step::more);
    step.more("A webhook is sent once and never repeated.")
        .more(format!("What to do: {fetching} Then the receiver is put right."))
}

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

    fn told(attempt: Option<Attempt>) -> Step {
        let at = Timestamp::from_millis(1_700_000_000_000);
        let origin = "https://client.example".to_owned();
        let delivery =
            DeliveryRecord { id: DeliveryId(1), origin, queued_at: at, claimed_at: attempt.map(|_| at), attempt };
        webhook(Some(&delivery), "The client polls.").pop().unwrap()
    }

    #[test]
    fn a_lost_webhook_says_why_who_has_it_and_what_to_do() {
        let expired =
            Attempt::unanswered(DeliveryOutcome::Unreachable, FailureReason::TlsExpired, Some(AttemptPart::Tls), 12);
        let step = told(Some(expired));
        assert_eq!(
            (step.class, &*step.what),
            ("bad", "The webhook was lost: unreachable, after 12 ms. The receiver does not have it.")
        );
        assert_eq!(step.more[0], "Why: the receiver's certificate is not valid now (tls_expired).");
        assert!(step.more[2].starts_with("What to do: The client polls."), "{step:?}");
        assert!(
            told(Some(Attempt::answered(500, 3)))
                .what
                .contains("rejected, status 500, after 3 ms. The receiver has seen it")
        );
        assert!(told(Some(Attempt::unknown())).what.contains("Nobody knows"));
    }

    #[test]
    fn a_webhook_that_arrived_or_waits_is_no_loss() {
        assert_eq!((told(Some(Attempt::answered(204, 3))).class, told(None).class), ("good", "waiting"));
        assert!(webhook(None, "The client polls.")[0].what.contains("no URL was known"));
    }
}
