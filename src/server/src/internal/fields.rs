//! Fields of the operator's requests, and ids in their paths.

use std::str::FromStr;

use sakshi_domain::ids::ClientId;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::limits::{CLIENT_REFERENCE_CHARS_MAX, LABEL_CHARS_MAX};
use sakshi_store::Store;
use serde::{Deserialize, Deserializer};

use crate::http::error::ApiError;

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
pub(super) fn label(invalid: &mut Invalid, field: &str, text: Option<String>) -> Option<String> {
    let text = text.map(|text| text.trim().to_owned()).unwrap_or_default();
    let good = (1..=LABEL_CHARS_MAX).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    invalid.check(field, good.then_some(text).ok_or("must be 1 to 100 characters without control characters"))
}

/// What makes a credit movement unique: 1 to 128 characters, none of them a control character.
pub(super) fn reference(invalid: &mut Invalid, text: Option<String>) -> Option<String> {
    let text = text.unwrap_or_default();
    let good = (1..=CLIENT_REFERENCE_CHARS_MAX).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    invalid.check("reference", good.then_some(text).ok_or("must be 1 to 128 characters without control characters"))
}

/// Tells `null` from absent.
pub(super) fn nullable<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// What is left when the fields are good and the values were not all there: never seen by a caller.
pub(super) fn incomplete() -> ApiError {
    ApiError::Internal("a field without a value passed its checks".to_owned())
}
