//! Fields of the operator's requests, and ids in their paths.

use std::str::FromStr;

use sakshi_domain::ids::ClientId;
use sakshi_domain::limits::LABEL_CHARS_MAX;
use sakshi_store::Store;

use crate::http::body::Body;
use crate::http::error::ApiError;
use crate::http::fields::{Problem, string, words};
use crate::http::json::Json;

/// The id in a path; text that cannot be one names nothing.
pub(super) fn id<T: FromStr>(text: &str, what: &'static str) -> Result<T, ApiError> {
    text.parse().map_err(|_| ApiError::NotFound(what))
}

/// The client in a path, if it exists.
pub(super) async fn known_client(store: &dyn Store, text: &str) -> Result<(ClientId, u64), ApiError> {
    let client: ClientId = id(text, "client")?;
    let balance = store.balance(client.clone()).await?;
    balance.map(|balance| (client, balance)).ok_or(ApiError::NotFound("client"))
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
