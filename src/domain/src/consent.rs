//! The register of consents: each request for a person's data, with its purpose, its time and the person's answer. It
//! contains no values of claims and no verified numbers.

use serde::{Deserialize, Serialize};

use crate::claims::{Claim, ClaimSet};
use crate::flow::consent_given::ConsentDigest;
use crate::ids::{AppId, EventId};
use crate::language::Language;
use crate::string_enum::string_enum;
use crate::time::Timestamp;
use crate::transaction::Pending;

/// The release of this service.
const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// The kind of an entry about a transaction. Other entries have the name of a check or flow.
const VERIFICATION: &str = "verification";

string_enum!(
    /// The answer of the person.
    ConsentAnswer {
        /// The person agreed, and the requested data was shared or fetched.
        Given = "given",
        /// The client got nothing: the person refused, was not recognised, or withheld a claim.
        NotGiven = "not_given",
    }
);

/// An entry of the register. The client and the time of the answer are stored separately.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consent {
    /// `verification`, or the name of the check or flow.
    pub kind: String,
    /// The id of the transaction or flow, or the correlation id of the check.
    pub id: String,
    /// The requesting app.
    pub app: AppId,
    /// The event whose guest the person was.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub event: Option<EventId>,
    /// The purpose shown to the person.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub purpose: Option<String>,
    /// The requested claims, or the requested fields of the check.
    #[serde(rename = "asked")]
    pub requested: Vec<String>,
    /// The language of the pages.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub language: Option<Language>,
    /// The digest of the declaration, if the client sent one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub text: Option<ConsentDigest>,
    /// The release of the service whose pages the person saw.
    pub release: String,
    /// Time of the request.
    pub opened_at: Timestamp,
    /// The answer of the person.
    pub answer: ConsentAnswer,
    /// Code of the identity app, or of this service, for the answer `not_given`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub code: Option<String>,
}

impl Consent {
    /// Builds the entry of an ended verification; `code` says why nothing was shared.
    #[must_use]
    pub fn of_verification(opened: &Pending, is_given: bool, code: Option<String>) -> Self {
        Self {
            kind: VERIFICATION.to_owned(),
            id: opened.id.to_string(),
            app: opened.app.clone(),
            event: opened.event,
            purpose: opened.terms.purpose().map(str::to_owned),
            requested: claim_names(opened.terms.claims),
            language: Some(opened.terms.language),
            text: opened.terms.extras.as_ref().and_then(|extras| extras.consent_text),
            release: RELEASE.to_owned(),
            opened_at: opened.opened_at,
            answer: if is_given { ConsentAnswer::Given } else { ConsentAnswer::NotGiven },
            code,
        }
    }

    /// Builds the entry of a check or a flow: the client states that the person agreed to the declaration with this
    /// digest.
    #[must_use]
    pub fn declared(
        kind: &str,
        id: String,
        app: AppId,
        requested: Vec<String>,
        text: ConsentDigest,
        requested_at: Timestamp,
    ) -> Self {
        Self {
            kind: kind.to_owned(),
            id,
            app,
            event: None,
            purpose: None,
            requested,
            language: None,
            text: Some(text),
            release: RELEASE.to_owned(),
            opened_at: requested_at,
            answer: ConsentAnswer::Given,
            code: None,
        }
    }
}

fn claim_names(claims: ClaimSet) -> Vec<String> {
    claims.iter().map(Claim::name).map(str::to_owned).collect()
}
