//! What became of a transaction's webhook, in one line.

use sakshi_domain::delivery::{Attempt, DeliveryOutcome, DeliveryRecord};

use super::when::When;

/// The line, and whether the client must poll to learn the outcome.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DeliveryLine {
    /// When the attempt began.
    pub(super) at: Option<When>,
    pub(super) words: String,
    pub(super) is_lost: bool,
}

impl DeliveryLine {
    pub(super) fn of(record: &DeliveryRecord) -> Self {
        let at = record.claimed_at.map(When::second);
        let (words, is_lost) = match (record.attempt, record.claimed_at) {
            (Some(attempt), _) => (attempt_words(attempt), attempt.outcome != DeliveryOutcome::Delivered),
            (None, Some(_)) => ("is being sent".to_owned(), false),
            (None, None) => ("waits to be sent".to_owned(), false),
        };
        Self { at, words, is_lost }
    }
}

fn attempt_words(attempt: Attempt) -> String {
    let why = match attempt.outcome {
        DeliveryOutcome::Delivered => "delivered",
        DeliveryOutcome::Rejected => "rejected",
        DeliveryOutcome::Blocked => "blocked (its address is not allowed here)",
        DeliveryOutcome::Unresolved => "unresolved (no address was found for the host name)",
        DeliveryOutcome::LocalFailure => "not sent (this service could open no connection)",
        DeliveryOutcome::Unreachable => "unreachable (no connection, or no TLS)",
        DeliveryOutcome::Broken => "broken (the connection ended before an answer)",
        DeliveryOutcome::TimedOut => "timed out (no answer)",
        DeliveryOutcome::Unknown => return "unknown (this service ended during the attempt)".to_owned(),
    };
    let status = attempt.status.map(|status| format!(" with status {status}")).unwrap_or_default();
    format!("{why}{status}, {} ms", attempt.duration_ms)
}

#[cfg(test)]
mod tests {
    use sakshi_domain::delivery::DeliveryId;
    use sakshi_domain::time::Timestamp;

    use super::*;

    #[test]
    fn a_lost_webhook_is_told_apart_from_one_that_is_on_its_way() {
        let at = Timestamp::parse_iso8601("2026-03-01T10:00:07Z").unwrap();
        let record = |claimed_at, attempt| DeliveryRecord {
            id: DeliveryId(1),
            origin: "https://client.example".to_owned(),
            queued_at: at,
            claimed_at,
            attempt,
        };
        let attempt = |outcome, status| Attempt { outcome, status, duration_ms: 12 };
        let line = |claimed_at, attempt| {
            let DeliveryLine { words, is_lost, .. } = DeliveryLine::of(&record(claimed_at, attempt));
            (words, is_lost)
        };
        assert_eq!(line(None, None), ("waits to be sent".to_owned(), false));
        assert_eq!(line(Some(at), None), ("is being sent".to_owned(), false));
        let delivered = Some(attempt(DeliveryOutcome::Delivered, Some(200)));
        assert_eq!(line(Some(at), delivered), ("delivered with status 200, 12 ms".to_owned(), false));
        let unreachable = Some(attempt(DeliveryOutcome::Unreachable, None));
        assert_eq!(line(Some(at), unreachable), ("unreachable (no connection, or no TLS), 12 ms".to_owned(), true));
    }
}
