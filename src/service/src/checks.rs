//! The use case of synchronous verifications: a question to the source. Nothing is opened or debited; only the consent
//! is stored.

use sakshi_domain::checks::Check;
use sakshi_domain::request_id::RequestId;
use sakshi_outbound::upstream::check;
use sakshi_wire::ReceivedObject;
use sakshi_wire::checks::{CheckAnswer, CheckRequest};

use crate::authentication::Caller;
use crate::consents::{self, ConsentDeclaration};
use crate::{Service, ServiceError};

/// Verifies a client's request; `choose_id` chooses the request's id, given the id in the body. "Not found" is a valid
/// answer.
///
/// # Errors
/// [`ServiceError::NotOffered`] without a source; [`ServiceError::Invalid`], or [`ServiceError::MalformedNumber`] for
/// an otherwise valid request; [`ServiceError::Source`] when the source does not answer.
pub async fn verify(
    service: &Service,
    caller: &Caller,
    check: &'static Check,
    body: ReceivedObject,
    choose_id: impl FnOnce(Option<RequestId>) -> RequestId,
) -> Result<CheckAnswer, ServiceError> {
    let source = service.upstreams.checks.get(check.name).ok_or(ServiceError::NotOffered)?;
    let mut request = CheckRequest::read(check, body, service.request_context())?;
    let id_in_body = request.request_id.take();
    let query = request.query().map_err(ServiceError::MalformedNumber)?;
    let request_id = choose_id(id_in_body);
    if let Some(consent) = &query.consent {
        let (client, app, id) = (&caller.client, &caller.app.app_id, request_id.to_string());
        let details = query.compared_fields();
        let declaration = ConsentDeclaration { client, app, kind: check.name, id, details, consent };
        consents::store_consent(service, declaration).await?;
    }
    let result = check::verify(source, &caller.client, &query).await.map_err(ServiceError::Source)?;
    metrics::counter!("sakshi_checks_total", "kind" => check.name, "status" => result.status.as_str()).increment(1);
    Ok(CheckAnswer::new(request_id, result))
}
