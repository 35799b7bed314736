//! The use case of verifications that are answered at once: a question to the source. Nothing is opened or debited;
//! only the consent is stored.

use sakshi_domain::checks::Check;
use sakshi_domain::request_id::RequestId;
use sakshi_outbound::upstream::check;
use sakshi_wire::Sent;
use sakshi_wire::checks::{CheckAnswer, CheckRequest};

use crate::authentication::Caller;
use crate::consents::{self, Declared};
use crate::{Service, ServiceError};

/// Verifies a client's request; `adopt` chooses the request's id, given the one in the body. An unknown number is an
/// answer, too.
///
/// # Errors
/// [`ServiceError::NotOffered`] without a source, [`ServiceError::Invalid`], and for an otherwise valid request
/// [`ServiceError::MalformedNumber`]; [`ServiceError::Source`] when the source does not answer.
pub async fn verify(
    service: &Service,
    caller: &Caller,
    check: &'static Check,
    sent: Sent,
    adopt: impl FnOnce(Option<RequestId>) -> RequestId,
) -> Result<CheckAnswer, ServiceError> {
    let source = service.upstreams.checks.get(check.name).ok_or(ServiceError::NotOffered)?;
    let mut asked = CheckRequest::read(check, sent, service.request_context())?;
    let named = asked.request_id.take();
    let query = asked.query().map_err(ServiceError::MalformedNumber)?;
    let request_id = adopt(named);
    if let Some(given) = &query.consent {
        let (client, app, id) = (&caller.client, &caller.app.app_id, request_id.to_string());
        consents::keep(service, Declared { client, app, kind: check.name, id, asked: query.asked(), given }).await?;
    }
    let result = check::verify(source, &caller.client, &query).await.map_err(ServiceError::Source)?;
    metrics::counter!("sakshi_checks_total", "kind" => check.name, "status" => result.status.as_str()).increment(1);
    Ok(CheckAnswer::new(request_id, result))
}
