//! The routes of the API.

use actix_web::web;
use sakshi_web::routing::{Audience, Row, row};

use super::events::{create, patch, read, registrations};
use super::flows::{doclocker, esign, estamp, wealth};
use super::ovse::{callback, init, qr_intent, result};
use super::{credits, openapi, pan, ping, polls, webhook_urls};

const EVENTS: &str = "/api/v1/nationalid-ovse/events";
const EVENT: &str = "/api/v1/nationalid-ovse/events/{eventId}";

/// Every route of the API.
pub const ROUTES: &[Row] = &[
    row("GET", "/api/ping", Audience::Anybody, || web::to(ping::ping)),
    row("POST", "/api/v1/nationalid-ovse/init", Audience::Clients, || web::to(init::init)),
    row("POST", "/api/v1/nationalid-ovse/qr-intent", Audience::Clients, || web::to(qr_intent::qr_intent)),
    row("GET", "/api/v1/nationalid-ovse/result/{txnId}", Audience::Clients, || web::to(result::result)),
    row("POST", EVENTS, Audience::Clients, || web::to(create::create)),
    row("GET", EVENTS, Audience::Clients, || web::to(read::list)),
    row("GET", EVENT, Audience::Clients, || web::to(read::show)),
    row("PATCH", EVENT, Audience::Clients, || web::to(patch::patch)),
    row("GET", "/api/v1/nationalid-ovse/events/{eventId}/registrations", Audience::Clients, || web::to(registrations::list)),
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
    row("POST", "/cb/{txnId}/{capability}", Audience::Residents, || web::to(callback::receive)),
];
