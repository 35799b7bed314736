//! Fields of the operator's requests, and ids in their paths.

use sakshi_domain::ids::ClientId;
use sakshi_domain::limits::LABEL_CHARS_MAX;
use sakshi_service::error::ServiceError;
use sakshi_store::Store;
use sakshi_web::body::Body;
use sakshi_web::error::ApiError;
use sakshi_web::fields::{Problem, string, words};
use sakshi_web::json::Json;
use std::str::FromStr;

/// The id in a path; text that cannot be one names nothing.
pub(super) fn id<T: FromStr>(text: &str, what: &'static str) -> Result<T, ApiError> {
    text.parse().map_err(|_| ApiError::Service(ServiceError::NotFound(what)))
}

/// The client in a path, if it exists.
pub(super) async fn known_client(store: &dyn Store, text: &str) -> Result<(ClientId, u64), ApiError> {
    let client: ClientId = id(text, "client")?;
    let balance = store.balance(client.clone()).await?;
    balance.map(|balance| (client, balance)).ok_or(ApiError::Service(ServiceError::NotFound("client")))
}

/// What the operator calls something: 1 to 100 characters, none of them a control character.
///
/// # Errors
/// The bounds.
pub(super) fn label(value: &Json) -> Result<String, Problem> {
    words(LABEL_CHARS_MAX)(&Json::Text(string(value)?.trim().to_owned()))
}

/// The one field of a request that creates something with a name.
pub(super) fn name(body: Body) -> Result<String, ApiError> {
    let mut fields = body.fields;
    let name = fields.required("name", label);
    fields.finish(name)
}
