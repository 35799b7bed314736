//! The status of the service for clients.

use sakshi_domain::time::Timestamp;

use crate::body::body;

body! { response
    /// The health of the service and of the systems that it depends on.
    pub struct ServiceStatus {
        /// The identity authority, as seen by the responding node in the last 30 minutes.
        authority: AuthorityStatus,
        /// The upstreams of this installation, as seen by the responding node in the last 30 minutes.
        upstreams: Vec<UpstreamStatus>,
        /// The webhooks of the 100 newest transactions of the application. Webhooks of flows do not count.
        webhooks: WebhookCounts,
    }
}

body! { response
    /// The callbacks of identity apps.
    pub struct AuthorityStatus {
        /// The number of callbacks.
        answers: u64,
        /// Callbacks with code 306: the authority's face authentication was down.
        service_down: u64,
        /// Callbacks with code 307: the app met an HTTP error.
        http_errors: u64,
        /// The time of the last callback, or null.
        last_answer_at: Option<Timestamp>,
    }
}

body! { response
    /// The requests to an upstream by result.
    pub struct UpstreamStatus {
        /// `esign`, `doclocker`, `estamp`, `wealth`, or a kind of check such as `pan`.
        kind: String,
        /// Requests that the upstream answered.
        answered: u64,
        /// Requests that the upstream refused or did not answer.
        failed: u64,
    }
}

body! { response
    /// The number of webhooks by outcome.
    pub struct WebhookCounts {
        /// Webhooks accepted by their receivers.
        delivered: u64,
        /// Webhooks not accepted, or with an unknown outcome. They are not sent again.
        failed: u64,
        /// Webhooks queued or in flight.
        waiting: u64,
    }
}
