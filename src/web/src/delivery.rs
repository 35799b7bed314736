//! The outcome of a webhook in one line, and the receiver's remedy for a failure.

use sakshi_domain::delivery::{
    Attempt, AttemptFailure, AttemptPart, DeliveryOutcome, DeliveryRecord, FailureReason, WebhookState,
};

use crate::when::When;

/// The outcome of a webhook in one line.
#[derive(Debug, PartialEq, Eq)]
pub struct DeliveryLine {
    /// Start of the attempt.
    pub at: Option<When>,
    /// The outcome in words.
    pub words: String,
    /// True if the client must poll to learn the outcome.
    pub is_lost: bool,
}

impl DeliveryLine {
    /// Describes a delivery.
    #[must_use]
    pub fn describe(record: &DeliveryRecord) -> Self {
        let at = record.claimed_at.map(When::second);
        let (words, is_lost) = match (record.attempt, record.claimed_at) {
            (Some(attempt), _) => (attempt_words(attempt), attempt.outcome != DeliveryOutcome::Delivered),
            (None, Some(_)) => ("is being sent".to_owned(), false),
            (None, None) => ("waits to be sent".to_owned(), false),
        };
        Self { at, words, is_lost }
    }
}

/// A one-word summary of a webhook, for lists.
#[derive(Debug, PartialEq, Eq)]
pub struct DeliveryTag {
    /// CSS class of the element.
    pub style: &'static str,
    /// HTTP status, or the reason for a missing response.
    pub label: String,
}

impl DeliveryTag {
    /// Summarises a delivery.
    #[must_use]
    pub fn summarize(record: &DeliveryRecord) -> Self {
        let style = match WebhookState::from_delivery(Some(record)) {
            WebhookState::Delivered => "verified",
            WebhookState::Lost => "not_verified",
            WebhookState::Waiting | WebhookState::None => "waiting",
        };
        Self { style, label: record.attempt.map_or_else(|| "waiting".to_owned(), status_or_reason) }
    }
}

/// Returns the HTTP status, or the reason for a missing response.
#[must_use]
pub fn status_or_reason(attempt: Attempt) -> String {
    match (attempt.status, attempt.failure) {
        (Some(status), _) => status.to_string(),
        (None, Some(failure)) => failure.reason.as_str().replace('_', " "),
        (None, None) => attempt.outcome.as_str().replace('_', " "),
    }
}

/// Describes an attempt: outcome, status, failure with its explanation, and duration.
fn attempt_words(attempt: Attempt) -> String {
    let status = attempt.status.map(|status| format!(" with status {status}")).unwrap_or_default();
    let reason =
        attempt.failure.map(|failure| format!(" ({}: {})", failure.reason, advice(failure))).unwrap_or_default();
    format!("{}{status}{reason}, {} ms", attempt.outcome, attempt.duration_ms)
}

/// Explains a failure to the receiver's developer.
#[must_use]
pub const fn advice(failure: AttemptFailure) -> &'static str {
    match failure.reason {
        FailureReason::Dns => "no address was found for the host name",
        FailureReason::Refused => "nothing listens at this port",
        FailureReason::NoRoute => "no route leads to the address",
        FailureReason::TimedOut => match failure.part {
            Some(AttemptPart::Name) => "the name servers did not answer in time",
            Some(AttemptPart::Connection) => "the receiver did not accept a connection in time",
            Some(AttemptPart::Proxy) => "the proxy of this service did not answer in time",
            Some(AttemptPart::Tls) => "the TLS handshake did not end in time",
            Some(AttemptPart::Answer) | None => "the receiver did not answer in time",
        },
        FailureReason::Reset => match failure.part {
            Some(AttemptPart::Tls) => "the receiver closed the connection during the TLS handshake",
            _ => "the receiver closed the connection before an answer",
        },
        FailureReason::TlsExpired => "the receiver's certificate is not valid now",
        FailureReason::TlsName => "the receiver's certificate is for another name",
        FailureReason::TlsChain => {
            "no trusted authority vouches for the certificate; often the intermediate certificate is missing"
        }
        FailureReason::TlsVersion => "the receiver must offer TLS 1.2 or 1.3 with a usual cipher",
        FailureReason::TlsClientCertificate => "the receiver asks for a client certificate, or refuses ours",
        FailureReason::Tls => "no TLS session; does this port speak https?",
        FailureReason::Redirect => "redirects are not followed; register the final URL",
        FailureReason::Status => "only an answer with 2xx means that the webhook has arrived",
        FailureReason::Proxy => "the proxy of this service made no connection",
        FailureReason::Blocked => "the receiver's address is not allowed here",
        FailureReason::Local => "this service could open no connection",
        FailureReason::Unknown => match failure.part {
            Some(_) => "the receiver's answer is not HTTP",
            None => "this service ended during the attempt",
        },
    }
}

#[cfg(test)]
mod tests {
    use sakshi_domain::delivery::DeliveryId;
    use sakshi_domain::time::Timestamp;

    use super::*;

    #[test]
    fn a_lost_webhook_differs_from_a_pending_webhook() {
        let at = Timestamp::parse_iso8601("2026-03-01T10:00:07Z").unwrap();
        let record = |claimed_at, attempt| DeliveryRecord {
            id: DeliveryId(1),
            origin: "https://client.example".to_owned(),
            queued_at: at,
            claimed_at,
            attempt,
        };
        let line = |claimed_at, attempt| {
            let DeliveryLine { words, is_lost, .. } = DeliveryLine::describe(&record(claimed_at, attempt));
            (words, is_lost)
        };
        assert_eq!(line(None, None), ("waits to be sent".to_owned(), false));
        assert_eq!(line(Some(at), None), ("is being sent".to_owned(), false));
        let delivered = Some(Attempt::from_status(200, 12));
        assert_eq!(line(Some(at), delivered), ("delivered with status 200, 12 ms".to_owned(), false));
        let redirected =
            "rejected with status 302 (redirect: redirects are not followed; register the final URL), 12 ms".to_owned();
        assert_eq!(line(Some(at), Some(Attempt::from_status(302, 12))), (redirected, true));
        let expired =
            Attempt::unanswered(DeliveryOutcome::Unreachable, FailureReason::TlsExpired, Some(AttemptPart::Tls), 12);
        let expected = "unreachable (tls_expired: the receiver's certificate is not valid now), 12 ms".to_owned();
        assert_eq!(line(Some(at), Some(expired)), (expected, true));
        let unknown = "unknown (unknown: this service ended during the attempt), 0 ms".to_owned();
        assert_eq!(line(Some(at), Some(Attempt::unknown())), (unknown, true));
    }
}
