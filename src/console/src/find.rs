//! `/console/find`: the search box for ids of any kind.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::{AppId, ClientId, EventId, KeyId, TxnId};
use sakshi_domain::request_id::RequestId;
use sakshi_operator::console_api::find_refused;
use sakshi_web::html::redirect;
use sakshi_web::query::Query;

use crate::cell::encode;
use crate::error::ConsoleError;
use crate::layout::Section;
use crate::staff::Staff;
use crate::view::{Part, View};

/// Redirects to the page of an id.
///
/// # Errors
/// [`ConsoleError::SignIn`] without a session; any error of the store.
pub(crate) async fn find(staff: Staff, request: HttpRequest) -> Result<HttpResponse, ConsoleError> {
    let mut query = Query::parse(request.query_string());
    let id = query.text("id").unwrap_or_default();
    query.finish()?;
    if let Some(path) = find_page(&staff, &id).await? {
        return Ok(redirect(&path));
    }
    let words = "It may be mistyped, erased, or deleted: a transaction is deleted with its result, a refused request \
        after a day. The errorId of an accepted request is only in the log. A client’s own reference can be searched \
        on the page of the client’s verifications.";
    let view = View::new(&staff, Some(Section::Front), "Nothing found").search_text(&id);
    Ok(view.part(Part::new("nothing", "No page has this id").words(words)).respond(StatusCode::NOT_FOUND))
}

/// Returns the path of the page for an id. The prefix of an id decides nothing, because other installations may use
/// other forms.
async fn find_page(staff: &Staff, id: &str) -> Result<Option<String>, ConsoleError> {
    let store = &staff.api.store;
    let path_in = |folder: &str| Ok(Some(format!("/console/{folder}/{id}")));
    if let Ok(txn) = id.parse::<TxnId>()
        && store.load_transaction(txn).await?.is_some()
    {
        return path_in("transactions");
    }
    if let Ok(flow) = id.parse::<FlowId>()
        && store.flow_deliveries(flow).await?.is_some()
    {
        return path_in("flows");
    }
    if let Ok(event) = id.parse::<EventId>()
        && store.load_event(event).await?.is_some()
    {
        return path_in("events");
    }
    if let Ok(client) = id.parse::<ClientId>()
        && store.load_client(client).await?.is_some()
    {
        return path_in("clients");
    }
    if let Ok(app) = id.parse::<AppId>()
        && store.load_app(app).await?.is_some()
    {
        return path_in("apps");
    }
    if let Ok(key) = id.parse::<KeyId>()
        && store.load_key(key).await?.is_some()
    {
        return path_in("keys");
    }
    if store.operators().await?.iter().any(|operator| operator.operator_id.as_str() == id) {
        return Ok(Some("/console/operators".to_owned()));
    }
    if store.grant_requests().await?.iter().any(|grant| grant.id.as_str() == id) {
        return Ok(Some("/console".to_owned()));
    }
    match RequestId::parse(id) {
        Ok(request) if !find_refused(store, &request).await?.is_empty() => {
            Ok(Some(format!("/console/requests/{}", encode(id))))
        }
        _ => Ok(None),
    }
}
