//! The history of a transaction, from its opening to its webhook and the first poll.

use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::TransactionStatus;
use sakshi_store::TransactionSummary;

use super::delivery::DeliveryLine;
use super::when::{When, format_duration};
use super::why::failure_words;

/// A step, in chronological order.
#[derive(Debug)]
pub(super) struct Step {
    /// Id on the page.
    pub(super) id: &'static str,
    pub(super) title: String,
    pub(super) at: Option<When>,
    pub(super) note: String,
    pub(super) style: &'static str,
}

// Styles of a step.
const DONE: &str = "past";
const FAILED: &str = "failed";
const OPEN: &str = "ahead";

fn step(id: &'static str, style: &'static str, title: &str, at: Option<Timestamp>, note: impl Into<String>) -> Step {
    Step { id, title: title.to_owned(), at: at.map(When::second), note: note.into(), style }
}

/// Returns the steps of a transaction.
pub(super) fn steps(summary: &TransactionSummary) -> Vec<Step> {
    let TransactionSummary { opened, status, page_seen_at, .. } = summary;
    let after = |at: Timestamp| format!("after {}", format_duration(at.since(opened.opened_at)));
    let has_ended = *status != TransactionStatus::Pending;
    let mut steps = vec![step(
        "opened",
        DONE,
        "Opened",
        Some(opened.opened_at),
        format!("channel {}", opened.terms.channel.name()),
    )];
    steps.push(match page_seen_at {
        Some(at) => step("page", DONE, "Page opened", Some(*at), after(*at)),
        // A native app gets the intent in the response and opens no page.
        None if has_ended && *status != TransactionStatus::Expired => {
            step("page", OPEN, "No page was opened", None, "")
        }
        None => step("page", OPEN, "Nobody has opened the page", None, ""),
    });
    match (status, summary.verified_at) {
        (TransactionStatus::Passed, Some(at)) => steps.push(step("answered", DONE, "Verified", Some(at), after(at))),
        (_, Some(at)) => {
            let code = summary.code.as_ref().map(|code| format!(", code {code}")).unwrap_or_default();
            steps.push(step("answered", FAILED, failure_words(summary.code.as_deref()), Some(at), after(at) + &code));
        }
        (TransactionStatus::Expired, None) => {
            steps.push(step(
                "answered",
                FAILED,
                "Expired",
                Some(opened.expires_at),
                "nobody answered; no webhook is sent",
            ));
        }
        (_, None) => steps.push(step("answered", OPEN, "Waiting for the answer", None, "")),
    }
    if summary.verified_at.is_some() {
        steps.extend([webhook_step(summary), poll_step(summary)]);
    }
    steps
}

/// Returns the step of the webhook, which may be delivered, lost or on its way.
fn webhook_step(summary: &TransactionSummary) -> Step {
    let Some(delivery) = &summary.delivery else {
        return step("delivery", OPEN, "No webhook", None, "no URL was given; poll the result");
    };
    let DeliveryLine { words, is_lost, .. } = DeliveryLine::describe(delivery);
    let (style, title) = match (is_lost, delivery.attempt) {
        (true, _) => (FAILED, "Webhook not delivered"),
        (false, Some(_)) => (DONE, "Webhook delivered"),
        (false, None) => (OPEN, "Webhook on its way"),
    };
    step("delivery", style, title, delivery.claimed_at, format!("{}: {words}", delivery.origin))
}

/// Returns the step of the first poll after the outcome.
fn poll_step(summary: &TransactionSummary) -> Step {
    match summary.polled_at {
        Some(at) => step("polled", DONE, "Result fetched by your server", Some(at), ""),
        None => step("polled", OPEN, "Result not fetched", None, ""),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sakshi_domain::delivery::{Attempt, DeliveryId, DeliveryRecord};
    use sakshi_domain::ids::{AppId, ClientId, TxnId};
    use sakshi_kit::records;

    use super::*;

    /// Returns the style and the title of each step.
    fn outline(summary: &TransactionSummary) -> Vec<(&'static str, String)> {
        steps(summary).into_iter().map(|step| (step.style, step.title)).collect()
    }

    #[test]
    fn steps_show_what_has_happened_and_what_has_not() {
        let (at, client) = (Timestamp::from_millis(0), ClientId::generate());
        let opened = records::pending(TxnId::generate(client.partition(), 0), client, AppId::generate(), at);
        let later = |seconds| Some(at + Duration::from_secs(seconds));
        let mut summary = TransactionSummary {
            opened,
            status: TransactionStatus::Pending,
            page_seen_at: None,
            verified_at: None,
            code: None,
            polled_at: None,
            delivery: None,
        };
        let step = |style, title: &str| (style, title.to_owned());
        assert_eq!(
            outline(&summary),
            [step(DONE, "Opened"), step(OPEN, "Nobody has opened the page"), step(OPEN, "Waiting for the answer")]
        );
        summary.status = TransactionStatus::Expired;
        assert_eq!(outline(&summary)[2], step(FAILED, "Expired"));
        summary = TransactionSummary {
            status: TransactionStatus::Passed,
            page_seen_at: later(3),
            verified_at: later(9),
            ..summary
        };
        summary.delivery = Some(DeliveryRecord {
            id: DeliveryId(1),
            origin: "https://client.example".into(),
            queued_at: at,
            claimed_at: later(9),
            attempt: Some(Attempt::from_status(503, 12)),
        });
        let outline_now = outline(&summary);
        assert_eq!(
            outline_now[1..4],
            [step(DONE, "Page opened"), step(DONE, "Verified"), step(FAILED, "Webhook not delivered")]
        );
        assert_eq!(outline_now[4], step(OPEN, "Result not fetched"));
        summary = TransactionSummary {
            status: TransactionStatus::Failed,
            code: Some("301".into()),
            polled_at: later(20),
            delivery: None,
            ..summary
        };
        let outline_now = outline(&summary);
        assert_eq!(
            outline_now[2..],
            [step(FAILED, "Person declined"), step(OPEN, "No webhook"), step(DONE, "Result fetched by your server")]
        );
    }
}
