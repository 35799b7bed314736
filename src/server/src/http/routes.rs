//! The one table of the public listener's routes.
//!
//! Tests hold it against the specification and against the OpenAPI document.

use actix_web::http::Method;
use actix_web::web::{self, ServiceConfig};
use actix_web::{HttpResponse, Route};
use serde_json::json;

use super::events::{create, patch, read, registrations};
use super::flows::{doclocker, esign, estamp, wealth};
use super::ovse::{callback, init, qr_intent, result};
use super::routing::resource;
use super::{credits, openapi, pan, polls, webhook_urls};
use crate::pages::event::{show, start};
use crate::pages::{files, kiosk, live, poster, verify};
use crate::portal::events::{codes, list};
use crate::portal::{self, docs, sign_in, transaction, trial, webhooks};

/// Who may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Client backends, with key and app id.
    Clients,
    /// Anybody; documented.
    Anybody,
    /// Browsers and the identity app; not part of the API document.
    Residents,
    /// Browsers of people who write or run a client; not part of the API document either.
    Developers,
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
    /// Without a guard of its own: [`resource`] sets it, which lets `HEAD` in where there is `GET`.
    route: fn() -> Route,
}

const fn row(method: &'static str, path: &'static str, audience: Audience, route: fn() -> Route) -> Row {
    Row { method, path, audience, route }
}

const EVENTS: &str = "/api/v1/nationalid-ovse/events";
const EVENT: &str = "/api/v1/nationalid-ovse/events/{eventId}";

