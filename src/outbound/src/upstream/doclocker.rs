//! The order of documents from a locker, and the consent page that answers it.

use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::flow::request::doclocker::DocLockerRequest;
use sakshi_domain::flow::text::Text;
use serde::{Deserialize, Serialize};

use super::{Origin, PageUrl, Upstream, UpstreamError, written};

#[derive(Serialize)]
struct Order<'a> {
    #[serde(rename = "transactionId")]
    transaction_id: FlowId,
    #[serde(flatten)]
    origin: Origin<'a>,
    docs: &'a [Text],
    consent_text: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    request_url: PageUrl,
}

/// Orders documents of a locker; the page is where the person agrees.
///
/// # Errors
/// Why it is not taken.
pub async fn order(upstream: &Upstream, opened: &FlowHeader, request: &DocLockerRequest) -> Result<PageUrl, UpstreamError> {
    let order =
        Order { transaction_id: opened.id, origin: Origin::opening(opened), docs: &request.docs, consent_text: request.consent.text() };
    let answer: Answer = upstream.ask(written(&order, 0)).await?;
    Ok(answer.request_url)
}
