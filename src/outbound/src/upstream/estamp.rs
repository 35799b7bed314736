//! The order for an e-stamp. The answer has no members.

use sakshi_domain::flow::estamp::EStampKind;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_wire::estamp::{DocumentToStamp, EStampInitRequest, NamedSignatory};
use serde::Serialize;

use super::{FILE_ORDER_BYTES, OrderContext, Upstream, UpstreamError, to_body_with_capacity};

/// The JSON of the order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Order<'a> {
    e_stamp_id: FlowId,
    #[serde(flatten)]
    context: OrderContext<'a>,
    api_type: EStampKind,
    document: &'a DocumentToStamp,
    signatories_info: &'a [NamedSignatory],
}

/// Orders an e-stamp. Frees the memory of the document before the wait for the answer.
///
/// # Errors
/// [`UpstreamError`] when the order failed.
pub async fn order(upstream: &Upstream, header: &FlowHeader, request: EStampInitRequest) -> Result<(), UpstreamError> {
    let body = to_body_with_capacity(
        &Order {
            e_stamp_id: header.id,
            context: OrderContext::new(header),
            api_type: request.api_type,
            document: &request.document,
            signatories_info: &request.signatories_info,
        },
        request.document.file_data.as_str().len() + FILE_ORDER_BYTES,
    );
    drop(request);
    upstream.send(&header.client, body).await.map(drop)
}
