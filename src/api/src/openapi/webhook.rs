//! The webhooks in the document: requests that this service sends to a client.

use sakshi_domain::tenancy::KeyCase;
use serde_json::{Value, json};

use super::{examples, flow_examples};

/// Sentences about the delivery, in the description of every webhook.
const DELIVERY: &str = "Sent at most once: there is no retry. It carries no authentication and no signature. Return \
    any 2xx within a few seconds; the body is ignored, and redirects are not followed.";
/// Sentence of a webhook whose body no operation returns.
const WITHOUT_POLL: &str =
    "It cannot be polled: keep the receiver available, and put a secret into the path of its URL.";

/// A webhook of the document.
struct Webhook {
    name: &'static str,
    /// Its `operationId`.
    operation: &'static str,
    summary: &'static str,
    /// Sentences about the receiver, and about the time of sending.
    target: &'static str,
    /// Operation that returns the same body, if any.
    poll: Option<&'static str>,
    /// Name of the schema of its body.
    schema: &'static str,
    examples: fn(KeyCase) -> Value,
}

const WEBHOOKS: [Webhook; 7] = [
    Webhook {
        name: "ovse",
        operation: "onOvse",
        summary: "Verification completed",
        target: "Goes to the `webhook_url` of the transaction, or else to that of its event. An expired transaction \
            sends nothing.",
        poll: Some("getResult"),
        schema: "OvseOutcome",
        examples: examples::outcomes,
    },
    Webhook {
        name: "esign",
        operation: "onEsign",
        summary: "Document ended",
        target: "Goes to the `responseUrl` of the request, or else to the URL registered for `ESign`, when the \
            document was completed, rejected or expired.",
        poll: Some("getEsignStatus"),
        schema: "EsignOutcome",
        examples: |_| flow_examples::esign_outcomes(),
    },
    Webhook {
        name: "doclocker",
        operation: "onDocLocker",
        summary: "Locker documents fetched",
        target: "Goes to the URL registered for `DocLocker`, when no further document is expected.",
        poll: Some("getDocLockerDetails"),
        schema: "DocLockerOutcome",
        examples: |_| flow_examples::doclocker_outcomes(),
    },
    Webhook {
        name: "estamp",
        operation: "onEStamp",
        summary: "E-stamp ended",
        target: "Goes to the URL registered for `RegistryEStamp` or `PhysicalEStamp`, the `apiType` of the request, \
            when the e-stamp was completed, rejected or expired.",
        poll: None,
        schema: "EStampOutcome",
        examples: |_| flow_examples::estamp_outcomes(),
    },
    Webhook {
        name: "wealth_consent",
        operation: "onWealthConsent",
        summary: "Wealth consent changed",
        target: "Goes to the consent URL set by the operator, once for each status.",
        poll: None,
        schema: "WealthConsentChange",
        examples: |_| flow_examples::wealth_consents(),
    },
    Webhook {
        name: "wealth_data",
        operation: "onWealthData",
        summary: "Wealth data ready",
        target: "Goes to the data URL set by the operator, once for raw and once for analysed data, also when \
            fetching failed.",
        poll: None,
        schema: "WealthDataNotice",
        examples: |_| flow_examples::wealth_data(),
    },
    Webhook {
        name: "wealth_historical",
        operation: "onWealthHistorical",
        summary: "Historical wealth data ready",
        target: "Goes to the URL for historical data set by the operator.",
        poll: None,
        schema: "WealthHistoricalNotice",
        examples: |_| flow_examples::wealth_historical(),
    },
];

/// Builds the `webhooks` of the document.
pub(super) fn describe(spelling: KeyCase) -> Value {
    WEBHOOKS.iter().map(|webhook| (webhook.name, webhook.describe(spelling))).collect()
}

impl Webhook {
    /// Builds the path item of the webhook.
    fn describe(&self, spelling: KeyCase) -> Value {
        let poll = self.poll.map_or_else(
            || WITHOUT_POLL.to_owned(),
            |poll| {
                format!(
                    "If it does not arrive, poll `{poll}`, which returns the same body. Also poll before you rely on \
                    a webhook."
                )
            },
        );
        json!({ "post": {
            "tags": ["Webhooks"],
            "operationId": self.operation,
            "summary": self.summary,
            "description": format!("{} {DELIVERY} {poll}", self.target),
            // Generators of servers expect an extension in every operation of a webhook.
            "x-delivery": "at-most-once",
            "security": [],
            "requestBody": { "required": true, "content": { "application/json": {
                "schema": { "$ref": format!("#/components/schemas/{}", self.schema) },
                "examples": (self.examples)(spelling),
            } } },
            "responses": {
                "2XX": { "description": "Delivered; the body is ignored." },
                "default": { "description": "Lost: the webhook is not sent again." },
            },
        } })
    }
}
