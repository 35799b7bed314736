//! The order for a consent to share wealth data. The answer has the handle of the consent.

use sakshi_domain::flow::consent_given::ConsentGiven;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::flow::text::ForeignId;
use sakshi_wire::PageUrl;
use serde::Serialize;

use super::answer::Answer;
use super::{OrderContext, Upstream, UpstreamError, to_body};

/// The JSON of the order.
#[derive(Serialize)]
struct Order<'a> {
    #[serde(rename = "uniqueIdentifier")]
    unique_identifier: FlowId,
    #[serde(flatten)]
    context: OrderContext<'a>,
    consent_text: &'a str,
}

/// A consent that the upstream requests from the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedConsent {
    /// Id of the consent in the upstream's reports.
    pub handle: ForeignId,
    /// Page where the person decides, if the upstream has one.
    pub page: Option<PageUrl>,
}

/// Orders a consent and returns its handle.
///
/// # Errors
/// [`UpstreamError`] when the order failed.
pub async fn order(
    upstream: &Upstream,
    header: &FlowHeader,
    consent: &ConsentGiven,
) -> Result<RequestedConsent, UpstreamError> {
    let order =
        Order { unique_identifier: header.id, context: OrderContext::new(header), consent_text: consent.text() };
    read_consent(upstream.send(&header.client, to_body(&order)).await?)
}

/// Reads the consent from an answer.
pub(super) fn read_consent(mut answer: Answer) -> Result<RequestedConsent, UpstreamError> {
    Ok(RequestedConsent {
        handle: answer.take_text("consentHandle", str::parse)?,
        page: answer.take_optional_text("requestUrl", PageUrl::parse)?,
    })
}
