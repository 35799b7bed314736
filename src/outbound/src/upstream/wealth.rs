//! The order of a wealth-data consent, and the handle that answers it.

use sakshi_domain::flow::consent_given::ConsentGiven;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::flow::text::ForeignId;
use sakshi_wire::PageUrl;
use serde::Serialize;

use super::answer::Answer;
use super::{OrderContext, Upstream, UpstreamError, to_body};

#[derive(Serialize)]
struct Order<'a> {
    #[serde(rename = "uniqueIdentifier")]
    unique_identifier: FlowId,
    #[serde(flatten)]
    context: OrderContext<'a>,
    consent_text: &'a str,
}

/// A consent that the upstream asks the person for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedConsent {
    /// Id of the consent in the upstream's reports.
    pub handle: ForeignId,
    /// Page where the person decides, if the upstream has one.
    pub page: Option<PageUrl>,
}

/// Orders a consent.
///
/// # Errors
/// The reason why the order failed.
pub async fn order(
    upstream: &Upstream,
    header: &FlowHeader,
    consent: &ConsentGiven,
) -> Result<AskedConsent, UpstreamError> {
    let order = Order { unique_identifier: header.id, context: OrderContext::of(header), consent_text: consent.text() };
    asked(upstream.send(&header.client, to_body(&order, 0)).await?)
}

/// Reads the consent from an answer.
pub(super) fn asked(mut answer: Answer) -> Result<AskedConsent, UpstreamError> {
    Ok(AskedConsent {
        handle: answer.text("consentHandle", str::parse)?,
        page: answer.optional_text("requestUrl", PageUrl::parse)?,
    })
}
