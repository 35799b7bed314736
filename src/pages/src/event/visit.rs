//! A guest's visit: the browser keeps the id of the transaction that it started, so that coming
//! back continues it instead of paying for another one.

use std::sync::Arc;

use actix_web::HttpRequest;
use actix_web::http::header::COOKIE;
use sakshi_actors::View;
use sakshi_domain::event::Event;
use sakshi_domain::ids::TxnId;
use sakshi_domain::transaction::Pending;
use sakshi_service::Service;
use sakshi_web::error::ApiError;

/// Holds a transaction's id, for the pages of one event only.
const NAME: &str = "sakshi_visit";

/// The value of `Set-Cookie` (RFC 6265 §4.1) for a transaction that was started now.
pub(super) fn remember(service: &Service, event: &Event, txn: TxnId) -> String {
    let secure = if service.authority.public_base.starts_with("https:") { "; Secure" } else { "" };
    let window = service.rules.window.as_secs();
    format!("{NAME}={txn}; Path=/e/{}; Max-Age={window}; HttpOnly; SameSite=Lax{secure}", event.id)
}

/// The transaction that this browser started at this event, while it is pending.
///
/// # Errors
/// When that cannot be told now.
pub(super) async fn recall(service: &Service, request: &HttpRequest, event: &Event) -> Result<Option<Arc<Pending>>, ApiError> {
    let Some(id) = id_in_cookie(request) else { return Ok(None) };
    Ok(match service.transactions.get(id).await? {
        View::Pending(pending) if pending.event == Some(event.id) => Some(pending),
        _ => None,
    })
}

fn id_in_cookie(request: &HttpRequest) -> Option<TxnId> {
    let values = request.headers().get_all(COOKIE).filter_map(|value| value.to_str().ok());
    let mut pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find_map(|(name, value)| (name == NAME).then(|| value.parse().ok()).flatten())
}
