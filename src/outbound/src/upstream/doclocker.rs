//! The order for documents from a locker. The answer names the page where the person agrees.

use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::flow::text::Text;
use sakshi_wire::PageUrl;
use sakshi_wire::doclocker::DocLockerInitRequest;
use serde::Serialize;

use super::answer::Answer;
use super::{OrderContext, Upstream, UpstreamError, to_body};

/// The JSON of the order.
#[derive(Serialize)]
struct Order<'a> {
    #[serde(rename = "transactionId")]
    transaction_id: FlowId,
    #[serde(flatten)]
    context: OrderContext<'a>,
    docs: &'a [Text],
    consent_text: &'a str,
}

/// Orders documents from a locker and returns the page where the person agrees.
///
/// # Errors
/// [`UpstreamError`] when the order failed.
pub async fn order(
    upstream: &Upstream,
    header: &FlowHeader,
    request: &DocLockerInitRequest,
) -> Result<PageUrl, UpstreamError> {
    let order = Order {
        transaction_id: header.id,
        context: OrderContext::new(header),
        docs: &request.docs.0,
        consent_text: request.consent.0.text(),
    };
    read_page(upstream.send(&header.client, to_body(&order)).await?)
}

/// Reads the page from an answer.
pub(super) fn read_page(mut answer: Answer) -> Result<PageUrl, UpstreamError> {
    answer.take_text("requestUrl", PageUrl::parse)
}
