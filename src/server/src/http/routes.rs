//! The one table of the public listener's routes.
//!
//! Tests hold it against the specification and against the OpenAPI document.

use actix_web::http::Method;
use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpResponse, Route};
use serde_json::json;

use super::ovse::{callback, init, qr_intent, result};
use super::routing::resource;

/// Who may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Client backends, with key and app id.
    Clients,
    /// Anybody; documented.
    Anybody,
    /// Browsers and the identity app; not part of the API document.
    Residents,
}

/// One method of one path.
#[derive(Clone, Copy)]
pub struct Row {
    /// The method.
    pub method: &'static str,
    /// The path's pattern.
    pub path: &'static str,
    /// Who may use it.
    pub audience: Audience,
    route: fn() -> Route,
}

const fn row(method: &'static str, path: &'static str, audience: Audience, route: fn() -> Route) -> Row {
    Row { method, path, audience, route }
}

/// Every route of the public listener.
pub const ROUTES: &[Row] = &[
    row("GET", "/api/ping", Audience::Anybody, || web::to(ping)),
    row("POST", "/api/v1/nationalid-ovse/init", Audience::Clients, || web::to(init::init)),
    row("POST", "/api/v1/nationalid-ovse/qr-intent", Audience::Clients, || web::to(qr_intent::qr_intent)),
    row("GET", "/api/v1/nationalid-ovse/result/{txnId}", Audience::Clients, || web::to(result::result)),
    row("POST", "/cb/{txnId}/{capability}", Audience::Residents, || web::to(callback::receive)),
];

/// Declares every route.
pub fn configure(config: &mut ServiceConfig) {
    let mut paths: Vec<&'static str> = ROUTES.iter().map(|row| row.path).collect();
    paths.dedup();
    for path in paths {
        let of_path = ROUTES.iter().filter(|row| row.path == path);
        let routes = of_path.filter_map(|row| Some((Method::from_bytes(row.method.as_bytes()).ok()?, (row.route)()))).collect();
        config.service(resource(path, routes));
    }
}

/// Says that the service is there; asks nobody else.
#[utoipa::path(get, path = "/api/ping", tag = "Health", responses((status = 200, description = "The service is there.")))]
pub async fn ping() -> HttpResponse {
    HttpResponse::Ok().json(json!({ "success": true, "message": "pong" }))
}
