//! `/admin/v1/apps/{app_id}/events`: an app's events and how many guests they have had.

use actix_web::{HttpRequest, HttpResponse, web};
use sakshi_domain::event::Event;
use sakshi_domain::ids::AppId;
use sakshi_domain::time::Timestamp;
use sakshi_service::error::ServiceError;
use sakshi_web::error::ApiError;
use sakshi_web::query::page_of;
use serde_json::{Value, json};

use super::bearer::Operator;
use super::fields;

pub(super) async fn list(operator: Operator, path: web::Path<String>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let Operator(deps) = operator;
    let page = page_of(request.query_string())?;
    let app: AppId = fields::id(&path, "app")?;
    deps.store.load_app(app.clone()).await?.ok_or(ServiceError::NotFound("app"))?;
    let found = deps.store.list_events(app, page).await?;
    let now = deps.clock.now();
    let events: Vec<Value> = found.items.iter().map(|event| row(event, now)).collect();
    Ok(HttpResponse::Ok().json(json!({ "page": page.page, "page_size": page.page_size, "total": found.total, "events": events })))
}

fn row(event: &Event, now: Timestamp) -> Value {
    json!({ "event_id": event.id, "name": event.terms.name.as_str(), "status": event.status(now).as_str(),
        "max_guests": event.terms.max_guests.get(), "registrations": event.counts.registrations, "scans": event.counts.scans,
        "abandoned": event.counts.abandoned, "created_at": event.created_at, "expires_at": event.terms.expires_at })
}
