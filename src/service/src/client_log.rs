//! The log of a client: actions of its users, its keys and operators. Entries are kept for `CLIENT_LOG_MONTHS`.

use sakshi_domain::client_log::{Action, Actor, LogEntry, LogFilter, Subject};
use sakshi_domain::ids::ClientId;
use sakshi_domain::request_id::RequestId;
use sakshi_store::{LogPage, LogPosition, LogQuery};

use crate::{Service, ServiceError};

/// Appends an entry with the current time. To be called before an action that cannot be repeated, or that shows
/// something once or to somebody, and otherwise after a change, so that refused changes have none.
///
/// # Errors
/// Any error of the store.
pub async fn append(
    service: &Service,
    client: &ClientId,
    actor: Actor,
    action: Action,
    subjects: Vec<Subject>,
    request_id: RequestId,
) -> Result<(), ServiceError> {
    let entry = LogEntry { at: service.clock.now(), actor, action, subjects, request_id };
    Ok(service.store.append_client_log(client.clone(), entry).await?)
}

/// Lists entries before a position, newest first.
///
/// # Errors
/// Any error of the store.
pub async fn list(
    service: &Service,
    client: ClientId,
    filter: LogFilter,
    before: Option<LogPosition>,
    limit: u32,
) -> Result<LogPage, ServiceError> {
    let now = service.clock.now();
    Ok(service.store.client_log(LogQuery { client, filter, before, limit, now }).await?)
}
