//! Receivers of webhooks: they respond, refuse, hang, break off, or cannot be reached, in every way that the real
//! webhook client distinguishes (`src/outbound/src/failure.rs`).

use std::time::Duration;

use sakshi_domain::delivery::{Attempt, AttemptPart, DeliveryOutcome, FailureReason};

use crate::world::World;

/// Time limit of an attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit of an attempt's connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Failures of an attempt before a byte of the webhook is sent: outcome, reason, and the part that failed.
const UNSENT_FAILURES: [(DeliveryOutcome, FailureReason, Option<AttemptPart>); 17] = {
    use AttemptPart::{Connection, Name, Proxy, Tls};
    use DeliveryOutcome::{Blocked, LocalFailure, Unreachable, Unresolved};
    use FailureReason as Reason;
    [
        (Unreachable, Reason::Refused, Some(Connection)),
        (Unreachable, Reason::NoRoute, Some(Connection)),
        (Unreachable, Reason::TimedOut, Some(Connection)),
        (Unreachable, Reason::TimedOut, Some(Tls)),
        (Unreachable, Reason::Reset, Some(Tls)),
        (Unreachable, Reason::TlsExpired, Some(Tls)),
        (Unreachable, Reason::TlsName, Some(Tls)),
        (Unreachable, Reason::TlsChain, Some(Tls)),
        (Unreachable, Reason::TlsVersion, Some(Tls)),
        (Unreachable, Reason::TlsClientCertificate, Some(Tls)),
        (Unreachable, Reason::Tls, Some(Tls)),
        (Unreachable, Reason::Unknown, Some(Connection)),
        (Unreachable, Reason::Proxy, Some(Proxy)),
        (Unresolved, Reason::Dns, Some(Name)),
        (Blocked, Reason::Blocked, Some(Name)),
        (Blocked, Reason::Blocked, None),
        (LocalFailure, Reason::Local, Some(Connection)),
    ]
};

/// Reasons why a connection breaks without a valid response. `Unknown` stands for a response that is not HTTP.
const BREAK_REASONS: [FailureReason; 3] = [FailureReason::Reset, FailureReason::TimedOut, FailureReason::Unknown];

/// Statuses of responses that accept a webhook.
const GOOD_STATUSES: [u16; 6] = [200, 200, 200, 201, 202, 204];
/// Statuses of responses that do not accept a webhook.
const BAD_STATUSES: [u16; 14] = [300, 301, 302, 304, 307, 308, 400, 401, 404, 410, 429, 500, 502, 503];

/// A planned attempt to send a webhook.
pub(crate) struct PlannedAttempt {
    /// True if the receiver gets the webhook.
    pub(crate) arrives: bool,
    pub(crate) attempt: Attempt,
    /// Time after the request's way to the receiver until the attempt ends.
    pub(crate) duration: Duration,
}

/// Plans an attempt whose request and response take these times.
pub(crate) fn plan_attempt(world: &World, there: Duration, back: Duration) -> PlannedAttempt {
    let is_bad = world.injects_in_10_000("bad-receivers", 3_300);
    let with_response = |statuses: &[u16]| PlannedAttempt {
        arrives: true,
        attempt: Attempt::from_status(statuses[world.random_index(statuses.len())], millis(there + back)),
        duration: back,
    };
    match is_bad.then(|| world.random_below(4)) {
        Some(0) => {
            let (outcome, reason, part) = UNSENT_FAILURES[world.random_index(UNSENT_FAILURES.len())];
            let duration = if reason == FailureReason::TimedOut { CONNECT_TIMEOUT } else { back };
            let attempt = Attempt::unanswered(outcome, reason, part, millis(there + duration));
            PlannedAttempt { arrives: false, attempt, duration }
        }
        Some(1) => {
            let arrives = true;
            without_response(arrives, DeliveryOutcome::TimedOut, FailureReason::TimedOut, ATTEMPT_TIMEOUT)
        }
        Some(2) => {
            // The receiver may have read the webhook before the connection broke.
            let reason = BREAK_REASONS[world.random_index(BREAK_REASONS.len())];
            let arrives = world.chance_in_1_000(700);
            without_response(arrives, DeliveryOutcome::Broken, reason, there + back)
        }
        Some(_) => with_response(&BAD_STATUSES),
        None => with_response(&GOOD_STATUSES),
    }
}

/// Plans an attempt that fails after the request was sent.
fn without_response(
    arrives: bool,
    outcome: DeliveryOutcome,
    reason: FailureReason,
    duration: Duration,
) -> PlannedAttempt {
    let attempt = Attempt::unanswered(outcome, reason, Some(AttemptPart::Answer), millis(duration));
    PlannedAttempt { arrives, attempt, duration }
}

fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn receivers_can_cause_every_reason_of_a_failed_webhook() {
        let unsent = UNSENT_FAILURES.iter().map(|(_, reason, _)| *reason);
        let from_status = BAD_STATUSES.iter().filter_map(|status| Attempt::from_status(*status, 0).failure);
        let caused: BTreeSet<_> =
            unsent.chain(BREAK_REASONS).chain(from_status.map(|failure| failure.reason)).collect();
        assert_eq!(caused, FailureReason::ALL.iter().copied().collect());
    }

    #[test]
    fn a_webhook_that_certainly_does_not_arrive_has_an_outcome_that_says_so() {
        assert!(UNSENT_FAILURES.iter().all(|(outcome, ..)| outcome.sent() == sakshi_domain::delivery::Sent::No));
    }
}
