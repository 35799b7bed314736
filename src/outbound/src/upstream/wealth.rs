//! The order of a wealth-data consent, and the handle that answers it.

use sakshi_domain::flow::consent_given::ConsentGiven;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::flow::text::ForeignId;
use serde::{Deserialize, Serialize};

use super::{Origin, PageUrl, Upstream, UpstreamError, written};

#[derive(Serialize)]
struct Order<'a> {
    #[serde(rename = "uniqueIdentifier")]
    unique_identifier: FlowId,
    #[serde(flatten)]
    origin: Origin<'a>,
    consent_text: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    consent_handle: Box<str>,
    request_url: Option<PageUrl>,
}

/// What a consent is asked for under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedConsent {
    /// What the upstream's reports name it by until it has an id.
    pub handle: ForeignId,
    /// Where the person decides, if the upstream has a page for it.
    pub page: Option<PageUrl>,
}

/// Orders that a person be asked for a consent.
///
/// # Errors
/// Why it is not taken.
pub async fn order(upstream: &Upstream, opened: &FlowHeader, consent: &ConsentGiven) -> Result<AskedConsent, UpstreamError> {
    let order = Order { unique_identifier: opened.id, origin: Origin::opening(opened), consent_text: consent.text() };
    let answer: Answer = upstream.ask(written(&order, 0)).await?;
    // A stored id may be of any form that a store wrote; one that arrives is held to its own.
    let handle = answer.consent_handle.parse().map_err(|_| UpstreamError::Unreadable("names a handle that is no id"))?;
    Ok(AskedConsent { handle, page: answer.request_url })
}
