//! Receivers of webhooks: they respond, refuse, hang, break off, or cannot be reached, in each way that the real client
//! tells from the others (`src/outbound/src/failure.rs`).

use std::time::Duration;

use sakshi_domain::delivery::{Attempt, AttemptPart, DeliveryOutcome, FailureReason};

use crate::world::World;

/// Time limit of an attempt, and of its connection.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Failures before a byte is sent.
const UNSENT: [(DeliveryOutcome, FailureReason, Option<AttemptPart>); 17] = {
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

/// Reasons why a connection breaks without a response. After the last one, the response is not HTTP.
const BROKEN: [FailureReason; 3] = [FailureReason::Reset, FailureReason::TimedOut, FailureReason::Unknown];

/// Statuses of success and of failure. The client reads no body further than the status needs.
const GOOD: [u16; 6] = [200, 200, 200, 201, 202, 204];
const BAD: [u16; 14] = [300, 301, 302, 304, 307, 308, 400, 401, 404, 410, 429, 500, 502, 503];

/// The plan of an attempt.
pub(crate) struct Planned {
    /// True if the receiver gets the webhook.
    pub(crate) arrives: bool,
    pub(crate) attempt: Attempt,
    /// Time from the arrival, or from the failure's beginning, until the attempt ends.
    pub(crate) time: Duration,
}

/// Plans an attempt that needs these times for the way to the receiver and back.
pub(crate) fn plan(world: &World, way: Duration, back: Duration) -> Planned {
    let is_bad = world.goes_wrong("bad-receivers", 3_300);
    let answered = |statuses: &[u16]| Planned {
        arrives: true,
        attempt: Attempt::from_status(statuses[world.index(statuses.len())], millis(way + back)),
        time: back,
    };
    match if is_bad { world.below(4) } else { 4 } {
        0 => {
            let (outcome, reason, part) = UNSENT[world.index(UNSENT.len())];
            let time = if reason == FailureReason::TimedOut { CONNECT_TIMEOUT } else { back };
            Planned { arrives: false, attempt: Attempt::unanswered(outcome, reason, part, millis(way + time)), time }
        }
        1 => unanswered(true, DeliveryOutcome::TimedOut, FailureReason::TimedOut, ATTEMPT_TIMEOUT),
        2 => {
            // The receiver may have read the webhook before the connection broke.
            let reason = BROKEN[world.index(BROKEN.len())];
            unanswered(world.chance(700), DeliveryOutcome::Broken, reason, way + back)
        }
        3 => answered(&BAD),
        _ => answered(&GOOD),
    }
}

fn unanswered(arrives: bool, outcome: DeliveryOutcome, reason: FailureReason, time: Duration) -> Planned {
    let attempt = Attempt::unanswered(outcome, reason, Some(AttemptPart::Answer), millis(time));
    Planned { arrives, attempt, time }
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
        let unsent = UNSENT.iter().map(|(_, reason, _)| *reason);
        let of_status = BAD.iter().filter_map(|status| Attempt::from_status(*status, 0).failure);
        let caused: BTreeSet<_> = unsent.chain(BROKEN).chain(of_status.map(|failure| failure.reason)).collect();
        assert_eq!(caused, FailureReason::ALL.iter().copied().collect());
    }

    #[test]
    fn only_an_attempt_that_sent_nothing_leaves_out_the_receiver() {
        assert!(UNSENT.iter().all(|(outcome, ..)| outcome.sent() == sakshi_domain::delivery::Sent::No));
    }
}
