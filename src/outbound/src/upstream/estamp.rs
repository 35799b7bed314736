//! The order of an e-stamp; nothing is asked back but that it was taken.

use sakshi_domain::flow::estamp::EStampKind;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::flow::request::estamp::{EStampRequest, NamedSignatory};
use sakshi_domain::flow::text::Text;
use serde::Serialize;

use super::{Origin, Taken, Upstream, UpstreamError, written};

/// Bytes of an order beside the file, to begin with.
const BESIDE_THE_FILE: usize = 16 * 1_024;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Order<'a> {
    e_stamp_id: FlowId,
    #[serde(flatten)]
    origin: Origin<'a>,
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

/// Orders an e-stamp; the document is let go before the answer is waited for.
///
/// # Errors
/// Why it is not taken.
pub async fn order(upstream: &Upstream, opened: &FlowHeader, request: EStampRequest) -> Result<(), UpstreamError> {
    let body = written(
        &Order {
            e_stamp_id: opened.id,
            origin: Origin::opening(opened),
            api_type: request.kind,
            document: Document { document_name: &request.document_name, file_data: request.document.as_str() },
            signatories_info: request.signatories.iter().map(Signatory::of).collect(),
        },
        request.document.as_str().len() + BESIDE_THE_FILE,
    );
    drop(request);
    let Taken {} = upstream.ask(body).await?;
    Ok(())
}

impl<'a> Signatory<'a> {
    const fn of(signatory: &'a NamedSignatory) -> Self {
        Self { name: &signatory.name, email: &signatory.email, sign_type: &signatory.sign_type }
    }
}