/// Every route of the public listener.
pub const ROUTES: &[Row] = &[
    row("GET", "/api/ping", Audience::Anybody, || web::to(ping)),
    row("POST", "/api/v1/nationalid-ovse/init", Audience::Clients, || web::to(init::init)),
    row("POST", "/api/v1/nationalid-ovse/qr-intent", Audience::Clients, || web::to(qr_intent::qr_intent)),
    row("GET", "/api/v1/nationalid-ovse/result/{txnId}", Audience::Clients, || web::to(result::result)),
    row("POST", EVENTS, Audience::Clients, || web::to(create::create)),
    row("GET", EVENTS, Audience::Clients, || web::to(read::list)),
    row("GET", EVENT, Audience::Clients, || web::to(read::show)),
    row("PATCH", EVENT, Audience::Clients, || web::to(patch::patch)),
    row("GET", "/api/v1/nationalid-ovse/events/{eventId}/registrations", Audience::Clients, || web::to(registrations::list)),
    row("GET", "/api/v1/nationalid-ovse/events/{eventId}/poster", Audience::Clients, || web::to(poster::page)),
    row("GET", "/api/v1/nationalid-ovse/events/{eventId}/poster.svg", Audience::Clients, || web::to(poster::svg)),
    row("GET", "/api/v1/nationalid-ovse/events/{eventId}/qr.svg", Audience::Clients, || web::to(poster::qr_svg)),
    row("GET", "/api/v1/nationalid-ovse/events/{eventId}/qr.png", Audience::Clients, || web::to(poster::qr_png)),
    row("GET", "/api/v1/credits", Audience::Clients, || web::to(credits::balance)),
    row("GET", "/api/v1/credits/statement", Audience::Clients, || web::to(credits::statement)),
    row("POST", "/api/v1/esign/request", Audience::Clients, || web::to(esign::request)),
    row("POST", "/api/v1/doclocker/init", Audience::Clients, || web::to(doclocker::init)),
    row("POST", "/api/v1/estamp/init", Audience::Clients, || web::to(estamp::init)),
    row("POST", "/api/v1/wealth/consents", Audience::Clients, || web::to(wealth::consents)),
    row("POST", "/api/v1/esign/status", Audience::Clients, || web::to(polls::esign::status)),
    row("GET", "/api/v1/doclocker/details/{transactionId}", Audience::Clients, || web::to(polls::doclocker::details)),
    row("POST", "/api/v1/pan/verify", Audience::Clients, || web::to(pan::verify)),
    row("PUT", "/api/v1/user/webhook", Audience::Clients, || web::to(webhook_urls::register)),
    row("GET", "/api/v1/user/webhook", Audience::Clients, || web::to(webhook_urls::list)),
    row("GET", "/openapi.json", Audience::Anybody, || web::to(openapi::document)),
    row("GET", "/docs", Audience::Developers, || web::to(docs::show)),
    row("GET", "/docs/", Audience::Developers, || web::to(docs::enter)),
    row("POST", "/cb/{txnId}/{capability}", Audience::Residents, || web::to(callback::receive)),
    row("GET", "/v/{txnId}", Audience::Residents, || web::to(verify::verify)),
    row("GET", "/v/{txnId}/events", Audience::Residents, || web::to(live::events)),
    row("GET", "/v/{txnId}/status", Audience::Residents, || web::to(live::status)),
    row("GET", "/e/{eventId}", Audience::Residents, || web::to(show::show)),
    row("POST", "/e/{eventId}/start", Audience::Residents, || web::to(start::start)),
    row("GET", "/e/{eventId}/start", Audience::Residents, || web::to(start::back)),
    row("GET", "/e/{eventId}/kiosk", Audience::Residents, || web::to(kiosk::page)),
    row("GET", "/e/{eventId}/kiosk/events", Audience::Residents, || web::to(kiosk::events)),
    row("GET", "/portal", Audience::Developers, || web::to(trial::show)),
    row("GET", "/portal/", Audience::Developers, || web::to(portal::turned::back)),
    row("GET", "/portal/sign-in", Audience::Developers, || web::to(sign_in::show)),
    row("POST", "/portal/sign-in", Audience::Developers, || web::to(sign_in::enter)),
    row("POST", "/portal/sign-out", Audience::Developers, || web::to(sign_in::leave)),
    row("GET", "/portal/sign-out", Audience::Developers, || web::to(portal::turned::back)),
    row("POST", "/portal/trial", Audience::Developers, || web::to(trial::open)),
    row("GET", "/portal/trial", Audience::Developers, || web::to(portal::turned::back)),
    row("GET", "/portal/transactions/{txnId}", Audience::Developers, || web::to(transaction::show)),
    row("GET", "/portal/events", Audience::Developers, || web::to(list::show)),
    row("POST", "/portal/events", Audience::Developers, || web::to(portal::events::create::create)),
    row("GET", "/portal/events/new", Audience::Developers, || web::to(portal::events::create::show)),
    row("GET", "/portal/events/{eventId}", Audience::Developers, || web::to(portal::events::show::show)),
    row("POST", "/portal/events/{eventId}", Audience::Developers, || web::to(portal::events::show::patch)),
    row("GET", "/portal/events/{eventId}/live", Audience::Developers, || web::to(portal::events::live::events)),
    row("GET", "/portal/events/{eventId}/poster", Audience::Developers, || web::to(codes::page)),
    row("GET", "/portal/events/{eventId}/poster.svg", Audience::Developers, || web::to(codes::svg)),
    row("GET", "/portal/events/{eventId}/qr.svg", Audience::Developers, || web::to(codes::qr_svg)),
    row("GET", "/portal/events/{eventId}/qr.png", Audience::Developers, || web::to(codes::qr_png)),
    row("GET", "/portal/webhooks", Audience::Developers, || web::to(webhooks::show)),
    row("POST", "/portal/webhooks", Audience::Developers, || web::to(webhooks::set)),
    row("GET", "/portal/credits", Audience::Developers, || web::to(portal::credits::show)),
    row("GET", "/portal/{page:.*}", Audience::Developers, || web::to(portal::turned::lost)),
    row("GET", "/assets/portal.css", Audience::Developers, || web::to(files::portal_style)),
    row("GET", "/assets/docs.css", Audience::Developers, || web::to(files::docs_style)),
    row("GET", "/assets/portal.js", Audience::Developers, || web::to(files::portal)),
    row("GET", "/assets/page.css", Audience::Residents, || web::to(files::style)),
    row("GET", "/assets/page.js", Audience::Residents, || web::to(files::script)),
    row("GET", "/assets/kiosk.js", Audience::Residents, || web::to(files::kiosk)),
    row("GET", "/assets/poster.css", Audience::Residents, || web::to(files::poster)),
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
#[utoipa::path(get, path = "/api/ping", tag = "Service",
    responses((status = 200, body = super::schema::Pong, description = "The service is there.")))]
pub async fn ping() -> HttpResponse {
    HttpResponse::Ok().json(json!({ "success": true, "message": "pong" }))
}

#[cfg(test)]
mod tests {
    use actix_web::App;
    use actix_web::http::header::ALLOW;
    use actix_web::middleware::from_fn;
    use actix_web::test::{TestRequest, call_service, init_service};

    use super::*;
    use crate::http::request_id::edge;

    #[actix_rt::test]
    async fn a_path_takes_exactly_the_methods_that_its_405_lists() {
        let app = init_service(App::new().wrap(from_fn(edge)).configure(configure)).await;
        for row in ROUTES {
            let ask = |method: &Method| TestRequest::default().method(method.clone()).uri(row.path).to_request();
            let refused = call_service(&app, ask(&Method::TRACE)).await;
            assert_eq!(refused.status(), 405, "{}", row.path);
            let allow = refused.headers().get(ALLOW).unwrap().to_str().unwrap().to_owned();
            for method in [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
                let taken = call_service(&app, ask(&method)).await.status() != 405;
                assert_eq!(taken, allow.split(", ").any(|listed| listed == method.as_str()), "{method} {} lists {allow}", row.path);
            }
        }
    }
}
