//! The use case of PANs: a question to the source, answered at once. Nothing is opened, kept or debited.

use sakshi_domain::pan::PanQuery;
use sakshi_domain::request_id::RequestId;
use sakshi_outbound::upstream::{Upstream, pan};
use sakshi_wire::pan::PanAnswer;

use crate::error::ServiceError;

/// Verifies a PAN. That it is not known is an answer, too.
///
/// # Errors
/// [`ServiceError::Source`] when the source does not answer.
pub async fn verify_pan(source: &Upstream, query: &PanQuery, request_id: RequestId) -> Result<PanAnswer, ServiceError> {
    let result = pan::verify(source, query).await.map_err(ServiceError::Source)?;
    metrics::counter!("sakshi_pan_verifications_total", "status" => result.status.as_str()).increment(1);
    Ok(PanAnswer::new(request_id, result))
}
