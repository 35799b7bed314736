//! How things are, as a client may know it.

use sakshi_domain::time::Timestamp;

use crate::body::body;

body! { answer
    /// How things are.
    pub struct ServiceStatus {
        /// The identity authority, as the answering node has seen it in the last half hour.
        authority: AuthorityStatus,
        /// The upstreams that this installation offers, seen likewise.
        upstreams: Vec<UpstreamStatus>,
        /// The webhooks of the 100 newest transactions of the application; those of flows are not among them.
        webhooks: WebhookCounts,
    }
}

body! { answer
    /// What identity apps have answered.
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
    /// What an upstream has answered.
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
    /// Webhooks by what became of them.
    pub struct WebhookCounts {
        /// Taken by their receivers.
        delivered: u64,
        /// Not taken, or it is not known; they are not sent again.
        failed: u64,
        /// Not sent yet, or under way.
        waiting: u64,
    }
}
