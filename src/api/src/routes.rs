//! The routes of the API.

use actix_web::web;
use sakshi_domain::checks::CHECKS;
use sakshi_web::routing::{Audience, Row, row};

use super::events::{doors, registrations};
use super::flows::{doclocker, esign, estamp, wealth};
use super::{checks, credits, events, intent_keys, openapi, ovse, ping, status, webhook_urls};

pub(crate) const EVENTS: &str = "/api/v1/nationalid-ovse/events";
pub(crate) const EVENT: &str = "/api/v1/nationalid-ovse/events/{eventId}";

/// All routes of the API, with a route for each kind of synchronous verification.
pub const ROUTES: &[Row] = &{
    let mut routes = [FIXED_ROUTES[0]; FIXED_ROUTES.len() + CHECKS.len()];
    let mut index = 1;
    while index < routes.len() {
        routes[index] = match index.checked_sub(FIXED_ROUTES.len()) {
            None => FIXED_ROUTES[index],
            Some(check_index) => row("POST", CHECKS[check_index].path, Audience::Clients, || web::to(checks::verify)),
        };
        index += 1;
    }
    routes
};

/// The routes besides the checks.
const FIXED_ROUTES: &[Row] = &[
    row("GET", "/api/ping", Audience::Anybody, || web::to(ping::ping)),
    row("POST", "/api/v1/nationalid-ovse/init", Audience::Clients, || web::to(ovse::init)),
    row("POST", "/api/v1/nationalid-ovse/qr-intent", Audience::Clients, || web::to(ovse::qr_intent)),
    row("GET", "/api/v1/nationalid-ovse/result/{txnId}", Audience::Clients, || web::to(ovse::result)),
    row("GET", "/api/v1/nationalid-ovse/result/{txnId}/evidence", Audience::Clients, || web::to(ovse::evidence)),
    row("GET", "/api/v1/nationalid-ovse/transactions", Audience::Clients, || web::to(ovse::list::transactions)),
    row("POST", EVENTS, Audience::Clients, || web::to(events::create)),
    row("GET", EVENTS, Audience::Clients, || web::to(events::list)),
    row("GET", EVENT, Audience::Clients, || web::to(events::show)),
    row("PATCH", EVENT, Audience::Clients, || web::to(events::patch)),
    row("GET", "/api/v1/nationalid-ovse/events/{eventId}/registrations", Audience::Clients, || {
        web::to(registrations::list)
    }),
    row("POST", "/api/v1/nationalid-ovse/events/{eventId}/doors", Audience::Clients, || web::to(doors::create)),
    row("GET", "/api/v1/nationalid-ovse/events/{eventId}/doors", Audience::Clients, || web::to(doors::list)),
    row("DELETE", "/api/v1/nationalid-ovse/events/{eventId}/doors/{doorId}", Audience::Clients, || {
        web::to(doors::close)
    }),
    row("POST", "/api/v1/nationalid-ovse/events/{eventId}/check-ins", Audience::Clients, || web::to(doors::check_in)),
    row("GET", "/api/v1/credits", Audience::Clients, || web::to(credits::balance)),
    row("GET", "/api/v1/credits/statement", Audience::Clients, || web::to(credits::statement)),
    row("POST", "/api/v1/esign/request", Audience::Clients, || web::to(esign::request)),
    row("POST", "/api/v1/doclocker/init", Audience::Clients, || web::to(doclocker::init)),
    row("POST", "/api/v1/estamp/init", Audience::Clients, || web::to(estamp::init)),
    row("POST", "/api/v1/wealth/consents", Audience::Clients, || web::to(wealth::consents)),
    row("POST", "/api/v1/esign/status", Audience::Clients, || web::to(esign::status)),
    row("GET", "/api/v1/doclocker/details/{transactionId}", Audience::Clients, || web::to(doclocker::details)),
    row("PUT", "/api/v1/user/webhook", Audience::Clients, || web::to(webhook_urls::register)),
    row("GET", "/api/v1/user/webhook", Audience::Clients, || web::to(webhook_urls::list)),
    row("GET", "/api/v1/status", Audience::Clients, || web::to(status::show)),
    row("GET", "/.well-known/jwks.json", Audience::Anybody, || web::to(intent_keys::list)),
    row("GET", "/openapi.json", Audience::Anybody, || web::to(openapi::document)),
    row("POST", "/cb/{txnId}/{capability}", Audience::Residents, || web::to(ovse::receive)),
];
