//! The register of consents.

use sakshi_domain::consent::ConsentAnswer;
use sakshi_domain::flow::consent_given::ConsentDigest;
use sakshi_domain::ids::{AppId, ClientId, EventId};
use sakshi_domain::time::Timestamp;

use crate::body::{body, described};
use crate::language_name::LanguageName;

body! { answer
    /// A part of the register of consents.
    pub struct ConsentsPage {
        /// By the week in which the person was asked, and in the order of the answers within it.
        consents: Vec<ConsentEntry>,
        /// Path and query of the next part; absent at the end.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        next: Option<String>,
    }
}

body! { answer
    /// A question to a person, and the answer. It holds no value that was shared or verified.
    #[derive(Clone)]
    pub struct ConsentEntry {
        /// `verification`, or the name of a check (`pan`) or a flow (`doclocker`, `wealth`).
        kind: String,
        /// The transaction, the flow, or the correlation id of the check.
        id: String,
        /// The client that asked.
        client_id: ClientId,
        /// Its app.
        app_id: AppId,
        /// The event whose guest the person was, or null.
        event_id: Option<EventId>,
        /// The purpose shown to the person, or null.
        purpose: Option<String>,
        /// The claims of a verification, the fields of a check, the kinds of documents of a flow.
        asked: Vec<String>,
        /// The requested language, or null.
        language: Option<LanguageName>,
        /// SHA-256 of `consent_text` in UTF-8, in hexadecimal; null if the client sent none.
        consent_text_sha256: Option<ConsentDigest>,
        /// The release of the service, whose pages the person saw.
        release: String,
        /// The time at which the person was asked.
        opened_at: Timestamp,
        /// The time of the person's answer; of a check or a flow, the time at which the client declared the consent.
        answered_at: Timestamp,
        /// `given`, or `not_given` if nothing was shared with the client.
        answer: ConsentAnswer,
        /// The code of the identity app, or of this service, for an answer that is `not_given`; also that of an event
        /// without a place.
        code: Option<String>,
    }
}

described! {
    ConsentDigest: { "type": "string", "pattern": "^[0-9a-f]{64}$" }
}
