//! The order for signatures on a document. The answer names a page for each signer.

use std::convert::Infallible;

use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::flow::text::{ForeignId, Text};
use sakshi_domain::time::Timestamp;
use sakshi_wire::PageUrl;
use sakshi_wire::esign::{EsignOutcome, EsignSigner, SourceDocument};
use serde::Serialize;

use super::answer::Answer;
use super::{FILE_ORDER_BYTES, OrderContext, Upstream, UpstreamError, to_body_with_capacity};

/// The JSON of the order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Order<'a> {
    document_id: FlowId,
    #[serde(flatten)]
    context: OrderContext<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    document_reference_id: Option<&'a Text>,
    document: &'a SourceDocument,
    signer_info: Vec<InvitedSigner<'a>>,
}

/// A signer in the order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InvitedSigner<'a> {
    signer_id: &'a ForeignId,
    #[serde(skip_serializing_if = "Option::is_none")]
    signer_ref_id: Option<&'a Text>,
    signer_name: &'a Text,
    invitation_expire_time_stamp: Timestamp,
}

/// Orders signatures on a document from the signers in `latest`, the first state of the flow. Returns the signers'
/// pages in the order of the signers. Frees the memory of the document before the wait for the answer.
///
/// # Errors
/// [`UpstreamError`] when the order failed, or the answer does not name every signer once.
pub async fn order(
    upstream: &Upstream,
    header: &FlowHeader,
    document: SourceDocument,
    latest: &EsignOutcome,
) -> Result<Vec<PageUrl>, UpstreamError> {
    let body = to_body_with_capacity(
        &Order {
            document_id: header.id,
            context: OrderContext::new(header),
            document_reference_id: latest.document_reference_id.0.as_ref(),
            document: &document,
            signer_info: latest.signer_info.iter().map(InvitedSigner::new).collect(),
        },
        document.content.as_str().len() + FILE_ORDER_BYTES,
    );
    drop(document);
    read_pages(upstream.send(&header.client, body).await?, latest)
}

/// Reads the page of each signer from an answer. Returns the pages in the order of the signers in `latest`.
pub(super) fn read_pages(mut answer: Answer, latest: &EsignOutcome) -> Result<Vec<PageUrl>, UpstreamError> {
    let entries = answer.take_objects("signerInfo")?;
    let ids_and_pages = entries.into_iter().map(|mut entry| {
        Ok((
            entry.take_text("signerId", |id| Ok::<_, Infallible>(id.to_owned()))?,
            entry.take_text("signingUrl", PageUrl::parse)?,
        ))
    });
    let mut unassigned: Vec<(String, PageUrl)> = ids_and_pages.collect::<Result<_, UpstreamError>>()?;
    let mut take_page = |signer: &EsignSigner| {
        let index = unassigned.iter().position(|(id, _)| id == signer.signer_id.as_str())?;
        let (_, page) = unassigned.swap_remove(index);
        Some(page)
    };
    let pages: Option<Vec<PageUrl>> = latest.signer_info.iter().map(&mut take_page).collect();
    pages.filter(|_| unassigned.is_empty()).ok_or(UpstreamError::Unreadable("does not name every signer once"))
}

impl<'a> InvitedSigner<'a> {
    fn new(signer: &'a EsignSigner) -> Self {
        Self {
            signer_id: &signer.signer_id,
            signer_ref_id: signer.signer_ref_id.0.as_ref(),
            signer_name: &signer.signer_name,
            invitation_expire_time_stamp: signer.invitation_expire_time_stamp,
        }
    }
}
