//! The register of consents.

use sakshi_domain::consent::ConsentAnswer;
use sakshi_domain::flow::consent_given::ConsentDigest;
use sakshi_domain::ids::{AppId, ClientId, EventId};
use sakshi_domain::time::Timestamp;

use crate::body::{body, described};
use crate::language_name::LanguageName;

body! { response
    /// A page of the register of consents.
    pub struct ConsentsPage {
        /// The entries by the week of the request, and within a week in the order of the answers.
        consents: Vec<ConsentEntry>,
        /// Path and query of the next page; absent on the last page.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        next: Option<String>,
    }
}

body! { response
    /// A request for a person's data, and the person's answer. It holds no shared or verified value.
    #[derive(Clone)]
    pub struct ConsentEntry {
        /// `verification`, or the name of a check such as `pan` or of a flow such as `doclocker`.
        kind: String,
        /// The id of the transaction or flow, or the correlation id of the check.
        id: String,
        /// The client that requested the data.
        client_id: ClientId,
        /// The app that requested the data.
        app_id: AppId,
        /// The event whose guest the person was, or null.
        event_id: Option<EventId>,
        /// The purpose shown to the person, or null.
        purpose: Option<String>,
        /// The requested claims of a verification, fields of a check, or kinds of documents of a flow.
        asked: Vec<String>,
        /// The language of the pages, or null.
        language: Option<LanguageName>,
        /// SHA-256 of `consent_text` in UTF-8, in hexadecimal; null if the client sent none.
        consent_text_sha256: Option<ConsentDigest>,
        /// The release of the service whose pages the person saw.
        release: String,
        /// The time of the request.
        opened_at: Timestamp,
        /// The time of the person's answer. For a check or a flow: the time at which the client declared the consent.
        answered_at: Timestamp,
        /// `given`, or `not_given` if nothing was shared with the client.
        answer: ConsentAnswer,
        /// The code of the identity app or of this service for the answer `not_given`, also if the event had no free
        /// place; otherwise null.
        code: Option<String>,
    }
}

described! {
    ConsentDigest: { "type": "string", "pattern": "^[0-9a-f]{64}$" }
}
