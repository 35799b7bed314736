//! Wealth data: a consent, and what becomes available under it (specification, "Wealth-data … webhook").

use sakshi_domain::request_id::RequestId;

use crate::body::body;
use crate::consent::Consent;

body! { request
    /// The person's consent to being asked.
    #[derive(Clone, PartialEq)]
    pub struct WealthConsentRequest {
        /// The person's consent.
        #[serde(flatten)]
        consent: Consent,
        /// The correlation id, when it is not sent as `X-Request-ID`.
        request_id: Option<RequestId>,
    }
}
