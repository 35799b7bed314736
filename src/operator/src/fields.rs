//! Ids in the paths of the operator's requests.

use std::str::FromStr;

use sakshi_domain::ids::ClientId;
use sakshi_service::ServiceError;
use sakshi_store::Store;
use sakshi_web::error::ApiError;

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
