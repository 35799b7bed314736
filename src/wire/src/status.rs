//! The status of the service, as a client may see it.

use sakshi_domain::time::Timestamp;

use crate::body::body;

body! { answer
    /// The status of the service.
    pub struct ServiceStatus {
        /// The identity authority, as the answering node has seen it in the last half hour.
        authority: AuthorityStatus,
        /// The upstreams that this installation offers, seen likewise.
        upstreams: Vec<UpstreamStatus>,
        /// The webhooks of the 100 newest transactions of the application, without those of flows.
        webhooks: WebhookCounts,
    }
}

body! { answer
    /// The answers of identity apps.
    pub struct AuthorityStatus {
        /// All answers.
        answers: u64,
        /// Those with code 306: the authority's face authentication was down.
        service_down: u64,
        /// Those with code 307: the app met an HTTP error.
        http_errors: u64,
        /// The time of the last answer, or null.
        last_answer_at: Option<Timestamp>,
    }
}

body! { answer
    /// The answers of an upstream.
    pub struct UpstreamStatus {
        /// `esign`, `doclocker`, `estamp`, `wealth`, or a kind of check.
        kind: String,
        /// Orders and questions that it has answered.
        answered: u64,
        /// Those that it has refused or not answered.
        failed: u64,
    }
}

body! { answer
    /// Webhooks by outcome.
    pub struct WebhookCounts {
        /// Accepted by their receivers.
        delivered: u64,
        /// Not accepted, or the outcome is unknown; they are not sent again.
        failed: u64,
        /// Not sent yet, or in flight.
        waiting: u64,
    }
}
