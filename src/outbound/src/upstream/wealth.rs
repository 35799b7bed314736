//! The order of a wealth-data consent, and the handle that answers it.

use sakshi_domain::flow::consent_given::ConsentGiven;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::flow::text::ForeignId;
use sakshi_wire::PageUrl;
use serde::{Deserialize, Serialize};

use super::{OrderContext, Upstream, UpstreamError, to_body};

#[derive(Serialize)]
struct Order<'a> {
    #[serde(rename = "uniqueIdentifier")]
    unique_identifier: FlowId,
    #[serde(flatten)]
    context: OrderContext<'a>,
    consent_text: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    consent_handle: Box<str>,
    request_url: Option<PageUrl>,
}

/// A consent that the upstream asks the person for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedConsent {
    /// Identifies it in the upstream's reports.
    pub handle: ForeignId,
    /// Where the person decides, if the upstream has such a page.
    pub page: Option<PageUrl>,
}

/// Orders a consent.
///
/// # Errors
/// Why the order failed.
pub async fn order(upstream: &Upstream, header: &FlowHeader, consent: &ConsentGiven) -> Result<AskedConsent, UpstreamError> {
    let order = Order { unique_identifier: header.id, context: OrderContext::of(header), consent_text: consent.text() };
    let answer: Answer = upstream.send(to_body(&order, 0)).await?;
    // Deserialising a `ForeignId` does not check its form, because stored ids are trusted; parsing does.
    let handle = answer.consent_handle.parse().map_err(|_| UpstreamError::Unreadable("names a handle that is no id"))?;
    Ok(AskedConsent { handle, page: answer.request_url })
}
