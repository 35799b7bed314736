//! The order of an e-stamp. Its answer has no members.

use sakshi_domain::flow::estamp::EStampKind;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::flow::request::estamp::{EStampRequest, NamedSignatory};
use sakshi_domain::flow::text::Text;
use serde::Serialize;

use super::{Accepted, OrderContext, Upstream, UpstreamError, to_body};

/// Initial capacity for an order, in addition to the file.
const EXTRA_CAPACITY: usize = 16 * 1_024;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Order<'a> {
    e_stamp_id: FlowId,
    #[serde(flatten)]
    context: OrderContext<'a>,
    api_type: EStampKind,
    document: Document<'a>,
    signatories_info: Vec<Signatory<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    document_name: &'a Text,
    #[serde(rename = "base64FileData")]
    file_data: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Signatory<'a> {
    name: &'a Text,
    #[serde(rename = "emailID")]
    email: &'a Text,
    sign_type: &'a Text,
}

/// Orders an e-stamp. The document is dropped before the wait for the answer.
///
/// # Errors
/// Why the order failed.
pub async fn order(upstream: &Upstream, header: &FlowHeader, request: EStampRequest) -> Result<(), UpstreamError> {
    let body = to_body(
        &Order {
            e_stamp_id: header.id,
            context: OrderContext::of(header),
            api_type: request.kind,
            document: Document { document_name: &request.document_name, file_data: request.document.as_str() },
            signatories_info: request.signatories.iter().map(Signatory::of).collect(),
        },
        request.document.as_str().len() + EXTRA_CAPACITY,
    );
    drop(request);
    let Accepted {} = upstream.send(body).await?;
    Ok(())
}

impl<'a> Signatory<'a> {
    const fn of(signatory: &'a NamedSignatory) -> Self {
        Self { name: &signatory.name, email: &signatory.email, sign_type: &signatory.sign_type }
    }
}
